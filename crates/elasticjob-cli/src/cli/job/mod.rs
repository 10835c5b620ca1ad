//! `elasticjob job`

mod apply;
mod explain;
mod show;
mod lifecycle;
mod trigger;
mod wait;

use clap::Subcommand;
use elasticjob::job::JobName;

use super::Global;
use crate::error::Error;

#[derive(Debug, Subcommand)]
pub(super) enum Job {
    /// Lists the jobs: how they stand, and when they are due next
    List,
    /// Shows a job: its configuration, its servers, its instances
    Show(JobArg),
    /// Stores the configurations that files describe, after saying what that changes
    Apply(apply::Apply),
    /// Stores what 2.1.5 kept: its JSON, or the XML of Spring's namespaces
    Import(apply::Apply),
    /// Lets a job run now
    Trigger(trigger::Trigger),
    /// Stops what runs
    Cancel(trigger::Cancel),
    /// Lets a job run again, on every server
    Enable(JobArg),
    /// Lets a job run nowhere, not even on servers that come later
    Disable(JobArg),
    /// Ends every instance's membership in a job
    Shutdown(JobArg),
    /// Removes a job with everything that was kept of it
    Remove(lifecycle::Remove),
    /// Says why a job, or a shard of it, ran or did not run
    Explain(explain::Explain),
    /// Prints everything that is stored of a job, with addresses masked
    Dump(JobArg),
}

#[derive(Debug, clap::Args)]
pub(crate) struct JobArg {
    /// Which job
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
