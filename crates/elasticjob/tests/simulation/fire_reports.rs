//! What nodes record about fires that got no run of their own, and whether they record all of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use elasticjob::{
    history::{Event, FiresMissed, MissedReason, Recorder, Sink, SinkError},
    job::RunReason,
};
use jiff::Timestamp;

use super::{
    final_checks::{CLOCK_TOLERANCE, STABLE_FOR, fires},
    jobs::JobPlan,
    oracle::{Execution, Inner, Oracle, ShardKey},
    world::{World, lock},
};

/// How long a process must live after a claim for its record to be stored: it may be frozen before it can.
const RECORDED_WITHIN: Duration = Duration::from_secs(30);

/// A claim whose shard had last started an earlier fire: the fires in between get no run of their own on that shard.
pub(super) struct FireGap {
    pub(super) node: usize,
    pub(super) key: ShardKey,
    pub(super) last: Timestamp,
    pub(super) claimed: Timestamp,
    pub(super) at: Duration,
}

/// A recorder that tells the oracle which fires got no run of their own.
pub(super) fn recorder(oracle: &Arc<Oracle>) -> Recorder {
    Recorder::new().sink("oracle", Arc::new(OracleSink(Arc::clone(oracle))))
}

struct OracleSink(Arc<Oracle>);

#[async_trait]
impl Sink for OracleSink {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        for event in batch {
            if let Event::Missed(missed) = event {
                self.0.fires_reported(missed.clone());
            }
        }
        Ok(())
    }
}

impl World {
    /// Every fire between two claims of a shard was recorded, unless the process that claimed it did not live long enough.
    pub(super) fn check_fire_gaps(&self) {
        let end = self.time.elapsed();
        let inner = self.oracle.lock();
        // Nodes that followed a registry that was hours ahead have recorded fires of that time, and do not record them again.
        if inner.was_registry_clock_wrong {
            return;
        }
        let mut violations = Vec::new();
        for gap in inner.fire_gaps.iter().filter(|gap| has_started(&inner, gap)) {
            let plan = self.plans.iter().map(lock).find(|plan| plan.job.name.as_str() == gap.key.0);
            let Some(plan) = plan.filter(|plan| !plan.has_java) else { continue };
            for due in due_fires(&plan, end, gap) {
                let due_at = self.time.at(due);
                let is_between = gap.last < due_at && due_at < gap.claimed;
                let is_recorded =
                    inner.fire_reports.iter().any(|report| covers(report, gap, due_at));
                if is_between && self.is_witness(gap, due) && !is_recorded {
                    violations.push(format!(
                        "n{} claimed {}/{} for a later fire and did not record that of {} s",
                        gap.node,
                        gap.key.0,
                        gap.key.1,
                        due.as_secs()
                    ));
                }
            }
        }
        drop(inner);
        for violation in violations {
            self.oracle.report_violation(format_args!("{violation}"));
        }
    }

    /// No fire of a job with one shard has run and is recorded as answered by a later run.
    pub(super) fn check_coalesced_fires(&self) {
        let inner = self.oracle.lock();
        let mut violations = Vec::new();
        let coalesced = inner.fire_reports.iter().filter(|it| it.reason == MissedReason::Coalesced);
        for report in coalesced {
            let plan = self.plans.iter().map(lock).find(|plan| plan.job.name == report.job);
            let had_one_shard =
                plan.is_some_and(|plan| plan.phases.iter().all(|(_, phase)| phase.total == 1));
            let has_run = |execution: &&Execution| {
                execution.key.0 == report.job.as_str()
                    && execution.run.is_scheduled()
                    && !matches!(execution.reason, RunReason::Failover | RunReason::Retry)
                    && (report.first..=report.last).contains(&execution.due_at)
            };
            if let Some(ran) = inner.executions.iter().find(has_run).filter(|_| had_one_shard) {
                violations.push(format!(
                    "n{} ran {} for the fire of {}, which is recorded as coalesced",
                    ran.node, report.job, ran.due_at
                ));
            }
        }
        drop(inner);
        for violation in violations {
            self.oracle.report_violation(format_args!("{violation}"));
        }
    }

    /// Whether the process was a member when the fire was due, and lived on after the claim.
    fn is_witness(&self, gap: &FireGap, due: Duration) -> bool {
        self.memberships.iter().any(|membership| {
            membership.node == gap.node
                && membership.from + CLOCK_TOLERANCE <= due
                && membership.until.is_none_or(|until| until > gap.at + RECORDED_WITHIN)
        })
    }
}

/// Whether the process started what it had claimed. Otherwise its session ended, or the claim was withdrawn.
fn has_started(inner: &Inner, gap: &FireGap) -> bool {
    inner.executions.iter().any(|execution| {
        execution.node == gap.node
            && execution.key == gap.key
            && execution.due_at == gap.claimed
            && execution.started >= gap.at
    })
}

/// The fires of the shard that were to run, in phases that lasted until the claim.
fn due_fires<'a>(
    plan: &'a JobPlan,
    end: Duration,
    gap: &'a FireGap,
) -> impl Iterator<Item = Duration> + 'a {
    plan.phases.iter().enumerate().flat_map(move |(number, (from, phase))| {
        let until = plan.phases.get(number + 1).map_or(end, |(until, _)| *until);
        let is_due = phase.is_enabled
            && !phase.is_invalid
            && gap.at <= until
            && gap.key.1 < phase.total
            && !phase.disabled_shards.contains(&gap.key.1);
        fires(phase.every, *from + STABLE_FOR, until).filter(move |_| is_due)
    })
}

fn covers(report: &FiresMissed, gap: &FireGap, due_at: Timestamp) -> bool {
    report.job.as_str() == gap.key.0 && report.first <= due_at && due_at <= report.last
}
