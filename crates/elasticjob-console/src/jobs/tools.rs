//! Tools that need no registry: cron expressions and shard assignment.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::assign,
    schedule::{Cron, Dst, Schedule, Zone},
};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    auth::caller::Caller,
    http::{
        extract::{Body, Query, parse_timestamp},
        problem::Problem,
        state::AppState,
    },
};

const MAX_FIRES: usize = 1_000;
const MAX_SHARDS: u32 = 10_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(next)).routes(routes!(check)).routes(routes!(plan))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NextQuery {
    /// A Quartz cron expression, seconds first.
    #[param(example = "0 0/5 * * * ?")]
    expression: String,
    /// Time zone; if omitted, that of the console's machine.
    zone: Option<String>,
    /// Start; if omitted, now.
    #[param(format = DateTime)]
    after: Option<String>,
    /// Number of fires; if omitted, 5.
    #[param(minimum = 1, maximum = 1000)]
    count: Option<usize>,
    /// Behavior at daylight saving changes: default or quartz.
    #[param(pattern = "^(default|quartz)$")]
    dst: Option<String>,
}

/// Returns the next fires of a cron expression; empty if it never fires.
#[utoipa::path(get, path = "/cron/next", tag = "tools", params(NextQuery), responses((status = 200, body = [String]), (status = 422, body = Problem)))]
async fn next(
    _: Caller,
    axum::extract::State(app): axum::extract::State<AppState>,
    Query(query): Query<NextQuery>,
) -> Result<Json<Vec<Timestamp>>, Problem> {
    let count = query.count.unwrap_or(5);
    if count == 0 || count > MAX_FIRES {
        return Err(Problem::invalid("count", format!("must be 1 to {MAX_FIRES}")));
    }
    let schedule = Schedule {
        cron: cron(&query.expression)?,
        zone: match query.zone.as_deref().filter(|zone| !zone.is_empty()) {
            Some(zone) => zone.parse().map_err(|error: elasticjob::schedule::ZoneError| {
                Problem::invalid("zone", &error)
            })?,
            None => Zone::from(TimeZone::system()),
        },
        dst: query
            .dst
            .as_deref()
            .unwrap_or("default")
            .parse::<Dst>()
            .map_err(|error| Problem::invalid("dst", &error))?,
    };
    let after = query
        .after
        .as_deref()
        .map_or_else(|| Ok(app.clock.now()), |after| parse_timestamp("after", after))?;
    Ok(Json(schedule.after(after).take(count).collect()))
}

fn cron(expression: &str) -> Result<Cron, Problem> {
    expression
        .parse()
        .map_err(|error: elasticjob::schedule::CronError| Problem::invalid("expression", &error))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CheckQuery {
    /// A Quartz cron expression, seconds first.
    #[param(example = "0 0/5 * * * ?")]
    expression: String,
}

/// Result of checking a cron expression.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CronCheck)]
struct CronCheck {
    /// The normalized expression.
    cron: String,
    /// Warnings about parts that Quartz accepts but likely were not intended.
    warnings: Vec<CronWarning>,
}

/// A part that is accepted but does not mean what it seems to.
#[derive(Debug, Serialize, ToSchema)]
struct CronWarning {
    field: Option<String>,
    part: String,
    message: String,
}

/// Checks a cron expression and warns about parts that Quartz accepts by accident.
#[utoipa::path(get, path = "/cron/check", tag = "tools", params(CheckQuery), responses((status = 200, body = CronCheck), (status = 422, body = Problem)))]
async fn check(_: Caller, Query(query): Query<CheckQuery>) -> Result<Json<CronCheck>, Problem> {
    let cron = cron(&query.expression)?;
    let warnings = cron.warnings().iter().map(|warning| CronWarning {
        field: warning.field.map(|field| field.to_string()),
        part: warning.part.clone(),
        message: warning.message.clone(),
    });
    Ok(Json(CronCheck { warnings: warnings.collect(), cron: cron.as_str().to_owned() }))
}

/// Input of a shard assignment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ShardingPlanRequest)]
struct PlanBody {
    /// Three strategies depend on the job's name.
    job_name: String,
    #[schema(minimum = 1, maximum = 10000)]
    sharding_total_count: u32,
    /// If omitted, `AVG_ALLOCATION`.
    strategy: Option<String>,
    /// Instance ids, for example 10.0.0.7@-@4711.
    instances: Vec<String>,
    /// Time of the assignment, for `SINGLE_SHARDING_BALANCE`; if omitted, now.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<String>,
}

/// Assigns shards as the leader would, without a registry: element i of the result is the owner of shard i.
#[utoipa::path(post, path = "/plan", tag = "tools", request_body = PlanBody, responses((status = 200, body = [String]), (status = 422, body = Problem)))]
async fn plan(
    _: Caller,
    axum::extract::State(app): axum::extract::State<AppState>,
    Body(query): Body<PlanBody>,
) -> Result<Json<Vec<String>>, Problem> {
    let total = query.sharding_total_count;
    if total > MAX_SHARDS {
        return Err(Problem::invalid(
            "shardingTotalCount",
            format!("must be at most {MAX_SHARDS}"),
        ));
    }
    let at =
        query.at.as_deref().map_or_else(|| Ok(app.clock.now()), |at| parse_timestamp("at", at))?;
    let strategy = query.strategy.as_deref().unwrap_or("AVG_ALLOCATION");
    Ok(Json(assign(&query.job_name, total, strategy, &query.instances, at)?))
}
