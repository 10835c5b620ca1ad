//! Was anything lost, did anything run twice? Decided from what was said, and from the database's book. Pure.

use std::{collections::BTreeMap, fmt};

use elasticjob::schedule::{Schedule, Zone};
use jiff::Timestamp;

use crate::{
    database::Line,
    said::{Key, Reason, Said, What},
    task::Task,
};

/// One execution of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Which.
    pub key: Key,
    /// Why.
    pub reason: Reason,
    /// By which worker.
    pub worker: usize,
    /// When it began.
    pub started_at: i64,
    /// When it wrote, and whether the database took it.
    pub writes: Vec<(i64, bool)>,
    /// When the handler returned.
    pub returned_at: Option<i64>,
    /// What that counted as.
    pub outcome: Option<String>,
}

impl Execution {
    /// Whether the cluster knows how it ended.
    pub fn counts(&self) -> bool {
        self.outcome.as_deref().is_some_and(|outcome| outcome != "fenced")
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// What must not be.
    pub wrong: Vec<String>,
    /// Executions that began.
    pub executions: usize,
    /// Shards that were due.
    pub due: usize,
    /// Those of them that ran as what they were.
    pub ran: usize,
    /// Those a later run made up for.
    pub made_up: usize,
    /// The longest any of them had to wait, in milliseconds.
    pub latest_ms: i64,
    /// Executions that took over from the dead.
    pub taken_over: usize,
    /// Executions of which nobody knows how they ended: their process was killed.
    pub killed: usize,
    /// Executions that ended without a lease.
    pub fenced: usize,
    /// Writes the database took.
    pub accepted: usize,
    /// Stale writes the database refused.
    pub refused: usize,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>8} executions: {} took over, {} were killed, {} fenced",
            self.executions, self.taken_over, self.killed, self.fenced
        )?;
        writeln!(
            f,
            "{:>8} shards due: {} ran, {} were made up for, the last {} ms late",
            self.due, self.ran, self.made_up, self.latest_ms
        )?;
        write!(f, "{:>8} writes taken, {} stale ones refused", self.accepted, self.refused)?;
        for wrong in &self.wrong {
            write!(f, "\nWRONG   {wrong}")?;
        }
        Ok(())
    }
}

/// Everything that was executed, in the order of its tokens.
pub fn executions(said: &[Said], wrong: &mut Vec<String>) -> BTreeMap<Key, Execution> {
    let mut executions: BTreeMap<Key, Execution> = BTreeMap::new();
    for Said { what, at, worker, .. } in said {
        if let What::Started(key, reason) = what {
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
                wrong.push(format!("began twice under one claim: {key:?}"));
            }
        }
        let Some(execution) = what.key().and_then(|key| executions.get_mut(key)) else { continue };
        match what {
            What::Stepped(_, accepted) => execution.writes.push((*at, *accepted)),
            What::Returned(_) => execution.returned_at = Some(*at),
            What::Outcome(_, outcome) => execution.outcome = Some(outcome.clone()),
            What::Joined | What::Noticed(_) | What::Started(..) => {}
        }
    }
    executions
}

/// Looks at everything that was due after `from` and before `to`.
pub fn audit(
    tasks: &[Task],
    said: &[Said],
    book: &[Line],
    from: Timestamp,
    to: Timestamp,
) -> Findings {
    let mut findings = Findings::default();
    let executions = executions(said, &mut findings.wrong);
    findings.executions = executions.len();
    for execution in executions.values() {
        findings.taken_over += usize::from(execution.reason.word == "Failover");
        findings.killed += usize::from(execution.outcome.is_none());
        findings.fenced += usize::from(execution.outcome.as_deref() == Some("fenced"));
    }
    for task in tasks {
        for item in 0..task.shards {
            let of: Vec<&Execution> = executions
                .values()
                .filter(|execution| execution.key.job == task.name && execution.key.item == item)
                .collect();
            overlaps(task, &of, &mut findings.wrong);
            lost(task, item, &of, (from, to), &mut findings);
        }
    }
    twice(&executions, &mut findings.wrong);
    stale(book, &mut findings);
    findings
}

