//! Jobs: the list, one of them, and switching them.

use std::cmp::Ordering;

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::{Explanation, JobDetails, JobStatus, JobSummary, Outline, Removed, RunsWith, Switched},
    job::Failover,
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
        paging::{Order, check_page, loaded_mirror},
        problem::{Code, Problem},
        state::AppState,
    },
};
use elasticjob::admin::mirror::{Bustle, Seen};

/// How many fires may be asked for.
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

/// A job in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobRow {
    #[serde(flatten)]
    pub(crate) summary: JobSummary,
    /// What it is sorted under, if anything.
    pub(crate) label: Option<String>,
    /// The zone its cron is read in, if it names one.
    pub(crate) time_zone: Option<String>,
    /// Whether its configuration says that it is not to run.
    pub(crate) disabled: bool,
    /// Whether it is taken over when an instance dies.
    pub(crate) failover: bool,
    /// How many of its shards run.
    pub(crate) running_count: usize,
    /// How many of its shards wait to be taken over.
    pub(crate) waiting_for_failover_count: usize,
    /// How many of its shards were due while they ran.
    pub(crate) misfired_count: usize,
    /// How many of its shards are disabled.
    pub(crate) disabled_shard_count: usize,
}

impl JobRow {
    pub(crate) fn new(view: &JobView<'_>) -> Self {
        let job = view.outline.job.as_ref();
        let count = |shards: fn(&Bustle) -> usize| view.bustle.map_or(0, shards);
        Self {
            summary: JobSummary { next_fire: view.next_fire, ..view.outline.summary.clone() },
            label: job.and_then(|job| job.label.clone()),
            time_zone: job.and_then(|job| job.zone.as_ref()).map(ToString::to_string),
            disabled: job.is_some_and(|job| job.disabled),
            failover: job.is_some_and(|job| job.failover == Failover::TakeOver),
            running_count: count(|bustle| bustle.running.len()),
            waiting_for_failover_count: count(|bustle| bustle.waiting.len()),
            misfired_count: count(|bustle| bustle.misfired.len()),
            disabled_shard_count: count(|bustle| bustle.disabled.len()),
        }
    }
}

/// A job as the mirror shows it, looked at now: nothing is copied before it is known to be on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'s> {
    pub(crate) outline: &'s Outline,
    pub(crate) bustle: Option<&'s Bustle>,
    pub(crate) next_fire: Option<Timestamp>,
}

impl<'s> JobView<'s> {
    pub(crate) fn new(
        outline: &'s Outline,
        bustle: Option<&'s Bustle>,
        now: Timestamp,
        zone: &Zone,
    ) -> Self {
        // It was the next when the job was read.
        let next_fire = outline.summary.next_fire.and_then(|next| {
            if next > now {
                return Some(next);
            }
            outline.job.as_ref()?.schedule(zone)?.next_after(now)
        });
        Self { outline, bustle, next_fire }
    }

    /// All jobs.
    pub(crate) fn all(seen: &'s Seen, now: Timestamp, zone: &Zone) -> impl Iterator<Item = Self> {
        seen.jobs
            .iter()
            .map(move |(name, outline)| Self::new(outline, seen.bustle.get(name), now, zone))
    }

    fn running(&self) -> usize {
        self.bustle.map_or(0, |bustle| bustle.running.len())
    }
}

/// What a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobsQuery {
    /// Words that name or description have, and `status:OK`, `label:x`, `handler:script`, `server:10.0.0.7`, `cron:…`, `is:running`; a dash before one means not.
    search: String,
    /// Only these statuses, with commas between them.
    #[param(pattern = "^((OK|DISABLED|CRASHED|SHARDING_FLAG)(,|$))*$")]
    status: String,
    /// By what: jobName, status, nextFireTime, shardingTotalCount, instanceCount, runningCount.
    #[param(inline)]
    sort: JobOrder,
    /// asc or desc.
    #[param(inline)]
    order: Order,
    /// Which page, from 1.
    #[param(minimum = 1)]
    page: usize,
    /// How many rows a page has.
    #[param(minimum = 1, maximum = 1000)]
    page_size: usize,
}

