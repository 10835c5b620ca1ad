//! The oracle: records every event of the simulation and checks the guarantees at each one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::{
    fire_reports::FireGap,
    network::Connection,
    process::{ProcessState, TrueTime},
};
use elasticjob::{
    coordination::ledger::{LedgerPage, LedgerState},
    history::FiresMissed,
    job::{InstanceId, LeaseLoss, RunId, RunReason, Shard},
    registry::{Op, SessionId},
};

/// Job name and shard number.
pub(super) type ShardKey = (String, u32);

/// More requests than this mean that a loop never waits, unless there are very many jobs.
const MAX_REQUESTS: u64 = 100_000;
/// How long a lost shard may wait for its failover while there is no fault: a bit longer than the longest run.
pub(super) const FAILOVER_WITHIN: Duration = Duration::from_secs(30);
/// How long a handler may go on after its claim was deleted.
const CANCELLED_WITHIN: Duration = Duration::from_secs(3);
/// How long after its end a shard may still be held for the other shards of its run, while there is no fault.
const RELEASED_WITHIN: Duration = Duration::from_secs(2);
/// A run whose fire is due later than this was started by a clock that was ahead.
const MAX_EARLY: Duration = Duration::from_secs(5);

pub(super) struct Oracle {
    time: TrueTime,
    inner: Mutex<Inner>,
    max_requests: u64,
    /// Notified at every violation; the first one ends the simulation.
    pub(super) violation_found: Notify,
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) timeline: Vec<(Duration, String)>,
    pub(super) violations: Vec<String>,
    pub(super) executions: Vec<Execution>,
    shards: BTreeMap<ShardKey, ShardRecord>,
    /// Runs of a shard that did not end: when that began and ended.
    stuck_runs: Vec<(ShardKey, Duration, Option<Duration>)>,
    /// The session of every instance that ever existed.
    sessions: BTreeMap<String, SessionId>,
    ended_sessions: BTreeSet<SessionId>,
    /// When each instance of each job joined it last.
    joined: BTreeMap<(String, String), Duration>,
    /// The flags (job, `necessary` or `processing`) that announce a resharding, with the session that an ephemeral one belongs to.
    resharding: BTreeMap<(String, String), Option<SessionId>>,
    /// Shards that Java instances are running.
    java_running: BTreeSet<ShardKey>,
    /// The registry's clock was wrong, so that fires may have been started early.
    pub(super) was_registry_clock_wrong: bool,
    pub(super) requests: u64,
    /// The most jobs in one request whose response was lost.
    pub(super) largest_lost_batch: usize,
    pub(super) fire_gaps: Vec<FireGap>,
    pub(super) fire_reports: Vec<FiresMissed>,
    /// Since when there is no fault.
    pub(super) undisturbed_since: Option<Duration>,
    /// Earlier periods without a fault.
    pub(super) undisturbed_periods: Vec<(Duration, Duration)>,
}

/// The state of a shard, derived from committed transactions.
#[derive(Default)]
struct ShardRecord {
    page: LedgerPage,
    owner: Option<String>,
    owner_at_claim: Option<String>,
    /// A resharding was announced when the shard was last claimed, and is not over yet.
    is_resharding: bool,
    /// Runs whose end is recorded in the ledger.
    ended_runs: BTreeSet<String>,
    /// When the instance that was running the shard died, if no instance has run it since.
    lost_at: Option<Duration>,
    /// Failover has been on since the shard last started.
    is_failover_promised: bool,
    /// When a Java instance last started the shard. Java writes no ledger pages.
    java_started_at: Option<Duration>,
    /// When a Java instance deleted `running` while another instance held the shard.
    running_removed_at: Option<Duration>,
    highest_token: i64,
}

/// One call of a handler.
pub(super) struct Execution {
    pub(super) node: usize,
    pub(super) key: ShardKey,
    pub(super) run: RunId,
    pub(super) due_at: Timestamp,
    pub(super) reason: RunReason,
    session: SessionId,
    on_lease_loss: LeaseLoss,
    connection: Arc<Connection>,
    pub(super) started: Duration,
    pub(super) ended: Option<(Duration, &'static str)>,
    /// When it finished, if it still had its lease then.
    finished: Option<Duration>,
    /// The parameter of the job, as the handler got it.
    pub(super) parameter: String,
    /// Its handler was told to stop.
    is_cancelled: bool,
}

/// The policies of a job at the moment a shard starts.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not a state")]
pub(super) struct JobPolicies {
    pub(super) on_lease_loss: LeaseLoss,
    pub(super) has_failover: bool,
    pub(super) is_rotating: bool,
    pub(super) has_java: bool,
    /// Nothing shows what runs, and runs may take long.
    pub(super) is_unmonitored: bool,
}

impl Oracle {
    pub(super) fn new(time: TrueTime) -> Self {
        Self {
            time,
            inner: Mutex::default(),
            max_requests: MAX_REQUESTS,
            violation_found: Notify::new(),
        }
    }