/// No execution writes after the next one of its shard has begun, but for what the database refuses; who is not stubborn has stopped by
/// then, and who was refused is not done.
fn overlaps(task: &Task, of: &[&Execution], wrong: &mut Vec<String>) {
    let mut by_token = of.to_vec();
    by_token.sort_by_key(|execution| execution.key.token);
    for pair in by_token.windows(2) {
        let (older, newer) = (pair[0], pair[1]);
        let late: Vec<bool> = older
            .writes
            .iter()
            .filter(|(at, _)| *at > newer.started_at)
            .map(|(_, accepted)| *accepted)
            .collect();
        if late.contains(&true) {
            wrong.push(format!("two at once: {:?} and {:?}", older.key, newer.key));
        }
        // One write may be on its way when a process freezes.
        if !task.stubborn && late.len() > 1 {
            wrong.push(format!("went on without a lease, {} writes: {:?}", late.len(), older.key));
        }
    }
    for execution in of {
        let is_refused = execution.writes.iter().any(|(_, accepted)| !accepted);
        if is_refused && execution.outcome.as_deref() == Some("done") {
            wrong.push(format!(
                "counts as done though the database refused it: {:?}",
                execution.key
            ));
        }
    }
}

/// Every fire ran, or a later one made up for it, and it is known how that ended.
fn lost(
    task: &Task,
    item: u32,
    of: &[&Execution],
    (from, to): (Timestamp, Timestamp),
    findings: &mut Findings,
) {
    let cron = task.job().ok().and_then(|job| job.cron);
    let Some(cron) = cron else { return };
    let schedule = Schedule { cron, zone: Zone::utc(), dst: elasticjob::schedule::Dst::default() };
    for due in schedule.fires_between(from, to) {
        let due_ms = due.as_millisecond();
        findings.due += 1;
        let known = of.iter().filter(|execution| execution.key.run >= due_ms && execution.counts());
        let Some(first) = known.min_by_key(|execution| execution.started_at) else {
            findings.wrong.push(format!("lost: {}/{item} due at {due}", task.name));
            continue;
        };
        if first.key.run == due_ms {
            findings.ran += 1;
        } else {
            findings.made_up += 1;
        }
        findings.latest_ms = findings.latest_ms.max(first.started_at / 1_000_000 - due_ms);
    }
}

/// A shard of a run runs again only after the instance that ran it is gone for good.
fn twice(executions: &BTreeMap<Key, Execution>, wrong: &mut Vec<String>) {
    let mut last_seen: BTreeMap<&str, i64> = BTreeMap::new();
    let mut runs: BTreeMap<(&str, u32, i64), Vec<&Execution>> = BTreeMap::new();
    for execution in executions.values() {
        let key = &execution.key;
        let seen = last_seen.entry(&key.instance).or_insert(execution.started_at);
        *seen = execution.started_at.max(*seen);
        runs.entry((&key.job, key.item, key.run)).or_default().push(execution);
    }
    for mut of in runs.into_values() {
        of.sort_by_key(|execution| execution.key.token);
        for pair in of.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            let is_alive = last_seen[first.key.instance.as_str()] > second.started_at;
            if first.key.instance == second.key.instance || is_alive {
                wrong.push(format!(
                    "ran twice though nobody died: {:?} {:?} and {:?} {:?}",
                    first.key, first.outcome, second.key, second.reason
                ));
            }
        }
    }
}

