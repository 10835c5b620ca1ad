//! S1 to S15: how the ancestor runs a shard twice, or two runs of it at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use elasticjob::{
    coordination::{
        claim::{Claimant, Flag, Refusal, Stake},
        latch,
        ledger::{Seen, State},
        member::{News, Refused, Why},
        tree::Part,
        view::{Document, Known, ShardView},
    },
    job::{Failover, InstanceId, Monitor, Reason, Strategy},
    registry::{Registry, Version},
    runtime::{CancelReason, Clock},
};

use crate::{
    members::{Actor, id, items, with_failover},
    nodes::Book,
    stage::{Line, Stage, creates, fire, job},
};

fn claimant<'a>(stage: &'a Stage, me: &'a InstanceId, line: &Line) -> Claimant<'a> {
    Claimant {
        tree: &stage.tree,
        me,
        session: line.registry.session().id(),
        config: Version(0),
        monitor: Monitor::Executions,
        failover: Failover::TakeOver,
    }
}

async fn seen(stage: &Stage, shard: u32) -> Seen {
    let version = stage.stat(&stage.tree.page(shard)).await.unwrap().version;
    Seen { page: stage.page(shard).await, version: Some(version) }
}

#[tokio::test(start_paused = true)]
async fn s01_a_run_is_told_to_end_before_its_session_can_and_leaves_its_heir_alone() {
    let stage = Stage::new().await;
    let (cut_off, heir) = (Book::closed(), Book::open());
    let hourly = || with_failover(2).cron("5 0 * * * ?").unwrap();
    let (_heirs_node, _line) = stage.node(1, hourly(), &heir).await;
    let (_node, line) = stage.node(2, hourly(), &cut_off).await;
    stage.pass_seconds(5).await;
    let lost = cut_off.tries()[0].clone();
    heir.clear();
    heir.close();

    // The registry believes in the session for ten more seconds at most.
    line.link.cut();
    stage.pass_seconds(10).await;
    let ended_at = stage.clock.now();
    assert!(heir.tries().is_empty(), "as long as it may live nobody takes over");
    line.link.expire();
    stage.settle().await;
    let (told, again) = (cut_off.tries()[0].cancelled, heir.tries());
    let claimed_in = stage.claimed_in(lost.item).await;
    line.link.heal();
    stage.pass_seconds(2).await;

    let (reason, told_at) = told.expect("it is told to end");
    assert_eq!(reason, CancelReason::LeaseLost);
    assert!(told_at < ended_at, "before the registry can have ended the session");
    assert_eq!((again.len(), again[0].item, again[0].reason), (1, lost.item, Reason::Failover));
    assert!(again[0].token > lost.token);
    assert_eq!(stage.claimed_in(lost.item).await, claimed_in, "whoever comes back leaves it alone");
    assert!(stage.running(lost.item).await.is_some_and(|id| id.starts_with("10.0.0.1@-@")));
    heir.let_end();
    stage.settle().await;
    assert_eq!(stage.page(lost.item).await.state, State::Done);
    assert_eq!((cut_off.tries().len(), heir.tries().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn s02_a_reconnect_in_the_same_session_is_no_death_neither_ours_nor_javas() {
    let stage = Stage::new().await;
    let observer = stage.join(1, with_failover(3)).await;
    let ours = stage.join(2, with_failover(3)).await;
    let java = stage.java("10.0.0.3@-@4711").await;
    stage.settle().await;
    let claimed = ours.claim(&fire(1)).await;
    let of_java = stage.owners(3).await.iter().position(|owner| owner == java.id).unwrap();
    java.runs(&stage.tree, of_java as u32).await;
    let entered = stage.stat(&stage.tree.instance(ours.member.id())).await.unwrap().created;

    ours.line.link.cut();
    stage.pass_seconds(2).await;
    ours.line.link.heal();
    java.vanishes(&stage.tree).await;
    stage.pass(Duration::from_millis(400)).await;
    java.returns(&stage.tree).await;
    stage.pass_seconds(5).await;

    assert_eq!(stage.stat(&stage.tree.instance(ours.id())).await.unwrap().created, entered);
    assert!(!claimed.shards[0].hold.is_lost());
    assert_eq!(stage.children(&stage.tree.failover_items()).await, Vec::<String>::new());
    assert_eq!(stage.running(of_java as u32).await.as_deref(), Some(java.id));
    drop(observer);
}

#[tokio::test(start_paused = true)]
async fn s02_what_java_takes_for_a_death_in_a_reconnect_is_not_run_beside_the_living() {
    let stage = Stage::new().await;
    let mut ours = stage.join(1, with_failover(2)).await;
    let java = stage.java("10.0.0.3@-@4711").await;
    stage.settle().await;
    let of_java = stage.owners(2).await.iter().position(|owner| owner == java.id).unwrap() as u32;
    let (running, flag) =
        (stage.tree.shard(of_java, Part::Running), stage.tree.failover_item(of_java));
    // As Java does it, with a Java peer that sees it: the node goes and comes, the shard is flagged, and what still runs is forgotten.
    java.runs(&stage.tree, of_java).await;
    java.vanishes(&stage.tree).await;
    stage.write(&flag, "").await;
    java.returns(&stage.tree).await;
    stage.remove(&running).await;
    stage.settle().await;

    assert!(ours.take().await.is_none());
    assert!(stage.stat(&flag).await.is_none(), "nobody else runs it either");
    // The same, and it does not come back.
    java.runs(&stage.tree, of_java).await;
    java.vanishes(&stage.tree).await;
    stage.write(&flag, "").await;
    stage.remove(&running).await;
    stage.settle().await;
    assert!(ours.take().await.is_none(), "it may come back");
    stage.pass_seconds(1).await;
    let taken = ours.take().await.unwrap();
    assert_eq!(taken.shards.iter().map(|shard| shard.item).collect::<Vec<_>>(), [of_java]);
}

#[tokio::test(start_paused = true)]
async fn s03_a_reconnect_takes_away_no_running_neither_our_own_nor_anybody_elses() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.3@-@4711").await;
    java.leads(&stage.tree).await;
    let mut ours = stage.join(1, with_failover(2)).await;
    stage.java_deals(&[&ours.id(), &ours.id()]).await;
    stage.settle().await;
    let claimed =
        ours.try_claim(&fire(1), Why::Asked(BTreeSet::from([0])), Duration::ZERO).await.unwrap();
    // Java has taken the other one over.
    java.runs(&stage.tree, 1).await;
    let before = [stage.claimed_in(0).await, stage.claimed_in(1).await];

    ours.line.link.cut();
    stage.pass_seconds(2).await;
    ours.line.link.heal();
    stage.pass_seconds(2).await;
    assert!(!claimed.shards[0].hold.is_lost());
    assert_eq!([stage.claimed_in(0).await, stage.claimed_in(1).await], before);
    // The same in a new session: what is Java's stays Java's.
    ours.line.link.expire();
    ours.told(|news| *news == News::SessionLost).await;
    stage.pass_seconds(2).await;

    assert_eq!(stage.claimed_in(1).await, before[1]);
    assert_eq!(stage.running(1).await.as_deref(), Some(java.id));
}

#[tokio::test(start_paused = true)]
async fn s04_a_claim_is_one_atomic_create_and_the_loser_marks_a_misfire() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.3@-@4711").await;
    java.leads(&stage.tree).await;
    let ours = stage.join(1, job(2)).await;
    stage.java_deals(&[&ours.id(), &ours.id()]).await;
    stage.settle().await;

    // We have looked, nobody runs shard 1, and our claim is on its way: only now Java starts.
    let mut held_up = ours.line.hold_up(|ops| creates(ops, "/running"));
    let due = fire(1);
    let (claimed, ()) = tokio::join!(ours.claim(&due), async {
        held_up.reached().await;
        java.runs(&stage.tree, 1).await;
        held_up.let_go();
    });

    assert_eq!(items(&claimed), [0]);
    assert_eq!(stage.running(1).await.as_deref(), Some(java.id));
    assert!(stage.is_there(&stage.tree.shard(1, Part::Misfire)).await);
    assert!(!stage.is_there(&stage.tree.shard(0, Part::Misfire)).await);
    // And a claim that Java tramples on all the same is noticed.
    stage.remove(&stage.tree.shard(0, Part::Running)).await;
    java.runs(&stage.tree, 0).await;
    stage.settle().await;
    assert!(claimed.shards[0].hold.is_lost());
    assert_eq!(claimed.shards[0].hold.cancel().reason(), Some(CancelReason::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn s05_without_monitoring_a_shard_that_moves_still_has_one_run_at_a_time() {
    let stage = Stage::new().await;
    let blind = || job(1).monitor(Monitor::Nothing);
    let before = stage.join(1, blind()).await;
    let claimed = before.claim(&fire(1)).await;
    let after = stage.join(2, blind()).await;
    stage.write(&stage.tree.server("10.0.0.1"), "DISABLED").await;
    stage.settle().await;
    assert_eq!(stage.owners(1).await, [after.id()], "nothing shows that it runs, so it moves");

    let early = after.try_claim(&fire(2), Why::Due, Duration::ZERO).await;
    assert!(matches!(early, Err(Refused::Resharding)), "{early:?}");
    before.finish(claimed).await;
    stage.settle().await;

    assert_eq!(after.run(&fire(2)).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn s06_a_claim_that_arrives_after_its_shards_have_moved_is_withdrawn() {
    let stage = Stage::new().await;
    let leader = stage.join(1, job(3)).await;
    let late = stage.join(2, job(3)).await;
    let due = fire(1);

    let mut held_up = late.line.hold_up(|ops| creates(ops, "/running"));
    let (claimed, joined) = tokio::join!(late.claim(&due), async {
        held_up.reached().await;
        let joined = stage.join(3, job(3)).await;
        held_up.let_go();
        joined
    });
    let mine = items(&claimed);
    late.finish(claimed).await;
    let mut run = [mine, joined.run(&due).await, leader.run(&due).await];

    let owners = stage.owners(3).await;
    let of = |actor: &Actor| {
        let owned = (0..).zip(&owners).filter(|(_, owner)| **owner == actor.id());
        owned.map(|(shard, _)| shard).collect::<Vec<u32>>()
    };
    assert_eq!(run, [of(&late), of(&joined), of(&leader)], "each runs what is its own by now");
    run.sort();
    assert_eq!(run.concat(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn s07_a_survivor_that_is_slow_neither_flags_again_nor_takes_the_new_run_away() {
    let stage = Stage::new().await;
    let mut heir = stage.join(2, with_failover(1)).await;
    let slow = stage.line().await;
    let dead = stage.line().await;
    let (dead_id, slow_id) = (id(7), id(8));
    let theirs = claimant(&stage, &dead_id, &dead);
    let stakes = [Stake::new(0, Seen::default())];
    dead.registry.multi(theirs.claim(&fire(1), &stakes).ops()).await.unwrap();
    // The slow one sees who died and what it ran, and falls asleep before it acts.
    let running = dead.registry.get(&stage.tree.shard(0, Part::Running)).await.unwrap().unwrap();
    let document = Document {
        data: running.data,
        version: running.stat.version,
        created: running.stat.created,
        written_at_ms: 0,
    };
    let view = ShardView { running: Some(Known::Read(Box::new(document))), ..ShardView::default() };
    let before = seen(&stage, 0).await;
    let lost = before.page.lost(&dead_id);
    let too_late =
        claimant(&stage, &slow_id, &slow).bury(&dead_id, 0, &before, &lost, &view, Flag::Raise);

    // The other one buries and takes over.
    dead.die().await;
    stage.remove(&stage.tree.process(&dead_id)).await;
    stage.pass_seconds(80).await;
    let taken = heir.take().await.unwrap();
    let claimed_in = stage.claimed_in(0).await;
    let refused = slow.registry.multi(too_late.ops()).await.unwrap_err();

    assert_eq!(items(&taken), [0]);
    assert_eq!(too_late.refusal(&refused), Some(Refusal::Page(0)));
    assert!(!stage.is_flagged(0).await, "nobody takes it a second time");
    assert_eq!(stage.claimed_in(0).await, claimed_in);
    assert!(!taken.shards[0].hold.is_lost());
}

#[tokio::test(start_paused = true)]
async fn s08_a_node_that_stops_is_there_until_what_it_runs_has_ended() {
    let stage = Stage::new().await;
    let (leaving, staying) = (Book::closed(), Book::open());
    let (_stays, _line) = stage.node(1, with_failover(2), &staying).await;
    let (leaves, _line) = stage.node(2, with_failover(2), &leaving).await;
    stage.pass_seconds(5).await;
    let shard = leaving.tries()[0].item;
    let instances = stage.children(&stage.tree.instances()).await;

    let (took, ()) = tokio::join!(stage.stop(leaves), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(stage.children(&stage.tree.instances()).await, instances);
        assert!(stage.running(shard).await.is_some());
        assert!(!stage.is_flagged(shard).await);
        leaving.let_end();
    });
    stage.settle().await;

    assert!(took < Duration::from_secs(30), "it had not to be told to end: {took:?}");
    assert_eq!(leaving.tries().len(), 1);
    assert_eq!(leaving.tries()[0].cancelled, None);
    assert_eq!(stage.children(&stage.tree.instances()).await.len(), 1);
    assert!(staying.tries().iter().all(|one| one.reason != Reason::Failover));
}

#[tokio::test(start_paused = true)]
async fn s09_a_lost_shard_that_ran_again_at_its_next_fire_is_not_taken_over_as_well() {
    let stage = Stage::new().await;
    let dead = stage.join(1, with_failover(1)).await;
    dead.claim(&fire(1)).await;
    let mut heir = stage.join(2, with_failover(1)).await;
    dead.die().await;
    stage.settle().await;
    assert!(stage.is_flagged(0).await);

    // The next fire comes first.
    assert_eq!(heir.run(&fire(2)).await, [0]);
    assert!(!stage.is_flagged(0).await);
    assert!(heir.take().await.is_none());
    heir.member.stop_taking_over().await;

    // Java runs the shard and leaves the flag: that it ran was seen.
    let java = stage.java("10.0.0.3@-@4711").await;
    stage.settle().await;
    stage.write(&stage.tree.failover_item(0), "").await;
    stage.settle().await;
    java.runs(&stage.tree, 0).await;
    stage.settle().await;
    stage.remove(&stage.tree.shard(0, Part::Running)).await;
    stage.settle().await;
    assert!(heir.take().await.is_none());
    assert!(!stage.is_flagged(0).await);
}

#[tokio::test(start_paused = true)]
async fn s10_of_two_instances_on_one_host_a_wandering_shard_has_one_turn() {
    let stage = Stage::new().await;
    let wandering = || job(1).strategy(&Strategy::SingleShardingBalance);
    let mut there = Vec::new();
    for process in [11, 12, 13] {
        let id = InstanceId::new([10, 0, 0, 1].into(), process, 7);
        there.push(stage.join_as(id, wandering(), stage.line().await).await.unwrap());
    }
    there.push(stage.join(2, wandering()).await);

    for nth in 1..6 {
        let due = fire(nth);
        let mut runs = Vec::new();
        for actor in &there {
            // All at once: nobody gives back before everybody has tried.
            if let Ok(claimed) = actor.try_claim(&due, Why::Due, Duration::ZERO).await {
                runs.push((actor, claimed));
            }
        }
        assert_eq!(runs.len(), 1, "fire {nth}");
        for (actor, claimed) in runs {
            actor.finish(claimed).await;
        }
        stage.settle().await;
    }

    stage.remove(&stage.tree.next_instance_ip()).await;
    stage.write(&stage.tree.next_instance_ip(), "10.0.0.1").await;
    stage.settle().await;
    let mut ran = Vec::new();
    for actor in &there {
        if !actor.run(&fire(6)).await.is_empty() {
            ran.push(actor.id());
        }
    }
    assert_eq!(ran, [there[0].id()], "the first of those on the host whose turn it is");
}

#[tokio::test(start_paused = true)]
async fn s11_whoever_lost_its_place_in_the_latch_cannot_act_any_more() {
    let stage = Stage::new().await;
    let _somebody = stage.join(1, with_failover(1)).await;
    stage.write(&stage.tree.failover_item(0), "").await;
    let line = stage.line().await;
    let me = id(9);
    let stakes = [Stake { is_flagged: true, ..Stake::new(0, Seen::default()) }];
    let queue = stage.tree.failover_latch();
    let turn = |ticket| latch::queue(&*line.registry, &queue, ticket, Duration::from_secs(1));

    let late = turn(1).await.unwrap().expect("nobody else queues");
    stage.remove(&late.node).await;
    let steps = claimant(&stage, &me, &line).take(&late, &fire(1), &stakes);
    let refused = line.registry.multi(steps.ops()).await.unwrap_err();
    assert_eq!(steps.refusal(&refused), Some(Refusal::Ground));
    // The same when the session it queued in is over.
    let of_old_session = turn(2).await.unwrap().unwrap();
    line.link.expire();
    let steps = claimant(&stage, &me, &line).take(&of_old_session, &fire(1), &stakes);
    let refused = line.registry.multi(steps.ops()).await.unwrap_err();

    assert_eq!(steps.refusal(&refused), Some(Refusal::Ground));
    assert!(stage.is_flagged(0).await);
    assert_eq!(stage.running(0).await, None);
    assert!(!stage.is_there(&stage.tree.page(0)).await);
}

#[tokio::test(start_paused = true)]
async fn s12_a_leader_that_appeared_meanwhile_stays() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.3@-@4711").await;
    stage.settle().await;
    let line = stage.line().await;
    let mut held_up = line.hold_up(|ops| creates(ops, "/leader/election/instance"));

    // We have waited for our turn, nobody leads, and our election is on its way.
    let ours = stage.join_as(id(1), job(2), line).await.unwrap();
    held_up.reached().await;
    java.leads(&stage.tree).await;
    let elected = stage.stat(&stage.tree.leader()).await.unwrap().created;
    held_up.let_go();
    stage.pass_seconds(2).await;

    assert_eq!(stage.text(&stage.tree.leader()).await.as_deref(), Some(java.id));
    assert_eq!(stage.stat(&stage.tree.leader()).await.unwrap().created, elected);
    drop(ours);
}

#[tokio::test(start_paused = true)]
async fn s13_every_session_has_a_name_of_its_own_and_inherits_nothing() {
    let stage = Stage::new().await;
    let (one, two) = (Book::open(), Book::open());
    // The same address and the same process: two containers with process 1 look like that.
    let (_first, line) = stage.node(1, with_failover(2), &one).await;
    let (_second, _line) = stage.node(1, with_failover(2), &two).await;
    let before = stage.children(&stage.tree.instances()).await;
    assert_eq!(before.len(), 2);

    line.link.expire();
    stage.pass_seconds(3).await;

    let after = stage.children(&stage.tree.instances()).await;
    assert_eq!(after.len(), 2);
    let renamed: Vec<_> = after.iter().filter(|id| !before.contains(id)).collect();
    assert_eq!(renamed.len(), 1, "{before:?} became {after:?}");

    // What an earlier process of that name left behind is not taken for our own: it is dead.
    let stage = Stage::new().await;
    let mut ours = stage.join(1, with_failover(1)).await;
    let ghost = "10.0.0.1@-@101";
    assert!(ours.id().starts_with(ghost));
    stage.write(&stage.tree.shard(0, Part::Running), ghost).await;
    stage.write(&stage.tree.trigger(ghost), "").await;
    stage.pass_seconds(80).await;
    assert_eq!(stage.running(0).await, None);
    assert!(!stage.is_there(&stage.tree.trigger(ghost)).await);
    assert_eq!(items(&ours.take().await.unwrap()), [0]);
}

#[tokio::test(start_paused = true)]
async fn s14_taking_over_three_shards_is_three_runs_and_no_run_of_anything_else() {
    let stage = Stage::new().await;
    let (survivor, victim) = (Book::open(), Book::closed());
    let (_survives, _line) = stage.node(1, with_failover(6), &survivor).await;
    let (dies, line) = stage.node(2, with_failover(6), &victim).await;
    stage.pass_seconds(5).await;
    assert_eq!((survivor.tries().len(), victim.tries().len()), (3, 3));
    let own: BTreeSet<u32> = survivor.tries().iter().map(|one| one.item).collect();
    survivor.clear();

    drop(dies);
    line.die().await;
    // Up to the next fire, and not to it.
    stage.pass(Duration::from_millis(4_900)).await;

    let mut taken: BTreeMap<u32, Vec<Reason>> = BTreeMap::new();
    for (item, reason) in survivor.what() {
        taken.entry(item).or_default().push(reason);
    }
    let lost = (0..6).filter(|shard| !own.contains(shard));
    assert_eq!(taken, lost.map(|shard| (shard, vec![Reason::Failover])).collect());
}

#[tokio::test(start_paused = true)]
async fn s15_a_shard_that_moves_between_two_clocks_runs_once_for_a_fire() {
    let stage = Stage::new().await;
    let early = stage.join(1, job(4)).await;
    let late = stage.join(2, job(4)).await;
    let due = fire(1);
    let by_early = early.run(&due).await;
    assert_eq!(by_early.len(), 2);

    // Between the tick of one clock and that of the other everything moves to the later one.
    stage.write(&stage.tree.server("10.0.0.1"), "DISABLED").await;
    stage.settle().await;
    assert_eq!(stage.owners(4).await, vec![late.id(); 4]);
    let by_late = late.run(&due).await;
    let mut all = [by_early, by_late].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3], "once each, and none is left out");

    // And back, after it ran: nothing is left of this fire.
    stage.write(&stage.tree.server("10.0.0.1"), "ENABLED").await;
    stage.settle().await;
    assert_eq!(early.run(&due).await, Vec::<u32>::new());
    assert_eq!(early.run(&fire(2)).await.len(), 2);
}
