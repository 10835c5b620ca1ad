//! `job list`, `show` and `dump`.

use elasticjob::{
    admin::{HandlerInfo, Instance, JobDetails, JobSummary},
    job::JobName,
    problem::printable,
};
use serde_json::{Value, json};

use crate::{
    cli::{
        Global,
        connection::{Connection, format_instant, join_names, or_dash, status_text, to_json},
    },
    error::Error,
    output::{self, Format, Table},
};

pub(super) fn list(global: &Global) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let jobs = connection.admin.jobs().await?;
        let mut table = Table::new(["JOB", "STATUS", "SHARDS", "INSTANCES", "CRON", "NEXT RUN"]);
        for job in &jobs {
            if global.output == Format::Table
                && let Some(problem) = &job.problem
            {
                let hint = job.hint.as_ref().map(|hint| format!("; hint: {hint}"));
                let hint = hint.unwrap_or_default();
                output::print_message(&format!("note: job {}: {problem}{hint}", job.name));
            }
            table.row([
                job.name.clone(),
                status_text(&job.status),
                count(job),
                job.instances.to_string(),
                or_dash(job.cron.as_deref()),
                format_instant(job.next_fire),
            ]);
        }
        if jobs.is_empty() && global.output == Format::Table {
            output::print_message(&format!("no jobs in {}", connection.registry.namespace()));
        }
        output::print(global.output, &table, &to_json(&jobs)?)
    })
}

pub(super) fn show(global: &Global, job: &JobName) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let details = connection.or_suggest(job, connection.admin.job(job).await).await?;
        let mut servers = Table::new(["SERVER", "STATUS", "INSTANCES"]);
        for server in &details.servers {
            servers.row([
                server.address.clone(),
                status_text(&server.status),
                server.instances.to_string(),
            ]);
        }
        let mut instances = Table::new(["INSTANCE", "LANGUAGE", "SINCE", "LABELS"]);
        for instance in &details.instances {
            instances.row([
                instance.id.clone(),
                status_text(&instance.language),
                format_instant(instance.since),
                labels(instance),
            ]);
        }
        let tables = [facts(&details), configuration(&details)?, servers, instances];
        output::print_all(global.output, &tables, &to_json(&details)?)
    })
}

pub(super) fn dump(global: &Global, job: &JobName) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let dump = connection.or_suggest(job, connection.admin.dump(job).await).await?;
        if global.output == Format::Table {
            return output::write(printable(&dump).as_bytes());
        }
        output::print_all(global.output, &[], &json!({ "jobName": job.as_str(), "dump": dump }))
    })
}

fn facts(details: &JobDetails) -> Table {
    let summary = &details.summary;
    let mut table = Table::new(["FIELD", "VALUE"]);
    let mut fact = |name: &str, value: String| table.row([name.to_owned(), value]);
    fact("name", summary.name.clone());
    fact("status", status_text(&summary.status));
    fact("type", runs_with(&summary.handler));
    fact("next run", format_instant(summary.next_fire));
    fact("leader", or_dash(details.leader.as_deref()));
    if let Some(problem) = &summary.problem {
        fact("problem", problem.clone());
    }
    if let Some(hint) = &summary.hint {
        fact("hint", hint.clone());
    }
    if let Some(since) = details.resharding_since {
        fact("resharding since", format_instant(Some(since)));
    }
    if !details.failover_items.is_empty() {
        let items: Vec<String> = details.failover_items.iter().map(ToString::to_string).collect();
        fact("awaiting failover", join_names(&items));
    }
    if !details.triggers.is_empty() {
        fact("pending triggers", join_names(&details.triggers));
    }
    table
}

/// The configuration without unset and empty keys.
fn configuration(details: &JobDetails) -> Result<Table, Error> {
    let mut table = Table::new(["KEY", "VALUE"]);
    let properties = to_json(&details.configuration)?;
    let Value::Object(properties) = &properties["properties"] else { return Ok(table) };
    for (key, value) in properties {
        match value {
            Value::Null => {}
            // Already shown above.
            _ if key == "jobName" => {}
            Value::String(text) if text.is_empty() => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(entries) => {
                for (name, value) in entries {
                    table.row([format!("{key}.{name}"), text(value)]);
                }
            }
            value => table.row([key.clone(), text(value)]),
        }
    }
    Ok(table)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn count(job: &JobSummary) -> String {
    job.shards.map_or("-".to_owned(), |shards| shards.to_string())
}

fn runs_with(handler: &HandlerInfo) -> String {
    match handler {
        HandlerInfo::Script => "SCRIPT".to_owned(),
        HandlerInfo::Http => "HTTP".to_owned(),
        HandlerInfo::Class { class } => class.clone(),
        HandlerInfo::Rust { handler: None } => "a Rust program".to_owned(),
        HandlerInfo::Rust { handler: Some(handler) } => format!("a Rust program, {handler}"),
    }
}

fn labels(instance: &Instance) -> String {
    let labels: Vec<String> =
        instance.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels = or_dash(Some(&labels.join(",")));
    match &instance.problem {
        None => labels,
        Some(problem) => format!("{labels} ({problem})"),
    }
}
