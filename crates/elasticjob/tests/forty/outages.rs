//! L9, L11, L12, L13, L23: what the ancestor forgets when the registry does not answer, and how it does not stop.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::State,
        member::{News, Refused, Why},
        tree::Part,
    },
    job::Reconcile,
    registry::{Create, Expected, Op, Registry},
    runtime::CancelReason,
};

use crate::{
    members::{items, with_failover},
    nodes::Book,
    stage::{Stage, TICK, fire, job},
};

#[tokio::test(start_paused = true)]
async fn l09_what_happened_while_the_line_was_cut_is_seen_afterwards() {
    let stage = Stage::new().await;
    let victim = stage.join(1, with_failover(3)).await;
    let mut ours = stage.join(2, with_failover(3)).await;
    let lost = victim.claim(&fire(1)).await;
    let mine = ours.claim(&fire(1)).await;
    let trampled = items(&mine)[0];

    ours.line.link.cut();
    stage.settle().await;
    victim.die().await;
    stage.write(&stage.tree.trigger(ours.id()), "").await;
    // Gone and there again, at the same version, with the same data: only its creation tells.
    let running = stage.tree.shard(trampled, Part::Running);
    stage
        .multi(vec![
            Op::Delete { path: running.clone(), expected: Expected::Any },
            Op::Create(Create::persistent(&running, ours.id())),
        ])
        .await;
    ours.line.link.heal();
    stage.settle().await;

    ours.told(|news| matches!(news, News::Triggered(_))).await;
    assert!(stage.is_flagged(items(&lost)[0]).await, "the death nobody saw");
    assert!(mine.shards[0].hold.is_lost());
    assert_eq!(mine.shards[0].hold.cancel().reason(), Some(CancelReason::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn l11_what_the_registry_did_not_answer_is_neither_absent_nor_forgotten() {
    let stage = Stage::new().await;
    let ours = stage.join(1, with_failover(1)).await;
    for (nth, is_carried_out) in [(1, true), (2, false)] {
        let claimed = ours.claim(&fire(nth)).await;
        let link = &ours.line.link;
        if is_carried_out {
            link.cut_after_next_request();
        } else {
            link.cut();
        }
        tokio::join!(ours.finish(claimed), async {
            stage.pass_seconds(1).await;
            let unknown = ours.line.registry.get(&stage.tree.config()).await;
            assert!(unknown.is_err_and(|error| error.is_outage()), "not to be taken for absent");
            link.heal();
            stage.pass_seconds(2).await;
        });

        assert_eq!(stage.running(0).await, None, "carried out: {is_carried_out}");
        assert_eq!(stage.page(0).await.state, State::Done);
    }
    // A claim whose answer is lost is taken back, and the fire is claimed again.
    ours.line.link.cut_after_next_request();
    let due = fire(3);
    let lost = ours.try_claim(&due, Why::Due, Duration::ZERO).await;
    assert!(matches!(&lost, Err(Refused::Registry(error)) if error.is_outage()), "{lost:?}");
    ours.line.link.heal();
    stage.pass_seconds(2).await;
    assert_eq!(ours.run(&due).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn l12_the_second_look_needs_no_reconciling_and_survives_an_error() {
    let stage = Stage::new().await;
    let mut ours = stage.join(1, with_failover(2).reconcile(Reconcile::OFF)).await;
    let nobody = "10.0.0.9@-@4711";
    // No instance is seen to go: only whoever looks finds it.
    stage.write(&stage.tree.shard(0, Part::Running), nobody).await;
    stage.pass_seconds(TICK).await;
    assert_eq!(stage.running(0).await, None);
    assert_eq!(items(&ours.take().await.unwrap()), [0]);
    ours.member.stop_taking_over().await;

    ours.line.link.cut();
    stage.pass_seconds(2 * TICK).await;
    ours.line.link.heal();
    stage.settle().await;
    stage.write(&stage.tree.shard(1, Part::Running), nobody).await;
    stage.pass_seconds(TICK).await;
    assert_eq!(stage.running(1).await, None, "it is still looked at");
}

#[tokio::test(start_paused = true)]
async fn l13_a_reconnect_leaves_the_servers_status_as_it_is() {
    let stage = Stage::new().await;
    let book = Book::open();
    let (_node, line) = stage.node(1, job(1), &book).await;
    let server = stage.tree.server("10.0.0.1");
    for status in ["ENABLED", "DISABLED"] {
        stage.write(&server, status).await;
        let before = stage.stat(&server).await.unwrap();
        line.link.cut();
        stage.pass_seconds(2).await;
        line.link.heal();
        stage.pass_seconds(2).await;
        line.link.expire();
        stage.pass_seconds(3).await;
        assert_eq!(stage.children(&stage.tree.instances()).await.len(), 1, "it is back");
        assert_eq!(stage.stat(&server).await.unwrap().changed, before.changed, "{status}");
    }
    // One that is gone is written again, as the configuration says.
    stage.remove(&server).await;
    line.link.expire();
    stage.pass_seconds(3).await;
    assert_eq!(stage.text(&server).await.as_deref(), Some("ENABLED"));
}

#[tokio::test(start_paused = true)]
async fn l23_a_node_can_stop_whatever_it_waits_for() {
    // A Java leader that never deals.
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    java.leads(&stage.tree).await;
    stage.write(&stage.tree.config(), &job(1).to_yaml()).await;
    stage.write(&stage.tree.necessary(), "").await;
    let book = Book::open();
    let (node, _line) = stage.node(1, job(1), &book).await;
    stage.pass_seconds(7).await;
    let took = stage.stop(node).await;
    assert!(took < Duration::from_secs(10), "{took:?}");

    // A registry out of reach.
    let stage = Stage::new().await;
    let (node, line) = stage.node(1, job(1), &book).await;
    stage.pass_seconds(3).await;
    line.link.cut();
    stage.pass_seconds(3).await;
    let took = stage.stop(node).await;
    assert!(took < Duration::from_secs(10), "{took:?}");

    // A run that does not end by itself.
    let stage = Stage::new().await;
    let endless = Book::closed();
    let (node, _line) = stage.node(1, job(1), &endless).await;
    stage.pass_seconds(5).await;
    let took = stage.stop(node).await;
    assert!(took < Duration::from_secs(40), "{took:?}");
    assert_eq!(
        endless.tries()[0].cancelled.map(|(reason, _)| reason),
        Some(CancelReason::ShuttingDown)
    );
}
