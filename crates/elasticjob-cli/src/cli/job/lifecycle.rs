//! `job enable`, `disable`, `shutdown` and `remove`.

use elasticjob::{
    admin::{ConfigUpdate, SwitchResult},
    job::JobName,
};
use serde_json::json;

use crate::{
    cli::{
        Global,
        connection::{Connection, join_names, to_json},
    },
    error::Error,
    output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Remove the job even if it has instances; they lose it
    #[arg(long)]
    force: bool,
}

pub(super) fn enable(global: &Global, job: &JobName) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let switched = connection.or_suggest(job, connection.admin.enable(job).await).await?;
        print_switched(global, job, "enabled", &switched)
    })
}

pub(super) fn disable(global: &Global, job: &JobName) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let switched = connection.or_suggest(job, connection.admin.disable(job).await).await?;
        print_switched(global, job, "disabled", &switched)
    })
}

pub(super) fn shutdown(global: &Global, job: &JobName) -> Result<(), Error> {
    Connection::with(global, None, async |connection| {
        let instances = connection.or_suggest(job, connection.admin.shutdown(job).await).await?;
        let sentence = if instances.is_empty() {
            format!("job {job} has no instance: nothing to shut down")
        } else {
            format!(
                "shutdown of job {job} requested: {}; running shards may finish",
                join_names(&instances)
            )
        };
        output::done(
            global.output,
            &sentence,
            &json!({ "jobName": job.as_str(), "instances": instances }),
        )
    })
}

impl Remove {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let job = &self.job;
        Connection::with(global, None, async |connection| {
            let removed = connection.admin.remove(job, self.force).await;
            let removed = connection.or_suggest(job, removed).await?;
            let mut sentence = format!("removed job {job}: {} nodes", removed.nodes);
            if !removed.instances.is_empty() {
                let instances = join_names(&removed.instances);
                sentence = format!("{sentence}; instances that lost it: {instances}");
            }
            output::done(global.output, &sentence, &to_json(&removed)?)
        })
    }
}

fn print_switched(
    global: &Global,
    job: &JobName,
    became: &str,
    switched: &SwitchResult,
) -> Result<(), Error> {
    let stored = match &switched.config {
        ConfigUpdate::Written => "configuration updated, so that new servers follow it".to_owned(),
        ConfigUpdate::Unchanged => "configuration unchanged".to_owned(),
        ConfigUpdate::Unreadable { problem } => {
            format!("configuration unchanged, since it cannot be read: {problem}")
        }
    };
    let servers = join_names(&switched.servers);
    let sentence = format!("job {job} is {became}; servers changed: {servers}; {stored}");
    output::done(global.output, &sentence, &to_json(switched)?)
}
