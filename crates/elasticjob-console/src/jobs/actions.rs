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
    auth::who::{About, Door, Rules, Steers},
    http::problem::Problem,
};

/// Who was told to leave.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShutDown {
    /// By id.
    instances: Vec<String>,
}

/// A shard was switched.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShardSwitched {
    /// Whether it was otherwise before.
    is_changed: bool,
}

/// Where a server was switched, or forgotten.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerSwitched {
    /// In these jobs it was otherwise before.
    job_names: Vec<String>,
}

/// Who was told to leave, job by job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerShutDown {
    /// By job, by id.
    instances: BTreeMap<String, Vec<String>>,
}

/// Lets a job run again, on every server.
pub(crate) async fn enable(
    door: &Door<Steers>,
    job: &JobName,
    asked: Value,
) -> Result<Switched, Problem> {
    door.change("job.enable", About::Job(job), asked, async |admin| admin.enable(job).await).await
}

/// Lets a job run nowhere.
pub(crate) async fn disable(
    door: &Door<Steers>,
    job: &JobName,
    asked: Value,
) -> Result<Switched, Problem> {
    door.change("job.disable", About::Job(job), asked, async |admin| admin.disable(job).await).await
}

/// Lets a job run now.
pub(crate) async fn trigger(
    door: &Door<Steers>,
    job: &JobName,
    ask: Ask,
    asked: Value,
) -> Result<Asked, Problem> {
    let ask = Ask { by: Some(door.who.username.clone()), ..ask };
    let work = async |admin: &elasticjob::admin::Admin| admin.trigger(job, ask).await;
    door.change("job.trigger", About::Job(job), asked, work).await
}

/// Ends every instance's membership in a job.
pub(crate) async fn shutdown(
    door: &Door<Steers>,
    job: &JobName,
    asked: Value,
) -> Result<ShutDown, Problem> {
    door.change("job.shutdown", About::Job(job), asked, async |admin| {
        Ok(ShutDown { instances: admin.shutdown(job).await? })
    })
    .await
}

/// Removes a job with everything that was kept of it.
pub(crate) async fn remove(
    door: &Door<Rules>,
    job: &JobName,
    force: bool,
) -> Result<Removed, Problem> {
    let asked = json!({ "force": force });
    let work = async |admin: &elasticjob::admin::Admin| admin.remove(job, force).await;
    door.change("job.remove", About::Job(job), asked, work).await
}

/// Lets a shard run again.
pub(crate) async fn enable_shard(
    door: &Door<Steers>,
    job: &JobName,
    item: u32,
) -> Result<ShardSwitched, Problem> {
    door.change("shard.enable", About::Shard(job, item), json!({}), async |admin| {
        Ok(ShardSwitched { is_changed: admin.enable_shard(job, item).await? })
    })
    .await
}

/// Lets a shard run no longer.
pub(crate) async fn disable_shard(
    door: &Door<Steers>,
    job: &JobName,
    item: u32,
) -> Result<ShardSwitched, Problem> {
    door.change("shard.disable", About::Shard(job, item), json!({}), async |admin| {
        Ok(ShardSwitched { is_changed: admin.disable_shard(job, item).await? })
    })
    .await
}

/// In one job, or in all, as the audit says it.
fn said(job: Option<&JobName>) -> Value {
    json!({ "job": job.map(JobName::as_str) })
}

/// Lets a server take part again, in one job or in all.
pub(crate) async fn enable_server(
    door: &Door<Steers>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerSwitched, Problem> {
    door.change("server.enable", About::Server(server, job), said(job), async |admin| {
        Ok(ServerSwitched { job_names: admin.enable_server(server, job).await? })
    })
    .await
}

/// Lets a server take part no longer, in one job or in all.
pub(crate) async fn disable_server(
    door: &Door<Steers>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerSwitched, Problem> {
    door.change("server.disable", About::Server(server, job), said(job), async |admin| {
        Ok(ServerSwitched { job_names: admin.disable_server(server, job).await? })
    })
    .await
}

/// Forgets a server that has no instance, in one job or in all.
pub(crate) async fn remove_server(
    door: &Door<Rules>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerSwitched, Problem> {
    door.change("server.remove", About::Server(server, job), said(job), async |admin| {
        Ok(ServerSwitched { job_names: admin.remove_server(server, job).await? })
    })
    .await
}

/// Ends the membership of the instances on a server, in one job or in all.
pub(crate) async fn shutdown_server(
    door: &Door<Steers>,
    server: &str,
    job: Option<&JobName>,
) -> Result<ServerShutDown, Problem> {
    door.change("server.shutdown", About::Server(server, job), said(job), async |admin| {
        Ok(ServerShutDown { instances: admin.shutdown_server(server, job).await? })
    })
    .await
}

/// Ends the membership of one instance, in one job or in all.
pub(crate) async fn shutdown_instance(
    door: &Door<Steers>,
    id: &str,
    job: Option<&JobName>,
) -> Result<ServerShutDown, Problem> {
    door.change("instance.shutdown", About::Instance(id, job), said(job), async |admin| {
        Ok(ServerShutDown { instances: admin.shutdown_instance(id, job).await? })
    })
    .await
}
