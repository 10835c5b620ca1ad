//! Servers in the ancestor's words.

use axum::response::Response;
use elasticjob::{
    admin::{Admin, AdminError, JobStatus, ServerStatus},
    job::JobName,
};
use serde::Serialize;
use serde_json::json;

use super::told::Asker;
use crate::api::{
    auth::{
        accounts::Role,
        who::{Door, Looks, Right, Rules, Steers},
    },
    extract::{Address, Named},
    jobs::ready,
    problem::Problem,
    servers::all_servers,
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

/// What can be done with a server, in one job or in all.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Enable,
    Disable,
    Shutdown,
    Remove,
}

impl Verb {
    fn action(self) -> &'static str {
        match self {
            Self::Enable => "server.enable",
            Self::Disable => "server.disable",
            Self::Shutdown => "server.shutdown",
            Self::Remove => "server.remove",
        }
    }

    async fn done(
        self,
        admin: &Admin,
        server: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        match self {
            Self::Enable => admin.enable_server(server, job).await,
            Self::Disable => admin.disable_server(server, job).await,
            Self::Shutdown => {
                Ok(admin.shutdown_server(server, job).await?.into_values().flatten().collect())
            }
            Self::Remove => admin.remove_server(server, job).await,
        }
    }
}

async fn act<R: Right>(
    asker: Asker,
    verb: Verb,
    server: Result<Address, Problem>,
    job: Option<Result<Named, Problem>>,
) -> Response {
    asker
        .act::<R, _>(R::ROLE, async |door: Door<R>| {
            let Address(server) = server?;
            let job = job.transpose()?.map(|Named(job)| job);
            let said = json!({ "job": job.as_ref().map(JobName::as_str) });
            door.change(verb.action(), &server, said, async |admin| {
                verb.done(admin, &server, job.as_ref()).await
            })
            .await
        })
        .await
}

type Server = Result<Address, Problem>;
type Job = Result<Named, Problem>;

pub(super) async fn enable(asker: Asker, server: Server) -> Response {
    act::<Steers>(asker, Verb::Enable, server, None).await
}

pub(super) async fn disable(asker: Asker, server: Server) -> Response {
    act::<Steers>(asker, Verb::Disable, server, None).await
}

pub(super) async fn shutdown(asker: Asker, server: Server) -> Response {
    act::<Steers>(asker, Verb::Shutdown, server, None).await
}

pub(super) async fn remove(asker: Asker, server: Server) -> Response {
    act::<Rules>(asker, Verb::Remove, server, None).await
}

pub(super) async fn enable_in(asker: Asker, server: Server, job: Job) -> Response {
    act::<Steers>(asker, Verb::Enable, server, Some(job)).await
}

pub(super) async fn disable_in(asker: Asker, server: Server, job: Job) -> Response {
    act::<Steers>(asker, Verb::Disable, server, Some(job)).await
}

pub(super) async fn shutdown_in(asker: Asker, server: Server, job: Job) -> Response {
    act::<Steers>(asker, Verb::Shutdown, server, Some(job)).await
}

pub(super) async fn remove_in(asker: Asker, server: Server, job: Job) -> Response {
    act::<Rules>(asker, Verb::Remove, server, Some(job)).await
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
