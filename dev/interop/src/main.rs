//! The Rust counterpart of the Java driver (`java/`): an instance that reads the same commands and prints the same events, one JSON object per line,
//! so that a scenario can use either.
//!
//! ```sh
//! interop REGISTRY ADDRESS
//! ```

mod output;
mod start_recorder;
mod work;

use std::{env, error::Error, sync::Arc, time::Duration};

use elasticjob::{
    execution::{Supervisor, supervise_if_requested},
    job::{Job, JobName},
    node::{Node, NodeJob, RunningNode},
    registry::{self, Registry, RegistryUrl},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{output::print_event, start_recorder::Starts, work::Work};

/// The class of the jobs of the Java driver.
const JAVA_CLASS: &str = "interop.Work";
/// How many jobs of `start many` join concurrently: as many as when a node starts with them.
const CONCURRENT_JOINS: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let supervisor = supervise_if_requested();
    tracing_subscriber::fmt()
        .with_env_filter(env::var("RUST_LOG").unwrap_or_else(|_| "info".into()))
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: interop REGISTRY ADDRESS".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_commands(&url.parse()?, &address, supervisor))
}

/// Executes commands until stdin closes.
async fn run_commands(
    url: &RegistryUrl,
    address: &str,
    supervisor: Supervisor,
) -> Result<(), Box<dyn Error>> {
    let registry = registry::connect(url).await?;
    let node = Node::on(Arc::clone(&registry)).address(address.parse()?).supervisor(supervisor);
    let mut running = Some(node.start().await?);
    print_event(json!({"event": "hello", "version": env!("CARGO_PKG_VERSION")}))?;
    let starts = Starts::default();
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = commands.next_line().await? {
        let command: Value = serde_json::from_str(&line)?;
        let answer = match execute(&*registry, address, &mut running, &starts, &command).await {
            Ok(value) => json!({"event": "answer", "value": value}),
            Err(error) => json!({"event": "answer", "error": error.to_string()}),
        };
        print_event(answer)?;
    }
    Ok(())
}

async fn execute(
    registry: &dyn Registry,
    address: &str,
    running: &mut Option<RunningNode>,
    starts: &Starts,
    command: &Value,
) -> Result<Value, Box<dyn Error>> {
    let node = running.as_ref().ok_or("the node has left")?;
    match command["do"].as_str() {
        Some("start") => {
            let job = read_job(command)?;
            let name = job.name.clone();
            node.add(node_job(job, starts, command)?).await?;
            instance_of(registry, &name, address).await
        }
        Some("start many") => start_many(node, starts, command).await,
        Some("take starts") => Ok(starts.take()),
        Some("stop") => {
            Ok(node.remove(&command["job"].as_str().unwrap_or_default().parse()?).await.into())
        }
        Some("leave") => {
            if let Some(node) = running.take() {
                node.stop().await;
            }
            Ok(true.into())
        }
        other => Err(format!("unknown command: {other:?}").into()),
    }
}

/// Reads the job of a command, which is the YAML that the job is stored as.
fn read_job(command: &Value) -> Result<Job, Box<dyn Error>> {
    let yaml = command["yaml"].as_str().ok_or("the command has no `yaml`")?;
    let name = yaml.lines().find_map(|line| line.strip_prefix("jobName: "));
    Ok(Job::read(&name.ok_or("the document has no `jobName`")?.parse()?, yaml.as_bytes())?)
}

/// Joins many jobs that differ only in their names, `prefix0` and on, concurrently, as a node that starts with them does.
async fn start_many(
    node: &RunningNode,
    starts: &Starts,
    command: &Value,
) -> Result<Value, Box<dyn Error>> {
    let (Some(count), Some(prefix)) = (command["count"].as_u64(), command["prefix"].as_str())
    else {
        return Err("the command has no `count` or no `prefix`".into());
    };
    let template = read_job(command)?;
    let mut joining = stream::iter(0..count)
        .map(async |number| -> Result<(), Box<dyn Error>> {
            let mut job = template.clone();
            job.name = format!("{prefix}{number}").parse()?;
            Ok(node.add(NodeJob::code(job, starts.job(duration(command)?))).await?)
        })
        .buffer_unordered(CONCURRENT_JOINS);
    while joining.next().await.transpose()?.is_some() {}
    Ok(json!({"joined": count}))
}

fn duration(command: &Value) -> Result<Duration, &'static str> {
    command["lastsMs"].as_u64().map(Duration::from_millis).ok_or("the command has no `lastsMs`")
}

fn node_job(job: Job, starts: &Starts, command: &Value) -> Result<NodeJob, Box<dyn Error>> {
    let has_once_listener = job.listener_types.iter().any(|listener| listener == "ONCE");
    let node_job = match command["type"].as_str() {
        Some("SCRIPT") => NodeJob::script(job),
        Some("HTTP") => NodeJob::http(job),
        Some("RECORD_STARTS") => NodeJob::code(job, starts.job(duration(command)?)),
        _ => NodeJob::code(
            job,
            Work::read(command).ok_or("the command has no `lastsMs` or no `fails`")?,
        )
        .java_class(JAVA_CLASS),
    };
    Ok(if has_once_listener {
        node_job.once_listener(Arc::new(work::OncePrinter))
    } else {
        node_job
    })
}

/// The instance id of this node: in these tests each address belongs to one node.
async fn instance_of(
    registry: &dyn Registry,
    job: &JobName,
    address: &str,
) -> Result<Value, Box<dyn Error>> {
    let instances = registry.namespace().path().join(job)?.join("instances")?;
    let ids = registry.children(&instances).await?.unwrap_or_default();
    let own_id = ids.into_iter().find(|id| id.starts_with(&format!("{address}@-@")));
    Ok(own_id.ok_or("the node has not joined the job")?.into())
}
