//! `job trigger` and `cancel`.

use std::{env, time::Duration};

use elasticjob::{
    admin::TriggerRequest,
    job::{JobName, RunId, ShardSelection},
};
use serde_json::json;

use super::wait;
use crate::{
    cli::{
        Global,
        connection::{Connection, join_names, to_json},
        cron::parse_instant,
        run::parse_duration,
        trigger::shards_table,
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
    /// Skip shards that have not started after this time [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// Wait until the run has ended and print what becomes of each shard; the exit code is 20 if one did not succeed
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
    /// Only this run, also those of its shards that have not started; if omitted, whichever runs
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
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
            expires_in: self.expires,
        };
        Connection::with(global, None, async |connection| {
            let triggered =
                connection.or_suggest(job, connection.admin.trigger(job, request).await).await?;
            for id in &triggered.already_pending {
                output::print_message(&format!(
                    "note: {id} is a Java instance with a trigger that it has not handled yet: it runs because of that one"
                ));
            }
            if !self.wait {
                let mut table = Table::new(["INSTANCE", "RUN"]);
                for id in &triggered.instances {
                    table.row([id.clone(), triggered.run.to_string()]);
                }
                return output::print(global.output, &table, &to_json(&triggered)?);
            }
            if global.output == Format::Table {
                output::print_message(&format!(
                    "triggered {} to run {}",
                    join_names(&triggered.instances),
                    triggered.run
                ));
            }
            let waited =
                wait::wait(connection, job, &triggered, self.timeout, global.output).await?;
            let mut value = to_json(&triggered)?;
            value["state"] = to_json(&waited.summary.state)?;
            value["shards"] = to_json(&waited.shards)?;
            output::print(global.output, &shards_table(&waited), &value)?;
            wait::check(job, &waited, self.timeout)
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
            let cancelled = match &self.run {
                Some(run) => connection.admin.cancel_run(job, run, &shards).await,
                None => connection.admin.cancel(job, &shards).await,
            };
            let cancelled = connection.or_suggest(job, cancelled).await?;
            let mut table = Table::new(["SHARD", "ANSWER", "INSTANCE"]);
            let mut rows = Vec::new();
            for (id, shards) in &cancelled.requested {
                rows.extend(shards.iter().map(|shard| (*shard, "cancel requested", id.as_str())));
            }
            for (shard, id) in &cancelled.not_cancellable {
                rows.push((*shard, "cannot be cancelled", id.as_str()));
            }
            rows.extend(cancelled.withdrawn.iter().map(|shard| (*shard, "will not start", "-")));
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
