//! L5, L6, L10, L17, L19: how the ancestor's dealing waits for ever, or deals to the wrong ones.

use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    coordination::{
        ledger::State,
        member::{News, Refused, Why},
        tree::Part,
    },
    registry::{Create, Kind, Op, Path, Registry, plant},
};

use crate::{
    members::{Actor, id, with_failover},
    stage::{Line, Stage, TICK, fire, job},
};

#[tokio::test(start_paused = true)]
async fn l05_whoever_joins_while_shards_are_dealt_gets_its_share() {
    let stage = Stage::new().await;
    let leader = stage.join(1, job(3)).await;
    let is_dealt = |ops: &[Op]| {
        let gone = |op: &Op| matches!(op, Op::Delete { path, .. } if path.name() == "processing");
        ops.iter().any(gone)
    };
    let mut held_up = leader.line.hold_up(is_dealt);

    // The leader deals for two; before that is written a third one is there.
    let two = stage.join_as(id(2), job(3), stage.line().await).await.unwrap();
    held_up.reached().await;
    let three = stage.join_as(id(3), job(3), stage.line().await).await.unwrap();
    held_up.let_go();
    stage.settle().await;
    let owners: BTreeSet<String> = stage.owners(3).await.into_iter().collect();
    assert_eq!(owners, BTreeSet::from([leader.id(), two.id(), three.id()]));

    // A Java leader that forgot us is reminded: it deals when a server is written, be it with what it said before.
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    java.leads(&stage.tree).await;
    let _ours = stage.join(1, job(2)).await;
    stage.java_deals(&[java.id, java.id]).await;
    stage.pass_seconds(5).await;
    let server = stage.tree.server("10.0.0.1");
    let before = stage.stat(&server).await.unwrap().version;
    stage.pass_seconds(3 * TICK).await;
    assert!(stage.stat(&server).await.unwrap().version > before);
    assert_eq!(stage.text(&server).await.as_deref(), Some("ENABLED"));
}

#[tokio::test(start_paused = true)]
async fn l06_a_long_run_holds_up_neither_the_dealing_nor_the_runs_of_others() {
    let stage = Stage::new().await;
    let busy = stage.join(1, job(4)).await;
    let long = busy.try_claim(&fire(1), Why::Asked(BTreeSet::from([0])), Duration::ZERO).await;
    let long = long.unwrap();

    let joined = stage.join(2, job(4)).await;
    let owners = stage.owners(4).await;
    assert_eq!(owners[0], busy.id(), "what runs stays");
    assert!(owners.contains(&joined.id()), "the rest is dealt meanwhile: {owners:?}");
    let run = [joined.run(&fire(2)).await, busy.run(&fire(2)).await].concat();
    assert_eq!(run.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&1, &2, &3]));
    busy.finish(long).await;
    stage.settle().await;
    let shares = stage.owners(4).await.iter().filter(|owner| **owner == joined.id()).count();
    assert_eq!(shares, 2, "it moves when its run is over");

    // A Java leader that is busy itself does not deal: a fire waits as long as it may, and not longer.
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    java.leads(&stage.tree).await;
    let ours = stage.join(1, job(1)).await;
    stage.java_deals(&[&ours.id()]).await;
    stage.write(&stage.tree.necessary(), "").await;
    stage.settle().await;
    let due = fire(1);
    let (refused, ()) = tokio::join!(
        ours.try_claim(&due, Why::Due, Duration::from_secs(5)),
        stage.pass(Duration::from_millis(5_600))
    );
    assert!(matches!(refused, Err(Refused::Resharding)), "{refused:?}");
}

/// Somebody who queues before all others and never acts.
async fn stuck_in(line: &Line, latch: &Path) -> Path {
    plant(&*line.registry, latch).await.unwrap();
    let name = latch.join("_c_00000000-0000-0000-0000-000000000000-latch-").unwrap();
    let kind = Kind::EphemeralSequential(line.registry.session().id());
    let created = line.registry.create(Create::new(&name, "10.0.0.9@-@9", kind)).await.unwrap();
    created.path().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn l10_whoever_is_stuck_in_a_latch_holds_up_only_what_needs_it() {
    let stage = Stage::new().await;
    let (mut one, victim) =
        (stage.join(1, with_failover(2)).await, stage.join(2, with_failover(2)).await);
    victim.claim(&fire(1)).await;
    let stuck = stage.line().await;
    stuck_in(&stuck, &stage.tree.election_latch()).await;
    let in_failover = stuck_in(&stuck, &stage.tree.failover_latch()).await;

    // Nobody can be elected, nobody can take over: fires and triggers go on.
    stage.remove(&stage.tree.leader()).await;
    victim.die().await;
    one.takes_over().await;
    stage.settle().await;
    stage.write(&stage.tree.trigger(one.id()), "").await;
    assert_eq!(one.run(&fire(1)).await.len(), 1, "its own shard");
    one.told(|news| matches!(news, News::Triggered(_))).await;
    assert!(one.take().await.is_none());

    stage.remove(&in_failover).await;
    assert_eq!(one.take().await.unwrap().fire, fire(1));
    stuck.die().await;
    stage.pass_seconds(30).await;
    assert_eq!(stage.text(&stage.tree.leader()).await, Some(one.id()));
}

#[tokio::test(start_paused = true)]
async fn l17_one_address_that_begins_like_another_is_another() {
    let stage = Stage::new().await;
    let short = stage.join(1, job(2)).await;
    let long = stage.join(12, job(2)).await;
    stage.write(&stage.tree.server("10.0.0.1"), "DISABLED").await;
    stage.settle().await;
    assert_eq!(stage.owners(2).await, vec![long.id(); 2]);

    // Our own node is gone while the longer address is online: we are out, and nothing breaks.
    stage.write(&stage.tree.server("10.0.0.1"), "ENABLED").await;
    stage.settle().await;
    let Actor { mut member, line: _line } = short;
    stage.remove(&stage.tree.instance(member.id())).await;
    let mut told = None;
    while told != Some(News::ShutDown) {
        told = member.news().await;
    }
    member.leave().await;
    stage.settle().await;
    assert_eq!(stage.owners(2).await, vec![long.id(); 2]);
    assert_eq!(long.run(&fire(1)).await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn l19_shrinking_lets_what_runs_finish_and_then_leaves_nothing_above() {
    let stage = Stage::new().await;
    let ours = stage.join(1, job(3)).await;
    let claimed = ours.claim(&fire(1)).await;
    // Somebody left a gap.
    stage.write(&stage.tree.shard(7, Part::Misfire), "").await;

    stage.write(&stage.tree.config(), &job(1).to_yaml()).await;
    stage.settle().await;
    assert_eq!(stage.children(&stage.tree.sharding()).await, ["0", "1", "2"], "what runs stays");
    assert!(claimed.shards.iter().all(|shard| !shard.hold.is_lost()));
    ours.finish(claimed).await;
    stage.settle().await;

    assert_eq!(stage.children(&stage.tree.sharding()).await, ["0"]);
    assert_eq!(stage.page(2).await.state, State::Done);
    assert_eq!(ours.run(&fire(2)).await, [0]);
}
