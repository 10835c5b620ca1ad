//! L1 to L25: how the ancestor gets stuck, loses a run, or loses a change.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    coordination::{
        ledger::State,
        member::{News, Refused, Why},
        sharding::{Candidate, Dealer, Situation},
        tree::Part,
    },
    execution::{Execution, Failure, OnceListener},
    history::{Event, Sink, SinkError},
    job::{Job, MaxTimeDiff, Misfire, Overwrite, Reason, Reconcile, RunId, Spelling, Strategy},
    registry::{Create, Expected, Kind, Op, Registry, memory::MemoryServer, plant},
    runtime::{CancelReason, Clock},
};

use crate::{
    members::{Actor, id, items, with_failover},
    nodes::Book,
    stage::{Line, Stage, clock, fire, job},
};

/// Longer than a second look at everything is away.
const TICK: u64 = 80;

/// Somebody who queues before all others and never acts.
async fn stuck_in(line: &Line, latch: &elasticjob::registry::Path) -> elasticjob::registry::Path {
    plant(&*line.registry, latch).await.unwrap();
    let name = latch.join("_c_00000000-0000-0000-0000-000000000000-latch-").unwrap();
    let kind = Kind::EphemeralSequential(line.registry.session().id());
    let created = line.registry.create(Create::new(&name, "10.0.0.9@-@9", kind)).await.unwrap();
    created.path().unwrap().clone()
}

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
    let both = [three.unwrap(), four.unwrap()];
    stage.settle().await;
    let mut again = Vec::new();
    while let Ok(taken) = both[again.len() % 2].take().await {
        assert_eq!(taken.fire, fire(1));
        again.extend(items(&taken));
        both[again.len().wrapping_sub(items(&taken).len()) % 2].finish(taken).await;
        stage.settle().await;
    }
    let mut next = [both[0].run(&fire(2)).await, both[1].run(&fire(2)).await].concat();

    again.sort_unstable();
    assert_eq!(again, [0, 1, 2, 3], "once for each death");
    next.sort_unstable();
    assert_eq!(next, [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn l02_a_shard_that_fails_is_given_back_and_javas_that_are_not_hold_up_no_other() {
    let stage = Stage::new().await;
    let failing = Book::failing();
    let (node, _line) = stage.node(1, with_failover(1), &failing).await;
    stage.pass_seconds(5).await;
    let parts = [Part::Running, Part::Failover, Part::Failovering];
    for part in parts {
        assert!(!stage.is_there(&stage.tree.shard(0, part)).await, "{part:?}");
    }
    assert_eq!(stage.page(0).await.state, State::Failed);
    stage.pass_seconds(5).await;
    assert_eq!(failing.tries().len(), 2, "its next fire runs");
    stage.stop(node).await;

    // A later Java keeps `running` when a shard failed, and lives on.
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    let one = stage.join(1, with_failover(4)).await;
    stage.settle().await;
    java.runs(&stage.tree, 0).await;
    stage.settle().await;
    let before = stage.owners(4).await;
    let two = stage.join(2, with_failover(4)).await;
    stage.settle().await;
    let after = stage.owners(4).await;
    assert_eq!(after[0], before[0], "the stuck one stays where it is");
    assert!(after[1..].contains(&two.id()), "the others were dealt: {after:?}");
    assert!(!two.run(&fire(1)).await.is_empty() && !one.run(&fire(1)).await.is_empty());
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
        heir.told(|news| *news == News::Orphaned).await;

        assert_eq!(items(&heir.take().await.unwrap()), items(&lost), "removed: {is_removed}");
    }
}

#[tokio::test(start_paused = true)]
async fn l04_what_a_dead_one_had_taken_over_and_what_it_ran_itself_are_both_found() {
    let stage = Stage::new().await;
    let java = stage.java("10.0.0.9@-@4711").await;
    let heir = stage.join(1, with_failover(2)).await;
    stage.settle().await;
    // Left by switching failover off half way: it names the one that now dies with a run of its own.
    stage.write(&stage.tree.shard(0, Part::Failovering), java.id).await;
    java.runs(&stage.tree, 1).await;

    java.dies().await;
    stage.pass_seconds(2).await;

    assert_eq!(stage.running(1).await, None, "nothing waits for the dead");
    assert!(stage.is_flagged(0).await && stage.is_flagged(1).await);
    let mut again = Vec::new();
    while let Ok(taken) = heir.take().await {
        again.extend(items(&taken));
        heir.finish(taken).await;
    }
    assert_eq!(again, [0, 1]);
    assert!(!stage.is_there(&stage.tree.shard(0, Part::Failovering)).await);
    // Whatever is still flagged when failover is switched off is nobody's to take any more.
    stage.write(&stage.tree.failover_item(0), "").await;
    stage.write(&stage.tree.config(), &job(2).to_yaml()).await;
    stage.pass_seconds(TICK).await;
    assert!(!stage.is_flagged(0).await);
}

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

#[tokio::test(start_paused = true)]
async fn l07_a_late_fire_runs_right_after_the_run_it_waited_for_and_once() {
    let stage = Stage::new().await;
    let slow = Book::closed();
    let every_two = job(1).cron("0/2 * * * * ?").unwrap().if_late(Misfire::RunOnce);
    let (node, _line) = stage.node(1, every_two, &slow).await;
    // Begins at :02, ends at :07; :04 and :06 were due meanwhile.
    stage.pass_seconds(7).await;
    slow.let_end();
    stage.settle().await;
    let due: Vec<_> = slow.tries().into_iter().map(|one| (one.due_at, one.reason)).collect();
    assert_eq!(
        due,
        [
            ("2026-11-15T06:00:02Z".to_owned(), Reason::Due),
            ("2026-11-15T06:00:06Z".to_owned(), Reason::Misfire),
        ],
        "no time has passed since the first one ended"
    );
    stage.pass_seconds(2).await;
    assert_eq!(slow.tries().len(), 3, "then it is on time again");
    stage.stop(node).await;

    // Only what is marked runs again, and a mark from before anybody was there is nobody's.
    let stage = Stage::new().await;
    let book = Book::open();
    let hourly = || job(2).cron("0 0 * * * ?").unwrap();
    stage.write(&stage.tree.config(), &hourly().to_yaml()).await;
    stage.write(&stage.tree.shard(0, Part::Misfire), "").await;
    let (_node, _line) = stage.node(1, hourly(), &book).await;
    stage.pass_seconds(5).await;
    assert!(book.tries().is_empty(), "{:?}", book.tries());
    stage.write(&stage.tree.shard(1, Part::Misfire), "").await;
    stage.pass_seconds(1).await;
    assert_eq!(book.what(), [(1, Reason::Misfire)]);
    assert!(!stage.is_there(&stage.tree.shard(1, Part::Misfire)).await, "made up for");
}

#[tokio::test(start_paused = true)]
async fn l08_a_trigger_during_a_run_runs_right_after_and_one_for_the_dead_never() {
    let stage = Stage::new().await;
    let book = Book::closed();
    let hourly = job(1).cron("5 0 * * * ?").unwrap();
    let (_node, _line) = stage.node(1, hourly, &book).await;
    stage.pass_seconds(5).await;
    assert_eq!(book.tries().len(), 1);

    let me = stage.children(&stage.tree.instances()).await.remove(0);
    stage.write(&stage.tree.trigger(&me), "").await;
    stage.write(&stage.tree.trigger("10.0.0.9@-@4711"), "").await;
    stage.settle().await;
    assert!(!stage.is_there(&stage.tree.trigger(&me)).await, "it is taken while it runs");
    book.let_end();
    stage.settle().await;
    assert_eq!(book.tries().len(), 2);
    assert!(!book.tries()[1].run.starts_with("settle/"), "it is the one that was asked for");
    stage.pass_seconds(TICK).await;

    assert_eq!(stage.children(&stage.tree.triggers()).await, Vec::<String>::new());
    assert_eq!(book.tries().len(), 2);
}

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
    one.told(|news| *news == News::Orphaned).await;
    let due = fire(1);
    let (taken, run) = tokio::join!(one.take(), async {
        stage.write(&stage.tree.trigger(one.id()), "").await;
        one.run(&due).await
    });
    assert_eq!(run.len(), 1, "its own shard");
    assert!(matches!(taken, Err(Refused::Nothing)), "it does not wait for ever: {taken:?}");
    one.told(|news| matches!(news, News::Triggered(_))).await;

    stage.remove(&in_failover).await;
    assert_eq!(one.take().await.unwrap().fire, fire(1));
    stuck.die().await;
    stage.pass_seconds(30).await;
    assert_eq!(stage.text(&stage.tree.leader()).await, Some(one.id()));
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
    let ours = stage.join(1, with_failover(2).reconcile(Reconcile::OFF)).await;
    let nobody = "10.0.0.9@-@4711";
    // No instance is seen to go: only whoever looks finds it.
    stage.write(&stage.tree.shard(0, Part::Running), nobody).await;
    stage.pass_seconds(TICK).await;
    assert_eq!(stage.running(0).await, None);
    assert_eq!(items(&ours.take().await.unwrap()), [0]);

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

/// Counts how often it was called.
#[derive(Default)]
struct Counting {
    before: AtomicUsize,
    after: AtomicUsize,
}

#[async_trait::async_trait]
impl OnceListener for Counting {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        self.before.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn after(&self, _: &Execution) -> Result<(), Failure> {
        self.after.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn l14_a_once_listener_is_called_once_a_fire_also_with_a_disabled_shard_and_waits_for_nobody_who_cannot_come()
 {
    let stage = Stage::new().await;
    let (one, two) = (Book::open(), Book::open());
    let counting = Arc::new(Counting::default());
    let listener = || Arc::clone(&counting) as Arc<dyn OnceListener>;
    assert!(listener().started_timeout() <= Duration::from_mins(1), "there is no waiting for ever");
    let (_stays, _line) =
        stage.node_with(1, with_failover(3), &one, |job| job.once(listener())).await;
    let (dies, line) = stage.node_with(2, with_failover(3), &two, |job| job.once(listener())).await;
    stage.write(&stage.tree.shard(1, Part::Disabled), "").await;
    stage.settle().await;

    stage.pass(Duration::from_millis(15_900)).await;
    let called = (counting.before.load(Ordering::Relaxed), counting.after.load(Ordering::Relaxed));
    assert_eq!(called, (3, 3), "for three fires");
    assert_eq!(one.tries().len() + two.tries().len(), 6);

    // A taken-over shard is not a whole fire: it runs without waiting for those who are not coming.
    two.close();
    stage.pass_seconds(5).await;
    one.clear();
    drop(dies);
    line.die().await;
    // No time passes: it has not waited for anybody.
    stage.settle().await;
    assert!(one.what().iter().any(|(_, reason)| *reason == Reason::Failover), "{:?}", one.what());
}

#[tokio::test(start_paused = true)]
async fn l15_a_clock_that_is_wrong_is_told_and_with_throw_nothing_runs() {
    for (alert, runs) in [("LOG", 1), ("THROW", 0)] {
        let registrys = clock();
        let server = MemoryServer::new(Arc::new(registrys.clone()));
        let wrong = clock();
        wrong.set_wall("2026-11-15T06:10:00Z".parse().unwrap());
        let stage = Stage::on(server, wrong, "settle").await;
        let book = Book::open();
        let strict = job(1).max_time_diff(MaxTimeDiff::seconds(60)).alert(alert);
        let (_node, _line) = stage.node(1, strict, &book).await;
        for _ in 0..5 {
            registrys.advance(Duration::from_secs(1));
            stage.pass_seconds(1).await;
        }

        assert_eq!(book.tries().len(), runs, "{alert}");
    }
}

#[tokio::test(start_paused = true)]
async fn l16_what_was_disabled_stays_disabled_when_nobody_is_there_and_when_somebody_starts() {
    let stage = Stage::new().await;
    let stays = stage.join(1, job(1)).await;
    let (off, old) = (stage.tree.server("10.0.0.2"), stage.tree.server("10.0.0.3"));
    stage.write(&off, "DISABLED").await;
    stage.write(&old, "ENABLED").await;

    stage.pass(Duration::from_mins(14)).await;
    assert_eq!(stage.text(&off).await.as_deref(), Some("DISABLED"), "somebody meant it");
    assert!(!stage.is_there(&old).await, "pods leave their addresses behind");
    let restarted = stage.join(2, job(1)).await;

    assert_eq!(stage.text(&off).await.as_deref(), Some("DISABLED"));
    assert_eq!(stage.owners(1).await, [stays.id()]);
    assert_eq!(restarted.run(&fire(1)).await, Vec::<u32>::new());
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
async fn l18_a_job_that_is_removed_does_not_come_back_in_pieces() {
    let stage = Stage::new().await;
    let mut cut_off = stage.join(1, with_failover(2)).await;
    cut_off.line.link.cut();
    stage.settle().await;
    stage.remove(stage.tree.root()).await;
    cut_off.line.link.heal();
    cut_off.told(|news| *news == News::ShutDown).await;
    stage.pass_seconds(TICK).await;
    assert!(!stage.is_there(stage.tree.root()).await);

    // While it runs: it ends, has nothing to give back, and the node lets go of it.
    let stage = Stage::new().await;
    let book = Book::closed();
    let (node, _line) = stage.node(1, with_failover(2), &book).await;
    stage.pass_seconds(5).await;
    assert_eq!(book.tries().len(), 2);
    stage.remove(stage.tree.root()).await;
    stage.pass_seconds(1).await;
    book.let_end();
    stage.pass_seconds(1).await;
    let took = stage.stop(node).await;

    assert!(took < Duration::from_secs(2), "nothing is left to wait for: {took:?}");
    assert!(!stage.is_there(stage.tree.root()).await);
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

#[tokio::test(start_paused = true)]
async fn l20_no_name_breaks_anything() {
    let name = "a(b[c+*.?{1}|^$\\";
    let stage = Stage::of(name).await;
    let strange = || Job::named(name).unwrap().shards(2);
    let one = stage.join(1, strange()).await;
    let two = stage.join(2, strange()).await;
    stage.write(&stage.tree.server("10.0.0.1"), "DISABLED").await;
    stage.settle().await;
    assert_eq!(stage.owners(2).await, vec![two.id(); 2], "a server's change is noticed");
    drop(one);

    // The hash of this one has no absolute value in Java.
    let candidates: Vec<Candidate> =
        (1..=3).map(|host| Candidate::new(format!("10.0.0.{host}@-@1"))).collect();
    let owners = std::collections::BTreeMap::new();
    let (job, total) = ("polygenelubricants", 3);
    let dealt = Strategy::RoundRobin.deal(&Situation {
        job,
        total,
        candidates: &candidates,
        owners: &owners,
        now_ms: 0,
    });
    assert_eq!(dealt.iter().collect::<BTreeSet<_>>().len(), 3, "one each: {dealt:?}");
}

#[tokio::test(start_paused = true)]
async fn l21_a_configuration_is_replaced_only_as_it_was_read_and_keeps_its_spelling() {
    let stage = Stage::new().await;
    stage.write(&stage.tree.config(), &job(2).to_yaml()).await;
    let line = stage.line().await;
    let mut held_up = line.hold_up(|ops| {
        ops.iter().any(|op| matches!(op, Op::Set { path, .. } if path.name() == "config"))
    });
    let pool = elasticjob::job::ThreadPool::SingleThread;
    let local = job(3).if_stored_differs(Overwrite::LocalWins).threads(&pool);

    // We have read it and are about to overwrite it: now an older Java writes it in its own words.
    let (joined, ()) = tokio::join!(stage.join_as(id(1), local, line), async {
        held_up.reached().await;
        let mut older = job(2).threads(&pool);
        older.spelling = Spelling::UpTo304;
        stage.write(&stage.tree.config(), &older.to_yaml()).await;
        held_up.let_go();
    });
    let _joined = joined.unwrap();
    let stored = stage.text(&stage.tree.config()).await.unwrap();
    let stored = Job::read(&"settle".parse().unwrap(), stored.as_bytes()).unwrap();
    assert_eq!((stored.shards.get(), stored.spelling), (3, Spelling::UpTo304));

    // A zone alone is a change, and a job can lose its cron.
    let stage = Stage::new().await;
    let book = Book::open();
    let seven = job(1).cron("0 0 7 * * ?").unwrap().zone("UTC").unwrap();
    let (_node, _line) = stage.node(1, seven.clone(), &book).await;
    let earlier = seven.clone().zone("GMT+1:00").unwrap();
    stage.write(&stage.tree.config(), &earlier.to_yaml()).await;
    stage.pass(Duration::from_mins(61)).await;
    assert!(book.tries().is_empty(), "seven o'clock was an hour ago: {:?}", book.tries());
    let later = seven.clone().zone("GMT-1:00").unwrap();
    stage.write(&stage.tree.config(), &later.to_yaml()).await;
    stage.pass(Duration::from_hours(1)).await;
    assert_eq!(book.tries().len(), 1, "eight o'clock by UTC");
    let mut on_demand = seven;
    on_demand.cron = None;
    stage.write(&stage.tree.config(), &on_demand.to_yaml()).await;
    stage.settle().await;
    let me = stage.children(&stage.tree.instances()).await.remove(0);
    stage.write(&stage.tree.trigger(&me), "").await;
    stage.settle().await;
    assert_eq!(book.tries().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn l22_a_run_has_one_id_on_all_instances_and_all_that_is_told_of_it_has_it() {
    let stage = Stage::new().await;
    let (one, two) = (Book::open(), Book::open());
    let told = Arc::new(Told::default());
    let (_first, _line) = stage.node_told(1, job(2), &one, Arc::clone(&told) as _).await;
    let (_second, _line) = stage.node_told(2, job(2), &two, Arc::clone(&told) as _).await;
    stage.pass_seconds(15).await;
    let runs = |book: &Book| book.tries().into_iter().map(|one| one.run).collect::<Vec<_>>();
    assert_eq!(runs(&one), runs(&two), "three fires, seen from two sides");
    assert_eq!(runs(&one).iter().collect::<BTreeSet<_>>().len(), 3);

    let me = stage.children(&stage.tree.instances()).await.remove(0);
    for _ in 0..2 {
        stage.write(&stage.tree.trigger(&me), "").await;
        stage.settle().await;
    }
    let all: BTreeSet<String> = runs(&one).into_iter().chain(runs(&two)).collect();
    assert_eq!(all.len(), 5);
    for run in &all {
        assert_eq!(run.parse::<RunId>().unwrap().to_string(), *run, "it can be looked up by it");
    }
    stage.pass_seconds(30).await;
    let told = told.kept.lock().unwrap();
    let mut tasks = BTreeSet::new();
    for run in &all {
        let tried =
            [&one, &two].map(|book| book.tries().into_iter().filter(|one| one.run == *run).count());
        let tried = tried.into_iter().sum::<usize>();
        let count = |is: &dyn Fn(&Event) -> bool| told.iter().filter(|event| is(event)).count();
        let is_it = |id: &RunId| id.to_string() == *run;
        let begun = count(&|event| matches!(event, Event::Started(it) if is_it(&it.run)));
        let ended = count(&|event| matches!(event, Event::Ended(it) if is_it(&it.started.run)));
        assert_eq!((begun, ended), (tried, tried), "{run}");
        tasks.extend(told.iter().filter_map(|event| match event {
            Event::Status(it) if is_it(&it.run) => Some(it.task.to_string()),
            _ => None,
        }));
    }
    assert!(tasks.len() < all.len(), "the ancestor's task id is the same in every run: {tasks:?}");
}

/// Keeps what it is told, after having failed a few times.
#[derive(Default)]
struct Told {
    failures: AtomicUsize,
    kept: Mutex<Vec<Event>>,
}

#[async_trait]
impl Sink for Told {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        if self.failures.fetch_add(1, Ordering::SeqCst) < 4 {
            return Err(SinkError::Later(
                "duplicate key, says the driver of everything".to_owned(),
            ));
        }
        self.kept.lock().unwrap().extend_from_slice(batch);
        Ok(())
    }
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

#[tokio::test(start_paused = true)]
async fn l24_whoever_may_not_run_takes_nothing_over_and_whoever_takes_over_runs_its_own_as_well() {
    let stage = Stage::new().await;
    let victim = stage.join(1, with_failover(12)).await;
    let lost = victim.claim(&fire(1)).await;
    assert_eq!(items(&lost).len(), 12);
    let disabled = stage.join(2, with_failover(12)).await;
    let mut heir = stage.join(3, with_failover(12)).await;
    stage.write(&stage.tree.server("10.0.0.2"), "DISABLED").await;
    stage.write(&stage.tree.shard(3, Part::Disabled), "").await;
    stage.settle().await;

    victim.die().await;
    heir.told(|news| *news == News::Orphaned).await;
    stage.settle().await;
    assert!(matches!(disabled.take().await, Err(Refused::Nothing)));
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
async fn l25_a_job_that_is_removed_under_its_instances_shuts_them_down_and_nobody_else() {
    let stage = Stage::new().await;
    let mut all = [stage.join(1, with_failover(2)).await, stage.join(2, with_failover(2)).await];
    // Its name begins like the other's.
    let neighbour = Stage::on(stage.server.clone(), stage.clock.clone(), "settle2").await;
    let other = neighbour.join(3, Job::named("settle2").unwrap().shards(1)).await;

    stage.remove(stage.tree.root()).await;
    for actor in &mut all {
        actor.told(|news| *news == News::ShutDown).await;
    }
    for actor in all {
        actor.member.leave().await;
    }

    assert!(!stage.is_there(stage.tree.root()).await);
    let due = elasticjob::job::Fire::scheduled("settle2".parse().unwrap(), stage.clock.now());
    assert_eq!(other.run(&due).await, [0]);
}
