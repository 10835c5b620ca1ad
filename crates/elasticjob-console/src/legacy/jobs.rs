//! Jobs in the ancestor's words.

use axum::response::Response;
use elasticjob::{
    admin::Ask,
    admin::{JobStatus, ShardStatus},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::envelope::Asker;
use crate::{
    auth::{
        accounts::Role,
        who::{Door, Looks, Rules, Steers},
    },
    http::{
        extract::{Body, Item, Named},
        paging::ready,
        problem::{Code, Problem},
    },
    jobs::{
        actions,
        config::{Base, Condition, ConfigSent, keep},
    },
};

/// What a configuration always has in the ancestor's answers, said or not.
const ALWAYS: [&str; 9] = [
    "cron",
    "timeZone",
    "label",
    "jobShardingStrategyType",
    "jobExecutorThreadPoolSizeProviderType",
    "jobErrorHandlerType",
    "jobListenerTypes",
    "jobExtraConfigurations",
    "props",
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Brief {
    job_name: String,
    status: JobStatus,
    description: String,
    cron: Option<String>,
    instance_count: usize,
    sharding_total_count: u32,
}

pub(super) async fn count(asker: Asker) -> Response {
    asker
        .bare()
        .ask::<Looks, _>(Role::Viewer, async |door| {
            Ok(ready(&door).await?.seen(|seen| seen.jobs.len()))
        })
        .await
}

pub(super) async fn list(asker: Asker) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door| {
            Ok(ready(&door).await?.seen(|seen| {
                let briefs = seen.jobs.values().map(|outline| Brief {
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

pub(super) async fn trigger(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let Named(job) = job?;
            actions::trigger(&door, &job, Ask::default(), json!({})).await
        })
        .await
}

pub(super) async fn trigger_by_get(asker: Asker, job: Result<Named, Problem>) -> Response {
    trigger(asker.deliberate(), job).await
}

pub(super) async fn enable(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let Named(job) = job?;
            actions::enable(&door, &job, json!({})).await
        })
        .await
}

pub(super) async fn disable(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let Named(job) = job?;
            actions::disable(&door, &job, json!({})).await
        })
        .await
}

pub(super) async fn shutdown(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let Named(job) = job?;
            actions::shutdown(&door, &job, json!({})).await
        })
        .await
}

/// Removes the job, as the ancestor's console offers once nobody runs it.
pub(super) async fn remove(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .act::<Rules, _>(Role::Admin, async |door: Door<Rules>| {
            let Named(job) = job?;
            actions::remove(&door, &job, false).await
        })
        .await
}

pub(super) async fn config(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door| {
            let Named(job) = job?;
            let details = door.admin().await?.job(&job).await?;
            let Some(stored) = details.configuration.job else {
                return Err(Problem::new(
                    Code::Refused,
                    details.configuration.problem.unwrap_or_default(),
                ));
            };
            let mut config = stored.to_json();
            for key in ALWAYS {
                if config.get(key).is_none() {
                    config[key] = match key {
                        "jobListenerTypes" | "jobExtraConfigurations" => json!([]),
                        "props" => json!({}),
                        _ => Value::Null,
                    };
                }
            }
            Ok(config)
        })
        .await
}

/// Stores a configuration over what is there: the ancestor knows no versions, and what is left out stays.
pub(super) async fn put_config(asker: Asker, body: Result<Body<ConfigSent>, Problem>) -> Response {
    asker
        .act::<Rules, _>(Role::Admin, async |door: Door<Rules>| {
            let Body(sent) = body?;
            let Some(name) = sent.job_name() else {
                return Err(Problem::invalid("jobName", "which job is not said; hint: jobName"));
            };
            let name = name.parse().map_err(|error: elasticjob::job::Invalid| {
                Problem::invalid("jobName", error.to_string())
            })?;
            keep(&door, &name, sent, Base::Stored, None, &Condition::Any).await
        })
        .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sharding {
    item: u32,
    server_ip: String,
    instance_id: String,
    status: ShardStatus,
    failover: bool,
}

pub(super) async fn sharding(asker: Asker, job: Result<Named, Problem>) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door| {
            let Named(job) = job?;
            let shards = door.admin().await?.shards(&job).await?;
            let shards = shards.into_iter().map(|shard| {
                let owner = shard.owner.unwrap_or_default();
                // The part after the address: to the ancestor, the process.
                let process = owner.split_once("@-@").map_or("", |(_, process)| process);
                Sharding {
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
    asker: Asker,
    job: Result<Named, Problem>,
    item: Result<Item, Problem>,
) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let (Named(job), Item(item)) = (job?, item?);
            actions::enable_shard(&door, &job, item).await
        })
        .await
}

pub(super) async fn disable_shard(
    asker: Asker,
    job: Result<Named, Problem>,
    item: Result<Item, Problem>,
) -> Response {
    asker
        .act::<Steers, _>(Role::Operator, async |door: Door<Steers>| {
            let (Named(job), Item(item)) = (job?, item?);
            actions::disable_shard(&door, &job, item).await
        })
        .await
}
