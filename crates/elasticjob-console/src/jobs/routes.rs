//! Jobs: list, details, actions, schedule.

use std::cmp::Ordering;

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::{
        Explanation, HandlerInfo, JobDetails, JobStatus, JobSummary, Outline, RemovalResult,
        SwitchResult,
    },
    job::{Failover, mask_for_list},
    schedule::Zone,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{
    actions::{self, JobShutdown},
    search::Search,
};
use crate::{
    auth::caller::{Administrator, Authorized, Operator, Viewer},
    http::{
        extract::{PathJob, Query, check_shard, parse_timestamp},
        paging::{Order, loaded_mirror, paged_query},
        problem::{Code, Problem},
        state::AppState,
    },
};
use elasticjob::admin::mirror::{Activity, Snapshot};

const MAX_FIRES: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(jobs))
        .routes(routes!(job, remove))
        .routes(routes!(enable))
        .routes(routes!(disable))
        .routes(routes!(shutdown))
        .routes(routes!(explain))
        .routes(routes!(dump))
        .routes(routes!(fires))
}

/// A row of the job list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobRow {
    #[serde(flatten)]
    pub(crate) summary: JobSummary,
    /// Label, if any.
    pub(crate) label: Option<String>,
    /// Time zone of the cron expression, if set.
    pub(crate) time_zone: Option<String>,
    /// Whether the configuration disables the job.
    pub(crate) disabled: bool,
    /// Whether failover is on.
    pub(crate) failover: bool,
    /// Number of running shards.
    pub(crate) running_count: usize,
    /// Number of shards that await failover.
    pub(crate) awaiting_failover_count: usize,
    /// Number of shards with a misfire.
    pub(crate) misfired_count: usize,
    /// Number of disabled shards.
    pub(crate) disabled_shard_count: usize,
}

impl JobRow {
    pub(crate) fn new(view: &JobView<'_>) -> Self {
        let job = view.outline.job.as_ref();
        let count = |shards: fn(&Activity) -> usize| view.activity.map_or(0, shards);
        Self {
            summary: JobSummary { next_fire: view.next_fire, ..view.outline.summary.clone() },
            label: job.and_then(|job| job.label.as_deref()).map(mask_for_list),
            time_zone: job.and_then(|job| job.zone.as_ref()).map(ToString::to_string),
            disabled: job.is_some_and(|job| job.disabled),
            failover: job.is_some_and(|job| job.failover == Failover::TakeOver),
            running_count: count(|activity| activity.running.len()),
            awaiting_failover_count: count(|activity| activity.waiting.len()),
            misfired_count: count(|activity| activity.misfired.len()),
            disabled_shard_count: count(|activity| activity.disabled.len()),
        }
    }
}

/// A job in the mirror, with the next fire as of now. Borrows, so that only the rows of the page are copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'s> {
    pub(crate) outline: &'s Outline,
    pub(crate) activity: Option<&'s Activity>,
    pub(crate) next_fire: Option<Timestamp>,
}

impl<'s> JobView<'s> {
    pub(crate) fn new(
        outline: &'s Outline,
        activity: Option<&'s Activity>,
        now: Timestamp,
        zone: &Zone,
    ) -> Self {
        // The stored value was computed when the job was read and may have passed.
        let next_fire = outline.summary.next_fire.and_then(|next| {
            if next > now {
                return Some(next);
            }
            outline.job.as_ref()?.schedule(zone)?.next_after(now)
        });
        Self { outline, activity, next_fire }
    }

    pub(crate) fn all(
        seen: &'s Snapshot,
        now: Timestamp,
        zone: &Zone,
    ) -> impl Iterator<Item = Self> {
        seen.jobs
            .iter()
            .map(move |(name, outline)| Self::new(outline, seen.activity.get(name), now, zone))
    }

    fn running(&self) -> usize {
        self.activity.map_or(0, |activity| activity.running.len())
    }
}

