//! `elasticjob trigger`

use clap::Subcommand;
use elasticjob::{
    admin::{TriggerCounts, TriggerDetails, TriggerShard, TriggerSummary, TriggersPage},
    job::{JobName, RunId},
};
use serde_json::{Value, json};

use super::{
    Global,
    connection::{Connection, format_instant, or_dash, status_text, to_json},
};
use crate::{
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, Subcommand)]
pub(super) enum Trigger {
    /// Lists the stored triggers of a job, those that have not ended first
    List(List),
    /// Shows a stored trigger with the state of each shard
    Show(TriggerArgs),
    /// Withdraws a trigger: shards that have not started do not run, the others go on
    Withdraw(TriggerArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// List at most N triggers
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct TriggerArgs {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Id of the run, as `job trigger` prints it
    #[arg(value_name = "RUN")]
    run: RunId,
}

impl Trigger {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        Connection::with(global, None, async |connection| match self {
            Self::List(list) => list.run(global, connection).await,
            Self::Show(args) => args.show(global, connection).await,
            Self::Withdraw(args) => args.withdraw(global, connection).await,
        })
    }
}

impl List {
    async fn run(&self, global: &Global, connection: &Connection) -> Result<(), Error> {
        let page = connection.admin.triggers(&self.job, self.limit).await;
        let TriggersPage { total, triggers } = connection.or_suggest(&self.job, page).await?;
        if triggers.len() < total {
            output::print_message(&format!("note: {} of {total} triggers", triggers.len()));
        }
        let mut table = Table::new(["RUN", "STATE", "REQUESTED", "BY", "SHARDS", "PARAMETER"]);
        for trigger in &triggers {
            if global.output == Format::Table {
                print_problem(trigger);
            }
            table.row([
                trigger.run.clone(),
                status_text(&trigger.state),
                format_instant(trigger.requested_at),
                or_dash(trigger.by.as_deref()),
                trigger.counts.map_or_else(|| trigger.shard_count.to_string(), counts_text),
                or_dash(trigger.parameter.as_deref()),
            ]);
        }
        output::print(global.output, &table, &to_json(&triggers)?)
    }
}

impl TriggerArgs {
    async fn show(&self, global: &Global, connection: &Connection) -> Result<(), Error> {
        let shown = connection.admin.show_trigger(&self.job, &self.run).await;
        let details = connection.or_suggest(&self.job, shown).await?;
        let tables = [facts(&details.summary), shards_table(&details)];
        output::print_all(global.output, &tables, &to_json(&details)?)
    }

    async fn withdraw(&self, global: &Global, connection: &Connection) -> Result<(), Error> {
        let Self { job, run } = self;
        let withdrawn = connection.admin.withdraw_trigger(job, run).await;
        let withdrawn = connection.or_suggest(job, withdrawn).await?;
        let mut value = to_json(&withdrawn)?;
        value["jobName"] = json!(job.as_str());
        value["runId"] = Value::from(run.to_string());
        let parts = [
            ("will not start", &withdrawn.withdrawn),
            ("have started and go on", &withdrawn.started),
            ("belong to Java instances and cannot be withdrawn", &withdrawn.delegated),
        ];
        let parts = parts.into_iter().filter(|(_, shards)| !shards.is_empty());
        let parts: Vec<String> = parts
            .map(|(what, shards)| {
                let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
                format!("shards {} {what}", shards.join(", "))
            })
            .collect();
        let sentence = format!("trigger {run} of job {job} is withdrawn: {}", parts.join("; "));
        output::done(global.output, &sentence, &value)
    }
}

fn print_problem(trigger: &TriggerSummary) {
    if let Some(problem) = &trigger.problem {
        output::print_message(&format!("note: trigger {}: {problem}", trigger.run));
    }
}

fn facts(trigger: &TriggerSummary) -> Table {
    let mut table = Table::new(["FIELD", "VALUE"]);
    let mut fact = |name: &str, value: String| table.row([name.to_owned(), value]);
    fact("run", trigger.run.clone());
    fact("state", status_text(&trigger.state));
    if let Some(problem) = &trigger.problem {
        fact("problem", problem.clone());
        return table;
    }
    fact("requested at", format_instant(trigger.requested_at));
    fact("requested by", or_dash(trigger.by.as_deref()));
    fact("expires at", format_instant(trigger.expires_at));
    fact("ended at", format_instant(trigger.ended_at));
    fact("logical time", format_instant(trigger.at));
    fact("whole job", if trigger.is_whole { "yes" } else { "no" }.to_owned());
    fact("parameter", or_dash(trigger.parameter.as_deref()));
    table
}

/// The shards of a trigger, one in a row.
pub(super) fn shards_table(details: &TriggerDetails) -> Table {
    let mut table = Table::new(["SHARD", "STATE", "ATTEMPT", "SINCE", "INSTANCE"]);
    for shard in &details.shards {
        table.row([
            shard.item.to_string(),
            state_text(shard),
            shard.attempt.map_or("-".to_owned(), |attempt| attempt.to_string()),
            format_instant(shard.since),
            or_dash(shard.instance.as_deref()),
        ]);
    }
    table
}

/// The state of a shard, with the reason if it was skipped.
pub(super) fn state_text(shard: &TriggerShard) -> String {
    let state = status_text(&shard.state);
    match shard.reason {
        Some(reason) => format!("{state} ({})", reason.as_str()),
        None => state,
    }
}

/// For example `1 running, 3 done`.
fn counts_text(counts: TriggerCounts) -> String {
    let TriggerCounts {
        pending,
        running,
        succeeded,
        failed,
        timed_out,
        cancelled,
        fenced,
        lost,
        skipped,
        delegated,
        unreadable,
    } = counts;
    let states = [
        (pending, "pending"),
        (running, "running"),
        (succeeded, "done"),
        (failed, "failed"),
        (timed_out, "timed_out"),
        (cancelled, "cancelled"),
        (fenced, "fenced"),
        (lost, "lost"),
        (skipped, "skipped"),
        (delegated, "delegated"),
        (unreadable, "unreadable"),
    ];
    let states = states.iter().filter(|(count, _)| *count > 0);
    let states: Vec<String> = states.map(|(count, state)| format!("{count} {state}")).collect();
    if states.is_empty() { "-".to_owned() } else { states.join(", ") }
}
