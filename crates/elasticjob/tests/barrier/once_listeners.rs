//! Whole nodes whose job has a once-listener: it is called once for every run, not once on every instance.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        member::{self, JoinRequest, Member},
        sharding::CustomStrategies,
        tree::{JobTree, ShardNode},
    },
    execution::{Execution, Failure, OnceListener},
    job::{Handler, Instance, InstanceId, Job, RunReason, Shard, ShardLimit},
    node::{Node, NodeJob, RunningNode},
    registry::Registry,
    runtime::{SystemClock, SystemRandomness},
    testing::conformance::{self, TestServer},
};

use crate::log::Log;

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Call {
    Before(String),
    Started(String, u32),
    Ended(String, u32),
    After(String),
}

/// Calls on all nodes, in order.
type CallLog = Arc<Mutex<Vec<Call>>>;

struct RecordingListener {
    log: CallLog,
    timeout: Duration,
    is_failing: bool,
}

#[async_trait::async_trait]
impl OnceListener for RecordingListener {
    fn started_timeout(&self) -> Duration {
        self.timeout
    }

    fn completed_timeout(&self) -> Duration {
        self.timeout
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        // Other tasks get to run, so that a shard that does not wait is detected.
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.log.lock().unwrap().push(Call::Before(execution.run.to_string()));
        if self.is_failing { Err(Failure::new("no table to empty")) } else { Ok(()) }
    }

    async fn after(&self, execution: &Execution) -> Result<(), Failure> {
        self.log.lock().unwrap().push(Call::After(execution.run.to_string()));
        Ok(())
    }
}

fn job() -> Job {
    Job::named("settle").unwrap().cron("* * * * * ?").unwrap().shards(3)
}

async fn start(
    registry: &conformance::TestClient,
    host: u8,
    log: &CallLog,
    timeout: Duration,
    is_failing: bool,
) -> RunningNode {
    let listener = RecordingListener { log: Arc::clone(log), timeout, is_failing };
    let log = Arc::clone(log);
    let handler = move |shard: Shard| {
        let log = Arc::clone(&log);
        async move {
            // On a busy machine a run may take longer than the second between two fires. Its misfire run does not meet the other instances.
            if shard.attempt.reason != RunReason::Schedule {
                return Ok(());
            }
            let run = shard.run.to_string();
            log.lock().unwrap().push(Call::Started(run.clone(), shard.item));
            tokio::time::sleep(Duration::from_millis(10)).await;
            log.lock().unwrap().push(Call::Ended(run, shard.item));
            Ok::<(), std::io::Error>(())
        }
    };
    Node::on(Arc::clone(&registry.registry))
        .address([10, 0, 0, host].into())
        .with(NodeJob::code(job(), handler).once_listener(Arc::new(listener)))
        .start()
        .await
        .unwrap()
}

async fn wait_until(description: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(TIMEOUT, waiting).await.is_ok(),
        "{description}: {}",
        Log::captured()
    );
}

/// Waits until the three shards have three different owners.
async fn wait_for_owners(registry: &dyn Registry) {
    let tree = JobTree::new(registry.namespace(), &job().name).unwrap();
    wait_until("each instance has a shard", async || {
        let mut owners = std::collections::BTreeSet::new();
        for shard in 0..3 {
            let owner = registry.get(&tree.shard(shard, ShardNode::Owner)).await.unwrap();
            owners.extend(owner.map(|owner| owner.data));
        }
        owners.len() == 3
    })
    .await;
}

/// All calls, grouped by run.
fn runs(log: &CallLog) -> BTreeMap<String, Vec<Call>> {
    let mut runs: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    for call in log.lock().unwrap().iter() {
        let (Call::Before(run) | Call::Started(run, _) | Call::Ended(run, _) | Call::After(run)) =
            call;
        runs.entry(run.clone()).or_default().push(call.clone());
    }
    runs
}

fn is_complete(calls: &[Call]) -> bool {
    matches!(calls, [Call::Before(_), .., Call::After(_)]) && calls.len() == 8
}