paged_query! {
    struct JobsQuery {
        /// Words in name or description, and `status:OK`, `label:x`, `handler:script`, `server:10.0.0.7`, `cron:…`, `is:running`; a leading dash
        /// negates a term.
        search: String = String::new(),
        /// Only these statuses, separated by commas.
        #[param(pattern = "^((OK|DISABLED|CRASHED|SHARDING_FLAG)(,|$))*$")]
        status: String = String::new(),
        /// Sort key: jobName, status, nextFireTime, shardingTotalCount, instanceCount, runningCount.
        #[param(inline)]
        sort: JobOrder = JobOrder::JobName,
        #[param(inline)]
        order: Order = Order::Asc,
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum JobOrder {
    JobName,
    Status,
    NextFireTime,
    ShardingTotalCount,
    InstanceCount,
    RunningCount,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobsPage {
    /// Number of matching jobs on all pages.
    total: usize,
    page: usize,
    page_size: usize,
    items: Vec<JobRow>,
    /// Number of matching jobs by status, on all pages.
    statuses: Statuses,
    /// Time of the last update.
    as_of: Option<Timestamp>,
    /// Whether the data is current; while the registry is unreachable, it is what was last read.
    is_current: bool,
}

/// Number of jobs by status.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) struct Statuses {
    ok: usize,
    disabled: usize,
    crashed: usize,
    sharding_flag: usize,
}

impl Statuses {
    pub(crate) fn count(&mut self, status: JobStatus) {
        *match status {
            JobStatus::Ok => &mut self.ok,
            JobStatus::Disabled => &mut self.disabled,
            JobStatus::Crashed => &mut self.crashed,
            JobStatus::ShardingFlag => &mut self.sharding_flag,
        } += 1;
    }
}

/// Lists jobs. Reads the mirror only, never the registry, however many jobs there are.
#[utoipa::path(get, path = "/r/{registry}/jobs", tag = "jobs", params(("registry" = String, Path), JobsQuery),
    responses((status = 200, body = JobsPage), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn jobs(
    access: Authorized<Viewer>,
    Query(query): Query<JobsQuery>,
) -> Result<Json<JobsPage>, Problem> {
    let requested = query.requested_page()?;
    let search: Search = query.search.parse()?;
    let wanted_statuses = parse_statuses(&query.status)?;
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    let page = loaded_mirror(&access).await?.read(|seen| {
        let mut counted = Statuses::default();
        let mut matching: Vec<JobView<'_>> = JobView::all(seen, now, &zone)
            .filter(|view| search.matches(view))
            .inspect(|view| counted.count(view.outline.summary.status))
            .filter(|view| {
                wanted_statuses.is_empty() || wanted_statuses.contains(&view.outline.summary.status)
            })
            .collect();
        // The mirror is ordered by name, and the sort is stable.
        query.order.sort(&mut matching, |one, other| compare(one, other, query.sort));
        let rows = requested.rows(&matching);
        JobsPage {
            total: matching.len(),
            page: requested.page,
            page_size: requested.page_size,
            items: rows.map(JobRow::new).collect(),
            statuses: counted,
            as_of: seen.as_of,
            is_current: seen.is_current,
        }
    });
    Ok(Json(page))
}

fn parse_statuses(text: &str) -> Result<Vec<JobStatus>, Problem> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            crate::jobs::search::status(word).ok_or_else(|| {
                Problem::invalid("status", format!("{word:?} is not a status"))
                    .with_hint("OK, DISABLED, CRASHED, SHARDING_FLAG")
            })
        })
        .collect()
}

fn compare(one: &JobView<'_>, other: &JobView<'_>, by: JobOrder) -> Ordering {
    let (left, right) = (&one.outline.summary, &other.outline.summary);
    match by {
        JobOrder::JobName => left.name.cmp(&right.name),
        JobOrder::Status => (left.status as u8).cmp(&(right.status as u8)),
        // Jobs without a next fire come last.
        JobOrder::NextFireTime => {
            let due = |view: &JobView<'_>| view.next_fire.unwrap_or(Timestamp::MAX);
            due(one).cmp(&due(other))
        }
        JobOrder::ShardingTotalCount => left.shards.cmp(&right.shards),
        JobOrder::InstanceCount => left.instances.cmp(&right.instances),
        JobOrder::RunningCount => one.running().cmp(&other.running()),
    }
}

