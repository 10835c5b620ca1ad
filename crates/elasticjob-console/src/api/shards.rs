//! The shards of a job.

use axum::Json;
use elasticjob::admin::Shard;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    auth::who::{Door, Looks, Steers},
    extract::{Item, Named},
    problem::Problem,
    state::Shared,
};

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(shards)).routes(routes!(enable)).routes(routes!(disable))
}

/// A job's shards: whose they are, who runs them, and how their newest run went.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/shards", tag = "shards", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = [Shard]), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn shards(door: Door<Looks>, Named(job): Named) -> Result<Json<Vec<Shard>>, Problem> {
    Ok(Json(door.admin().await?.shards(&job).await?))
}

/// A shard was switched.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShardSwitched {
    /// Whether it was otherwise before.
    is_changed: bool,
}

/// Lets a shard run again.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shards/{item}/enable", tag = "shards",
    params(("registry" = String, Path), ("job" = String, Path), ("item" = u32, Path)),
    responses((status = 200, body = ShardSwitched), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn enable(
    door: Door<Steers>,
    Named(job): Named,
    Item(item): Item,
) -> Result<Json<ShardSwitched>, Problem> {
    let target = format!("{job}#{item}");
    let switched = door.change("shard.enable", &target, json!({}), async |admin| {
        Ok(ShardSwitched { is_changed: admin.enable_shard(&job, item).await? })
    });
    Ok(Json(switched.await?))
}

/// Lets a shard run no longer. What runs comes to its end.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shards/{item}/disable", tag = "shards",
    params(("registry" = String, Path), ("job" = String, Path), ("item" = u32, Path)),
    responses((status = 200, body = ShardSwitched), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn disable(
    door: Door<Steers>,
    Named(job): Named,
    Item(item): Item,
) -> Result<Json<ShardSwitched>, Problem> {
    let target = format!("{job}#{item}");
    let switched = door.change("shard.disable", &target, json!({}), async |admin| {
        Ok(ShardSwitched { is_changed: admin.disable_shard(&job, item).await? })
    });
    Ok(Json(switched.await?))
}
