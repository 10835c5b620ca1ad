//! L16, L18, L20, L21, L25: the defects by which Java ElasticJob loses an operator's changes.

use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    coordination::{
        member::MemberEvent,
        sharding::{Candidate, ShardingInput, ShardingStrategy},
    },
    job::{Job, KeySpelling, Overwrite, Strategy},
    registry::Op,
    runtime::Clock,
};

use crate::{
    cluster::{Cluster, RECHECK_SECONDS, fire, job},
    members::{id, with_failover},
    nodes::TestHandler,
};

#[tokio::test(start_paused = true)]
async fn l16_disabled_server_stays_disabled_without_instances_and_on_start() {
    let cluster = Cluster::new().await;
    let stays = cluster.join(1, job(1)).await;
    let (disabled, stale) = (cluster.tree.server("10.0.0.2"), cluster.tree.server("10.0.0.3"));
    cluster.write(&disabled, "DISABLED").await;
    cluster.write(&stale, "ENABLED").await;

    cluster.advance(Duration::from_mins(14)).await;
    assert_eq!(
        cluster.text(&disabled).await.as_deref(),
        Some("DISABLED"),
        "an operator disabled it"
    );
    assert!(!cluster.exists(&stale).await, "addresses of former pods are cleaned up");
    let restarted = cluster.join(2, job(1)).await;

    assert_eq!(cluster.text(&disabled).await.as_deref(), Some("DISABLED"));
    assert_eq!(cluster.owners(1).await, [stays.id()]);
    assert_eq!(restarted.run(&fire(1)).await, Vec::<u32>::new());
}

#[tokio::test(start_paused = true)]
async fn l18_removed_job_is_not_partly_recreated() {
    let cluster = Cluster::new().await;
    let mut cut_off = cluster.join(1, with_failover(2)).await;
    cut_off.connection.link.cut();
    cluster.settle().await;
    cluster.remove(cluster.tree.root()).await;
    cut_off.connection.link.heal();
    cut_off.wait_for(|news| *news == MemberEvent::ShutDown).await;
    cluster.advance_seconds(RECHECK_SECONDS).await;
    assert!(!cluster.exists(cluster.tree.root()).await);

    // Removed during a run: the run ends, has nothing to release, and the node drops the job.
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (node, _connection) = cluster.node(1, with_failover(2), &handler).await;
    cluster.advance_seconds(5).await;
    assert_eq!(handler.attempts().len(), 2);
    cluster.remove(cluster.tree.root()).await;
    cluster.advance_seconds(1).await;
    handler.unblock();
    cluster.advance_seconds(1).await;
    let took = cluster.stop(node).await;

    assert!(took < Duration::from_secs(2), "there is nothing to wait for: {took:?}");
    assert!(!cluster.exists(cluster.tree.root()).await);
}

#[tokio::test(start_paused = true)]
async fn l20_special_characters_in_a_job_name_break_nothing() {
    let name = "a(b[c+*.?{1}|^$\\";
    let cluster = Cluster::with_job(name).await;
    let strange_job = || Job::named(name).unwrap().shards(2);
    let one = cluster.join(1, strange_job()).await;
    let two = cluster.join(2, strange_job()).await;
    cluster.write(&cluster.tree.server("10.0.0.1"), "DISABLED").await;
    cluster.settle().await;
    assert_eq!(cluster.owners(2).await, vec![two.id(); 2], "the change of a server is noticed");
    drop(one);

    // The hash code of this name has no absolute value in Java.
    let candidates: Vec<Candidate> =
        (1..=3).map(|host| Candidate::new(format!("10.0.0.{host}@-@1"))).collect();
    let previous_owners = std::collections::BTreeMap::new();
    let (job, total) = ("polygenelubricants", 3);
    let owners = Strategy::RoundRobin.assign(&ShardingInput {
        job,
        total,
        candidates: &candidates,
        owners: &previous_owners,
        now_ms: 0,
    });
    assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 3, "one shard each: {owners:?}");
}

#[tokio::test(start_paused = true)]
async fn l21_configuration_is_replaced_by_version_and_keeps_its_spelling() {
    let cluster = Cluster::new().await;
    cluster.write(&cluster.tree.config(), &job(2).to_yaml()).await;
    let connection = cluster.connect().await;
    let mut blocked = connection.block_next(|ops| {
        ops.iter().any(|op| matches!(op, Op::Set { path, .. } if path.name() == "config"))
    });
    let pool = elasticjob::job::ThreadPool::SingleThread;
    let local = job(3).overwrite(Overwrite::LocalWins).threads(&pool);

    // Our member has read it and is about to overwrite it: now an older Java version writes it in its own spelling.
    let (joined, ()) = tokio::join!(cluster.join_as(id(1), local, connection), async {
        blocked.reached().await;
        let mut older = job(2).threads(&pool);
        older.spelling = KeySpelling::UpTo304;
        cluster.write(&cluster.tree.config(), &older.to_yaml()).await;
        blocked.unblock();
    });
    let _joined = joined.unwrap();
    let stored = cluster.text(&cluster.tree.config()).await.unwrap();
    let stored = Job::read(&"settle".parse().unwrap(), stored.as_bytes()).unwrap();
    assert_eq!((stored.shards.get(), stored.spelling), (3, KeySpelling::UpTo304));

    // A change of the zone alone takes effect, and so does the removal of the cron.
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let at_seven = job(1).cron("0 0 7 * * ?").unwrap().zone("UTC").unwrap();
    let (_node, _connection) = cluster.node(1, at_seven.clone(), &handler).await;
    let earlier = at_seven.clone().zone("GMT+1:00").unwrap();
    cluster.write(&cluster.tree.config(), &earlier.to_yaml()).await;
    cluster.advance(Duration::from_mins(61)).await;
    assert!(handler.attempts().is_empty(), "07:00 was an hour ago: {:?}", handler.attempts());
    let later = at_seven.clone().zone("GMT-1:00").unwrap();
    cluster.write(&cluster.tree.config(), &later.to_yaml()).await;
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(handler.attempts().len(), 1, "due at 08:00 UTC");
    let mut on_demand = at_seven;
    on_demand.cron = None;
    cluster.write(&cluster.tree.config(), &on_demand.to_yaml()).await;
    cluster.settle().await;
    let me = cluster.children(&cluster.tree.instances()).await.remove(0);
    cluster.write(&cluster.tree.trigger(&me), "").await;
    cluster.settle().await;
    assert_eq!(handler.attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn l25_removed_job_shuts_down_its_instances_and_no_others() {
    let cluster = Cluster::new().await;
    let mut all =
        [cluster.join(1, with_failover(2)).await, cluster.join(2, with_failover(2)).await];
    // The name of the other job begins with the name of the first.
    let neighbour =
        Cluster::on_server(cluster.server.clone(), cluster.clock.clone(), "settle2").await;
    let other = neighbour.join(3, Job::named("settle2").unwrap().shards(1)).await;

    cluster.remove(cluster.tree.root()).await;
    for instance in &mut all {
        instance.wait_for(|news| *news == MemberEvent::ShutDown).await;
    }
    for instance in all {
        instance.member.leave().await;
    }

    assert!(!cluster.exists(cluster.tree.root()).await);
    let due = elasticjob::job::Fire::scheduled("settle2".parse().unwrap(), cluster.clock.now());
    assert_eq!(other.run(&due).await, [0]);
}
