//! `job trigger` and `cancel`.

use std::{env, time::Duration};

use elasticjob::{
    admin::TriggerRequest,
    job::{JobName, ShardSelection},
};
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
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these shards, for example 0,2
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    shards: Vec<u32>,
    /// Job parameter for this run, instead of the configured one; several are joined with commas
    #[arg(long = "param", value_name = "K=V")]
    parameters: Vec<String>,
    /// Logical time of the run, for example 2026-11-15T06:36:07Z [default: now]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// Wait until the run has ended; the exit code is 20 if a shard failed
    #[arg(long)]
    wait: bool,
    /// Maximum time to wait
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Only these shards, for example 0,2
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    shards: Vec<u32>,
}

impl Trigger {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        let request = TriggerRequest {
            run: None,
            at: self.at.as_deref().map(parse_instant).transpose()?,
            shards: ShardSelection::all_if_empty(self.shards.iter().copied().collect()),
            parameter: (!self.parameters.is_empty()).then(|| self.parameters.join(",")),
            by: Some(user()),
        };
        let shards = request.shards.clone();
        Connection::with(global, None, async |connection| {
            // Watch before the trigger, so that no change is missed.
            let waiter = if self.wait {
                Some(RunWaiter::start(connection, job, &shards).await?)
            } else {
                None
            };
            let triggered =
                connection.or_suggest(job, connection.admin.trigger(job, request).await).await?;
            for id in &triggered.already_pending {
                output::print_message(&format!(
                    "note: {id} has an earlier trigger that it has not handled yet: it runs, but not as {}",
                    triggered.run
                ));
            }
            let Some(waiter) = waiter else {
                let mut table = Table::new(["INSTANCE", "RUN"]);
                for id in &triggered.instances {
                    table.row([id.clone(), triggered.run.to_string()]);
                }
                return output::print(global.output, &table, &to_json(&triggered)?);
            };
            if global.output == Format::Table {
                output::print_message(&format!(
                    "triggered {} to run {}",
                    join_names(&triggered.instances),
                    triggered.run
                ));
            }
            let ended = waiter.wait(connection, &triggered, self.timeout).await?;
            let mut table = Table::new(["SHARD", "STATE", "ATTEMPT", "INSTANCE"]);
            for shard in &ended {
                table.row(shard.cells());
            }
            let mut value = to_json(&triggered)?;
            value["shards"] = ended.iter().map(AwaitedShard::to_json).collect();
            output::print(global.output, &table, &value)?;
            AwaitedShard::check_all(job, &ended, self.timeout)
        })
    }
}

/// The user who triggers: the name from the environment, else the user id.
fn user() -> String {
    let variable = |name| env::var(name).ok().filter(|name: &String| !name.is_empty());
    let number = || rustix::process::getuid().as_raw().to_string();
    variable("SUDO_USER")
        .or_else(|| variable("USER"))
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(number)
}

impl Cancel {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        let shards = ShardSelection::all_if_empty(self.shards.iter().copied().collect());
        Connection::with(global, None, async |connection| {
            let cancelled =
                connection.or_suggest(job, connection.admin.cancel(job, &shards).await).await?;
            let mut table = Table::new(["SHARD", "ANSWER", "INSTANCE"]);
            let mut rows = Vec::new();
            for (id, shards) in &cancelled.requested {
                rows.extend(shards.iter().map(|shard| (*shard, "cancel requested", id.as_str())));
            }
            for (shard, id) in &cancelled.not_cancellable {
                rows.push((*shard, "cannot be cancelled", id.as_str()));
            }
            rows.extend(cancelled.idle.iter().map(|shard| (*shard, "not running", "-")));
            rows.sort_unstable();
            for (shard, answer, id) in rows {
                table.row([shard.to_string(), answer.to_owned(), id.to_owned()]);
            }
            let mut value = to_json(&cancelled)?;
            value["jobName"] = json!(job.as_str());
            output::print(global.output, &table, &value)
        })
    }
}
