//! Decides from the events of the workers and the write log of the database whether a fire was lost or a shard ran twice. Pure.

use std::{collections::BTreeMap, fmt};

use elasticjob::schedule::{Schedule, Zone};
use jiff::Timestamp;

use crate::{
    database::WriteAttempt,
    event::{Event, EventKind, ExecutionKey, StartReason},
    step_job::StepJob,
};

/// One execution of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub key: ExecutionKey,
    pub reason: StartReason,
    pub worker: usize,
    pub started_at: i64,
    /// When it wrote, and whether the database accepted it.
    pub writes: Vec<(i64, bool)>,
    /// When the handler returned without an error.
    pub returned_at: Option<i64>,
    pub outcome: Option<String>,
}

impl Execution {
    /// Whether the outcome is known to the cluster: an execution that was fenced or killed has to run again.
    pub fn has_known_outcome(&self) -> bool {
        self.outcome.as_deref().is_some_and(|outcome| outcome != "fenced")
    }
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Violated guarantees.
    pub violations: Vec<String>,
    pub executions: usize,
    /// Fires of all shards.
    pub due: usize,
    /// Fires that ran as such.
    pub ran: usize,
    /// Fires that a later run compensated.
    pub compensated: usize,
    /// The longest start delay of a fire, in milliseconds.
    pub max_delay_ms: i64,
    /// Failover executions.
    pub taken_over: usize,
    /// Executions without an outcome: their process was killed.
    pub killed: usize,
    /// Executions that ended without a valid lease.
    pub fenced: usize,
    pub accepted: usize,
    /// Stale writes that the database refused.
    pub refused: usize,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>8} executions: {} failover, {} killed, {} fenced",
            self.executions, self.taken_over, self.killed, self.fenced
        )?;
        writeln!(
            f,
            "{:>8} fires of shards: {} ran, {} compensated, longest start delay {} ms",
            self.due, self.ran, self.compensated, self.max_delay_ms
        )?;
        write!(f, "{:>8} writes accepted, {} stale writes refused", self.accepted, self.refused)?;
        for violation in &self.violations {
            write!(f, "\nVIOLATION {violation}")?;
        }
        Ok(())
    }
}

/// Builds the executions from the events.
pub fn executions(
    events: &[Event],
    violations: &mut Vec<String>,
) -> BTreeMap<ExecutionKey, Execution> {
    let mut executions: BTreeMap<ExecutionKey, Execution> = BTreeMap::new();
    for Event { kind, at, worker, .. } in events {
        if let EventKind::Started(key, reason) = kind {
            let execution = Execution {
                key: key.clone(),
                reason: reason.clone(),
                worker: *worker,
                started_at: *at,
                writes: Vec::new(),
                returned_at: None,
                outcome: None,
            };
            if executions.insert(key.clone(), execution).is_some() {
                violations.push(format!("started twice under one claim: {key:?}"));
            }
        }
        let Some(execution) = kind.key().and_then(|key| executions.get_mut(key)) else { continue };
        match kind {
            EventKind::Stepped(_, accepted) => execution.writes.push((*at, *accepted)),
            EventKind::Returned(_) => execution.returned_at = Some(*at),
            EventKind::Outcome(_, outcome) => execution.outcome = Some(outcome.clone()),
            EventKind::Joined | EventKind::InstanceGone(_) | EventKind::Started(..) => {}
        }
    }
    executions
}

/// Checks all fires after `from` and before `to`.
pub fn audit(
    jobs: &[StepJob],
    events: &[Event],
    write_log: &[WriteAttempt],
    from: Timestamp,
    to: Timestamp,
) -> Findings {
    let mut findings = Findings::default();
    let executions = executions(events, &mut findings.violations);
    findings.executions = executions.len();
    for execution in executions.values() {
        findings.taken_over += usize::from(execution.reason.name == "Failover");
        findings.killed += usize::from(execution.outcome.is_none());
        findings.fenced += usize::from(execution.outcome.as_deref() == Some("fenced"));
    }
    for job in jobs {
        for item in 0..job.shards {
            let of_shard: Vec<&Execution> = executions
                .values()
                .filter(|execution| execution.key.job == job.name && execution.key.item == item)
                .collect();
            check_overlaps(job, &of_shard, &mut findings.violations);
            check_lost(job, item, &of_shard, (from, to), &mut findings);
        }
    }
    check_duplicates(&executions, &mut findings.violations);
    check_stale_writes(write_log, &mut findings);
    findings
}

