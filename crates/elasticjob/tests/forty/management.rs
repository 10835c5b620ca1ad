//! L16, L18, L20, L21, L25: what people change, and how the ancestor loses it.

use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    coordination::{
        member::News,
        sharding::{Candidate, Dealer, Situation},
    },
    job::{Job, Overwrite, Spelling, Strategy},
    registry::Op,
    runtime::Clock,
};

use crate::{
    members::{id, with_failover},
    nodes::Book,
    stage::{Stage, TICK, fire, job},
};

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
