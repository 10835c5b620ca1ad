//! Servers in the ancestor's words.

use axum::response::Response;
use elasticjob::{
    admin::{JobStatus, ServerStatus},
    job::JobName,
};
use serde::Serialize;

use super::envelope::Asker;
use crate::{
    auth::{
        accounts::Role,
        who::{Door, Looks, Rules, Steers},
    },
    http::{
        extract::{Address, Named},
        paging::ready,
        problem::Problem,
    },
    jobs::{actions, servers::all_servers},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Brief {
    server_ip: String,
    instances: Vec<String>,
    job_names: Vec<String>,
    instances_num: usize,
    jobs_num: usize,
    disabled_jobs_num: usize,
}

pub(super) async fn count(asker: Asker) -> Response {
    asker
        .bare()
        .ask::<Looks, _>(Role::Viewer, async |door| Ok(ready(&door).await?.seen(all_servers).len()))
        .await
}

pub(super) async fn list(asker: Asker) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door| {
            let servers = ready(&door).await?.seen(all_servers).into_iter();
            let briefs = servers.map(|server| Brief {
                server_ip: server.address,
                instances_num: server.instances.len(),
                jobs_num: server.jobs.len(),
                disabled_jobs_num: server.disabled,
                instances: server.instances,
                job_names: server.jobs,
            });
            Ok(briefs.collect::<Vec<_>>())
        })
        .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OnServer {
    job_name: String,
    status: JobStatus,
    instance_count: usize,
}

pub(super) async fn jobs(asker: Asker, server: Result<Address, Problem>) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door| {
            let Address(server) = server?;
            let details = door.admin().await?.server(&server).await?;
            let jobs = details.jobs.into_iter().map(|job| OnServer {
                job_name: job.job,
                status: match job.status {
                    Some(ServerStatus::Disabled) => JobStatus::Disabled,
                    _ => JobStatus::Ok,
                },
                instance_count: job.instances.len(),
            });
            Ok(jobs.collect::<Vec<_>>())
        })
        .await
}

/// The server and the job that are meant.
fn meant(server: Server, job: Option<Job>) -> Result<(String, Option<JobName>), Problem> {
    let Address(server) = server?;
    Ok((server, job.transpose()?.map(|Named(job)| job)))
}

async fn switch_on(asker: Asker, server: Server, job: Option<Job>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let (server, job) = meant(server, job)?;
            actions::enable_server(&door, &server, job.as_ref()).await
        })
        .await
}

async fn switch_off(asker: Asker, server: Server, job: Option<Job>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let (server, job) = meant(server, job)?;
            actions::disable_server(&door, &server, job.as_ref()).await
        })
        .await
}

async fn end(asker: Asker, server: Server, job: Option<Job>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let (server, job) = meant(server, job)?;
            actions::shutdown_server(&door, &server, job.as_ref()).await
        })
        .await
}

async fn forget(asker: Asker, server: Server, job: Option<Job>) -> Response {
    asker
        .act::<Rules, _>(Role::Admin, async |door: Door<Rules>| {
            let (server, job) = meant(server, job)?;
            actions::remove_server(&door, &server, job.as_ref()).await
        })
        .await
}

type Server = Result<Address, Problem>;
type Job = Result<Named, Problem>;

pub(super) async fn enable(asker: Asker, server: Server) -> Response {
    switch_on(asker, server, None).await
}

pub(super) async fn disable(asker: Asker, server: Server) -> Response {
    switch_off(asker, server, None).await
}

pub(super) async fn shutdown(asker: Asker, server: Server) -> Response {
    end(asker, server, None).await
}

pub(super) async fn remove(asker: Asker, server: Server) -> Response {
    forget(asker, server, None).await
}

pub(super) async fn enable_in(asker: Asker, server: Server, job: Job) -> Response {
    switch_on(asker, server, Some(job)).await
}

pub(super) async fn disable_in(asker: Asker, server: Server, job: Job) -> Response {
    switch_off(asker, server, Some(job)).await
}

pub(super) async fn shutdown_in(asker: Asker, server: Server, job: Job) -> Response {
    end(asker, server, Some(job)).await
}

pub(super) async fn remove_in(asker: Asker, server: Server, job: Job) -> Response {
    forget(asker, server, Some(job)).await
}

/// A job's dump. It is read from the registry: the console connects to nothing that a path names.
pub(super) async fn dump(asker: Asker, job: Job) -> Response {
    asker
        .ask::<Rules, _>(Role::Admin, async |door| {
            let Named(job) = job?;
            Ok(door.admin().await?.dump(&job).await?)
        })
        .await
}
