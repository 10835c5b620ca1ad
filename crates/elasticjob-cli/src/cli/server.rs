//! `elasticjob server`

use clap::Subcommand;
use elasticjob::job::JobName;
use serde_json::json;

use super::{
    Global,
    site::{Site, list, value, word},
};
use crate::{
    error::Error,
    output::{self, Table},
};

#[derive(Debug, Subcommand)]
pub(super) enum Server {
    /// Lists the machines that jobs run on
    List,
    /// Shows a machine, job by job
    Show(Address),
    /// Lets a machine take part again
    Enable(Part),
    /// Lets a machine take part no longer
    Disable(Part),
    /// Ends the membership of the instances on a machine
    Shutdown(Part),
    /// Forgets a machine that has no instance
    Remove(Part),
}

#[derive(Debug, clap::Args)]
pub(super) struct Address {
    /// Which machine, for example 10.0.0.7
    #[arg(value_name = "ADDRESS")]
    address: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Part {
    /// Which machine, for example 10.0.0.7
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Only in this job
    #[arg(long, value_name = "JOB")]
    job: Option<JobName>,
}

impl Server {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        Site::visit(global, None, async |site| match self {
            Self::List => servers(global, site).await,
            Self::Show(Address { address }) => show(global, site, address).await,
            Self::Enable(Part { address, job }) => {
                let jobs = site.admin.enable_server(address, job.as_ref()).await?;
                told(global, address, "enabled", &jobs)
            }
            Self::Disable(Part { address, job }) => {
                let jobs = site.admin.disable_server(address, job.as_ref()).await?;
                told(global, address, "disabled", &jobs)
            }
            Self::Remove(Part { address, job }) => {
                let jobs = site.admin.remove_server(address, job.as_ref()).await?;
                told(global, address, "forgotten", &jobs)
            }
            Self::Shutdown(part) => part.shutdown(global, site).await,
        })
    }
}

async fn servers(global: &Global, site: &Site) -> Result<(), Error> {
    let servers = site.admin.servers().await?;
    let mut table = Table::new(["SERVER", "INSTANCES", "JOBS", "DISABLED JOBS"]);
    for server in &servers {
        table.row([
            server.address.clone(),
            server.instances.len().to_string(),
            server.jobs.len().to_string(),
            server.disabled.to_string(),
        ]);
    }
    output::print(global.output, &table, &value(&servers)?)
}

async fn show(global: &Global, site: &Site, address: &str) -> Result<(), Error> {
    let server = site.admin.server(address).await?;
    let mut table = Table::new(["JOB", "STATUS", "INSTANCES"]);
    for job in &server.jobs {
        table.row([job.job.clone(), word(&job.status), list(&job.instances)]);
    }
    output::print(global.output, &table, &value(&server)?)
}

impl Part {
    async fn shutdown(&self, global: &Global, site: &Site) -> Result<(), Error> {
        let Self { address, job } = self;
        let ended = site.admin.shutdown_server(address, job.as_ref()).await?;
        let told: Vec<String> =
            ended.iter().map(|(job, ids)| format!("job {job}: {}", list(ids))).collect();
        let sentence = if told.is_empty() {
            format!("server {address} has no instance: there was nothing to shut down")
        } else {
            let told = told.join("; ");
            format!("told to leave on server {address}: {told}; what runs comes to its end")
        };
        output::done(global.output, &sentence, &json!({ "serverIp": address, "instances": ended }))
    }
}

fn told(global: &Global, address: &str, became: &str, jobs: &[String]) -> Result<(), Error> {
    let sentence = if jobs.is_empty() {
        format!("server {address} was {became} before: nothing changed")
    } else {
        format!("server {address} is {became} in {}", list(jobs))
    };
    output::done(global.output, &sentence, &json!({ "serverIp": address, "jobNames": jobs }))
}
