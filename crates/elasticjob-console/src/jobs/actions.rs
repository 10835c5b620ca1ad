//! What can be done to jobs, shards and servers, each once: whoever asks, for one or for many, and in whatever form they are answered.

use std::collections::BTreeMap;

use elasticjob::{
    admin::Ask,
    admin::{Asked, Removed, Switched},
    job::JobName,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::caller::{Administrator, Authorized, ChangeTarget, Operator},
    http::problem::Problem,
};

/// Who was told to leave.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ShutDown)]
pub(crate) struct JobShutdown {
    /// By id.
    instances: Vec<String>,
}

/// A shard was switched.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ShardSwitched)]
pub(crate) struct ShardSwitch {
    /// Whether it was otherwise before.
    is_changed: bool,
}

/// Where a server was switched, or forgotten.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerSwitched)]
pub(crate) struct ServerChange {
    /// In these jobs it was otherwise before.
    job_names: Vec<String>,
}

/// Who was told to leave, job by job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerShutDown)]
pub(crate) struct ServerShutdown {
    /// By job, by id.
    instances: BTreeMap<String, Vec<String>>,
}

/// Lets a job run again, on every server.
pub(crate) async fn enable(
    access: &Authorized<Operator>,
    job: &JobName,
    request: Value,
) -> Result<Switched, Problem> {
    access
        .change("job.enable", ChangeTarget::Job(job), request, async |admin| {
            admin.enable(job).await
        })
        .await
}

/// Lets a job run nowhere.
pub(crate) async fn disable(
    access: &Authorized<Operator>,
    job: &JobName,
    request: Value,
) -> Result<Switched, Problem> {
    access
        .change("job.disable", ChangeTarget::Job(job), request, async |admin| {
            admin.disable(job).await
        })
        .await
}

/// Lets a job run now.
pub(crate) async fn trigger(
    access: &Authorized<Operator>,
    job: &JobName,
    ask: Ask,
    request: Value,
) -> Result<Asked, Problem> {
    let ask = Ask { by: Some(access.caller.username.clone()), ..ask };
    let work = async |admin: &elasticjob::admin::Admin| admin.trigger(job, ask).await;
    access.change("job.trigger", ChangeTarget::Job(job), request, work).await
}

/// Ends every instance's membership in a job.
pub(crate) async fn shutdown(
    access: &Authorized<Operator>,
    job: &JobName,
    request: Value,
) -> Result<JobShutdown, Problem> {
    access
        .change("job.shutdown", ChangeTarget::Job(job), request, async |admin| {
            Ok(JobShutdown { instances: admin.shutdown(job).await? })
        })
        .await
}

/// Removes a job with everything that was kept of it.
pub(crate) async fn remove(
    access: &Authorized<Administrator>,
    job: &JobName,
    force: bool,
) -> Result<Removed, Problem> {
    let request = json!({ "force": force });
    let work = async |admin: &elasticjob::admin::Admin| admin.remove(job, force).await;
    access.change("job.remove", ChangeTarget::Job(job), request, work).await
}

/// Lets a shard run again.
pub(crate) async fn enable_shard(
    access: &Authorized<Operator>,
    job: &JobName,
    item: u32,
) -> Result<ShardSwitch, Problem> {
    access
        .change("shard.enable", ChangeTarget::Shard(job, item), json!({}), async |admin| {
            Ok(ShardSwitch { is_changed: admin.enable_shard(job, item).await? })
        })
        .await
}

/// Lets a shard run no longer.
pub(crate) async fn disable_shard(
    access: &Authorized<Operator>,
    job: &JobName,
    item: u32,
) -> Result<ShardSwitch, Problem> {
    access
        .change("shard.disable", ChangeTarget::Shard(job, item), json!({}), async |admin| {
            Ok(ShardSwitch { is_changed: admin.disable_shard(job, item).await? })
        })
        .await
}

/// In one job, or in all, as the audit says it.
fn job_scope(job: Option<&JobName>) -> Value {
    json!({ "job": job.map(JobName::as_str) })
}

/// Lets a server take part again, in one job or in all.
pub(crate) async fn enable_server(
    access: &Authorized<Operator>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerChange, Problem> {
    access
        .change("server.enable", ChangeTarget::Server(server, job), job_scope(job), async |admin| {
            Ok(ServerChange { job_names: admin.enable_server(server, job).await? })
        })
        .await
}

/// Lets a server take part no longer, in one job or in all.
pub(crate) async fn disable_server(
    access: &Authorized<Operator>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerChange, Problem> {
    access
        .change(
            "server.disable",
            ChangeTarget::Server(server, job),
            job_scope(job),
            async |admin| Ok(ServerChange { job_names: admin.disable_server(server, job).await? }),
        )
        .await
}

/// Forgets a server that has no instance, in one job or in all.
pub(crate) async fn remove_server(
    access: &Authorized<Administrator>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerChange, Problem> {
    access
        .change("server.remove", ChangeTarget::Server(server, job), job_scope(job), async |admin| {
            Ok(ServerChange { job_names: admin.remove_server(server, job).await? })
        })
        .await
}

/// Ends the membership of the instances on a server, in one job or in all.
pub(crate) async fn shutdown_server(
    access: &Authorized<Operator>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerShutdown, Problem> {
    access
        .change(
            "server.shutdown",
            ChangeTarget::Server(server, job),
            job_scope(job),
            async |admin| {
                Ok(ServerShutdown { instances: admin.shutdown_server(server, job).await? })
            },
        )
        .await
}

/// Ends the membership of one instance, in one job or in all.
pub(crate) async fn shutdown_instance(
    access: &Authorized<Operator>,
    id: &str,
    job: Option<&JobName>,
) -> Result<ServerShutdown, Problem> {
    access
        .change(
            "instance.shutdown",
            ChangeTarget::Instance(id, job),
            job_scope(job),
            async |admin| Ok(ServerShutdown { instances: admin.shutdown_instance(id, job).await? }),
        )
        .await
}
