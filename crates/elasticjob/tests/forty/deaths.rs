//! L1, L3, L4, L24: what the dead held, and who takes it.

use std::time::Duration;

use elasticjob::{
    coordination::{
        ledger::State,
        member::{Ended, News},
        tree::Part,
    },
    job::{Misfire, Reason},
};

use crate::{
    members::{id, items, with_failover},
    nodes::Book,
    stage::{Stage, TICK, fire, job},
};

#[tokio::test(start_paused = true)]
async fn l01_when_all_have_died_and_two_come_back_together_everything_goes_on() {
    let stage = Stage::new().await;
    let dead = [stage.join(1, with_failover(4)).await, stage.join(2, with_failover(4)).await];
    for actor in &dead {
        actor.claim(&fire(1)).await;
    }
    for actor in dead {
        actor.die().await;
    }
    assert!(stage.running(0).await.is_some(), "what they ran is still written there");

    let (three, four) = (stage.line().await, stage.line().await);
    let (three, four) = tokio::join!(
        stage.join_as(id(3), with_failover(4), three),
        stage.join_as(id(4), with_failover(4), four)
    );
    let mut both = [three.unwrap(), four.unwrap()];
    for actor in &both {
        actor.takes_over().await;
    }
    stage.settle().await;
    let mut again = Vec::new();
    for actor in &mut both {
        while let Some(taken) = actor.take().await {
            assert_eq!(taken.fire, fire(1));
            again.extend(items(&taken));
            actor.finish(taken).await;
            stage.settle().await;
        }
    }
    let mut next = [both[0].run(&fire(2)).await, both[1].run(&fire(2)).await].concat();

    again.sort_unstable();
    assert_eq!(again, [0, 1, 2, 3], "once for each death");
    next.sort_unstable();
    assert_eq!(next, [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn l03_the_shards_of_one_that_dies_disabled_are_taken_over() {
    for is_removed in [false, true] {
        let stage = Stage::new().await;
        let victim = stage.join(1, with_failover(1)).await;
        let lost = victim.claim(&fire(1)).await;
        let mut heir = stage.join(2, with_failover(1)).await;
        let server = stage.tree.server("10.0.0.1");
        stage.write(&server, "DISABLED").await;
        if is_removed {
            stage.remove(&server).await;
        }
        stage.settle().await;

        victim.die().await;

        assert_eq!(items(&heir.take().await.unwrap()), items(&lost), "removed: {is_removed}");
    }
}

#[tokio::test(start_paused = true)]
async fn l04_what_a_dead_one_had_taken_over_and_what_it_ran_itself_are_both_found() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    let mut heir = stage.join(1, with_failover(2)).await;
    stage.settle().await;
    // Left by switching failover off half way: it names the one that now dies with a run of its own.
    stage.write(&stage.tree.shard(0, Part::Failovering), java.id).await;
    java.runs(&stage.tree, 1).await;

    java.dies().await;
    stage.pass_seconds(2).await;

    assert_eq!(stage.running(1).await, None, "nothing waits for the dead");
    assert!(stage.is_flagged(0).await && stage.is_flagged(1).await);
    let mut again = Vec::new();
    while let Some(taken) = heir.take().await {
        again.extend(items(&taken));
        heir.finish(taken).await;
    }
    assert_eq!(again, [0, 1]);
    heir.member.stop_taking_over().await;
    assert!(!stage.is_there(&stage.tree.shard(0, Part::Failovering)).await);
    // Whatever is still flagged when failover is switched off is nobody's to take any more.
    stage.write(&stage.tree.failover_item(0), "").await;
    stage.write(&stage.tree.config(), &job(2).to_yaml()).await;
    stage.pass_seconds(TICK).await;
    assert!(!stage.is_flagged(0).await);
}

#[tokio::test(start_paused = true)]
async fn l24_whoever_may_not_run_takes_nothing_over_and_whoever_takes_over_runs_its_own_as_well() {
    let stage = Stage::new().await;
    let victim = stage.join(1, with_failover(12)).await;
    let lost = victim.claim(&fire(1)).await;
    assert_eq!(items(&lost).len(), 12);
    let mut disabled = stage.join(2, with_failover(12)).await;
    let mut heir = stage.join(3, with_failover(12)).await;
    stage.write(&stage.tree.server("10.0.0.2"), "DISABLED").await;
    stage.write(&stage.tree.shard(3, Part::Disabled), "").await;
    stage.settle().await;

    victim.die().await;
    stage.settle().await;
    assert!(disabled.take().await.is_none());
    let taken = heir.take().await.unwrap();
    assert_eq!(
        items(&taken),
        [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11],
        "in order of number, not of text"
    );
    heir.finish(taken).await;

    // At the tick at which it took over, its own shards run all the same.
    let stage = Stage::new().await;
    let (survivor, dying) = (Book::open(), Book::closed());
    let (_survives, _line) = stage.node(1, with_failover(2), &survivor).await;
    let (dies, line) = stage.node(2, with_failover(2), &dying).await;
    stage.pass(Duration::from_millis(9_900)).await;
    survivor.clear();
    survivor.close();
    drop(dies);
    line.die().await;
    stage.settle().await;
    stage.pass(Duration::from_millis(200)).await;
    survivor.let_end();
    stage.settle().await;
    let own: Vec<_> = survivor.what().into_iter().filter(|(item, _)| *item == 1).collect();
    assert_eq!(survivor.what()[0], (0, Reason::Failover), "{:?}", survivor.what());
    assert_eq!(own.len(), 1, "{:?}", survivor.what());
}

#[tokio::test(start_paused = true)]
async fn what_the_dead_ran_does_not_wait_for_what_the_living_run() {
    let stage = Stage::new().await;
    let (survivor, dying) = (Book::closed(), Book::closed());
    let (_survives, _line) = stage.node(1, with_failover(2), &survivor).await;
    let (dies, line) = stage.node(2, with_failover(2), &dying).await;
    stage.pass_seconds(6).await;
    assert_eq!(survivor.what(), [(1, Reason::Due)], "it takes long");

    drop(dies);
    line.die().await;
    stage.settle().await;

    assert_eq!(survivor.what(), [(0, Reason::Failover), (1, Reason::Due)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_does_not_wait_for_what_was_taken_over() {
    let stage = Stage::new().await;
    let (survivor, dying) = (Book::open(), Book::closed());
    let job = || with_failover(2).if_late(Misfire::Skip);
    let (_survives, _line) = stage.node(1, job(), &survivor).await;
    let (dies, line) = stage.node(2, job(), &dying).await;
    stage.pass_seconds(6).await;
    survivor.clear();
    survivor.close();
    drop(dies);
    line.die().await;
    stage.settle().await;
    assert_eq!(survivor.what(), [(0, Reason::Failover)], "it has begun, and takes long");

    stage.pass_seconds(5).await;

    assert_eq!(survivor.what(), [(0, Reason::Failover), (1, Reason::Due)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_while_somebody_else_takes_the_shard_over_is_made_up_for() {
    let stage = Stage::new().await;
    let mut ours = stage.join(1, with_failover(1)).await;
    let java = stage.java("10.0.0.3@-@4711").await;
    java.leads(&stage.tree).await;
    stage.java_deals(&[&ours.id()]).await;
    for part in [Part::Failover, Part::Failovering, Part::Running] {
        stage.write(&stage.tree.shard(0, part), java.id).await;
    }
    stage.settle().await;

    assert_eq!(ours.run(&fire(1)).await, Vec::<u32>::new());
    assert!(stage.is_there(&stage.tree.shard(0, Part::Misfire)).await);
    for part in [Part::Failover, Part::Failovering, Part::Running] {
        stage.remove(&stage.tree.shard(0, part)).await;
    }
    ours.told(|news| *news == News::Missed).await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_while_the_tree_is_listed_anew_leaves_nothing_behind() {
    let stage = Stage::new().await;
    let victim = stage.join(1, with_failover(1)).await;
    victim.claim(&fire(1)).await;
    let mut heir = stage.join(2, with_failover(1)).await;
    victim.die().await;
    let taken = heir.take().await.unwrap();

    heir.line.link.cut();
    stage.pass_seconds(1).await;
    heir.line.lists(true);
    heir.line.link.heal();
    stage.settle().await;
    heir.finish(taken).await;
    heir.line.lists(false);
    stage.settle().await;

    for part in Part::HOLDERS {
        let path = stage.tree.shard(0, part);
        assert!(!stage.is_there(&path).await, "{path} would keep its owner from running it");
    }
    assert_eq!(heir.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_withdrawn_leaves_everything_as_it_was() {
    let stage = Stage::new().await;
    let victim = stage.join(1, with_failover(1)).await;
    victim.claim(&fire(1)).await;
    let mut heir = stage.join(2, with_failover(1)).await;
    victim.die().await;
    stage.settle().await;
    stage.write(&stage.tree.shard(0, Part::Misfire), "").await;
    stage.settle().await;

    for _ in 0..2 {
        let taken = heir.take().await.unwrap();
        assert!(!stage.is_flagged(0).await);
        let withdrawn = items(&taken).into_iter().map(|item| (item, Ended::Withdrawn)).collect();
        heir.member.claims().release(withdrawn).await.unwrap();
        stage.settle().await;

        assert!(stage.is_flagged(0).await, "somebody else can take it over");
        assert!(stage.is_there(&stage.tree.shard(0, Part::Misfire)).await);
        assert_eq!(stage.page(0).await.state, State::Lost);
        stage.pass_seconds(1).await;
    }
}
