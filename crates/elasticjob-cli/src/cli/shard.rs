//! `elasticjob shard`

use clap::Subcommand;
use elasticjob::{
    admin::{STRATEGIES, ShardsPage, assign},
    job::JobName,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

use super::{
    Global,
    connection::{Connection, format_instant, or_dash, status_text, to_json},
    cron::parse_instant,
};
use crate::{
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, Subcommand)]
pub(super) enum Shard {
    /// Lists the shards of a job with their owner and last run
    List(List),
    /// Enables a shard
    Enable(ShardArgs),
    /// Disables a shard
    Disable(ShardArgs),
    /// Replaces an unreadable ledger page of a shard, so that the shard runs at its next fire
    Reset(ShardArgs),
    /// Computes a shard assignment as the leader would, without a registry
    Plan(Plan),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Leave out the first N shards
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// List at most N shards
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShardArgs {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Number of the shard
    #[arg(value_name = "N")]
    shard: u32,
}

#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// Name of the job; three strategies depend on it
    #[arg(long, value_name = "NAME")]
    job: String,
    /// Number of shards
    #[arg(long, value_name = "N")]
    total: u32,
    #[arg(long, value_name = "STRATEGY", default_value = "AVG_ALLOCATION", help = STRATEGIES)]
    strategy: String,
    /// Ids of the instances, for example 10.0.0.7@-@4711
    #[arg(long = "instance", value_name = "ID", required = true, num_args = 1..)]
    instances: Vec<String>,
    /// Time of the assignment, for `SINGLE_SHARDING_BALANCE` [default: now]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
}

impl Shard {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        match self {
            Self::List(list) => list.run(global),
            Self::Enable(args) => args.switch(global, true),
            Self::Disable(args) => args.switch(global, false),
            Self::Reset(args) => args.reset(global),
            Self::Plan(plan) => plan.run(global),
        }
    }
}

impl List {
    fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        Connection::with(global, None, async |connection| {
            let page = connection.admin.shards_page(job, self.skip, self.limit).await;
            let ShardsPage { total, shards } = connection.or_suggest(job, page).await?;
            let listed = self.skip.saturating_add(shards.len());
            if listed < total {
                output::print_message(&format!(
                    "note: {} of {total} shards; --skip {listed} lists more",
                    shards.len()
                ));
            }
            let mut table =
                Table::new(["SHARD", "STATUS", "INSTANCE", "LAST RUN", "SINCE", "PARAMETER"]);
            for shard in &shards {
                if global.output == Format::Table
                    && let Some(problem) = &shard.problem
                {
                    output::print_message(&format!("note: shard {}: {problem}", shard.item));
                }
                let last = shard.last_run.as_ref();
                table.row([
                    shard.item.to_string(),
                    status_text(&shard.status),
                    or_dash(shard.owner.as_deref()),
                    last.map_or("-".to_owned(), |last| status_text(&last.state)),
                    format_instant(last.and_then(|last| last.since)),
                    or_dash(shard.parameter.as_deref()),
                ]);
            }
            output::print(global.output, &table, &to_json(&shards)?)
        })
    }
}

impl ShardArgs {
    fn switch(&self, global: &Global, enable: bool) -> Result<(), Error> {
        let Self { job, shard } = self;
        Connection::with(global, None, async |connection| {
            let answer = if enable {
                connection.admin.enable_shard(job, *shard).await
            } else {
                connection.admin.disable_shard(job, *shard).await
            };
            let is_changed = connection.or_suggest(job, answer).await?;
            let word = if enable { "enabled" } else { "disabled" };
            let before = if is_changed { "" } else { " already" };
            output::done(
                global.output,
                &format!("shard {shard} of job {job} is{before} {word}"),
                &json!({ "jobName": job.as_str(), "item": shard, "disabled": !enable, "isChanged": is_changed }),
            )
        })
    }
}

impl ShardArgs {
    fn reset(&self, global: &Global) -> Result<(), Error> {
        let Self { job, shard } = self;
        Connection::with(global, None, async |connection| {
            let answer = connection.admin.reset_shard(job, *shard).await;
            let is_changed = connection.or_suggest(job, answer).await?;
            let message = if is_changed {
                format!("shard {shard} of job {job} is reset: it runs at its next fire")
            } else {
                format!("shard {shard} of job {job} needs no reset: its ledger page can be read")
            };
            output::done(
                global.output,
                &message,
                &json!({ "jobName": job.as_str(), "item": shard, "isChanged": is_changed }),
            )
        })
    }
}

impl Plan {
    fn run(&self, global: &Global) -> Result<(), Error> {
        let plan = self.plan()?;
        let mut table = Table::new(["SHARD", "INSTANCE"]);
        for (shard, instance) in plan.iter().enumerate() {
            table.row([shard.to_string(), instance.clone()]);
        }
        output::print(global.output, &table, &Value::from(plan))
    }

    fn plan(&self) -> Result<Vec<String>, Error> {
        let at = self.at.as_deref().map_or_else(|| Ok(SystemClock.now()), parse_instant)?;
        Ok(assign(&self.job, self.total, &self.strategy, &self.instances, at)?)
    }
}
