//! What needs no registry: crons, and how shards would be dealt.

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
    auth::who::Who,
    http::{
        extract::{Body, Query, instant},
        problem::Problem,
        state::Shared,
    },
};

const MOST_FIRES: usize = 1_000;
/// How many shards may be dealt in an answer.
const MOST_SHARDS: u32 = 10_000;

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(next)).routes(routes!(check)).routes(routes!(plan))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NextAsked {
    /// Quartz's words, seconds first.
    #[param(example = "0 0/5 * * * ?")]
    expression: String,
    /// On the clock of this zone; without, of the console's machine.
    zone: Option<String>,
    /// After this instant; without, now.
    #[param(format = DateTime)]
    after: Option<String>,
    /// How many; without, 5.
    #[param(minimum = 1, maximum = 1000)]
    count: Option<usize>,
    /// What happens when the clocks change: default or quartz.
    #[param(pattern = "^(default|quartz)$")]
    dst: Option<String>,
}

/// When a cron fires next; nothing if it never does.
#[utoipa::path(get, path = "/cron/next", tag = "tools", params(NextAsked), responses((status = 200, body = [String]), (status = 422, body = Problem)))]
async fn next(
    _: Who,
    axum::extract::State(shared): axum::extract::State<Shared>,
    Query(asked): Query<NextAsked>,
) -> Result<Json<Vec<Timestamp>>, Problem> {
    let count = asked.count.unwrap_or(5);
    if count == 0 || count > MOST_FIRES {
        return Err(Problem::invalid("count", format!("1 to {MOST_FIRES} fires can be asked for")));
    }
    let schedule = Schedule {
        cron: cron(&asked.expression)?,
        zone: match asked.zone.as_deref().filter(|zone| !zone.is_empty()) {
            Some(zone) => zone.parse().map_err(|error: elasticjob::schedule::ZoneError| {
                Problem::invalid("zone", error.to_string())
            })?,
            None => Zone::from(TimeZone::system()),
        },
        dst: asked
            .dst
            .as_deref()
            .unwrap_or("default")
            .parse::<Dst>()
            .map_err(|error| Problem::invalid("dst", error.to_string()))?,
    };
    let after = asked
        .after
        .as_deref()
        .map_or_else(|| Ok(shared.clock.now()), |after| instant("after", after))?;
    Ok(Json(schedule.after(after).take(count).collect()))
}

fn cron(expression: &str) -> Result<Cron, Problem> {
    expression.parse().map_err(|error: elasticjob::schedule::CronError| {
        Problem::invalid("expression", error.to_string())
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CheckAsked {
    /// Quartz's words, seconds first.
    #[param(example = "0 0/5 * * * ?")]
    expression: String,
}

/// What Quartz makes of a cron.
#[derive(Debug, Serialize, ToSchema)]
struct Checked {
    /// As it is stored.
    cron: String,
    /// What it accepts by accident.
    warnings: Vec<CronWarning>,
}

/// Something that is accepted and does not mean what it seems to.
#[derive(Debug, Serialize, ToSchema)]
struct CronWarning {
    field: Option<String>,
    part: String,
    message: String,
}

/// Whether a cron can be read, and what Quartz accepts in it by accident.
#[utoipa::path(get, path = "/cron/check", tag = "tools", params(CheckAsked), responses((status = 200, body = Checked), (status = 422, body = Problem)))]
async fn check(_: Who, Query(asked): Query<CheckAsked>) -> Result<Json<Checked>, Problem> {
    let cron = cron(&asked.expression)?;
    let warnings = cron.warnings().iter().map(|warning| CronWarning {
        field: warning.field.map(|field| field.to_string()),
        part: warning.part.clone(),
        message: warning.message.clone(),
    });
    Ok(Json(Checked { warnings: warnings.collect(), cron: cron.as_str().to_owned() }))
}

/// How shards are to be dealt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlanAsked {
    /// The job's name: three strategies go by it.
    job_name: String,
    #[schema(minimum = 1, maximum = 10000)]
    sharding_total_count: u32,
    /// Without, `AVG_ALLOCATION`.
    strategy: Option<String>,
    /// By id, for example 10.0.0.7@-@4711.
    instances: Vec<String>,
    /// When, for `SINGLE_SHARDING_BALANCE`; without, now.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<String>,
}

/// Deals shards as the leader would, without asking anybody: the owner of shard i stands at place i.
#[utoipa::path(post, path = "/plan", tag = "tools", request_body = PlanAsked, responses((status = 200, body = [String]), (status = 422, body = Problem)))]
async fn plan(
    _: Who,
    axum::extract::State(shared): axum::extract::State<Shared>,
    Body(asked): Body<PlanAsked>,
) -> Result<Json<Vec<String>>, Problem> {
    let total = asked.sharding_total_count;
    if total > MOST_SHARDS {
        return Err(Problem::invalid(
            "shardingTotalCount",
            format!("at most {MOST_SHARDS} shards can be dealt here"),
        ));
    }
    let at = asked.at.as_deref().map_or_else(|| Ok(shared.clock.now()), |at| instant("at", at))?;
    let strategy = asked.strategy.as_deref().unwrap_or("AVG_ALLOCATION");
    Ok(Json(assign(&asked.job_name, total, strategy, &asked.instances, at)?))
}
