//! Stored triggers of a job: list, show, withdraw.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::admin::{TriggerDetails, TriggerSummary, WithdrawalResult};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    auth::caller::{Authorized, ChangeTarget, Operator, Viewer},
    http::{
        extract::{PathJob, PathTriggeredRun, Query},
        problem::Problem,
        state::AppState,
    },
};

const MAX_LIMIT: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(triggers))
        .routes(routes!(trigger))
        .routes(routes!(withdraw))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TriggersQuery {
    /// Maximum number of triggers.
    #[param(minimum = 1, maximum = 1000)]
    limit: usize,
}

impl Default for TriggersQuery {
    fn default() -> Self {
        Self { limit: 100 }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct TriggerList {
    /// Number of stored triggers.
    total: usize,
    /// Those that have not ended first, then the newest first.
    items: Vec<TriggerSummary>,
}

/// Lists the stored triggers of a job. Those that have ended are kept for a day.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/triggers", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), TriggersQuery),
    responses((status = 200, body = TriggerList), (status = 400, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn triggers(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(TriggersQuery { limit }): Query<TriggersQuery>,
) -> Result<Json<TriggerList>, Problem> {
    if limit == 0 || limit > MAX_LIMIT {
        return Err(Problem::invalid("limit", format!("must be 1 to {MAX_LIMIT}")));
    }
    let page = access.admin().await?.triggers(&job, limit).await?;
    Ok(Json(TriggerList { total: page.total, items: page.triggers }))
}

/// Returns a stored trigger with the state of each shard.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/triggers/{run}", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), ("run" = String, Path)),
    responses((status = 200, body = TriggerDetails), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn trigger(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    PathTriggeredRun(run): PathTriggeredRun,
) -> Result<Json<TriggerDetails>, Problem> {
    Ok(Json(access.admin().await?.show_trigger(&job, &run).await?))
}

/// Withdraws a trigger: shards that have not started do not run, the others go on. A conflict if there are none.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/triggers/{run}/withdraw", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), ("run" = String, Path)),
    responses((status = 200, body = WithdrawalResult), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn withdraw(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
    PathTriggeredRun(run): PathTriggeredRun,
) -> Result<Json<WithdrawalResult>, Problem> {
    let request = json!({ "run": run.to_string() });
    let withdrawn = access
        .change("job.withdraw", ChangeTarget::Job(&job), request, async |admin| {
            admin.withdraw_trigger(&job, &run).await
        })
        .await?;
    Ok(Json(withdrawn))
}