/// By the database's own order: whatever it took was not older than what it had taken, and what it refused was older than something.
fn stale(book: &[Line], findings: &mut Findings) {
    let mut newest: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    for line in book.iter().filter(|line| line.amount.is_some()) {
        findings.accepted += 1;
        let newest = newest.entry((&line.job, line.item)).or_default();
        if line.token < *newest {
            findings.wrong.push(format!("a stale write was taken: {line:?} after {newest}"));
        }
        *newest = line.token;
    }
    for line in book.iter().filter(|line| line.amount.is_none()) {
        findings.refused += 1;
        if newest.get(&(line.job.as_str(), line.item)).is_none_or(|newest| line.token >= *newest) {
            findings.wrong.push(format!("a write that was not stale was refused: {line:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn task() -> Task {
        Task::new("settle", "0/10 * * * * ?", 1, 1, Duration::from_secs(1))
    }

    fn key(token: i64, run: i64, instance: &str) -> Key {
        Key { job: "settle".into(), item: 0, token, run: run * 1_000, instance: instance.into() }
    }

    /// An execution from one second to another, and what it counted as.
    fn execution(key: &Key, from: i64, to: i64, outcome: Option<&str>) -> Vec<Said> {
        let said = |what, at| Said { what, at: at * SECOND, worker: 0, pid: 1 };
        let reason = Reason { word: "Due".into(), attempt: 1 };
        let mut all = vec![
            said(What::Started(key.clone(), reason), from),
            said(What::Stepped(key.clone(), true), to),
        ];
        all.extend(outcome.map(|outcome| said(What::Outcome(key.clone(), outcome.into()), to)));
        all
    }

    fn wrong(said: &[Vec<Said>]) -> Vec<String> {
        let second = |second| Timestamp::from_second(second).unwrap();
        audit(&[task()], &said.concat(), &[], second(5), second(25)).wrong
    }

    #[test]
    fn a_fire_that_ran_and_one_that_was_made_up_for_are_not_lost() {
        let ran = execution(&key(1, 10, "a"), 10, 11, Some("done"));

        assert_eq!(
            wrong(&[ran.clone(), execution(&key(2, 20, "a"), 20, 21, Some("done"))]),
            [""; 0]
        );
        assert_eq!(wrong(&[execution(&key(2, 20, "a"), 20, 21, Some("failed"))]), [""; 0]);
        assert_eq!(wrong(&[ran]), ["lost: settle/0 due at 1970-01-01T00:00:20Z"]);
    }

    #[test]
    fn what_was_killed_or_fenced_makes_up_for_nothing() {
        let ran = execution(&key(1, 10, "a"), 10, 11, Some("done"));

        for outcome in [None, Some("fenced")] {
            assert_eq!(
                wrong(&[ran.clone(), execution(&key(2, 20, "b"), 20, 21, outcome)]).len(),
                1
            );
        }
    }

    #[test]
    fn two_at_once_are_found() {
        let long = execution(&key(1, 10, "a"), 10, 22, Some("done"));
        let next = execution(&key(2, 20, "b"), 20, 21, Some("done"));

        assert!(wrong(&[long, next])[0].starts_with("two at once"));
    }

    #[test]
    fn whoever_goes_on_without_a_lease_is_found() {
        let mut stale = execution(&key(1, 10, "a"), 10, 11, Some("done"));
        let write = |at| Said {
            what: What::Stepped(key(1, 10, "a"), false),
            at: at * SECOND,
            worker: 0,
            pid: 1,
        };
        let next = execution(&key(2, 20, "b"), 20, 21, Some("done"));
        stale.push(write(22));
        let once = wrong(&[stale.clone(), next.clone()]);
        stale.push(write(23));
        let twice = wrong(&[stale, next]);

        assert!(once[0].starts_with("counts as done") && once.len() == 1, "{once:?}");
        assert!(twice[0].starts_with("went on without a lease"), "{twice:?}");
    }

    #[test]
    fn a_run_runs_twice_only_after_a_death() {
        let first = execution(&key(1, 20, "a"), 20, 21, None);
        let again = execution(&key(2, 20, "b"), 23, 24, Some("done"));
        let alive = execution(&key(3, 30, "a"), 30, 31, Some("done"));

        assert_eq!(wrong(&[first.clone(), again.clone()]), [""; 0]);
        assert!(wrong(&[first.clone(), again, alive])[0].starts_with("ran twice"));
        let same = execution(&key(2, 20, "a"), 23, 24, Some("done"));
        assert!(wrong(&[first, same])[0].starts_with("ran twice"));
    }

    #[test]
    fn a_stale_write_that_was_taken_is_found() {
        let line = |token, amount| Line {
            job: "settle".into(),
            item: 0,
            token,
            what: "step".into(),
            amount,
        };
        let found = |book: &[Line]| {
            let mut findings = Findings::default();
            stale(book, &mut findings);
            findings.wrong.len()
        };

        assert_eq!(found(&[line(1, Some(1)), line(2, Some(2)), line(1, None)]), 0);
        assert_eq!(found(&[line(2, Some(1)), line(1, Some(2))]), 1);
        assert_eq!(found(&[line(1, Some(1)), line(1, None)]), 1);
    }
}