/// After the next execution of its shard has started, an execution makes no write that the database accepts, and, unless its job is stubborn, none
/// that is refused either. An execution with a refused write does not succeed.
fn check_overlaps(job: &StepJob, executions: &[&Execution], violations: &mut Vec<String>) {
    let mut by_token = executions.to_vec();
    by_token.sort_by_key(|execution| execution.key.token);
    for pair in by_token.windows(2) {
        let (older, newer) = (pair[0], pair[1]);
        let late_writes: Vec<bool> = older
            .writes
            .iter()
            .filter(|(at, _)| *at > newer.started_at)
            .map(|(_, accepted)| *accepted)
            .collect();
        if late_writes.contains(&true) {
            violations.push(format!("two executions at once: {:?} and {:?}", older.key, newer.key));
        }
        // One write may be in flight when a process freezes.
        if !job.stubborn && late_writes.len() > 1 {
            violations.push(format!(
                "continued without a lease, {} writes: {:?}",
                late_writes.len(),
                older.key
            ));
        }
    }
    for execution in executions {
        let is_refused = execution.writes.iter().any(|(_, accepted)| !accepted);
        if is_refused && execution.outcome.as_deref() == Some("done") {
            violations.push(format!(
                "succeeded although the database refused a write: {:?}",
                execution.key
            ));
        }
    }
}

/// Every fire ran, or a later run compensated it, and the outcome of that run is known.
fn check_lost(
    job: &StepJob,
    item: u32,
    executions: &[&Execution],
    (from, to): (Timestamp, Timestamp),
    findings: &mut Findings,
) {
    let cron = job.job().ok().and_then(|job| job.cron);
    let Some(cron) = cron else { return };
    let schedule = Schedule { cron, zone: Zone::utc(), dst: elasticjob::schedule::Dst::default() };
    for due in schedule.fires_between(from, to) {
        let due_ms = due.as_millisecond();
        findings.due += 1;
        let known = executions
            .iter()
            .filter(|execution| execution.key.run >= due_ms && execution.has_known_outcome());
        let Some(first) = known.min_by_key(|execution| execution.started_at) else {
            findings.violations.push(format!("lost: {}/{item} due at {due}", job.name));
            continue;
        };
        if first.key.run == due_ms {
            findings.ran += 1;
        } else {
            findings.compensated += 1;
        }
        findings.max_delay_ms = findings.max_delay_ms.max(first.started_at / 1_000_000 - due_ms);
    }
}

/// A shard of a run runs again only after the instance that ran it is gone.
fn check_duplicates(executions: &BTreeMap<ExecutionKey, Execution>, violations: &mut Vec<String>) {
    let mut last_seen: BTreeMap<&str, i64> = BTreeMap::new();
    let mut runs: BTreeMap<(&str, u32, i64), Vec<&Execution>> = BTreeMap::new();
    for execution in executions.values() {
        let key = &execution.key;
        let seen = last_seen.entry(&key.instance).or_insert(execution.started_at);
        *seen = execution.started_at.max(*seen);
        runs.entry((&key.job, key.item, key.run)).or_default().push(execution);
    }
    for mut attempts in runs.into_values() {
        attempts.sort_by_key(|execution| execution.key.token);
        for pair in attempts.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            let is_alive = last_seen[first.key.instance.as_str()] > second.started_at;
            if first.key.instance == second.key.instance || is_alive {
                violations.push(format!(
                    "ran twice although no instance died: {:?} {:?} and {:?} {:?}",
                    first.key, first.outcome, second.key, second.reason
                ));
            }
        }
    }
}