    /// For a cluster with so many jobs.
    pub(super) fn for_crowd(time: TrueTime, jobs: usize) -> Self {
        Self { max_requests: MAX_REQUESTS * jobs as u64, ..Self::new(time) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self, message: fmt::Arguments<'_>) {
        self.lock().timeline.push((self.time.elapsed(), message.to_string()));
    }

    pub(super) fn report_violation(&self, message: fmt::Arguments<'_>) {
        let mut inner = self.lock();
        inner.timeline.push((self.time.elapsed(), format!("VIOLATION: {message}")));
        inner.violations.push(message.to_string());
        self.violation_found.notify_one();
    }

    pub(super) fn count_request(&self) {
        let mut inner = self.lock();
        inner.requests += 1;
        let is_limit_reached = inner.requests == self.max_requests;
        drop(inner);
        if is_limit_reached {
            let limit = self.max_requests;
            self.report_violation(format_args!("{limit} requests: a loop never waits"));
        }
    }

    /// The response to a request for so many jobs is lost.
    pub(super) fn batch_lost(&self, node: usize, jobs: usize) {
        self.log(format_args!("n{node} loses a response that answers {jobs} jobs"));
        let mut inner = self.lock();
        inner.largest_lost_batch = inner.largest_lost_batch.max(jobs);
    }

    /// A node recorded fires that got no run of their own.
    pub(super) fn fires_reported(&self, missed: FiresMissed) {
        self.log(format_args!(
            "{} fires of {} are recorded as {}: {} to {}",
            missed.count,
            missed.job,
            missed.reason.as_str(),
            missed.first,
            missed.last
        ));
        // A clock that was ahead reports fires that are still to come.
        if missed.last <= self.time.at(self.time.elapsed() + MAX_EARLY) {
            self.lock().fire_reports.push(missed);
        }
    }

    /// Records whether a fault is in effect from now on.
    pub(super) fn set_disturbed(&self, is_disturbed: bool) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        match (inner.undisturbed_since, is_disturbed) {
            (Some(since), true) => {
                inner.undisturbed_periods.push((since, now));
                inner.undisturbed_since = None;
            }
            (None, false) => inner.undisturbed_since = Some(now),
            _ => {}
        }
    }

