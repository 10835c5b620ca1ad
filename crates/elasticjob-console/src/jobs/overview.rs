//! Overview of a registry: counts, upcoming fires, incidents, and a forecast of fires.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::JobStatus,
    history::{MissedFires, Span, Totals},
    job::Job,
    schedule::{Schedule, Zone},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::routes::{JobView, Statuses};
use crate::{
    auth::caller::{Authorized, Viewer},
    http::{
        extract::Query,
        paging::loaded_mirror,
        problem::{Code, Problem},
        state::AppState,
    },
};
use elasticjob::admin::mirror::Snapshot;

/// Limits of the overview.
const MAX_NEXT: usize = 10;
const MAX_INCIDENTS: usize = 50;
/// Records of missed fires that are read.
const MAX_MISSED: usize = 1_000;
/// A run that starts this much after its due time is late.
const LATE_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// Limit of the forecast.
const MAX_HOURS_AHEAD: u32 = 48;
/// Limit of the look back.
const MAX_HOURS_BACK: u32 = 7 * 24;
/// A shard is not considered stuck before it has run this long, nor before its timeout has passed by this much.
const STUCK_GRACE: SignedDuration = SignedDuration::from_mins(1);
/// A shard is stuck if this many fires came due while it ran.
const STUCK_AFTER_FIRES: usize = 3;
const MAX_BUCKETS: usize = 288;
const MINUTE: i64 = 60_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(overview)).routes(routes!(forecast))
}

/// Overview of a registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Overview {
    job_count: usize,
    statuses: Statuses,
    server_count: usize,
    instance_count: usize,
    #[serde(flatten)]
    total: ActivityTotals,
    /// The next fires, at most ten.
    next: Vec<UpcomingFire>,
    /// Problems that need attention: crashed jobs, waiting or stuck shards, missed fires, unreadable configurations. The 50 most severe, by kind
    /// and name.
    incidents: Vec<Incident>,
    /// Number of incidents.
    incident_count: usize,
    /// Runs and missed fires of the last hours; null without a history store, which means that they are not recorded, or if it does not answer.
    last_hours: Option<LastHours>,
    /// Why the history store does not answer.
    history_problem: Option<String>,
    as_of: Option<Timestamp>,
    is_current: bool,
}

/// Runs of the last hours.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastHours {
    /// Number of hours.
    hours: u32,
    /// A run that starts this much after its due time is late.
    late_after_ms: i64,
    #[serde(flatten)]
    tally: Totals,
}

/// Totals over all jobs.
#[expect(clippy::struct_field_names, reason = "they are the names of the answer")]
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActivityTotals)]
struct ActivityTotals {
    shard_count: u64,
    running_count: usize,
    awaiting_failover_count: usize,
    misfired_count: usize,
    disabled_shard_count: usize,
    /// Number of jobs whose configuration cannot be read.
    unreadable_count: usize,
}

/// The next fire of a job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UpcomingFire)]
struct UpcomingFire {
    job_name: String,
    at: Timestamp,
}

/// A problem of a job that needs attention.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Incident {
    job_name: String,
    kind: IncidentKind,
    message: String,
}

/// Kinds of incidents, most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum IncidentKind {
    /// The configuration cannot be read.
    Unreadable,
    /// Shards await failover.
    AwaitingFailover,
    /// The job has no instance.
    Crashed,
    /// Shards are assigned to an instance that is gone.
    OwnerGone,
    /// Shards are not assigned.
    ShardingFlag,
    /// A shard is stuck.
    Stuck,
    /// Fires were missed.
    Missed,
    /// The number of assigned shards differs from the configured one.
    Drift,
    /// Fires came due while shards were running.
    Misfired,
}

