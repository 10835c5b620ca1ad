//! A few workers with a job or two, and what can be seen of them.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

use chaos::{Cluster, Execution, Plan, Said, Task, executions, settles};
use elasticjob::{coordination::tree::JobTree, registry::Registry};
use testbed::ZooKeeper;

/// How long a session lasts, where a test does not need another.
pub(crate) const SESSION: Duration = Duration::from_secs(2);

/// One for all tests; each has a namespace of its own.
pub(crate) static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) registry: Arc<dyn Registry>,
    /// Of the first job.
    pub(crate) tree: JobTree,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Scene {
    /// So many workers with these jobs; returns when they share them.
    pub(crate) async fn new(name: &str, session: Duration, tasks: &[Task], workers: usize) -> Self {
        let mut scene = Self::empty(name, session, tasks, false).await;
        for _ in 0..workers {
            scene.cluster.start().await.unwrap();
        }
        scene.settle(workers).await;
        scene
    }

    pub(crate) async fn empty(
        name: &str,
        session: Duration,
        tasks: &[Task],
        on_one_host: bool,
    ) -> Self {
        let address = tokio::task::block_in_place(|| SERVER.address());
        Self::on(address, name, session, tasks, on_one_host).await
    }

    /// On a server of its own.
    pub(crate) async fn on(
        address: SocketAddr,
        name: &str,
        session: Duration,
        tasks: &[Task],
        on_one_host: bool,
    ) -> Self {
        let cluster = Cluster::new(Plan {
            program: env!("CARGO_BIN_EXE_chaos").into(),
            logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
            servers: vec![address],
            namespace: name.into(),
            session,
            database: None,
            tasks: tasks.to_vec(),
            on_one_host,
        });
        let cluster = cluster.unwrap();
        let registry = cluster.observer().await.unwrap();
        let job = tasks[0].name.parse().unwrap();
        let tree = JobTree::new(registry.namespace(), &job).unwrap();
        Self { cluster, registry, tree }
    }

    /// Waits until so many share all jobs and nothing is left of those before them.
    pub(crate) async fn settle(&self, workers: usize) {
        let settled = settles(&*self.registry, &self.cluster.plan().tasks, workers).await;
        assert_eq!(settled, Ok(()));
    }

    /// Waits until what was executed shows it.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&[Execution]) -> Option<T>,
    ) -> T {
        self.cluster.heard().until(what, |said| look(&in_order(said))).await
    }

    /// Waits for a run of the first job that is whole and under way: its executions.
    pub(crate) async fn under_way(&self) -> Vec<Execution> {
        let task = &self.cluster.plan().tasks[0];
        let runs_now = |all: &[Execution]| {
            let run = all.iter().rev().find(|execution| execution.key.job == task.name)?.key.run;
            let of = of_run(all, &task.name, run);
            let runs = of
                .iter()
                .all(|execution| execution.outcome.is_none() && execution.writes.len() > 1);
            (of.len() == task.shards as usize && runs).then_some(of)
        };
        self.until("a run is under way", runs_now).await
    }

    /// Waits for so many runs of a job, due after the last one there is now, in each of which every shard ran once and has ended.
    pub(crate) async fn whole_runs(&self, job: &str, count: usize) -> Vec<Vec<Execution>> {
        let task = self.cluster.plan().tasks.iter().find(|task| task.name == job).unwrap().clone();
        let now = self.all().iter().map(|execution| execution.key.run).max().unwrap_or(0);
        self.until(&format!("{count} whole runs of {job}"), |all| {
            let mut runs: Vec<i64> = all.iter().map(|execution| execution.key.run).collect();
            runs.retain(|run| *run > now);
            runs.sort_unstable();
            runs.dedup();
            let runs = runs.into_iter().map(|run| of_run(all, job, run));
            let whole: Vec<Vec<Execution>> = runs
                .filter(|of| {
                    of.len() == task.shards as usize
                        && of.iter().all(|execution| execution.outcome.is_some())
                })
                .collect();
            (whole.len() >= count).then_some(whole)
        })
        .await
    }

    /// Everything that was executed so far, in the order of its tokens.
    pub(crate) fn all(&self) -> Vec<Execution> {
        in_order(&self.cluster.heard().all())
    }

    /// Asks everybody who is there to stop; what is left must be nothing.
    pub(crate) async fn end(mut self, workers: &[usize]) -> Vec<Execution> {
        for worker in workers {
            let ended = self.cluster.stop(*worker).await.unwrap();
            assert!(ended.success(), "{ended}");
        }
        self.settle(0).await;
        self.all()
    }
}

/// What was executed of one run.
pub(crate) fn of_run(all: &[Execution], job: &str, run: i64) -> Vec<Execution> {
    let is_it = |execution: &&Execution| execution.key.job == job && execution.key.run == run;
    all.iter().filter(is_it).cloned().collect()
}

fn in_order(said: &[Said]) -> Vec<Execution> {
    let mut wrong = Vec::new();
    let mut all: Vec<Execution> = executions(said, &mut wrong).into_values().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    all.sort_by_key(|execution| execution.key.token);
    all
}