async fn wait_for_complete_runs(log: &CallLog, count: usize) {
    let complete = || runs(log).values().filter(|calls| is_complete(calls)).count();
    wait_until("runs are complete", async || complete() >= count).await;
}

pub(crate) async fn once_listener_is_called_before_and_after_all_shards(server: &dyn TestServer) {
    Log::start_capture();
    let log = CallLog::default();
    let mut running = Vec::new();
    let mut members = Vec::new();
    for host in 1..4 {
        let member = server.join("once-listener-is", None).await;
        running.push(start(&member, host, &log, Duration::from_secs(5), false).await);
        members.push(member);
    }
    wait_for_owners(&*members[0].registry).await;
    // A run during sharding may lack a shard; from the first complete run on, all instances run the same fires.
    wait_for_complete_runs(&log, 1).await;
    log.lock().unwrap().clear();
    Log::start_capture();

    wait_for_complete_runs(&log, 3).await;
    let logged = Log::captured();
    stop_all(running).await;

    assert!(!logged.contains("job failed"), "{logged}");

    let runs = runs(&log);
    // The first run may have started before the log was cleared, and the stop may have interrupted the last one.
    let mut between: Vec<_> = runs.values().collect();
    between.pop();
    for calls in &between[1..] {
        assert!(is_complete(calls), "{calls:?}");
    }
    for calls in runs.values() {
        let count = |matches: fn(&Call) -> bool| calls.iter().filter(|&call| matches(call)).count();
        assert!(count(|call| matches!(call, Call::Before(_))) <= 1, "{calls:?}");
        assert!(count(|call| matches!(call, Call::After(_))) <= 1, "{calls:?}");
    }
}

pub(crate) async fn shards_run_without_listener_if_an_instance_never_arrives(
    server: &dyn TestServer,
) {
    Log::start_capture();
    let (log, namespace) = (CallLog::default(), "shards-run-without");
    let (one, two) = (server.join(namespace, None).await, server.join(namespace, None).await);
    let silent = server.join(namespace, None).await;
    let short = Duration::from_millis(300);
    let running =
        vec![start(&one, 1, &log, short, false).await, start(&two, 2, &log, short, false).await];
    // This member owns a shard and never runs it.
    let joining = JoinRequest {
        local: job(),
        handler: Handler::Code { java_class: None },
        author: member::JobSource::Program,
        instance: Instance::new(InstanceId::new([10, 0, 0, 3].into(), 3, 7)),
    };
    let environment = member::MemberResources {
        registry: Arc::clone(&silent.registry),
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        strategies: CustomStrategies::default(),
        busy: member::BusyShards::default(),
        flaws: Flaws::default(),
        shard_limit: ShardLimit::default(),
    };
    let member = Member::join(environment, joining).await.unwrap();
    wait_for_owners(&*one.registry).await;

    wait_until("the timeout is logged", async || {
        Log::captured().contains("not all shards registered within 300ms")
    })
    .await;
    log.lock().unwrap().clear();
    wait_until("the others run anyway", async || {
        runs(&log)
            .values()
            .any(|calls| calls.iter().filter(|call| matches!(call, Call::Ended(..))).count() == 2)
    })
    .await;
    assert!(!log.lock().unwrap().iter().any(|call| matches!(call, Call::Before(_))));
    member.leave().await;

    wait_for_complete_runs(&log, 2).await;
    stop_all(running).await;
}

pub(crate) async fn failing_once_listener_is_logged_and_shards_run(server: &dyn TestServer) {
    Log::start_capture();
    let log = CallLog::default();
    let member = server.join("failing-once-listener", None).await;
    let node = start(&member, 1, &log, TIMEOUT, true).await;

    wait_for_complete_runs(&log, 1).await;

    assert!(
        Log::captured().contains("a listener failed: no table to empty"),
        "{}",
        Log::captured()
    );
    node.stop().await;
}

async fn stop_all(running: Vec<RunningNode>) {
    futures_util::future::join_all(running.into_iter().map(RunningNode::stop)).await;
}
