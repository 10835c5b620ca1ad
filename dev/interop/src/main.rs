//! A Rust instance that takes the orders the Java driver (`interop/`) takes, and says what it says: one JSON object a line. So a scenario
//! can be told of either.
//!
//! ```sh
//! interop REGISTRY ADDRESS
//! ```

mod beat;
mod words;
mod work;

use std::{env, error::Error, sync::Arc, time::Duration};

use elasticjob::{
    execution::{Supervisor, supervise_if_asked},
    job::{Job, JobName},
    node::{Node, NodeJob, Running},
    registry::{self, Registry, RegistryUrl},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{beat::Beats, words::say, work::Work};

/// The class the Java driver runs its jobs with.
const JAVA_CLASS: &str = "interop.Work";
/// How many jobs of a crowd join at once: as many as when a node starts with them.
const AT_ONCE: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let supervisor = supervise_if_asked();
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
    runtime.block_on(obey(&url.parse()?, &address, supervisor))
}

/// Does what it is told until nobody is left to tell it.
async fn obey(
    url: &RegistryUrl,
    address: &str,
    supervisor: Supervisor,
) -> Result<(), Box<dyn Error>> {
    let registry = registry::connect(url).await?;
    let node = Node::on(Arc::clone(&registry)).address(address.parse()?).supervisor(supervisor);
    let mut running = Some(node.start().await?);
    say(json!({"said": "hello", "version": env!("CARGO_PKG_VERSION")}))?;
    let beats = Beats::default();
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = orders.next_line().await? {
        let order: Value = serde_json::from_str(&line)?;
        let answer = match does(&*registry, address, &mut running, &beats, &order).await {
            Ok(value) => json!({"said": "answer", "value": value}),
            Err(error) => json!({"said": "answer", "error": error.to_string()}),
        };
        say(answer)?;
    }
    Ok(())
}

async fn does(
    registry: &dyn Registry,
    address: &str,
    running: &mut Option<Running>,
    beats: &Beats,
    order: &Value,
) -> Result<Value, Box<dyn Error>> {
    let node = running.as_ref().ok_or("this node has left")?;
    match order["do"].as_str() {
        Some("start") => {
            let job = read(order)?;
            let name = job.name.clone();
            node.add(entry(job, beats, order)?).await?;
            instance_of(registry, &name, address).await
        }
        Some("crowd") => crowd(node, beats, order).await,
        Some("beats") => Ok(beats.told()),
        Some("stop") => {
            Ok(node.remove(&order["job"].as_str().unwrap_or_default().parse()?).await.into())
        }
        Some("leave") => {
            if let Some(node) = running.take() {
                node.stop().await;
            }
            Ok(true.into())
        }
        other => Err(format!("nobody here knows how to {other:?}").into()),
    }
}

/// The job in the order: the document it is stored as.
fn read(order: &Value) -> Result<Job, Box<dyn Error>> {
    let yaml = order["yaml"].as_str().ok_or("a job is a document")?;
    let name = yaml.lines().find_map(|line| line.strip_prefix("jobName: "));
    Ok(Job::read(&name.ok_or("a job has a name")?.parse()?, yaml.as_bytes())?)
}

/// Joins many jobs that are alike but for their names, `prefix0` and on, as a node does that starts with them.
async fn crowd(node: &Running, beats: &Beats, order: &Value) -> Result<Value, Box<dyn Error>> {
    let (Some(count), Some(prefix)) = (order["count"].as_u64(), order["prefix"].as_str()) else {
        return Err("a crowd has a size, and names".into());
    };
    let pattern = read(order)?;
    let mut joining = stream::iter(0..count)
        .map(async |number| -> Result<(), Box<dyn Error>> {
            let mut job = pattern.clone();
            job.name = format!("{prefix}{number}").parse()?;
            Ok(node.add(NodeJob::code(job, beats.job(lasts(order)?))).await?)
        })
        .buffer_unordered(AT_ONCE);
    while joining.next().await.transpose()?.is_some() {}
    Ok(json!({"joined": count}))
}

fn lasts(order: &Value) -> Result<Duration, &'static str> {
    order["lastsMs"].as_u64().map(Duration::from_millis).ok_or("how long does it take?")
}

fn entry(job: Job, beats: &Beats, order: &Value) -> Result<NodeJob, Box<dyn Error>> {
    let meets = job.listener_types.iter().any(|listener| listener == "ONCE");
    let entry = match order["type"].as_str() {
        Some("SCRIPT") => NodeJob::script(job),
        Some("HTTP") => NodeJob::http(job),
        Some("BEAT") => NodeJob::code(job, beats.job(lasts(order)?)),
        _ => NodeJob::code(job, Work::read(order).ok_or("how long does it take?")?)
            .java_class(JAVA_CLASS),
    };
    Ok(if meets { entry.once(Arc::new(work::Once)) } else { entry })
}

/// By which id this node is a member: an address has one node in these tests.
async fn instance_of(
    registry: &dyn Registry,
    job: &JobName,
    address: &str,
) -> Result<Value, Box<dyn Error>> {
    let instances = registry.namespace().path().join(job)?.join("instances")?;
    let ids = registry.children(&instances).await?.unwrap_or_default();
    let mine = ids.into_iter().find(|id| id.starts_with(&format!("{address}@-@")));
    Ok(mine.ok_or("it is not a member")?.into())
}
