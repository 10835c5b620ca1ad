//! Jobs of the legacy API.

use axum::response::Response;
use elasticjob::{
    admin::TriggerRequest,
    admin::{JobStatus, ShardStatus},
    job::{Property, PropertyKind},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::envelope::LegacyRequest;
use crate::{
    auth::caller::{Administrator, Authorized, Operator, Viewer},
    http::{
        extract::{Body, PathJob, PathShard},
        paging::loaded_mirror,
        problem::{Code, Problem},
    },
    jobs::{
        actions,
        config::{Base, Condition, store_config},
        config_body::ConfigBody,
    },
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobBrief {
    job_name: String,
    status: JobStatus,
    description: String,
    cron: Option<String>,
    instance_count: usize,
    sharding_total_count: u32,
}

pub(super) async fn count(request: LegacyRequest) -> Response {
    request
        .bare()
        .respond(async |access: Authorized<Viewer>| {
            Ok(loaded_mirror(&access).await?.read(|seen| seen.jobs.len()))
        })
        .await
}

pub(super) async fn list(request: LegacyRequest) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            Ok(loaded_mirror(&access).await?.read(|seen| {
                let briefs = seen.jobs.values().map(|outline| JobBrief {
                    job_name: outline.summary.name.clone(),
                    status: outline.summary.status,
                    description: outline.summary.description.clone(),
                    cron: outline.summary.cron.clone(),
                    instance_count: outline.summary.instances,
                    sharding_total_count: outline.summary.shards.unwrap_or(0),
                });
                briefs.collect::<Vec<_>>()
            }))
        })
        .await
}

pub(super) async fn trigger(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let PathJob(job) = job?;
            actions::trigger(&access, &job, TriggerRequest::default(), json!({})).await
        })
        .await
}

pub(super) async fn trigger_by_get(
    request: LegacyRequest,
    job: Result<PathJob, Problem>,
) -> Response {
    trigger(request.reject_ambient(), job).await
}

pub(super) async fn enable(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let PathJob(job) = job?;
            actions::enable(&access, &job, json!({})).await
        })
        .await
}

pub(super) async fn disable(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let PathJob(job) = job?;
            actions::disable(&access, &job, json!({})).await
        })
        .await
}

pub(super) async fn shutdown(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let PathJob(job) = job?;
            actions::shutdown(&access, &job, json!({})).await
        })
        .await
}

/// Removes a job without instances, as Java ElasticJob's console does.
pub(super) async fn remove(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .perform(async |access: Authorized<Administrator>| {
            let PathJob(job) = job?;
            actions::remove(&access, &job, false).await
        })
        .await
}

pub(super) async fn config(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let PathJob(job) = job?;
            let details = access.admin().await?.job(&job).await?;
            let Some(stored) = details.configuration.job else {
                return Err(Problem::new(
                    Code::Refused,
                    details.configuration.problem.unwrap_or_default(),
                ));
            };
            let mut config = stored.to_json();
            // Java ElasticJob's responses have every key, even if it is unset.
            for property in Property::all() {
                if config.get(property.key).is_none() {
                    config[property.key] = match property.kind() {
                        PropertyKind::List | PropertyKind::Foreign => json!([]),
                        PropertyKind::Map => json!({}),
                        _ => Value::Null,
                    };
                }
            }
            Ok(config)
        })
        .await
}

/// Stores a configuration over the existing one. Java ElasticJob knows no versions, and omitted properties stay.
pub(super) async fn put_config(
    request: LegacyRequest,
    body: Result<Body<ConfigBody>, Problem>,
) -> Response {
    request
        .perform(async |access: Authorized<Administrator>| {
            let Body(sent) = body?;
            let Some(name) = sent.job_name() else {
                return Err(Problem::invalid("jobName", "jobName is missing"));
            };
            let name = name.parse().map_err(|error: elasticjob::job::InvalidValue| {
                Problem::invalid("jobName", &error)
            })?;
            store_config(&access, &name, sent, Base::Stored, None, &Condition::Any).await
        })
        .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShardBrief {
    item: u32,
    server_ip: String,
    instance_id: String,
    status: ShardStatus,
    failover: bool,
}

pub(super) async fn sharding(request: LegacyRequest, job: Result<PathJob, Problem>) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let PathJob(job) = job?;
            let shards = access.admin().await?.shards(&job).await?;
            let shards = shards.into_iter().map(|shard| {
                let owner = shard.owner.unwrap_or_default();
                // The legacy instance id is the part after the address: the process.
                let process = owner.split_once("@-@").map_or("", |(_, process)| process);
                ShardBrief {
                    item: shard.item,
                    server_ip: shard.server.unwrap_or_default(),
                    instance_id: process.to_owned(),
                    status: shard.status,
                    failover: shard.is_taken_over,
                }
            });
            Ok(shards.collect::<Vec<_>>())
        })
        .await
}

pub(super) async fn enable_shard(
    request: LegacyRequest,
    job: Result<PathJob, Problem>,
    item: Result<PathShard, Problem>,
) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let (PathJob(job), PathShard(item)) = (job?, item?);
            actions::enable_shard(&access, &job, item).await
        })
        .await
}

pub(super) async fn disable_shard(
    request: LegacyRequest,
    job: Result<PathJob, Problem>,
    item: Result<PathShard, Problem>,
) -> Response {
    request
        .perform(async |access: Authorized<Operator>| {
            let (PathJob(job), PathShard(item)) = (job?, item?);
            actions::disable_shard(&access, &job, item).await
        })
        .await
}
