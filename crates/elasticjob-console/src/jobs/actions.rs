//! Audited actions on jobs, shards and servers, shared by the v1 API, bulk requests and the legacy API.

use std::collections::BTreeMap;

use elasticjob::{
    admin::TriggerRequest,
    admin::{RemovalResult, SwitchResult, TriggerResponse},
    job::JobName,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    auth::caller::{Administrator, Authorized, ChangeTarget, Operator},
    http::problem::Problem,
};

/// Instances that were told to leave the job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobShutdown)]
pub(crate) struct JobShutdown {
    /// Instance ids.
    instances: Vec<String>,
}

/// Result of enabling or disabling a shard.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ShardSwitch)]
pub(crate) struct ShardSwitch {
    /// Whether the action changed anything.
    is_changed: bool,
}

/// Result of enabling, disabling or removing a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerSwitch)]
pub(crate) struct ServerChange {
    /// The jobs in which the action changed something.
    job_names: Vec<String>,
}

/// Instances that were told to leave, by job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServerShutdown)]
pub(crate) struct ServerShutdown {
    /// Instance ids by job.
    instances: BTreeMap<String, Vec<String>>,
}

/// Enables a job on every server.
pub(crate) async fn enable(
    access: &Authorized<Operator>,
    job: &JobName,
    request: Value,
) -> Result<SwitchResult, Problem> {
    access
        .change("job.enable", ChangeTarget::Job(job), request, async |admin| {
            admin.enable(job).await
        })
        .await
}

/// Disables a job on every server.
pub(crate) async fn disable(
    access: &Authorized<Operator>,
    job: &JobName,
    request: Value,
) -> Result<SwitchResult, Problem> {
    access
        .change("job.disable", ChangeTarget::Job(job), request, async |admin| {
            admin.disable(job).await
        })
        .await
}

/// Triggers a job.
pub(crate) async fn trigger(
    access: &Authorized<Operator>,
    job: &JobName,
    trigger: TriggerRequest,
    request: Value,
) -> Result<TriggerResponse, Problem> {
    let trigger = TriggerRequest { by: Some(access.caller.username.clone()), ..trigger };
    let work = async |admin: &elasticjob::admin::Admin| admin.trigger(job, trigger).await;
    access.change("job.trigger", ChangeTarget::Job(job), request, work).await
}

/// Tells all instances of a job to leave it.
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

/// Removes a job with all its data.
pub(crate) async fn remove(
    access: &Authorized<Administrator>,
    job: &JobName,
    force: bool,
) -> Result<RemovalResult, Problem> {
    let request = json!({ "force": force });
    let work = async |admin: &elasticjob::admin::Admin| admin.remove(job, force).await;
    access.change("job.remove", ChangeTarget::Job(job), request, work).await
}

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

/// The job of a server action as audited; null means all jobs.
fn job_scope(job: Option<&JobName>) -> Value {
    json!({ "job": job.map(JobName::as_str) })
}

/// Enables a server, in one job or in all.
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

/// Disables a server, in one job or in all.
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

/// Removes a server without instances, from one job or from all.
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

/// Tells the instances on a server to leave, in one job or in all.
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

/// Tells one instance to leave, in one job or in all.
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