/// In the order of the database: no accepted write has a smaller token than the one before it, and every refused write has a smaller token than an
/// accepted one.
fn check_stale_writes(write_log: &[WriteAttempt], findings: &mut Findings) {
    let mut newest: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    for write in write_log.iter().filter(|write| write.amount.is_some()) {
        findings.accepted += 1;
        let newest = newest.entry((&write.job, write.item)).or_default();
        if write.token < *newest {
            findings.violations.push(format!("stale write accepted: {write:?} after {newest}"));
        }
        *newest = write.token;
    }
    for write in write_log.iter().filter(|write| write.amount.is_none()) {
        findings.refused += 1;
        if newest.get(&(write.job.as_str(), write.item)).is_none_or(|newest| write.token >= *newest)
        {
            findings.violations.push(format!("refused a write that was not stale: {write:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn settle_job() -> StepJob {
        StepJob::new("settle", "0/10 * * * * ?", 1, 1, Duration::from_secs(1))
    }

    fn key(token: i64, run: i64, instance: &str) -> ExecutionKey {
        ExecutionKey {
            job: "settle".into(),
            item: 0,
            token,
            run: run * 1_000,
            instance: instance.into(),
        }
    }

    /// The events of an execution from second `from` to second `to`.
    fn execution(key: &ExecutionKey, from: i64, to: i64, outcome: Option<&str>) -> Vec<Event> {
        let event = |kind, at| Event { kind, at: at * SECOND, worker: 0, pid: 1 };
        let reason = StartReason { name: "Schedule".into(), attempt: 1 };
        let mut all = vec![
            event(EventKind::Started(key.clone(), reason), from),
            event(EventKind::Stepped(key.clone(), true), to),
        ];
        all.extend(
            outcome.map(|outcome| event(EventKind::Outcome(key.clone(), outcome.into()), to)),
        );
        all
    }

    fn violations(events: &[Vec<Event>]) -> Vec<String> {
        let second = |second| Timestamp::from_second(second).unwrap();
        audit(&[settle_job()], &events.concat(), &[], second(5), second(25)).violations
    }

    #[test]
    fn fire_that_ran_or_was_compensated_is_not_lost() {
        let ran = execution(&key(1, 10, "a"), 10, 11, Some("done"));

        assert_eq!(
            violations(&[ran.clone(), execution(&key(2, 20, "a"), 20, 21, Some("done"))]),
            [""; 0]
        );
        assert_eq!(violations(&[execution(&key(2, 20, "a"), 20, 21, Some("failed"))]), [""; 0]);
        assert_eq!(violations(&[ran]), ["lost: settle/0 due at 1970-01-01T00:00:20Z"]);
    }

    #[test]
    fn killed_or_fenced_execution_compensates_no_fire() {
        let ran = execution(&key(1, 10, "a"), 10, 11, Some("done"));

        for outcome in [None, Some("fenced")] {
            assert_eq!(
                violations(&[ran.clone(), execution(&key(2, 20, "b"), 20, 21, outcome)]).len(),
                1
            );
        }
    }

    #[test]
    fn overlapping_executions_are_found() {
        let long = execution(&key(1, 10, "a"), 10, 22, Some("done"));
        let next = execution(&key(2, 20, "b"), 20, 21, Some("done"));

        assert!(violations(&[long, next])[0].starts_with("two executions at once"));
    }

    #[test]
    fn execution_that_continues_without_a_lease_is_found() {
        let mut stale = execution(&key(1, 10, "a"), 10, 11, Some("done"));
        let write = |at| Event {
            kind: EventKind::Stepped(key(1, 10, "a"), false),
            at: at * SECOND,
            worker: 0,
            pid: 1,
        };
        let next = execution(&key(2, 20, "b"), 20, 21, Some("done"));
        stale.push(write(22));
        let once = violations(&[stale.clone(), next.clone()]);
        stale.push(write(23));
        let twice = violations(&[stale, next]);

        assert!(once[0].starts_with("succeeded although") && once.len() == 1, "{once:?}");
        assert!(twice[0].starts_with("continued without a lease"), "{twice:?}");
    }

    #[test]
    fn shard_of_a_run_runs_twice_only_after_a_death() {
        let first = execution(&key(1, 20, "a"), 20, 21, None);
        let again = execution(&key(2, 20, "b"), 23, 24, Some("done"));
        let alive = execution(&key(3, 30, "a"), 30, 31, Some("done"));

        assert_eq!(violations(&[first.clone(), again.clone()]), [""; 0]);
        assert!(violations(&[first.clone(), again, alive])[0].starts_with("ran twice"));
        let same = execution(&key(2, 20, "a"), 23, 24, Some("done"));
        assert!(violations(&[first, same])[0].starts_with("ran twice"));
    }

    #[test]
    fn accepted_stale_write_is_found() {
        let write = |token, amount| WriteAttempt {
            job: "settle".into(),
            item: 0,
            token,
            phase: "step".into(),
            amount,
        };
        let found = |write_log: &[WriteAttempt]| {
            let mut findings = Findings::default();
            check_stale_writes(write_log, &mut findings);
            findings.violations.len()
        };

        assert_eq!(found(&[write(1, Some(1)), write(2, Some(2)), write(1, None)]), 0);
        assert_eq!(found(&[write(2, Some(1)), write(1, Some(2))]), 1);
        assert_eq!(found(&[write(1, Some(1)), write(1, None)]), 1);
    }
}
