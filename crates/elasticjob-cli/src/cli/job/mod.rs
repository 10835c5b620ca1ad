//! `elasticjob job`

mod apply;
mod explain;
mod lifecycle;
mod show;
mod trigger;
mod wait;

use clap::Subcommand;
use elasticjob::job::JobName;

use super::Global;
use crate::error::Error;

#[derive(Debug, Subcommand)]
pub(super) enum Job {
    /// Lists the jobs with their status and next run
    List,
    /// Shows a job: its configuration, servers and instances
    Show(JobArg),
    /// Stores the jobs of files, after showing what changes
    Apply(apply::Apply),
    /// Stores jobs of Java ElasticJob 2.1.5: its JSON, or the XML of Spring's namespaces
    Import(apply::Apply),
    /// Runs a job now
    Trigger(trigger::Trigger),
    /// Cancels the current run of a job
    Cancel(trigger::Cancel),
    /// Enables a job on every server
    Enable(JobArg),
    /// Disables a job on every server, including servers that join later
    Disable(JobArg),
    /// Makes every instance leave a job
    Shutdown(JobArg),
    /// Removes a job and everything stored about it
    Remove(lifecycle::Remove),
    /// Explains why a job, or one of its shards, ran or did not run
    Explain(explain::Explain),
    /// Prints everything that the registry stores about a job, with addresses masked
    Dump(JobArg),
}

#[derive(Debug, clap::Args)]
pub(crate) struct JobArg {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
}

impl Job {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        match self {
            Self::List => show::list(global),
            Self::Show(arg) => show::show(global, &arg.job),
            Self::Apply(apply) => apply.run(global),
            Self::Import(import) => import.run_import(global),
            Self::Trigger(trigger) => trigger.run(global),
            Self::Cancel(cancel) => cancel.run(global),
            Self::Enable(arg) => lifecycle::enable(global, &arg.job),
            Self::Disable(arg) => lifecycle::disable(global, &arg.job),
            Self::Shutdown(arg) => lifecycle::shutdown(global, &arg.job),
            Self::Remove(remove) => remove.run(global),
            Self::Explain(explain) => explain.run(global),
            Self::Dump(arg) => show::dump(global, &arg.job),
        }
    }
}