/// Returns an overview of a registry: counts, next fires, incidents.
#[utoipa::path(get, path = "/r/{registry}/overview", tag = "jobs", params(("registry" = String, Path), OverviewQuery),
    responses((status = 200, body = Overview), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn overview(
    access: Authorized<Viewer>,
    Query(query): Query<OverviewQuery>,
) -> Result<Json<Overview>, Problem> {
    if query.hours == 0 || query.hours > MAX_HOURS_BACK {
        return Err(Problem::invalid("hours", format!("must be 1 to {MAX_HOURS_BACK}")));
    }
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    let mut overview =
        loaded_mirror(&access).await?.read(|seen| Overview::from_mirror(seen, now, &zone));
    match last_hours(&access, query.hours, now).await {
        Ok((last_hours, missed)) => {
            overview.last_hours = Some(last_hours);
            overview.incidents.extend(missed);
        }
        Err(problem) if problem.code == Code::NoHistory => {}
        Err(problem) => overview.history_problem = Some(problem.detail),
    }
    overview.rank_incidents();
    Ok(Json(overview))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OverviewQuery {
    /// Hours to look back in the history.
    #[param(minimum = 1, maximum = 168)]
    hours: u32,
}

impl Default for OverviewQuery {
    fn default() -> Self {
        Self { hours: 24 }
    }
}

async fn last_hours(
    access: &Authorized<Viewer>,
    hours: u32,
    now: Timestamp,
) -> Result<(LastHours, Vec<Incident>), Problem> {
    let since = now.checked_sub(SignedDuration::from_hours(hours.into())).unwrap_or(now);
    let store = access.history().await?;
    let tally = store.tally(Span::since(since), LATE_AFTER).await?;
    let missed = match tally.missed {
        0 => Vec::new(),
        _ => store.missed(None, Span::since(since), MAX_MISSED).await?,
    };
    let last_hours = LastHours { hours, late_after_ms: LATE_AFTER.as_millis() as i64, tally };
    Ok((last_hours, missed_fires(missed)))
}

/// Missed fires as incidents, one per job. Coalesced fires are none: a run answers them.
fn missed_fires(missed: Vec<MissedFires>) -> Vec<Incident> {
    let mut jobs: Vec<MissedFires> = Vec::new();
    for missed in missed.into_iter().filter(|missed| !missed.is_coalesced()) {
        match jobs.iter_mut().find(|known| known.job_name == missed.job_name) {
            Some(known) => {
                known.count += missed.count;
                known.last = known.last.max(missed.last);
            }
            None => jobs.push(missed),
        }
    }
    let incidents = jobs.into_iter().map(|missed| {
        let fires = if missed.count == 1 { "fire" } else { "fires" };
        let last = missed.last.map(|last| format!(", the last due at {last}")).unwrap_or_default();
        let message =
            format!("{} {fires} did not run{last}: {}", missed.count, missed.reason_text());
        Incident { job_name: missed.job_name, kind: IncidentKind::Missed, message }
    });
    incidents.collect()
}

impl Overview {
    fn from_mirror(seen: &Snapshot, now: Timestamp, zone: &Zone) -> Self {
        let mut statuses = Statuses::default();
        let (mut servers, mut instances) = (BTreeSet::new(), BTreeSet::new());
        let (mut next, mut incidents) = (Vec::new(), Vec::new());
        let mut total = ActivityTotals::default();
        for view in JobView::all(seen, now, zone) {
            let summary = &view.outline.summary;
            statuses.count(summary.status);
            servers.extend(view.outline.servers.keys());
            instances.extend(&view.outline.instances);
            total.add(&view);
            if matches!(summary.status, JobStatus::Ok | JobStatus::ShardingFlag)
                && let Some(at) = view.next_fire
            {
                next.push((at, &summary.name));
            }
            incidents.extend(incident(&view, now, zone));
        }
        next.sort_unstable();
        let next = next.into_iter().take(MAX_NEXT);
        Self {
            job_count: seen.jobs.len(),
            statuses,
            server_count: servers.len(),
            instance_count: instances.len(),
            total,
            next: next.map(|(at, job)| UpcomingFire { job_name: job.clone(), at }).collect(),
            incident_count: incidents.len(),
            incidents,
            last_hours: None,
            history_problem: None,
            as_of: seen.as_of,
            is_current: seen.is_current,
        }
    }

    /// Keeps the most severe incidents and counts all.
    fn rank_incidents(&mut self) {
        self.incident_count = self.incidents.len();
        self.incidents
            .sort_by(|one, other| (one.kind, &one.job_name).cmp(&(other.kind, &other.job_name)));
        self.incidents.truncate(MAX_INCIDENTS);
    }
}

impl ActivityTotals {
    fn add(&mut self, view: &JobView<'_>) {
        let summary = &view.outline.summary;
        self.shard_count += u64::from(summary.shards.unwrap_or(0));
        self.unreadable_count += usize::from(summary.problem.is_some());
        if let Some(activity) = view.activity {
            self.running_count += activity.running.len();
            self.awaiting_failover_count += activity.waiting.len();
            self.misfired_count += activity.misfired.len();
            self.disabled_shard_count += activity.disabled.len();
        }
    }
}

fn incident(view: &JobView<'_>, now: Timestamp, zone: &Zone) -> Option<Incident> {
    let (outline, activity) = (view.outline, view.activity);
    let summary = &outline.summary;
    let (kind, message) = if let Some(problem) = &summary.problem {
        (IncidentKind::Unreadable, problem.clone())
    } else if activity.is_some_and(|activity| !activity.waiting.is_empty()) {
        (IncidentKind::AwaitingFailover, "shards await failover".to_owned())
    } else if summary.status == JobStatus::Crashed {
        (IncidentKind::Crashed, "the job has no instance".to_owned())
    } else if summary.status == JobStatus::ShardingFlag {
        match outline.gone_owners.first() {
            Some(owner) => {
                let message = format!("shards are assigned to {owner}, which is gone");
                (IncidentKind::OwnerGone, message)
            }
            None => (IncidentKind::ShardingFlag, "shards are not assigned".to_owned()),
        }
    } else if let (Some(job), Some(activity)) = (&outline.job, activity)
        && let Some(message) = stuck_shard(job, &activity.running, now, zone)
    {
        (IncidentKind::Stuck, message)
    } else if summary.status == JobStatus::Ok
        && let Some(shards) = summary.shards.filter(|shards| *shards as usize != outline.assigned)
    {
        let message = format!("{} shards are assigned, {shards} are configured", outline.assigned);
        (IncidentKind::Drift, message)
    } else if activity.is_some_and(|activity| !activity.misfired.is_empty()) {
        (IncidentKind::Misfired, "fires came due while shards were running".to_owned())
    } else {
        return None;
    };
    Some(Incident { job_name: summary.name.clone(), kind, message })
}

/// A message if a shard is stuck: it exceeded its timeout, or several fires came due while it ran.
fn stuck_shard(
    job: &Job,
    running: &BTreeMap<u32, Timestamp>,
    now: Timestamp,
    zone: &Zone,
) -> Option<String> {
    let (shard, since) = running.iter().min_by_key(|(_, since)| **since)?;
    if now.duration_since(*since) < STUCK_GRACE {
        return None;
    }
    if let Some(timeout) = job.props.policies().timeout {
        let timeout = SignedDuration::try_from(timeout).ok()?;
        // Grants the instance some time to end it.
        let is_over = now.duration_since(*since) > timeout.saturating_add(STUCK_GRACE);
        let text = || {
            format!(
                "shard {shard} has been running since {since}, longer than its timeout ({timeout:#})"
            )
        };
        return is_over.then(text);
    }
    let due = job.schedule(zone)?.fires_between(*since, now).nth(STUCK_AFTER_FIRES - 1);
    due.map(|_| {
        format!(
            "shard {shard} has been running since {since}; {STUCK_AFTER_FIRES} or more fires came due meanwhile"
        )
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ForecastQuery {
    /// Hours to look ahead.
    #[param(minimum = 1, maximum = 48)]
    hours: u32,
    /// Number of buckets.
    #[param(minimum = 1, maximum = 288)]
    buckets: usize,
}

impl Default for ForecastQuery {
    fn default() -> Self {
        Self { hours: 24, buckets: 96 }
    }
}

/// Number of fires over time.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Forecast {
    from: Timestamp,
    /// Length of a bucket.
    bucket_ms: i64,
    /// Number of fires in each bucket.
    counts: Vec<u64>,
    /// Always false: all fires are counted.
    is_estimated: bool,
}

/// Counts the upcoming fires of all jobs that are not disabled.
#[utoipa::path(get, path = "/r/{registry}/forecast", tag = "jobs", params(("registry" = String, Path), ForecastQuery),
    responses((status = 200, body = Forecast), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn forecast(
    access: Authorized<Viewer>,
    Query(query): Query<ForecastQuery>,
) -> Result<Json<Forecast>, Problem> {
    if query.hours == 0 || query.hours > MAX_HOURS_AHEAD {
        return Err(Problem::invalid("hours", format!("must be 1 to {MAX_HOURS_AHEAD}")));
    }
    if query.buckets == 0 || query.buckets > MAX_BUCKETS {
        return Err(Problem::invalid("buckets", format!("must be 1 to {MAX_BUCKETS}")));
    }
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    let mut forecast = Forecast::empty(now, query.hours, query.buckets);
    let schedules = loaded_mirror(&access).await?.read(|seen| {
        let enabled =
            seen.jobs.values().filter(|outline| outline.summary.status != JobStatus::Disabled);
        let mut schedules: HashMap<Schedule, u64> = HashMap::new();
        for schedule in enabled
            .filter_map(|outline| outline.job.as_ref().filter(|job| !job.disabled)?.schedule(&zone))
        {
            *schedules.entry(schedule).or_default() += 1;
        }
        schedules
    });
    // Thousands of schedules take a while: yields to other requests. Identical schedules are counted once.
    for (schedule, jobs) in &schedules {
        forecast.add(schedule, *jobs);
        tokio::task::yield_now().await;
    }
    Ok(Json(forecast))
}

impl Forecast {
    fn empty(from: Timestamp, hours: u32, buckets: usize) -> Self {
        let bucket_ms = i64::from(hours) * 3_600_000 / buckets as i64;
        Self { from, bucket_ms, counts: vec![0; buckets], is_estimated: false }
    }

    /// Adds the fires of `jobs` jobs with this schedule.
    fn add(&mut self, schedule: &Schedule, jobs: u64) {
        let start = self.from.as_millisecond();
        let end = start + self.bucket_ms * self.counts.len() as i64;
        let mut fires_per_minute = None;
        let mut after = self.from;
        while let Some(fire) = schedule.next_after(after).filter(|it| it.as_millisecond() < end) {
            let at = fire.as_millisecond();
            let index = ((at - start) / self.bucket_ms) as usize;
            // The seconds of a cron are the same in every minute that has fires: they are counted once, for a whole minute, and then the loop
            // advances by minutes.
            let minute = at - at.rem_euclid(MINUTE);
            let bucket = start + self.bucket_ms * index as i64;
            let is_whole =
                minute > start && bucket <= minute && minute + MINUTE <= bucket + self.bucket_ms;
            let (fires, last) = match fires_per_minute {
                _ if !is_whole => (1, fire),
                Some(fires) => (fires, end_of_minute(minute).unwrap_or(fire)),
                None => {
                    let last = end_of_minute(minute).unwrap_or(fire);
                    let fires =
                        1 + schedule.after(fire).take_while(|it| *it <= last).count() as u64;
                    fires_per_minute = Some(fires);
                    (fires, last)
                }
            };
            if let Some(count) = self.counts.get_mut(index) {
                *count += fires * jobs;
            }
            after = last.max(fire);
        }
    }
}

/// The last millisecond of the minute that begins at `minute`.
fn end_of_minute(minute: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(minute + MINUTE - 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cron: &str) -> Schedule {
        let (cron, dst) = (cron.parse().unwrap(), "default".parse().unwrap());
        Schedule { cron, zone: Zone::utc(), dst }
    }

    fn forecast(cron: &str) -> Forecast {
        let mut forecast = Forecast::empty("2026-11-15T00:00:00Z".parse().unwrap(), 24, 24);
        forecast.add(&schedule(cron), 1);
        forecast
    }

    #[test]
    fn shard_is_stuck_past_its_timeout_or_after_three_fires() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let job = |cron: &str| Job::named("settle").unwrap().cron(cron).unwrap();
        let running = BTreeMap::from([
            (0, at("2026-11-15T02:30:00Z")),
            (1, at("2026-11-15T02:00:30Z")),
            (2, at("2026-11-15T02:10:00Z")),
        ]);
        let is_stuck = |job: &Job, now: &str| stuck_shard(job, &running, at(now), &Zone::utc());

        let hourly = job("0 0 * * * ?");
        assert_eq!(is_stuck(&hourly, "2026-11-15T04:59:59Z"), None);
        let message = is_stuck(&hourly, "2026-11-15T05:00:00Z").unwrap();
        assert!(
            message.starts_with("shard 1 has been running since 2026-11-15T02:00:30Z"),
            "{message}"
        );
        let limited = hourly.timeout(std::time::Duration::from_mins(15));
        assert_eq!(is_stuck(&limited, "2026-11-15T02:16:00Z"), None);
        assert!(
            is_stuck(&limited, "2026-11-15T02:17:00Z").unwrap().contains("longer than its timeout")
        );
        assert_eq!(
            is_stuck(&job("* * * * * ?"), "2026-11-15T02:01:00Z"),
            None,
            "within the grace period"
        );
    }

    #[test]
    fn forecast_counts_each_fire_in_its_bucket() {
        let daily = forecast("0 30 2 * * ?");
        assert_eq!((daily.counts[2], daily.counts.iter().sum::<u64>()), (1, 1));

        let busy = forecast("0/10 * * * * ?");
        // A fire exactly at the start is not counted, and the one exactly at the end is not due yet.
        assert_eq!((busy.counts[0], &busy.counts[1..]), (359, &[360; 23][..]));

        let by_day = forecast("0/10 * 9-17 * * ?");
        let hours: Vec<u64> =
            (0..24).map(|hour| if (9..18).contains(&hour) { 360 } else { 0 }).collect();
        assert_eq!(by_day.counts, hours, "no fires at night");
        let mut twice = by_day;
        twice.add(&schedule("0 30 2 * * ?"), 2);
        assert_eq!((twice.counts[2], twice.counts[9]), (2, 360));
        let bursts = forecast("0-19 0/30 * * * ?");
        assert_eq!((bursts.counts[0], bursts.counts[1]), (39, 40));
    }

    #[test]
    fn forecast_is_exact_for_buckets_of_partial_minutes() {
        let from: Timestamp = "2026-11-15T00:00:07.5Z".parse().unwrap();
        let schedule = schedule("* * * * * ?");
        let mut forecast = Forecast::empty(from, 1, 288);
        forecast.add(&schedule, 1);

        let each = |index: usize| {
            let at = |step: usize| from.as_millisecond() + forecast.bucket_ms * step as i64;
            let due = schedule.after(from).map(Timestamp::as_millisecond);
            due.take_while(|due| *due < at(index + 1)).filter(|due| *due >= at(index)).count()
                as u64
        };
        assert_eq!(forecast.counts, (0..288).map(each).collect::<Vec<_>>());
    }
}