    /// Updates owners and resharding flags, and checks the ledger pages that the multi wrote.
    pub(super) fn multi_committed(&self, node: usize, session: SessionId, ops: &[Op]) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        for op in ops {
            let path = op.path().as_str();
            let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
            match (parts.as_slice(), op) {
                (["sim", job, "instances", id], Op::Create(_)) => {
                    inner.joined.insert(((*job).to_owned(), (*id).to_owned()), now);
                    inner.sessions.insert((*id).to_owned(), session);
                }
                (["sim", job, "leader", "sharding", flag], Op::Create(create)) => {
                    let flag = ((*job).to_owned(), (*flag).to_owned());
                    inner.resharding.insert(flag, create.kind.session());
                }
                (["sim", job, "leader", "sharding", flag], Op::Delete { .. }) => {
                    inner.resharding.remove(&((*job).to_owned(), (*flag).to_owned()));
                }
                (["sim", job, "sharding", shard, part], op) => {
                    let Ok(shard) = shard.parse() else { continue };
                    let record = inner.shards.entry(((*job).to_owned(), shard)).or_default();
                    match (*part, op) {
                        ("instance", Op::Create(create)) => {
                            record.owner = Some(String::from_utf8_lossy(&create.data).into_owned());
                        }
                        ("instance", Op::Set { data, .. }) => {
                            record.owner = Some(String::from_utf8_lossy(data).into_owned());
                        }
                        ("instance", Op::Delete { .. }) => record.owner = None,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        inner.clear_finished_resharding();
        let latest = self.time.at(now + MAX_EARLY);
        let mut violations = Vec::new();
        for op in ops {
            let (path, data) = match op {
                Op::Create(create) => (&create.path, &create.data),
                Op::Set { path, data, .. } => (path, data),
                _ => continue,
            };
            let Some(rest) = path.as_str().strip_prefix("/sim~ledger/") else { continue };
            let Some((job, shard)) = rest.split_once('/') else { continue };
            let (Ok(shard), Ok(page)) = (shard.parse::<u32>(), LedgerPage::read(data)) else {
                continue;
            };
            violations.extend(inner.check_page_write(
                now,
                node,
                session,
                &(job.to_owned(), shard),
                page,
                latest,
            ));
        }
        drop(inner);
        for violation in violations {
            self.report_violation(format_args!("{violation}"));
        }
    }

    /// The server ended a session: its instance is dead, and the shards that it held are lost.
    pub(super) fn session_ended(&self, session: SessionId) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        let Inner { shards, sessions, ended_sessions, timeline, resharding, .. } = &mut *inner;
        ended_sessions.insert(session);
        resharding.retain(|_, of| *of != Some(session));

        for ((job, shard), record) in shards {
            let owner =
                record.page.holder.as_ref().filter(|_| record.page.state == LedgerState::Running);
            if owner.is_some_and(|owner| sessions.get(owner.as_str()) == Some(&session)) {
                record.lost_at = Some(now);
                timeline.push((now, format!("{job}/{shard} was running when its instance died")));
            }
        }
        inner.clear_finished_resharding();
    }

    /// From now on no instance takes over lost shards of this job, including those that are lost already.
    pub(super) fn failover_disabled(&self, job: &str) {
        for ((of, _), record) in &mut self.lock().shards {
            record.is_failover_promised &= of != job;
        }
    }

    pub(super) fn registry_clock_set(&self) {
        self.lock().was_registry_clock_wrong = true;
    }

    pub(super) fn java_started(&self, id: &InstanceId, key: &ShardKey) {
        self.log(format_args!("{id} starts {}/{}", key.0, key.1));
        let mut inner = self.lock();
        inner.java_running.insert(key.clone());
        let record = inner.shards.entry(key.clone()).or_default();
        record.java_started_at = Some(self.time.elapsed());
        record.lost_at = None;
    }

    pub(super) fn java_ended(&self, key: &ShardKey) {
        self.log(format_args!("Java ends {}/{}", key.0, key.1));
        self.lock().java_running.remove(key);
    }

    /// A Java instance died while it was running this shard.
    pub(super) fn java_died(&self, key: &ShardKey) {
        let now = self.time.elapsed();
        self.lock().shards.entry(key.clone()).or_default().lost_at = Some(now);
    }

    /// A Java instance deleted the `running` node of another instance.
    pub(super) fn java_removed_running(&self, key: &ShardKey) {
        self.log(format_args!("Java deletes `running` of {}/{}", key.0, key.1));
        let now = self.time.elapsed();
        self.lock().shards.entry(key.clone()).or_default().running_removed_at = Some(now);
    }

    /// Every handler of a dead process has ended.
    pub(super) fn process_died(&self, node: usize) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        for execution in &mut inner.executions {
            if execution.node == node && execution.ended.is_none() {
                execution.ended = Some((now, "crashed"));
            }
        }
    }

    /// A handler starts. Returns the number of its execution.
    pub(super) fn execution_started(
        &self,
        connection: &Arc<Connection>,
        shard: &Shard,
        policies: JobPolicies,
    ) -> usize {
        let now = self.time.elapsed();
        let key = (shard.job.to_string(), shard.item);
        let node = connection.node;
        let name = format!(
            "{}/{} {} #{} {:?}",
            key.0,
            key.1,
            short_run_name(&shard.run, &self.time),
            shard.attempt.number,
            shard.attempt.reason
        );
        let mut inner = self.lock();
        inner.timeline.push((now, format!("n{node} starts {name} token {}", shard.token.get())));
        // The session in which the shard was claimed, which may differ from the process's present session.
        let claimed_by = inner.sessions.get(shard.task.instance.as_str()).copied();
        let session = claimed_by.unwrap_or_else(|| connection.session_id());
        let mut violations = inner.check_start(now, connection, session, shard, policies, &name);
        // A clock that is wrong alone starts nothing early.
        if shard.run.is_scheduled()
            && shard.due_at > self.time.at(now + MAX_EARLY)
            && !inner.was_registry_clock_wrong
        {
            violations.push(format!("n{node} starts {name}: it is not due yet"));
        }
        let execution = Execution {
            node,
            key,
            run: shard.run.clone(),
            due_at: shard.due_at,
            reason: shard.attempt.reason,
            session,
            on_lease_loss: policies.on_lease_loss,
            connection: Arc::clone(connection),
            started: now,
            ended: None,
            finished: None,
            parameter: shard.job_parameter.clone(),
            is_cancelled: false,
        };
        inner.executions.push(execution);
        let number = inner.executions.len() - 1;
        drop(inner);
        for violation in violations {
            self.report_violation(format_args!("{violation}"));
        }
        number
    }

    /// A node that still runs a shard of a run of which another shard finished some time ago.
    pub(super) fn node_in_mid_run(&self) -> Option<usize> {
        let now = self.time.elapsed();
        let inner = self.lock();
        let mut running = inner.executions.iter().filter(|execution| execution.ended.is_none());
        let has_finished = |running: &&Execution| {
            inner.executions.iter().any(|other| {
                let is_same_run = other.node == running.node
                    && other.key.0 == running.key.0
                    && other.run == running.run;
                let released = other.ended.filter(|(_, how)| *how == "finishes");
                is_same_run && released.is_some_and(|(ended, _)| ended + RELEASED_WITHIN < now)
            })
        };
        running.find(has_finished).map(|execution| execution.node)
    }

    /// The run of these shards does not end. Returns its numbers.
    pub(super) fn run_sticks(
        &self,
        node: usize,
        shards: impl Iterator<Item = ShardKey>,
    ) -> Range<usize> {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        let first = inner.stuck_runs.len();
        for key in shards {
            inner.timeline.push((now, format!("n{node} is stuck in {}/{}", key.0, key.1)));
            inner.stuck_runs.push((key, now, None));
        }
        first..inner.stuck_runs.len()
    }

    pub(super) fn stuck_run_ended(&self, numbers: Range<usize>) {
        let now = self.time.elapsed();
        for (_, _, ended) in &mut self.lock().stuck_runs[numbers] {
            *ended = Some(now);
        }
    }

    pub(super) fn handler_polled(&self, number: usize) {
        let now = self.time.elapsed();
        let inner = self.lock();
        let execution = &inner.executions[number];
        // As in `check_start`: a process that died at this very instant would do nothing more on a real machine.
        if execution.connection.process.state() == ProcessState::Dead {
            return;
        }
        let name = format!(
            "{}/{} {}",
            execution.key.0,
            execution.key.1,
            short_run_name(&execution.run, &self.time)
        );
        let is_lease_over = execution.on_lease_loss == LeaseLoss::Cancel
            && !execution.connection.has_valid_lease(execution.session);
        let running_removed_at =
            inner.shards.get(&execution.key).and_then(|record| record.running_removed_at);
        let is_claim_removed = execution.on_lease_loss == LeaseLoss::Cancel
            && running_removed_at.is_some_and(|then| {
                then >= execution.started
                    && now > then + CANCELLED_WITHIN
                    && inner.undisturbed_since.is_some_and(|since| now > since + CANCELLED_WITHIN)
            });
        let node = execution.node;
        drop(inner);
        if is_lease_over {
            self.report_violation(format_args!(
                "n{node} still runs {name} after the end of its lease"
            ));
        }
        if is_claim_removed {
            self.report_violation(format_args!(
                "n{node} still runs {name} although its claim was deleted"
            ));
        }
    }

    pub(super) fn execution_cancelled(&self, number: usize) {
        self.lock().executions[number].is_cancelled = true;
    }

    /// Executions of a shard of a run that were not told to stop although the run was cancelled at this time, and there was no fault.
    pub(super) fn uncancelled(&self, key: &ShardKey, run: &RunId, at: Duration) -> Vec<Duration> {
        let inner = self.lock();
        let goes_on = |execution: &&Execution| {
            let from = at.max(execution.started);
            let until = from + CANCELLED_WITHIN;
            execution.key == *key
                && execution.run == *run
                && !execution.is_cancelled
                && execution.ended.is_none_or(|(ended, _)| ended > until)
                && !inner.ended_sessions.contains(&execution.session)
                && inner.was_undisturbed(from, until)
        };
        inner.executions.iter().filter(goes_on).map(|execution| execution.started).collect()
    }

    pub(super) fn execution_ended(&self, number: usize, how: &'static str) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        let execution = &mut inner.executions[number];
        if execution.ended.is_some() {
            return;
        }
        execution.ended = Some((now, how));
        let has_lease = execution.connection.has_valid_lease(execution.session);
        execution.finished = (how == "finishes" && has_lease).then_some(now);
        let message = format!(
            "n{} {how} {}/{} {}",
            execution.node,
            execution.key.0,
            execution.key.1,
            short_run_name(&execution.run, &self.time)
        );
        inner.timeline.push((now, message));
    }
}

impl Inner {
    /// Whether a run of this shard was stuck at some time in this period.
    pub(super) fn was_stuck(&self, job: &str, shard: u32, from: Duration, until: Duration) -> bool {
        self.stuck_runs.iter().any(|((of, item), since, ended)| {
            of == job
                && *item == shard
                && *since <= until
                && ended.is_none_or(|ended| ended >= from)
        })
    }

