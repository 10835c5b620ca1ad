//! The worker process: runs jobs and prints an event for everything it does.

use std::{
    error::Error,
    io::{self, Read},
    sync::Arc,
};

use async_trait::async_trait;
use elasticjob::{
    coordination::tree::{JobTree, TreeNode},
    execution::{Execution, Failure, Listener, Outcome, ShardResult},
    job::Shard,
    node::{Node, NodeJob},
    registry::{self, Event, Registry, RegistryUrl},
};
use serde_json::{Value, json};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

use crate::{
    database::Database,
    event::{EventKind, ExecutionKey, StartReason, now},
    step_job::StepJob,
};

/// The environment variable that holds a worker's configuration.
pub const CONFIG_VARIABLE: &str = "CHAOS_WORKER_CONFIG";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// The registry URL.
    pub registry: String,
    /// URL of the database that the jobs write to, if they do.
    pub database: Option<String>,
    /// The address that the worker registers with.
    pub address: String,
    pub jobs: Vec<StepJob>,
}

impl WorkerConfig {
    pub fn to_text(&self) -> String {
        let jobs: Vec<Value> = self.jobs.iter().map(StepJob::to_json).collect();
        json!({
            "registry": self.registry,
            "database": self.database,
            "address": self.address,
            "jobs": jobs,
        })
        .to_string()
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let config: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            registry: config["registry"].as_str()?.into(),
            database: config["database"].as_str().map(Into::into),
            address: config["address"].as_str()?.into(),
            jobs: config["jobs"]
                .as_array()?
                .iter()
                .map(StepJob::from_json)
                .collect::<Option<_>>()?,
        })
    }
}

/// Runs the jobs until SIGTERM, or until the parent process is gone.
pub async fn work(config: WorkerConfig) -> Result<(), Box<dyn Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let database = match &config.database {
        Some(url) => Some(Arc::new(Database::connect(url).await?)),
        None => None,
    };
    let url: RegistryUrl = config.registry.parse()?;
    let registry = registry::connect(&url).await?;
    let mut background = JoinSet::new();
    if let Some(step_job) = config.jobs.first() {
        let tree = JobTree::new(registry.namespace(), &step_job.job()?.name)?;
        background.spawn(report_gone_instances(Arc::clone(&registry), tree));
    }
    let mut node = Node::on(registry).address(config.address.parse()?);
    for step_job in config.jobs {
        let (job, database) = (step_job.job()?, database.clone());
        let handler = move |shard: Shard| run(shard, step_job.clone(), database.clone());
        node = node.with(NodeJob::code(job, handler).listener(Arc::new(OutcomePrinter)));
    }
    let running = node.start().await?;
    EventKind::Joined.print()?;
    // A separate thread, because a blocked read of a pipe ends only when the other end closes.
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    terminated.recv().await;
    running.stop().await;
    Ok(())
}

/// Prints an event when an instance node is deleted. Uses the node's own connection, so that both learn of it at the same moment.
async fn report_gone_instances(registry: Arc<dyn Registry>, tree: JobTree) {
    let Ok(mut watch) = registry.watch(tree.root()).await else { return };
    while let Some(event) = watch.next().await {
        if let Event::Delete { path } = event
            && let Some(TreeNode::Instance(instance)) = tree.node_at(&path)
        {
            let _ = EventKind::InstanceGone(instance).print();
        }
    }
}

async fn run(shard: Shard, job: StepJob, database: Option<Arc<Database>>) -> Result<(), Failure> {
    let key = ExecutionKey::of(&shard);
    let reason = StartReason {
        name: format!("{:?}", shard.attempt.reason),
        attempt: shard.attempt.number.get(),
    };
    EventKind::Started(key.clone(), reason).print()?;
    let write = async |phase: &str| {
        let at = now();
        let accepted = match &database {
            Some(database) => database.write(&key, phase).await?,
            None => true,
        };
        // A refused write does not stop the handler: the tests check that the lost lease does.
        EventKind::Stepped(key.clone(), accepted).print_at(at)?;
        Ok::<(), Failure>(())
    };
    write("start").await?;
    for _ in 0..job.steps {
        tokio::time::sleep(job.step).await;
        write("step").await?;
    }
    if job.fails == Some(shard.item) {
        return Err(Failure::new("this shard always fails"));
    }
    write("end").await?;
    EventKind::Returned(key.clone()).print()?;
    Ok(())
}

struct OutcomePrinter;

#[async_trait]
impl Listener for OutcomePrinter {
    async fn after(&self, _: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        for ran in ran {
            let outcome = match ran.outcome {
                Outcome::Succeeded => "done",
                Outcome::Fenced => "fenced",
                Outcome::Cancelled => "cancelled",
                _ => "failed",
            };
            EventKind::Outcome(ExecutionKey::of(&ran.shard), outcome.into()).print()?;
        }
        Ok(())
    }
}
