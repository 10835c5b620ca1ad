//! `elasticjob server`

use clap::Subcommand;
use elasticjob::job::JobName;
use serde_json::json;

use super::{
    Global,
    connection::{Connection, join_names, status_text, to_json},
};
use crate::{
    error::Error,
    output::{self, Table},
};

#[derive(Debug, Subcommand)]
pub(super) enum Server {
    /// Lists the servers that run jobs
    List,
    /// Shows the jobs of a server
    Show(AddressArg),
    /// Enables a server
    Enable(ServerArgs),
    /// Disables a server
    Disable(ServerArgs),
    /// Makes the instances on a server leave their jobs
    Shutdown(ServerArgs),
    /// Removes a server that has no instance
    Remove(ServerArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AddressArg {
    /// Address of the server, for example 10.0.0.7
    #[arg(value_name = "ADDRESS")]
    address: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// Address of the server, for example 10.0.0.7
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Only in this job
    #[arg(long, value_name = "JOB")]
    job: Option<JobName>,
}

impl Server {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        Connection::with(global, None, async |connection| match self {
            Self::List => servers(global, connection).await,
            Self::Show(AddressArg { address }) => show(global, connection, address).await,
            Self::Enable(ServerArgs { address, job }) => {
                let jobs = connection.admin.enable_server(address, job.as_ref()).await?;
                print_change(global, address, "enabled", &jobs)
            }
            Self::Disable(ServerArgs { address, job }) => {
                let jobs = connection.admin.disable_server(address, job.as_ref()).await?;
                print_change(global, address, "disabled", &jobs)
            }
            Self::Remove(ServerArgs { address, job }) => {
                let jobs = connection.admin.remove_server(address, job.as_ref()).await?;
                print_change(global, address, "removed", &jobs)
            }
            Self::Shutdown(args) => args.shutdown(global, connection).await,
        })
    }
}

async fn servers(global: &Global, connection: &Connection) -> Result<(), Error> {
    let servers = connection.admin.servers().await?;
    let mut table = Table::new(["SERVER", "INSTANCES", "JOBS", "DISABLED JOBS"]);
    for server in &servers {
        table.row([
            server.address.clone(),
            server.instances.len().to_string(),
            server.jobs.len().to_string(),
            server.disabled.to_string(),
        ]);
    }
    output::print(global.output, &table, &to_json(&servers)?)
}

async fn show(global: &Global, connection: &Connection, address: &str) -> Result<(), Error> {
    let server = connection.admin.server(address).await?;
    let mut table = Table::new(["JOB", "STATUS", "INSTANCES"]);
    for job in &server.jobs {
        table.row([job.job.clone(), status_text(&job.status), join_names(&job.instances)]);
    }
    output::print(global.output, &table, &to_json(&server)?)
}

impl ServerArgs {
    async fn shutdown(&self, global: &Global, connection: &Connection) -> Result<(), Error> {
        let Self { address, job } = self;
        let ended = connection.admin.shutdown_server(address, job.as_ref()).await?;
        let jobs: Vec<String> =
            ended.iter().map(|(job, ids)| format!("job {job}: {}", join_names(ids))).collect();
        let sentence = if jobs.is_empty() {
            format!("server {address} has no instance: nothing to shut down")
        } else {
            let jobs = jobs.join("; ");
            format!("shutdown requested on server {address}: {jobs}; running shards may finish")
        };
        output::done(global.output, &sentence, &json!({ "serverIp": address, "instances": ended }))
    }
}

fn print_change(
    global: &Global,
    address: &str,
    became: &str,
    jobs: &[String],
) -> Result<(), Error> {
    let sentence = if jobs.is_empty() {
        format!("server {address} was already {became}: nothing changed")
    } else {
        format!("server {address} is {became} in {}", join_names(jobs))
    };
    output::done(global.output, &sentence, &json!({ "serverIp": address, "jobNames": jobs }))
}