    /// Checks a ledger page that was written.
    fn check_page_write(
        &mut self,
        now: Duration,
        node: usize,
        session: SessionId,
        key: &ShardKey,
        page: LedgerPage,
        latest: Timestamp,
    ) -> Vec<String> {
        let is_resharding = self.resharding.keys().any(|(job, _)| *job == key.0);
        let mut violations = Vec::new();
        let Self { shards, sessions, ended_sessions, timeline, fire_gaps, .. } = self;
        let record = shards.entry(key.clone()).or_default();
        let name = format!("{}/{}", key.0, key.1);
        let holder =
            record.page.holder.as_ref().filter(|_| record.page.state == LedgerState::Running);
        // An instance that withdraws its own claim writes back the previous page, so its own session does not count.
        let other = holder.filter(|holder| {
            let of = sessions.get(holder.as_str());
            of.is_some_and(|of| !ended_sessions.contains(of) && *of != session)
        });
        match (record.page.due_at, page.due_at) {
            // A claim that is withdrawn restores the page.
            (Some(withdrawn), restored) if restored.is_none_or(|due_at| due_at < withdrawn) => {
                fire_gaps.retain(|gap| gap.key != *key || gap.claimed != withdrawn);
            }
            (Some(last), Some(claimed)) if last < claimed && claimed <= latest => {
                fire_gaps.push(FireGap { node, key: key.clone(), last, claimed, at: now });
            }
            _ => {}
        }
        match page.state {
            LedgerState::Running => {
                if let Some(other) = other {
                    violations.push(format!("n{node} claims {name}, which {other} holds"));
                }
                record.owner_at_claim = record.owner.clone();
                record.is_resharding = is_resharding;
                record.running_removed_at = None;
            }
            LedgerState::Done | LedgerState::Failed => {
                // A clock that was ahead may start a fire early, and the fire may run again when it is due.
                if let Some(run) = &page.run
                    && run.due_at().is_none_or(|due_at| due_at <= latest)
                {
                    record.ended_runs.insert(run.to_string());
                }
            }
            LedgerState::Lost => {
                if let Some(other) = other {
                    violations.push(format!(
                        "n{node} marks {name} as lost, but its holder {other} is alive"
                    ));
                }
            }
            LedgerState::Fresh => {}
        }
        let run = page.run.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        timeline
            .push((now, format!("n{node} writes {name} {:?} {run} #{}", page.state, page.attempt)));
        record.page = page;
        violations
    }

