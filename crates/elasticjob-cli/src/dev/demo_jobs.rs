//! The demo jobs: one of each kind, one that fails sometimes, one that overruns its interval sometimes.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    execution::{DataflowJob, SimpleJob},
    job::{Failover, InvalidValue, Job, Overwrite, Shard, keys},
    node::NodeJob,
};

use super::print::print_event;

/// Orders per shard and run, and per batch.
const ORDERS: u32 = 15;
const BATCH: u32 = 2;
/// Duration of a batch: a run takes about eight of every ten seconds, so a worker that is killed is probably running a shard.
const SETTLING: Duration = Duration::from_secs(1);

/// The jobs of a demo worker; `ping` only if there is an endpoint.
pub(super) fn all(name: &str, endpoint: Option<&str>) -> Result<Vec<NodeJob>, InvalidValue> {
    let job = |name: &str, cron: &str, shards: u32, description: &str| {
        let job = Job::named(name)?.cron(cron)?.shards(shards).description(description);
        // The commentary already reports failures.
        Ok::<Job, InvalidValue>(job.alert("IGNORE"))
    };
    let greet = job("greet", "0/10 * * * * ?", 3, "a simple job that prints")?
        .items("0=Beijing,1=Shanghai,2=Guangzhou")?;
    let settle = job("settle", "0/10 * * * * ?", 3, "a dataflow that is taken over")?
        .prop("streaming.process", "true")?
        .failover(Failover::TakeOver);
    let load = job("load", "5/20 * * * * ?", 1, "a script")?
        .prop("script.command.line", "read load < /proc/loadavg; echo the load is $load")?
        .prop(keys::SCRIPT_SHELL, "true")?;
    let flaky = job("flaky", "0/15 * * * * ?", 1, "fails now and then")?;
    let overrun =
        job("overrun", "0/10 * * * * ?", 1, "takes longer than its interval now and then")?;
    let mut jobs = vec![
        NodeJob::code(greet, Greet { worker: name.to_owned() }),
        NodeJob::code(settle, Settle { worker: name.to_owned(), settled: Mutex::default() }),
        NodeJob::script(load),
        NodeJob::code(flaky, flaky_run),
        NodeJob::code(overrun, overrun_run),
    ];
    if let Some(endpoint) = endpoint {
        let ping = job("ping", "0/20 * * * * ?", 2, "an HTTP request")?
            .prop("http.uri", endpoint)?
            .prop("http.method", "GET")?
            // The endpoint has a new port at every start.
            .overwrite(Overwrite::LocalWins);
        jobs.push(NodeJob::http(ping));
    }
    Ok(jobs)
}

/// Prints a line and logs it, so that it also appears in the history.
fn report(text: &str) {
    // A target of its own: the default one begins with the library's name, and the library's logs are not output of the shard.
    tracing::info!(target: "demo", "{text}");
    print_event(text);
}

struct Greet {
    worker: String,
}

impl SimpleJob for Greet {
    type Error = Infallible;

    async fn execute(&self, shard: Shard) -> Result<(), Infallible> {
        let city = shard.parameter.as_deref().unwrap_or("everybody");
        report(&format!("greet: {}  {} says hello to {city}", shard.item, self.worker));
        Ok(())
    }
}

/// Settles [`ORDERS`] orders in every run, in batches.
struct Settle {
    worker: String,
    /// By shard: fencing token of the claim and number of orders settled.
    settled: Mutex<BTreeMap<u32, (i64, u32)>>,
}

impl DataflowJob for Settle {
    type Item = u32;
    type Error = Infallible;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, Infallible> {
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = settled.entry(shard.item).or_default();
        if mine.0 != shard.token.get() {
            *mine = (shard.token.get(), 0);
            report(&format!("settle: {}  {} starts with {ORDERS} orders", shard.item, self.worker));
        }
        Ok((mine.1..ORDERS).take(BATCH as usize).collect())
    }

    async fn process(&self, shard: &Shard, orders: Vec<u32>) -> Result<(), Infallible> {
        tokio::time::sleep(SETTLING).await;
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = settled.entry(shard.item).or_default();
        mine.1 += orders.len() as u32;
        // Only for the history: shows output of a running shard without flooding the commentary.
        tracing::info!(target: "demo", "settle: {}  {} of {ORDERS} orders are settled", shard.item, mine.1);
        Ok(())
    }
}

/// Fails twice a minute.
async fn flaky_run(shard: Shard) -> Result<(), &'static str> {
    tokio::task::yield_now().await;
    if shard.due_at.as_second() % 30 == 15 { Err("the other side hung up") } else { Ok(()) }
}

/// Takes one second; twice a minute longer than its interval, so that the next fire misfires.
async fn overrun_run(shard: Shard) -> Result<(), Infallible> {
    let seconds = if shard.due_at.as_second() % 30 == 0 { 14 } else { 1 };
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}
