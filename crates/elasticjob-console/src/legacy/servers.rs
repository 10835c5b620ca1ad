//! Servers of the legacy API.

use axum::response::Response;
use elasticjob::{
    admin::{JobStatus, ServerStatus},
    job::JobName,
};
use serde::Serialize;

use super::envelope::LegacyRequest;
use crate::{
    auth::caller::{Administrator, Authorized, Operator, Viewer},
    http::{
        extract::{PathJob, PathServer},
        paging::loaded_mirror,
        problem::Problem,
    },
    jobs::{actions, servers::all_servers},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerBrief {
    server_ip: String,
    instances: Vec<String>,
    job_names: Vec<String>,
    instances_num: usize,
    jobs_num: usize,
    disabled_jobs_num: usize,
}

pub(super) async fn count(request: LegacyRequest) -> Response {
    request
        .bare()
        .respond(async |access: Authorized<Viewer>| {
            Ok(loaded_mirror(&access).await?.read(all_servers).len())
        })
        .await
}

pub(super) async fn list(request: LegacyRequest) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let servers = loaded_mirror(&access).await?.read(all_servers).into_iter();
            let briefs = servers.map(|server| ServerBrief {
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
struct ServerJob {
    job_name: String,
    status: JobStatus,
    instance_count: usize,
}

pub(super) async fn jobs(request: LegacyRequest, server: Result<PathServer, Problem>) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let PathServer(server) = server?;
            let details = access.admin().await?.server(&server).await?;
            let jobs = details.jobs.into_iter().map(|job| ServerJob {
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

/// Validates the server and the optional job of a path.
fn parse_target(server: Server, job: Option<Job>) -> Result<(String, Option<JobName>), Problem> {
    let PathServer(server) = server?;
    Ok((server, job.transpose()?.map(|PathJob(job)| job)))
}

async fn enable_server(request: LegacyRequest, server: Server, job: Option<Job>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let (server, job) = parse_target(server, job)?;
            actions::enable_server(&access, &server, job.as_ref()).await
        })
        .await
}

async fn disable_server(request: LegacyRequest, server: Server, job: Option<Job>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let (server, job) = parse_target(server, job)?;
            actions::disable_server(&access, &server, job.as_ref()).await
        })
        .await
}

async fn shutdown_server(request: LegacyRequest, server: Server, job: Option<Job>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let (server, job) = parse_target(server, job)?;
            actions::shutdown_server(&access, &server, job.as_ref()).await
        })
        .await
}

async fn remove_server(request: LegacyRequest, server: Server, job: Option<Job>) -> Response {
    request
        .perform(async |access: Authorized<Administrator>| {
            let (server, job) = parse_target(server, job)?;
            actions::remove_server(&access, &server, job.as_ref()).await
        })
        .await
}

type Server = Result<PathServer, Problem>;
type Job = Result<PathJob, Problem>;

pub(super) async fn enable(request: LegacyRequest, server: Server) -> Response {
    enable_server(request, server, None).await
}

pub(super) async fn disable(request: LegacyRequest, server: Server) -> Response {
    disable_server(request, server, None).await
}

pub(super) async fn shutdown(request: LegacyRequest, server: Server) -> Response {
    shutdown_server(request, server, None).await
}

pub(super) async fn remove(request: LegacyRequest, server: Server) -> Response {
    remove_server(request, server, None).await
}

pub(super) async fn enable_in(request: LegacyRequest, server: Server, job: Job) -> Response {
    enable_server(request, server, Some(job)).await
}

pub(super) async fn disable_in(request: LegacyRequest, server: Server, job: Job) -> Response {
    disable_server(request, server, Some(job)).await
}

pub(super) async fn shutdown_in(request: LegacyRequest, server: Server, job: Job) -> Response {
    shutdown_server(request, server, Some(job)).await
}

pub(super) async fn remove_in(request: LegacyRequest, server: Server, job: Job) -> Response {
    remove_server(request, server, Some(job)).await
}

/// Returns a job's dump. It is read from the registry: the console never connects to an address from a path.
pub(super) async fn dump(request: LegacyRequest, job: Job) -> Response {
    request
        .respond(async |access: Authorized<Administrator>| {
            let PathJob(job) = job?;
            Ok(access.admin().await?.dump(&job).await?)
        })
        .await
}
