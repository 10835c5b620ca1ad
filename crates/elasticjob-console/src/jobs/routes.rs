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
    actions::{self, ShutDown},
    search::Search,
};
use crate::{
    auth::who::{Door, Looks, Rules, Steers},
    http::{
        extract::{Named, Query, instant, shard},
        paging::{Order, page, ready},
        problem::{Code, Problem},
        state::Shared,
    },
};
use elasticjob::admin::mirror::{Bustle, Seen};

/// How many fires may be asked for.
const MOST_FIRES: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<Shared> {
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
    pub(crate) fn new(glance: &Glance<'_>) -> Self {
        let job = glance.outline.job.as_ref();
        let count = |shards: fn(&Bustle) -> usize| glance.bustle.map_or(0, shards);
        Self {
            summary: JobSummary { next_fire: glance.next_fire, ..glance.outline.summary.clone() },
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
pub(crate) struct Glance<'s> {
    pub(crate) outline: &'s Outline,
    pub(crate) bustle: Option<&'s Bustle>,
    pub(crate) next_fire: Option<Timestamp>,
}

impl<'s> Glance<'s> {
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
struct JobsAsked {
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

impl Default for JobsAsked {
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
#[utoipa::path(get, path = "/r/{registry}/jobs", tag = "jobs", params(("registry" = String, Path), JobsAsked),
    responses((status = 200, body = JobsPage), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn jobs(
    door: Door<Looks>,
    Query(asked): Query<JobsAsked>,
) -> Result<Json<JobsPage>, Problem> {
    let (page, page_size) = page(asked.page, asked.page_size)?;
    let search: Search = asked.search.parse()?;
    let wanted = statuses(&asked.status)?;
    let (now, zone) = (door.shared.clock.now(), Zone::from(TimeZone::system()));
    let page = ready(&door).await?.seen(|seen| {
        let mut counted = Statuses::default();
        let mut found: Vec<Glance<'_>> = Glance::all(seen, now, &zone)
            .filter(|glance| search.fits(glance))
            .inspect(|glance| counted.count(glance.outline.summary.status))
            .filter(|glance| wanted.is_empty() || wanted.contains(&glance.outline.summary.status))
            .collect();
        // They are in the order of their names, and stay so where nothing else tells them apart.
        asked.order.sort(&mut found, |one, other| compare(one, other, asked.sort));
        let rows = found.iter().skip((page - 1).saturating_mul(page_size)).take(page_size);
        JobsPage {
            total: found.len(),
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

fn statuses(text: &str) -> Result<Vec<JobStatus>, Problem> {
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

fn compare(one: &Glance<'_>, other: &Glance<'_>, by: JobOrder) -> Ordering {
    let (left, right) = (&one.outline.summary, &other.outline.summary);
    match by {
        JobOrder::JobName => left.name.cmp(&right.name),
        JobOrder::Status => (left.status as u8).cmp(&(right.status as u8)),
        // Those that are never due come last.
        JobOrder::NextFireTime => {
            let due = |glance: &Glance<'_>| glance.next_fire.unwrap_or(Timestamp::MAX);
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
async fn job(door: Door<Looks>, Named(job): Named) -> Result<Json<JobDetails>, Problem> {
    Ok(Json(door.admin().await?.job(&job).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RemoveAsked {
    /// Also while instances are members: they lose it.
    force: bool,
}

/// Removes a job with everything that was kept of it. Takes an admin.
#[utoipa::path(delete, path = "/r/{registry}/jobs/{job}", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), RemoveAsked),
    responses((status = 200, body = Removed), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    door: Door<Rules>,
    Named(job): Named,
    Query(RemoveAsked { force }): Query<RemoveAsked>,
) -> Result<Json<Removed>, Problem> {
    Ok(Json(actions::remove(&door, &job, force).await?))
}

/// Lets a job run again, on every server.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/enable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn enable(door: Door<Steers>, Named(job): Named) -> Result<Json<Switched>, Problem> {
    Ok(Json(actions::enable(&door, &job, json!({})).await?))
}

/// Lets a job run nowhere, not even on servers that come later.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/disable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn disable(door: Door<Steers>, Named(job): Named) -> Result<Json<Switched>, Problem> {
    Ok(Json(actions::disable(&door, &job, json!({})).await?))
}

/// Ends every instance's membership in a job. What runs comes to its end.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shutdown", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = ShutDown), (status = 404, body = Problem)))]
async fn shutdown(door: Door<Steers>, Named(job): Named) -> Result<Json<ShutDown>, Problem> {
    Ok(Json(actions::shutdown(&door, &job, json!({})).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExplainAsked {
    /// Only this shard.
    shard: Option<u32>,
    /// About this instant; without, now.
    #[param(format = DateTime)]
    at: Option<String>,
}

/// Why a job, or a shard of it, ran or did not run.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/explain", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), ExplainAsked),
    responses((status = 200, body = Explanation), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn explain(
    door: Door<Looks>,
    Named(job): Named,
    Query(asked): Query<ExplainAsked>,
) -> Result<Json<Explanation>, Problem> {
    let at = asked.at.as_deref().map(|at| instant("at", at)).transpose()?;
    let (admin, shard) = (door.admin().await?, shard(asked.shard)?);
    Ok(Json(match door.history().await {
        Ok(history) => admin.explain_with(&history, &job, shard, at).await?,
        Err(problem) if problem.code == Code::NoHistory => admin.explain(&job, shard, at).await?,
        Err(problem) => admin.explain(&job, shard, at).await?.without_history(&problem.detail),
    }))
}

/// Everything that is stored of a job, as text in the ancestor's format, addresses masked. It may hold passwords: takes an admin.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/dump", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problem)))]
async fn dump(door: Door<Rules>, Named(job): Named) -> Result<String, Problem> {
    Ok(door.admin().await?.dump(&job).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FiresAsked {
    /// How many.
    #[param(minimum = 1, maximum = 1000)]
    count: usize,
    /// After this instant; without, now.
    #[param(format = DateTime)]
    after: Option<String>,
}

impl Default for FiresAsked {
    fn default() -> Self {
        Self { count: 10, after: None }
    }
}

/// When a job is due next by its schedule; nothing if it has none.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/fires", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path), FiresAsked),
    responses((status = 200, body = [String]), (status = 404, body = Problem)))]
async fn fires(
    door: Door<Looks>,
    Named(job): Named,
    Query(asked): Query<FiresAsked>,
) -> Result<Json<Vec<Timestamp>>, Problem> {
    if asked.count == 0 || asked.count > MOST_FIRES {
        return Err(Problem::invalid("count", format!("1 to {MOST_FIRES} fires can be asked for")));
    }
    let after = asked
        .after
        .as_deref()
        .map_or_else(|| Ok(door.shared.clock.now()), |after| instant("after", after))?;
    let details = door.admin().await?.job(&job).await?;
    let schedule =
        details.configuration.job.and_then(|job| job.schedule(&Zone::from(TimeZone::system())));
    let fires = schedule.map(|schedule| schedule.after(after).take(asked.count).collect());
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
