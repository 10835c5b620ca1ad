//! The shards of a job.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::admin::Shard;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::actions::{self, ShardSwitch};
use crate::{
    auth::caller::{Authorized, Operator, Viewer},
    http::{
        extract::{PathJob, PathShard, Query},
        paging::{PageRequest, paged_query},
        problem::Problem,
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(shards)).routes(routes!(enable)).routes(routes!(disable))
}

paged_query! {
    struct ShardsQuery {}
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShardsPage {
    /// Number of shards on all pages.
    total: usize,
    page: usize,
    page_size: usize,
    /// Sorted by number.
    items: Vec<Shard>,
}

/// Lists a job's shards: owner, holder, and the result of their newest run.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/shards", tag = "shards", params(("registry" = String, Path), ("job" = String, Path), ShardsQuery),
    responses((status = 200, body = ShardsPage), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn shards(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<ShardsQuery>,
) -> Result<Json<ShardsPage>, Problem> {
    let PageRequest { page, page_size } = query.requested_page()?;
    let skip = query.requested_page()?.skip();
    let found = access.admin().await?.shards_page(&job, skip, page_size).await?;
    access.registry.mirror.follow_ledger(&job, access.app.clock.monotonic());
    Ok(Json(ShardsPage { total: found.total, page, page_size, items: found.shards }))
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
