//! The shards of a job.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::admin::Shard;
use utoipa_axum::router::OpenApiRouter;

use super::actions::{self, ShardSwitched};
use crate::{
    auth::who::{Door, Looks, Steers},
    http::{
        extract::{Item, Named},
        problem::Problem,
        state::Shared,
    },
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

/// Lets a shard run again.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shards/{item}/enable", tag = "shards",
    params(("registry" = String, Path), ("job" = String, Path), ("item" = u32, Path)),
    responses((status = 200, body = ShardSwitched), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn enable(
    door: Door<Steers>,
    Named(job): Named,
    Item(item): Item,
) -> Result<Json<ShardSwitched>, Problem> {
    Ok(Json(actions::enable_shard(&door, &job, item).await?))
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
    Ok(Json(actions::disable_shard(&door, &job, item).await?))
}
