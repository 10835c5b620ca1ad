//! Jobs: the list, one of them, and switching them.

use std::{cmp::Ordering, sync::Arc};

use axum::Json;
use elasticjob::{
    admin::{Explanation, JobDetails, JobStatus, JobSummary, Outline, Removed, RunsWith, Switched},
    schedule::Zone,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    auth::who::{Door, Looks, Rules, Steers},
    extract::{Named, Query, instant},
    mirror::{Bustle, Seen},
    problem::{Code, Problem},
    search::Search,
    state::Shared,
};

/// How many rows a page may have.
const LARGEST_PAGE: usize = 1_000;
/// How many fires may be asked for.
const MOST_FIRES: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(jobs))
        .routes(routes!(overview))
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
    pub(crate) fn new(
        outline: &Outline,
        bustle: Option<&Bustle>,
        now: Timestamp,
        zone: &Zone,
    ) -> Self {
        let mut summary = outline.summary.clone();
        let job = outline.job.as_ref();
        if summary.next_fire.is_some_and(|next| next <= now) {
            let schedule = job.and_then(|job| job.schedule(zone));
            summary.next_fire = schedule.and_then(|schedule| schedule.next_after(now));
        }
        let count = |shards: fn(&Bustle) -> usize| bustle.map_or(0, shards);
        Self {
            summary,
            label: job.and_then(|job| job.label.clone()),
            time_zone: job.and_then(|job| job.zone.as_ref()).map(ToString::to_string),
            disabled: job.is_some_and(|job| job.disabled),
            failover: job.is_some_and(|job| job.failover == elasticjob::job::Failover::TakeOver),
            running_count: count(|bustle| bustle.running.len()),
            waiting_for_failover_count: count(|bustle| bustle.waiting.len()),
            misfired_count: count(|bustle| bustle.misfired.len()),
            disabled_shard_count: count(|bustle| bustle.disabled.len()),
        }
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
    status: String,
    /// By what: jobName, status, nextFireTime, shardingTotalCount, instanceCount, runningCount.
    sort: JobOrder,
    /// asc or desc.
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

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Order {
    Asc,
    Desc,
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
    let now = door.shared.clock.now();
    let zone = Zone::from(TimeZone::system());
    let seen = everything(&door).await?;
    let mut rows: Vec<JobRow> = Vec::new();
    let mut counted = Statuses::default();
    for (name, outline) in &seen.jobs {
        let row = JobRow::new(outline, seen.bustle.get(name), now, &zone);
        if !search.fits(&row, outline) {
            continue;
        }
        counted.count(row.summary.status);
        if wanted.is_empty() || wanted.contains(&row.summary.status) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| {
        let ordering = compare(one, other, asked.sort);
        let ordering =
            if matches!(asked.order, Order::Desc) { ordering.reverse() } else { ordering };
        ordering.then_with(|| one.summary.name.cmp(&other.summary.name))
    });
    let total = rows.len();
    let items =
        rows.into_iter().skip((page - 1).saturating_mul(page_size)).take(page_size).collect();
    let (as_of, is_current) = (seen.as_of, seen.is_current);
    Ok(Json(JobsPage { total, page, page_size, items, statuses: counted, as_of, is_current }))
}

/// What the mirror shows, once it has seen everything.
pub(crate) async fn everything<R>(door: &Door<R>) -> Result<Seen, Problem> {
    let mirror = &door.place.mirror;
    let mut changes = mirror.listen();
    let look = || mirror.seen(|seen| seen.as_of.is_some().then(|| seen.clone()));
    if let Some(seen) = look() {
        return Ok(seen);
    }
    door.admin().await?;
    // The first time it has to be read; that is told.
    let clock = &door.shared.clock;
    let deadline = clock.monotonic() + std::time::Duration::from_secs(30);
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = clock.sleep_until(deadline) => {
                return Err(Problem::new(Code::Unreachable, format!("registry {} is still being read; hint: try again", door.place.name)).after(5));
            }
        }
    }
}

/// A page and its size, within limits.
pub(crate) fn page(page: usize, size: usize) -> Result<(usize, usize), Problem> {
    if page == 0 {
        return Err(Problem::invalid("page", "pages count from 1"));
    }
    if size == 0 || size > LARGEST_PAGE {
        return Err(Problem::invalid("pageSize", format!("a page has 1 to {LARGEST_PAGE} rows")));
    }
    Ok((page, size))
}

fn statuses(text: &str) -> Result<Vec<JobStatus>, Problem> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            super::search::status(word).ok_or_else(|| {
                Problem::invalid(
                    "status",
                    format!("{word:?} is no status; hint: OK, DISABLED, CRASHED, SHARDING_FLAG"),
                )
            })
        })
        .collect()
}

fn compare(one: &JobRow, other: &JobRow, by: JobOrder) -> Ordering {
    let key = |row: &JobRow| match by {
        JobOrder::JobName => 0,
        JobOrder::Status => row.summary.status as i64,
        // Those that are never due come last.
        JobOrder::NextFireTime => row.summary.next_fire.map_or(i64::MAX, Timestamp::as_millisecond),
        JobOrder::ShardingTotalCount => row.summary.shards.map_or(-1, i64::from),
        JobOrder::InstanceCount => row.summary.instances as i64,
        JobOrder::RunningCount => row.running_count as i64,
    };
    match by {
        JobOrder::JobName => one.summary.name.cmp(&other.summary.name),
        _ => key(one).cmp(&key(other)),
    }
}

