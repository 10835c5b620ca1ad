//! "Run now", and "stop that": `trigger`, `cancel`.

use std::{collections::BTreeSet, env, time::Duration};

use elasticjob::{admin::Ask, job::JobName};
use serde_json::json;

use super::wait::{AwaitedShard, RunWaiter};
use crate::{
    cli::{
        Global,
        connection::{Connection, join_names, to_json},
        cron::parse_instant,
        run::parse_duration,
    },
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Trigger {
    /// Which job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these shards, for example 0,2
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    shards: Vec<u32>,
    /// What the job is given instead of its own parameter; several are joined with commas
    #[arg(long = "param", value_name = "K=V")]
    parameters: Vec<String>,
    /// The time it is to work for, for example 2026-11-15T06:36:07Z; without, now
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Wait until the run has ended, and end with 20 if a shard failed
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// Which job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these shards, for example 0,2
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    shards: Vec<u32>,
}

impl Trigger {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        let ask = Ask {
            run: None,
            at: self.at.as_deref().map(parse_instant).transpose()?,
            shards: self.shards.iter().copied().collect(),
            parameter: (!self.parameters.is_empty()).then(|| self.parameters.join(",")),
            by: Some(user()),
        };
        let shards = ask.shards.clone();
        Connection::with(global, None, async |connection| {
            // Before anybody is asked, so that nothing is missed.
            let waiter = if self.wait {
                Some(RunWaiter::begin(connection, job, &shards).await?)
            } else {
                None
            };
            let asked =
                connection.or_suggest(job, connection.admin.trigger(job, ask).await).await?;
            for id in &asked.waiting {
                output::say(&format!(
                    "note: {id} was asked before and has not taken note yet: it runs, but not as {}",
                    asked.run
                ));
            }
            let Some(waiter) = waiter else {
                let mut table = Table::new(["INSTANCE", "RUN"]);
                for id in &asked.instances {
                    table.row([id.clone(), asked.run.to_string()]);
                }
                return output::print(global.output, &table, &to_json(&asked)?);
            };
            if global.output == Format::Table {
                output::say(&format!(
                    "asked {} to run {}",
                    join_names(&asked.instances),
                    asked.run
                ));
            }
            let ended = waiter.keep(connection, &asked, self.timeout).await?;
            let mut table = Table::new(["SHARD", "STATE", "ATTEMPT", "INSTANCE"]);
            for shard in &ended {
                table.row(shard.cells());
            }
            let mut told = to_json(&asked)?;
            told["shards"] = ended.iter().map(AwaitedShard::to_json).collect();
            output::print(global.output, &table, &told)?;
            AwaitedShard::verdict(job, &ended, self.timeout)
        })
    }
}

/// Who is at the keyboard, by the name the system knows, else by number.
fn user() -> String {
    let said = |name| env::var(name).ok().filter(|name: &String| !name.is_empty());
    let number = || rustix::process::getuid().as_raw().to_string();
    said("SUDO_USER").or_else(|| said("USER")).or_else(|| said("LOGNAME")).unwrap_or_else(number)
}

impl Cancel {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        let shards: BTreeSet<u32> = self.shards.iter().copied().collect();
        Connection::with(global, None, async |connection| {
            let cancelled =
                connection.or_suggest(job, connection.admin.cancel(job, &shards).await).await?;
            let mut table = Table::new(["SHARD", "ANSWER", "INSTANCE"]);
            let mut rows = Vec::new();
            for (id, shards) in &cancelled.asked {
                rows.extend(shards.iter().map(|shard| (*shard, "told to stop", id.as_str())));
            }
            for (shard, id) in &cancelled.not_cancellable {
                rows.push((*shard, "cannot be told to stop", id.as_str()));
            }
            rows.extend(cancelled.idle.iter().map(|shard| (*shard, "did not run", "-")));
            rows.sort_unstable();
            for (shard, answer, id) in rows {
                table.row([shard.to_string(), answer.to_owned(), id.to_owned()]);
            }
            let mut told = to_json(&cancelled)?;
            told["jobName"] = json!(job.as_str());
            output::print(global.output, &table, &told)
        })
    }
}