/// Returns a job: its state, configuration (secrets masked), servers and instances.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = JobDetails), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn job(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
) -> Result<Json<JobDetails>, Problem> {
    Ok(Json(access.admin().await?.job(&job).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RemoveQuery {
    /// Remove the job even if it has instances.
    force: bool,
}

/// Removes a job with all its data. Requires an admin.
#[utoipa::path(delete, path = "/r/{registry}/jobs/{job}", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), RemoveQuery),
    responses((status = 200, body = RemovalResult), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    access: Authorized<Administrator>,
    PathJob(job): PathJob,
    Query(RemoveQuery { force }): Query<RemoveQuery>,
) -> Result<Json<RemovalResult>, Problem> {
    Ok(Json(actions::remove(&access, &job, force).await?))
}

/// Enables a job on every server.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/enable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = SwitchResult), (status = 404, body = Problem)))]
async fn enable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
) -> Result<Json<SwitchResult>, Problem> {
    Ok(Json(actions::enable(&access, &job, json!({})).await?))
}

/// Disables a job on every server, including servers that join later.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/disable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = SwitchResult), (status = 404, body = Problem)))]
async fn disable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
) -> Result<Json<SwitchResult>, Problem> {
    Ok(Json(actions::disable(&access, &job, json!({})).await?))
}

/// Tells all instances of a job to leave it. Running shards finish.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shutdown", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = JobShutdown), (status = 404, body = Problem)))]
async fn shutdown(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
) -> Result<Json<JobShutdown>, Problem> {
    Ok(Json(actions::shutdown(&access, &job, json!({})).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExplainQuery {
    shard: Option<u32>,
    /// Point in time to explain; if omitted, now.
    #[param(format = DateTime)]
    at: Option<String>,
}

/// Explains why a job, or one of its shards, ran or did not run.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/explain", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), ExplainQuery),
    responses((status = 200, body = Explanation), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn explain(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<Explanation>, Problem> {
    let at = query.at.as_deref().map(|at| parse_timestamp("at", at)).transpose()?;
    let (admin, shard) = (access.admin().await?, check_shard(query.shard)?);
    Ok(Json(match access.history().await {
        Ok(history) => admin.explain_with_history(&history, &job, shard, at).await?,
        Err(problem) if problem.code == Code::NoHistory => {
            admin.explain(&job, shard, at).await?.not_recorded()
        }
        Err(problem) => admin.explain(&job, shard, at).await?.without_history(&problem.detail),
    }))
}

/// Returns all nodes of a job as text in Java ElasticJob's dump format, addresses masked. It may contain passwords: requires an admin.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/dump", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problem)))]
async fn dump(access: Authorized<Administrator>, PathJob(job): PathJob) -> Result<String, Problem> {
    Ok(access.admin().await?.dump(&job).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FiresQuery {
    /// Number of fires.
    #[param(minimum = 1, maximum = 1000)]
    count: usize,
    /// Start; if omitted, now.
    #[param(format = DateTime)]
    after: Option<String>,
}

impl Default for FiresQuery {
    fn default() -> Self {
        Self { count: 10, after: None }
    }
}

/// Returns the next fires of a job's schedule; empty if it has none.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/fires", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), FiresQuery),
    responses((status = 200, body = [String]), (status = 404, body = Problem)))]
async fn fires(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<FiresQuery>,
) -> Result<Json<Vec<Timestamp>>, Problem> {
    if query.count == 0 || query.count > MAX_FIRES {
        return Err(Problem::invalid("count", format!("must be 1 to {MAX_FIRES}")));
    }
    let after = query
        .after
        .as_deref()
        .map_or_else(|| Ok(access.app.clock.now()), |after| parse_timestamp("after", after))?;
    let details = access.admin().await?.job(&job).await?;
    let schedule =
        details.configuration.job.and_then(|job| job.schedule(&Zone::from(TimeZone::system())));
    let fires = schedule.map(|schedule| schedule.after(after).take(query.count).collect());
    Ok(Json(fires.unwrap_or_default()))
}

/// The handler of a job as a search term.
pub(crate) fn handler_word(runs_with: &HandlerInfo) -> String {
    match runs_with {
        HandlerInfo::Script => "script".to_owned(),
        HandlerInfo::Http => "http".to_owned(),
        HandlerInfo::Class { class } => class.clone(),
        HandlerInfo::Rust { handler } => handler.clone().unwrap_or_else(|| "rust".to_owned()),
    }
}