/// A registry at a glance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Overview {
    job_count: usize,
    statuses: Statuses,
    server_count: usize,
    instance_count: usize,
    shard_count: u64,
    running_count: usize,
    waiting_for_failover_count: usize,
    misfired_count: usize,
    disabled_shard_count: usize,
    /// Jobs whose configuration cannot be read.
    unreadable_count: usize,
    /// The jobs that are due next, at most ten.
    next: Vec<Due>,
    /// What somebody should look at: crashed jobs, shards that wait, what cannot be read; at most fifty.
    incidents: Vec<Incident>,
    as_of: Option<Timestamp>,
    is_current: bool,
}

/// A job that is due.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Due {
    job_name: String,
    at: Timestamp,
}

/// Something that should not be so.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Incident {
    job_name: String,
    kind: IncidentKind,
    message: String,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum IncidentKind {
    Unreadable,
    Crashed,
    ShardingFlag,
    WaitingForFailover,
    Misfired,
}

/// A registry at a glance: counts, what is due next, what should not be so.
#[utoipa::path(get, path = "/r/{registry}/overview", tag = "jobs", params(("registry" = String, Path)),
    responses((status = 200, body = Overview), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn overview(door: Door<Looks>) -> Result<Json<Overview>, Problem> {
    let (now, zone) = (door.shared.clock.now(), Zone::from(TimeZone::system()));
    let seen = everything(&door).await?;
    let rows: Vec<(JobRow, &Arc<Outline>)> = seen
        .jobs
        .iter()
        .map(|(name, outline)| (JobRow::new(outline, seen.bustle.get(name), now, &zone), outline))
        .collect();
    let mut statuses = Statuses::default();
    let mut servers = std::collections::BTreeSet::new();
    let mut instances = std::collections::BTreeSet::new();
    for (row, outline) in &rows {
        statuses.count(row.summary.status);
        servers.extend(outline.servers.keys());
        instances.extend(&outline.instances);
    }
    let mut next: Vec<Due> = rows
        .iter()
        .filter(|(row, _)| matches!(row.summary.status, JobStatus::Ok | JobStatus::ShardingFlag))
        .filter_map(|(row, _)| {
            Some(Due { job_name: row.summary.name.clone(), at: row.summary.next_fire? })
        })
        .collect();
    next.sort_by(|one, other| (one.at, &one.job_name).cmp(&(other.at, &other.job_name)));
    next.truncate(10);
    let sum = |count: fn(&JobRow) -> usize| rows.iter().map(|(row, _)| count(row)).sum();
    Ok(Json(Overview {
        job_count: rows.len(),
        server_count: servers.len(),
        instance_count: instances.len(),
        shard_count: rows.iter().map(|(row, _)| u64::from(row.summary.shards.unwrap_or(0))).sum(),
        running_count: sum(|row| row.running_count),
        waiting_for_failover_count: sum(|row| row.waiting_for_failover_count),
        misfired_count: sum(|row| row.misfired_count),
        disabled_shard_count: sum(|row| row.disabled_shard_count),
        unreadable_count: sum(|row| usize::from(row.summary.problem.is_some())),
        next,
        incidents: rows.iter().filter_map(|(row, _)| incident(row)).take(50).collect(),
        statuses,
        as_of: seen.as_of,
        is_current: seen.is_current,
    }))
}

fn incident(row: &JobRow) -> Option<Incident> {
    let (kind, message) = if let Some(problem) = &row.summary.problem {
        (IncidentKind::Unreadable, problem.clone())
    } else if row.waiting_for_failover_count > 0 {
        (IncidentKind::WaitingForFailover, "shards wait to be taken over".to_owned())
    } else if row.summary.status == JobStatus::Crashed {
        (IncidentKind::Crashed, "nobody runs it".to_owned())
    } else if row.summary.status == JobStatus::ShardingFlag {
        (
            IncidentKind::ShardingFlag,
            "shards are not dealt, or belong to somebody who is gone".to_owned(),
        )
    } else if row.misfired_count > 0 {
        (IncidentKind::Misfired, "shards were due while they ran".to_owned())
    } else {
        return None;
    };
    Some(Incident { job_name: row.summary.name.clone(), kind, message })
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
    let removed = door
        .change("job.remove", job.as_str(), json!({ "force": force }), async |admin| {
            admin.remove(&job, force).await
        })
        .await?;
    Ok(Json(removed))
}

/// Lets a job run again, on every server.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/enable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn enable(door: Door<Steers>, Named(job): Named) -> Result<Json<Switched>, Problem> {
    let switched = door
        .change("job.enable", job.as_str(), json!({}), async |admin| admin.enable(&job).await)
        .await?;
    Ok(Json(switched))
}

/// Lets a job run nowhere, not even on servers that come later.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/disable", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Switched), (status = 404, body = Problem)))]
async fn disable(door: Door<Steers>, Named(job): Named) -> Result<Json<Switched>, Problem> {
    let switched = door
        .change("job.disable", job.as_str(), json!({}), async |admin| admin.disable(&job).await)
        .await?;
    Ok(Json(switched))
}

/// Who was told to leave.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShutDown {
    /// By id.
    pub(crate) instances: Vec<String>,
}

/// Ends every instance's membership in a job. What runs comes to its end.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/shutdown", tag = "jobs", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = ShutDown), (status = 404, body = Problem)))]
async fn shutdown(door: Door<Steers>, Named(job): Named) -> Result<Json<ShutDown>, Problem> {
    let ended = door
        .change("job.shutdown", job.as_str(), json!({}), async |admin| {
            Ok(ShutDown { instances: admin.shutdown(&job).await? })
        })
        .await?;
    Ok(Json(ended))
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
    Ok(Json(door.admin().await?.explain(&job, asked.shard, at).await?))
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
