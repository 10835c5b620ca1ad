//! Whole nodes whose job has a listener that is called once for every fire.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        member::{self, Joining, Member},
        sharding::Dealers,
        tree::{JobTree, Part},
    },
    execution::{Execution, Failure, OnceListener},
    job::{Handler, Instance, InstanceId, Job, Shard},
    node::{Node, NodeJob, Running},
    registry::Registry,
    runtime::{SystemClock, SystemRandomness},
    testing::conformance::{self, Ground},
};

use crate::log::Log;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Noted {
    Before(String),
    Began(String, u32),
    Ended(String, u32),
    After(String),
}

/// What happened on all nodes, in order.
type Notes = Arc<Mutex<Vec<Noted>>>;

struct Noting {
    notes: Notes,
    timeout: Duration,
    fails: bool,
}

#[async_trait::async_trait]
impl OnceListener for Noting {
    fn started_timeout(&self) -> Duration {
        self.timeout
    }

    fn completed_timeout(&self) -> Duration {
        self.timeout
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        // Others get their turn, so that whoever does not wait is caught.
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.notes.lock().unwrap().push(Noted::Before(execution.run.to_string()));
        if self.fails { Err(Failure::new("no table to empty")) } else { Ok(()) }
    }

    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        self.notes.lock().unwrap().push(Noted::After(execution.run.to_string()));
        Ok(())
    }
}

fn job() -> Job {
    Job::named("settle").unwrap().cron("* * * * * ?").unwrap().shards(3)
}

async fn start(
    registry: &conformance::Member,
    host: u8,
    notes: &Notes,
    timeout: Duration,
    fails: bool,
) -> Running {
    let noting = Noting { notes: Arc::clone(notes), timeout, fails };
    let notes = Arc::clone(notes);
    let handler = move |shard: Shard| {
        let notes = Arc::clone(&notes);
        async move {
            let run = shard.run.to_string();
            notes.lock().unwrap().push(Noted::Began(run.clone(), shard.item));
            tokio::time::sleep(Duration::from_millis(10)).await;
            notes.lock().unwrap().push(Noted::Ended(run, shard.item));
            Ok::<(), std::io::Error>(())
        }
    };
    Node::on(Arc::clone(&registry.registry))
        .address([10, 0, 0, host].into())
        .with(NodeJob::code(job(), handler).once(Arc::new(noting)))
        .start()
        .await
        .unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}: {}", Log::read());
}

/// Waits until each of the three shards has another owner.
async fn until_dealt(registry: &dyn Registry) {
    let tree = JobTree::new(registry.namespace(), &job().name).unwrap();
    until("each has a shard", async || {
        let mut owners = std::collections::BTreeSet::new();
        for shard in 0..3 {
            let owner = registry.get(&tree.shard(shard, Part::Owner)).await.unwrap();
            owners.extend(owner.map(|owner| owner.data));
        }
        owners.len() == 3
    })
    .await;
}

/// The runs that were seen from the first listener to the last, each with what happened in it.
fn runs(notes: &Notes) -> BTreeMap<String, Vec<Noted>> {
    let mut runs: BTreeMap<String, Vec<Noted>> = BTreeMap::new();
    for noted in notes.lock().unwrap().iter() {
        let (Noted::Before(run) | Noted::Began(run, _) | Noted::Ended(run, _) | Noted::After(run)) =
            noted;
        runs.entry(run.clone()).or_default().push(noted.clone());
    }
    runs
}

fn is_whole(noted: &[Noted]) -> bool {
    matches!(noted, [Noted::Before(_), .., Noted::After(_)]) && noted.len() == 8
}

async fn until_whole(notes: &Notes, count: usize) {
    let whole = || runs(notes).values().filter(|noted| is_whole(noted)).count();
    until("fires are whole", async || whole() >= count).await;
}

pub(crate) async fn a_listener_is_called_once_before_any_shard_runs_and_once_after_all_have_ended(
    ground: &dyn Ground,
) {
    Log::listen();
    let notes = Notes::default();
    let mut running = Vec::new();
    let mut members = Vec::new();
    for host in 1..4 {
        let member = ground.join("a-listener-is-called", None).await;
        running.push(start(&member, host, &notes, Duration::from_secs(5), false).await);
        members.push(member);
    }
    until_dealt(&*members[0].registry).await;
    // A fire that fell into the dealing may lack a shard; from the first whole one on all are in step.
    until_whole(&notes, 1).await;
    notes.lock().unwrap().clear();
    Log::listen();

    until_whole(&notes, 3).await;
    let told = Log::read();
    stop_all(running).await;

    assert!(!told.contains("job failed"), "{told}");

    let runs = runs(&notes);
    // The first may have begun before we looked, the last may have been cut short by the end.
    let mut between: Vec<_> = runs.values().collect();
    between.pop();
    for noted in &between[1..] {
        assert!(is_whole(noted), "{noted:?}");
    }
    for noted in runs.values() {
        let count =
            |wanted: fn(&Noted) -> bool| noted.iter().filter(|&noted| wanted(noted)).count();
        assert!(count(|noted| matches!(noted, Noted::Before(_))) <= 1, "{noted:?}");
        assert!(count(|noted| matches!(noted, Noted::After(_))) <= 1, "{noted:?}");
    }
}

pub(crate) async fn one_that_does_not_come_is_told_and_the_job_runs_and_the_next_fire_is_whole_again(
    ground: &dyn Ground,
) {
    Log::listen();
    let (notes, namespace) = (Notes::default(), "one-that-does-not");
    let (one, two) = (ground.join(namespace, None).await, ground.join(namespace, None).await);
    let silent = ground.join(namespace, None).await;
    let short = Duration::from_millis(300);
    let running = vec![
        start(&one, 1, &notes, short, false).await,
        start(&two, 2, &notes, short, false).await,
    ];
    // It owns a shard, and never runs it.
    let joining = Joining {
        local: job(),
        handler: Handler::Code { java_class: None },
        author: member::Author::Program,
        instance: Instance::new(InstanceId::new([10, 0, 0, 3].into(), 3, 7)),
    };
    let soil = member::Ground {
        registry: Arc::clone(&silent.registry),
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        dealers: Dealers::default(),
        busy: member::BusyShards::default(),
        flaws: Flaws::default(),
    };
    let member = Member::join(soil, joining).await.unwrap();
    until_dealt(&*one.registry).await;

    until("it is told", async || Log::read().contains("not all shards came within 300ms")).await;
    notes.lock().unwrap().clear();
    until("the others run all the same", async || {
        runs(&notes).values().any(|noted| {
            noted.iter().filter(|noted| matches!(noted, Noted::Ended(..))).count() == 2
        })
    })
    .await;
    assert!(!notes.lock().unwrap().iter().any(|noted| matches!(noted, Noted::Before(_))));
    member.leave().await;

    until_whole(&notes, 2).await;
    stop_all(running).await;
}

pub(crate) async fn a_listener_that_fails_is_told_and_the_job_runs(ground: &dyn Ground) {
    Log::listen();
    let notes = Notes::default();
    let member = ground.join("a-listener-that-fails", None).await;
    let node = start(&member, 1, &notes, PATIENCE, true).await;

    until_whole(&notes, 1).await;

    assert!(Log::read().contains("a listener failed: no table to empty"), "{}", Log::read());
    node.stop().await;
}

async fn stop_all(running: Vec<Running>) {
    futures_util::future::join_all(running.into_iter().map(Running::stop)).await;
}