impl Default for JobsQuery {
    fn default() -> Self {
        Self {
            search: String::new(),
            status: String::new(),
            sort: JobOrder::JobName,
            order: Order::Asc,
            page: 1,
            page_size: 50,
        }
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

/// A page of jobs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobsPage {
    /// How many there are on all pages.
    total: usize,
    page: usize,
    page_size: usize,
    items: Vec<JobRow>,
    /// How many of each status there are on all pages.
    statuses: Statuses,
    /// Since when it is so.
    as_of: Option<Timestamp>,
    /// Whether changes are seen as they happen; while the registry cannot be reached, this is what was last seen.
    is_current: bool,
}

/// How many jobs are in which status.
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

/// Jobs, a page at a time. Whatever the number of jobs, this asks the registry nothing.
#[utoipa::path(get, path = "/r/{registry}/jobs", tag = "jobs", params(("registry" = String, Path), JobsQuery),
    responses((status = 200, body = JobsPage), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn jobs(
    access: Authorized<Viewer>,
    Query(query): Query<JobsQuery>,
) -> Result<Json<JobsPage>, Problem> {
    let (page, page_size) = check_page(query.page, query.page_size)?;
    let search: Search = query.search.parse()?;
    let wanted_statuses = parse_statuses(&query.status)?;
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    let page = loaded_mirror(&access).await?.seen(|seen| {
        let mut counted = Statuses::default();
        let mut matching: Vec<JobView<'_>> = JobView::all(seen, now, &zone)
            .filter(|view| search.matches(view))
            .inspect(|view| counted.count(view.outline.summary.status))
            .filter(|view| {
                wanted_statuses.is_empty() || wanted_statuses.contains(&view.outline.summary.status)
            })
            .collect();
        // They are in the order of their names, and stay so where nothing else tells them apart.
        query.order.sort(&mut matching, |one, other| compare(one, other, query.sort));
        let rows = matching.iter().skip((page - 1).saturating_mul(page_size)).take(page_size);
        JobsPage {
            total: matching.len(),
            page,
            page_size,
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
                Problem::invalid(
                    "status",
                    format!("{word:?} is no status; hint: OK, DISABLED, CRASHED, SHARDING_FLAG"),
                )
            })
        })
        .collect()
}

fn compare(one: &JobView<'_>, other: &JobView<'_>, by: JobOrder) -> Ordering {
    let (left, right) = (&one.outline.summary, &other.outline.summary);
    match by {
        JobOrder::JobName => left.name.cmp(&right.name),
        JobOrder::Status => (left.status as u8).cmp(&(right.status as u8)),
        // Those that are never due come last.
        JobOrder::NextFireTime => {
            let due = |view: &JobView<'_>| view.next_fire.unwrap_or(Timestamp::MAX);
            due(one).cmp(&due(other))
        }
        JobOrder::ShardingTotalCount => left.shards.cmp(&right.shards),
        JobOrder::InstanceCount => left.instances.cmp(&right.instances),
        JobOrder::RunningCount => one.running().cmp(&other.running()),
    }
}

/// A job: how it stands, its configuration (secrets masked), its servers and instances.
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
    /// Also while instances are members: they lose it.
    force: bool,
}

/// Removes a job with everything that was kept of it. Takes an admin.
#[utoipa::path(delete, path = "/r/{registry}/jobs/{job}", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), RemoveQuery),
    responses((status = 200, body = Removed), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    access: Authorized<Administrator>,
    PathJob(job): PathJob,
    Query(RemoveQuery { force }): Query<RemoveQuery>,
) -> Result<Json<Removed>, Problem> {
    Ok(Json(actions::remove(&access, &job, force).await?))
}

/// Lets a job run again, on every server.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/enable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn enable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
) -> Result<Json<Switched>, Problem> {
    Ok(Json(actions::enable(&access, &job, json!({})).await?))
}

/// Lets a job run nowhere, not even on servers that come later.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/disable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn disable(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
) -> Result<Json<Switched>, Problem> {
    Ok(Json(actions::disable(&access, &job, json!({})).await?))
}

/// Ends every instance's membership in a job. What runs comes to its end.
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
    /// Only this shard.
    shard: Option<u32>,
    /// About this instant; without, now.
    #[param(format = DateTime)]
    at: Option<String>,
}

/// Why a job, or a shard of it, ran or did not run.
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
        Ok(history) => admin.explain_with(&history, &job, shard, at).await?,
        Err(problem) if problem.code == Code::NoHistory => admin.explain(&job, shard, at).await?,
        Err(problem) => admin.explain(&job, shard, at).await?.without_history(&problem.detail),
    }))
}

/// Everything that is stored of a job, as text in the ancestor's format, addresses masked. It may hold passwords: takes an admin.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/dump", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problem)))]
async fn dump(access: Authorized<Administrator>, PathJob(job): PathJob) -> Result<String, Problem> {
    Ok(access.admin().await?.dump(&job).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FiresQuery {
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    count: usize,
    /// After this instant; without, now.
    #[param(format = DateTime)]
    after: Option<String>,
}

impl Default for FiresQuery {
    fn default() -> Self {
        Self { count: 10, after: None }
    }
}

/// When a job is due next by its schedule; nothing if it has none.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/fires", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), FiresQuery),
    responses((status = 200, body = [String]), (status = 404, body = Problem)))]
async fn fires(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<FiresQuery>,
) -> Result<Json<Vec<Timestamp>>, Problem> {
    if query.count == 0 || query.count > MAX_FIRES {
        return Err(Problem::invalid("count", format!("1 to {MAX_FIRES} fires can be asked for")));
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

/// What runs a job, in one word to be searched for.
pub(crate) fn handler_word(runs_with: &RunsWith) -> String {
    match runs_with {
        RunsWith::Script => "script".to_owned(),
        RunsWith::Http => "http".to_owned(),
        RunsWith::Class { class } => class.clone(),
        RunsWith::Rust { handler } => handler.clone().unwrap_or_else(|| "rust".to_owned()),
    }
}
