//! A worker: one process that runs jobs and says what it does.

use std::{
    error::Error,
    io::{self, Read},
    sync::Arc,
};

use async_trait::async_trait;
use elasticjob::{
    coordination::tree::{JobTree, Place},
    execution::{Execution, Failure, Listener, Outcome, Ran},
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
    said::{Key, Reason, What, now},
    task::Task,
};

/// The variable a worker finds its orders in.
pub const ORDERS: &str = "CHAOS_ORDERS";

/// What a worker is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// Where it meets the others.
    pub registry: String,
    /// Where its jobs write, if they do.
    pub database: Option<String>,
    /// By which address others know it.
    pub address: String,
    /// Its jobs.
    pub tasks: Vec<Task>,
}

impl Orders {
    /// As text.
    pub fn to_text(&self) -> String {
        let tasks: Vec<Value> = self.tasks.iter().map(Task::to_json).collect();
        json!({
            "registry": self.registry,
            "database": self.database,
            "address": self.address,
            "tasks": tasks,
        })
        .to_string()
    }

    /// Reads the text.
    pub fn from_text(text: &str) -> Option<Self> {
        let orders: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            registry: orders["registry"].as_str()?.into(),
            database: orders["database"].as_str().map(Into::into),
            address: orders["address"].as_str()?.into(),
            tasks: orders["tasks"]
                .as_array()?
                .iter()
                .map(Task::from_json)
                .collect::<Option<_>>()?,
        })
    }
}

/// Works until it is asked to stop (SIGTERM), or until its parent is gone.
pub async fn work(orders: Orders) -> Result<(), Box<dyn Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let database = match &orders.database {
        Some(url) => Some(Arc::new(Database::connect(url).await?)),
        None => None,
    };
    let url: RegistryUrl = orders.registry.parse()?;
    let registry = registry::connect(&url).await?;
    let mut beside = JoinSet::new();
    if let Some(task) = orders.tasks.first() {
        let tree = JobTree::new(registry.namespace(), &task.job()?.name)?;
        beside.spawn(notice(Arc::clone(&registry), tree));
    }
    let mut node = Node::on(registry).address(orders.address.parse()?);
    for task in orders.tasks {
        let (job, database) = (task.job()?, database.clone());
        let step_by_step = move |shard: Shard| run(shard, task.clone(), database.clone());
        node = node.with(NodeJob::code(job, step_by_step).listener(Arc::new(Outcomes)));
    }
    let running = node.start().await?;
    What::Joined.say()?;
    // A thread of its own, because nobody can end the reading of a pipe but its other end.
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    terminated.recv().await;
    running.stop().await;
    Ok(())
}

/// Says when the instance node of somebody is gone: on the connection, and so at the moment, at which the node hears of it.
async fn notice(registry: Arc<dyn Registry>, tree: JobTree) {
    let Ok(mut watch) = registry.watch(tree.root()).await else { return };
    while let Some(event) = watch.next().await {
        if let Event::Delete { path } = event
            && let Some(Place::Instance(instance)) = tree.place(&path)
        {
            let _ = What::Noticed(instance).say();
        }
    }
}

async fn run(shard: Shard, task: Task, database: Option<Arc<Database>>) -> Result<(), Failure> {
    let key = Key::of(&shard);
    let reason =
        Reason { word: format!("{:?}", shard.attempt.reason), attempt: shard.attempt.number.get() };
    What::Started(key.clone(), reason).say()?;
    let write = async |what: &str| {
        let at = now();
        let accepted = match &database {
            Some(database) => database.write(&key, what).await?,
            None => true,
        };
        // Nobody stops because the database refused: that the lease stops them is what is to be seen.
        What::Stepped(key.clone(), accepted).say_at(at)?;
        Ok::<(), Failure>(())
    };
    write("start").await?;
    for _ in 0..task.steps {
        tokio::time::sleep(task.step).await;
        write("step").await?;
    }
    if task.fails == Some(shard.item) {
        return Err(Failure::new("this shard fails each time"));
    }
    write("end").await?;
    What::Returned(key.clone()).say()?;
    Ok(())
}

struct Outcomes;

#[async_trait]
impl Listener for Outcomes {
    async fn after(&self, _: &Execution, ran: &[Ran]) -> Result<(), Failure> {
        for ran in ran {
            let word = match ran.outcome {
                Outcome::Done => "done",
                Outcome::Fenced => "fenced",
                Outcome::Cancelled { .. } => "cancelled",
                _ => "failed",
            };
            What::Outcome(Key::of(&ran.shard), word.into()).say()?;
        }
        Ok(())
    }
}