    /// Whether there was no fault in this period.
    fn was_undisturbed(&self, from: Duration, until: Duration) -> bool {
        let now = self.undisturbed_since.map(|since| (since, Duration::MAX));
        let mut periods = self.undisturbed_periods.iter().copied().chain(now);
        periods.any(|(since, end)| since <= from && until <= end)
    }

    /// Shards of jobs whose resharding is over no longer count as claimed during a resharding.
    fn clear_finished_resharding(&mut self) {
        let Self { shards, resharding, .. } = self;
        for ((job, _), record) in shards {
            record.is_resharding &= resharding.keys().any(|(other, _)| other == job);
        }
    }

    fn check_start(
        &mut self,
        now: Duration,
        connection: &Arc<Connection>,
        session: SessionId,
        shard: &Shard,
        policies: JobPolicies,
        name: &str,
    ) -> Vec<String> {
        let node = connection.node;
        let key = (shard.job.to_string(), shard.item);
        let mut violations = Vec::new();
        // The process died at this very instant; on a real machine this task would not run any more.
        if connection.process.state() == ProcessState::Dead {
            return violations;
        }
        let mut report =
            |message: String| violations.push(format!("n{node} starts {name}: {message}"));
        let is_lease_valid = connection.has_valid_lease(session);
        let is_retry = shard.attempt.reason == RunReason::Retry;
        if policies.on_lease_loss != LeaseLoss::Continue && !is_lease_valid {
            report("no valid lease".into());
        }
        for other in
            self.executions.iter().filter(|other| other.key == key && other.ended.is_none())
        {
            if other.node == node {
                report("this process is already running it".into());
            } else if other.connection.process.state() != ProcessState::Dead
                && is_lease_valid
                && other.connection.has_valid_lease(other.session)
            {
                report(format!("n{} is running it with a valid lease", other.node));
            }
        }
        if self.java_running.contains(&key) && is_lease_valid {
            report("a Java instance is running it".into());
        }
        let undisturbed_since = self.undisturbed_since;
        let joined_at = self.joined.get(&(key.0.clone(), shard.task.instance.to_string())).copied();
        let finished = self.executions.iter().rev().find_map(|other| {
            other.finished.filter(|_| other.key == key && other.run == shard.run)
        });
        if let Some(ended) = finished.filter(|_| !policies.has_java)
            && shard.attempt.reason == RunReason::Failover
            && now > ended + RELEASED_WITHIN
            // The shards of a run whose listener does not return stay held.
            && !self.was_stuck(&key.0, key.1, ended, now)
            && self.was_undisturbed(ended, ended + RELEASED_WITHIN)
        {
            report(format!("it finished {} ms ago", now.saturating_sub(ended).as_millis()));
        }
        // No instance takes over what its own process still runs.
        let was_stuck = self.was_stuck(&key.0, key.1, now.saturating_sub(FAILOVER_WITHIN), now);
        let was_registry_clock_wrong = self.was_registry_clock_wrong;
        let record = self.shards.entry(key.clone()).or_default();
        let token = shard.token.get();
        if token < record.highest_token || (token == record.highest_token && !is_retry) {
            report(format!(
                "token {token} is not greater than the earlier token {}",
                record.highest_token
            ));
        }
        record.highest_token = record.highest_token.max(token);
        // An early run overwrites the record of the last one, and while the registry's clock is wrong nothing tells when that was.
        let may_repeat = was_registry_clock_wrong && shard.run.is_scheduled();
        if record.ended_runs.contains(&shard.run.to_string()) && !is_retry && !may_repeat {
            report("the ledger says that this run has ended".into());
        }
        let is_claimed = record.page.state == LedgerState::Running
            && record.page.holder.as_ref() == Some(&shard.task.instance)
            && record.page.run.as_ref() == Some(&shard.run);
        if is_lease_valid && !is_claimed {
            report("not claimed".into());
        }
        let is_regular = matches!(
            shard.attempt.reason,
            RunReason::Schedule | RunReason::Trigger | RunReason::Misfire | RunReason::CatchUp
        );
        let me = Some(shard.task.instance.as_str());
        let is_owner = record.owner_at_claim.as_deref() == me || record.owner.as_deref() == me;
        if is_regular && is_lease_valid && !policies.is_rotating && !is_owner {
            report(format!("its owner was {:?} when it was claimed", record.owner_at_claim));
        }
        if is_regular && is_lease_valid && record.is_resharding {
            report("it was claimed during a resharding that is not over".into());
        }
        // An instance that connected, or joined the job, after Java ran the shard cannot know about that.
        let could_know = record.java_started_at.is_none_or(|then| {
            connection.connected_since() < then && joined_at.is_some_and(|at| at < then)
        });
        if shard.attempt.reason == RunReason::Failover && record.lost_at.is_none() && could_know {
            report("failover, but no instance died while running it".into());
        }
        // A handler that runs on without its claim, as the job allows, is not the failover of the lost shard.
        let lost_at = if is_claimed { record.lost_at.take() } else { None };
        let was_promised =
            std::mem::replace(&mut record.is_failover_promised, policies.has_failover);
        if let Some(lost_at) = lost_at.filter(|_| was_promised && !was_stuck && !policies.has_java)
        {
            let waited = undisturbed_since.map(|since| now.saturating_sub(since.max(lost_at)));
            if waited.is_some_and(|waited| waited > FAILOVER_WITHIN) {
                report(format!(
                    "its instance died {} s ago and it was not taken over although there was no fault",
                    now.saturating_sub(lost_at).as_secs()
                ));
            }
        }
        violations
    }
}

/// A short name of a run: `@` and its due time in seconds, or `!` and the beginning of its id if it was triggered.
fn short_run_name(run: &RunId, time: &TrueTime) -> String {
    match run.due_at() {
        Some(due_at) => format!("@{}", time.since_epoch(due_at).as_secs()),
        None => format!("!{}", &run.to_string()[..8]),
    }
}
