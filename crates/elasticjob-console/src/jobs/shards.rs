//! The shards of a job.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::admin::Shard;
use utoipa_axum::router::OpenApiRouter;

use super::actions::{self, ShardSwitch};
use crate::{
    auth::caller::{Authorized, Operator, Viewer},
    http::{
        extract::{PathJob, PathShard},
        problem::Problem,
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(shards)).routes(routes!(enable)).routes(routes!(disable))
}

/// Lists a job's shards: owner, holder, and the result of their newest run.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/shards", tag = "shards", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = [Shard]), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn shards(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
) -> Result<Json<Vec<Shard>>, Problem> {
    Ok(Json(access.admin().await?.shards(&job).await?))
}

/// Enables a shard.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shards/{item}/enable", tag = "shards",
    params(("registry" = String, Path), ("job" = String, Path), ("item" = u32, Path)),
    responses((status = 200, body = ShardSwitch), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn enable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
    PathShard(item): PathShard,
) -> Result<Json<ShardSwitch>, Problem> {
    Ok(Json(actions::enable_shard(&access, &job, item).await?))
}

/// Disables a shard. A running attempt finishes.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shards/{item}/disable", tag = "shards",
    params(("registry" = String, Path), ("job" = String, Path), ("item" = u32, Path)),
    responses((status = 200, body = ShardSwitch), (status = 404, body = Problem), (status = 422, body = Problem)))]
async fn disable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
    PathShard(item): PathShard,
) -> Result<Json<ShardSwitch>, Problem> {
    Ok(Json(actions::disable_shard(&access, &job, item).await?))
}
