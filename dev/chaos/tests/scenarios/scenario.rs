//! The fixture of the scenarios: a cluster of workers, and ways to wait for what they do.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

use chaos::{Cluster, ClusterConfig, Event, Execution, StepJob, executions, wait_until_quiescent};
use elasticjob::{coordination::tree::JobTree, registry::Registry};
use testbed::ZooKeeper;

/// The session timeout, unless a test needs another.
pub(crate) const SESSION: Duration = Duration::from_secs(2);

/// Shared by all tests; each uses its own namespace.
pub(crate) static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

pub(crate) struct Scenario {
    pub(crate) cluster: Cluster,
    pub(crate) registry: Arc<dyn Registry>,
    /// The tree of the first job.
    pub(crate) tree: JobTree,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Scenario {
    /// Starts `workers` workers and waits until they share the jobs.
    pub(crate) async fn new(
        name: &str,
        session: Duration,
        jobs: &[StepJob],
        workers: usize,
    ) -> Self {
        let mut scenario = Self::empty(name, session, jobs, false).await;
        for _ in 0..workers {
            scenario.cluster.start().await.unwrap();
        }
        scenario.wait_until_quiescent(workers).await;
        scenario
    }

    /// A cluster without workers on the shared server.
    pub(crate) async fn empty(
        name: &str,
        session: Duration,
        jobs: &[StepJob],
        on_one_host: bool,
    ) -> Self {
        let address = tokio::task::block_in_place(|| SERVER.address());
        Self::on(address, name, session, jobs, on_one_host).await
    }

    /// A cluster without workers on the server at `address`.
    pub(crate) async fn on(
        address: SocketAddr,
        name: &str,
        session: Duration,
        jobs: &[StepJob],
        on_one_host: bool,
    ) -> Self {
        let cluster = Cluster::new(ClusterConfig {
            program: env!("CARGO_BIN_EXE_chaos").into(),
            logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
            servers: vec![address],
            namespace: name.into(),
            session,
            database: None,
            jobs: jobs.to_vec(),
            on_one_host,
        });
        let cluster = cluster.unwrap();
        let registry = cluster.observer().await.unwrap();
        let job = jobs[0].name.parse().unwrap();
        let tree = JobTree::new(registry.namespace(), &job).unwrap();
        Self { cluster, registry, tree }
    }

    /// Waits until `workers` instances share all jobs and no node of an earlier instance is left.
    pub(crate) async fn wait_until_quiescent(&self, workers: usize) {
        let result =
            wait_until_quiescent(&*self.registry, &self.cluster.config().jobs, workers).await;
        assert_eq!(result, Ok(()));
    }

    /// Waits until `find` returns something for the executions so far, in the order of their tokens.
    pub(crate) async fn until<T>(
        &self,
        expectation: &str,
        mut find: impl FnMut(&[Execution]) -> Option<T>,
    ) -> T {
        self.cluster.events().until(expectation, |events| find(&in_order(events))).await
    }

    /// Waits until all shards of a run of the first job are running, and returns their executions.
    pub(crate) async fn run_in_progress(&self) -> Vec<Execution> {
        let job = &self.cluster.config().jobs[0];
        let is_running = |all: &[Execution]| {
            let run = all.iter().rev().find(|execution| execution.key.job == job.name)?.key.run;
            let executions = executions_of_run(all, &job.name, run);
            let all_running = executions
                .iter()
                .all(|execution| execution.outcome.is_none() && execution.writes.len() > 1);
            (executions.len() == job.shards as usize && all_running).then_some(executions)
        };
        self.until("a run is in progress", is_running).await
    }

    /// Waits for `count` runs of a job that are due after the last run so far and in which every shard ran once and has an outcome.
    pub(crate) async fn complete_runs(&self, job: &str, count: usize) -> Vec<Vec<Execution>> {
        let mut jobs = self.cluster.config().jobs.iter();
        let shards = jobs.find(|step_job| step_job.name == job).unwrap().shards;
        let last = self.all().iter().map(|execution| execution.key.run).max().unwrap_or(0);
        self.until(&format!("{count} complete runs of {job}"), |all| {
            let mut runs: Vec<i64> = all.iter().map(|execution| execution.key.run).collect();
            runs.retain(|run| *run > last);
            runs.sort_unstable();
            runs.dedup();
            let runs = runs.into_iter().map(|run| executions_of_run(all, job, run));
            let complete: Vec<Vec<Execution>> = runs
                .filter(|executions| {
                    executions.len() == shards as usize
                        && executions.iter().all(|execution| execution.outcome.is_some())
                })
                .collect();
            (complete.len() >= count).then_some(complete)
        })
        .await
    }

    /// All executions so far, in the order of their tokens.
    pub(crate) fn all(&self) -> Vec<Execution> {
        in_order(&self.cluster.events().all())
    }

    /// Stops the given workers, which must be all that run, and checks that they leave nothing behind. Returns all executions.
    pub(crate) async fn stop(mut self, workers: &[usize]) -> Vec<Execution> {
        for worker in workers {
            let status = self.cluster.stop(*worker).await.unwrap();
            assert!(status.success(), "{status}");
        }
        self.wait_until_quiescent(0).await;
        self.all()
    }
}

pub(crate) fn executions_of_run(all: &[Execution], job: &str, run: i64) -> Vec<Execution> {
    let is_it = |execution: &&Execution| execution.key.job == job && execution.key.run == run;
    all.iter().filter(is_it).cloned().collect()
}

fn in_order(events: &[Event]) -> Vec<Execution> {
    let mut violations = Vec::new();
    let mut all: Vec<Execution> = executions(events, &mut violations).into_values().collect();
    assert!(violations.is_empty(), "{violations:#?}");
    all.sort_by_key(|execution| execution.key.token);
    all
}
