//! The state of one observed job. Compares each new state with the previous one and returns the differences; does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::{
    admin::{Instance, JobDetails, JobStatus, Language, Shard},
    job::{Job, drift},
    schedule::{Schedule, Zone},
};
use jiff::{Timestamp, tz::TimeZone};

/// Something to log about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observation {
    /// Constant text; values are in the other fields.
    pub(super) message: &'static str,
    pub(super) shard: Option<u32>,
    pub(super) instance: Option<String>,
    pub(super) detail: Option<String>,
}

impl Observation {
    pub(super) fn new(message: &'static str) -> Self {
        Self { message, shard: None, instance: None, detail: None }
    }

    fn instance(self, instance: impl Into<String>) -> Self {
        Self { instance: Some(instance.into()), ..self }
    }

    fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

/// A registry node of a shard whose existence is its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShardMark {
    kind: MarkKind,
    shard: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MarkKind {
    Running,
    Misfire,
    Orphaned,
    TakenOver,
    Disabled,
}

impl ShardMark {
    /// The mark at this path below a job's node.
    pub(super) fn at(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (kind, shard) = match parts[..] {
            ["sharding", shard, "running"] => (MarkKind::Running, shard),
            ["sharding", shard, "misfire"] => (MarkKind::Misfire, shard),
            ["sharding", shard, "failover"] => (MarkKind::TakenOver, shard),
            ["sharding", shard, "disabled"] => (MarkKind::Disabled, shard),
            ["leader", "failover", "items", shard] => (MarkKind::Orphaned, shard),
            _ => return None,
        };
        Some(Self { kind, shard: shard.parse().ok()? })
    }

    /// The message when the mark appears or disappears.
    fn message(self, is_present: bool) -> Option<&'static str> {
        match (self.kind, is_present) {
            (MarkKind::Running, true) => Some("shard started"),
            (MarkKind::Running, false) => Some("shard ended"),
            (MarkKind::Misfire, true) => Some("shard misfired"),
            (MarkKind::Misfire, false) => Some("misfire compensated"),
            (MarkKind::Orphaned, true) => Some("shard awaits failover"),
            (MarkKind::TakenOver, true) => Some("shard taken over"),
            (MarkKind::Orphaned | MarkKind::TakenOver, false) => None,
            (MarkKind::Disabled, true) => Some("shard disabled"),
            (MarkKind::Disabled, false) => Some("shard enabled"),
        }
    }
}

/// Whether a change at this path below a job's node means that the job must be read again.
pub(super) fn is_relevant(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        ["" | "config"]
            | ["servers" | "instances", _]
            | ["sharding", _, "instance"]
            | ["leader", "election", "instance"]
            | ["leader", "sharding", _]
    )
}

/// What has been logged about one job.
#[derive(Debug, Default)]
pub(super) struct ObservedJob {
    job: Option<Job>,
    problem: Option<String>,
    status: Option<JobStatus>,
    instances: BTreeMap<String, Language>,
    leader: Option<String>,
    owners: Vec<Option<String>>,
    marks: BTreeSet<ShardMark>,
    next_fire: Option<Timestamp>,
}

impl ObservedJob {
    /// Whether anything has been logged about the job.
    pub(super) fn is_known(&self) -> bool {
        self.job.is_some() || self.problem.is_some()
    }

    pub(super) fn next_fire(&self) -> Option<Timestamp> {
        self.next_fire
    }

    pub(super) fn clear_marks(&mut self) {
        self.marks.clear();
    }

    /// Records that a mark exists or not. Marks that existed before the watch began (`is_news` is false) are recorded without an observation.
    pub(super) fn mark(
        &mut self,
        mark: ShardMark,
        is_present: bool,
        is_news: bool,
    ) -> Option<Observation> {
        let is_new = if is_present { self.marks.insert(mark) } else { self.marks.remove(&mark) };
        if !is_new || !is_news {
            return None;
        }
        let observation =
            Observation { shard: Some(mark.shard), ..Observation::new(mark.message(is_present)?) };
        let owner = self.owners.get(mark.shard as usize).cloned().flatten();
        // The owner of a shard is not the instance that took it over.
        let is_run_by_owner = mark.kind == MarkKind::Running
            && !self.marks.contains(&ShardMark { kind: MarkKind::TakenOver, ..mark });
        Some(match owner {
            Some(owner) if is_run_by_owner => observation.instance(owner),
            _ => observation,
        })
    }

    /// The fire that is due at `now`, if any; advances to the next one.
    pub(super) fn take_fire(&mut self, now: Timestamp) -> Option<Observation> {
        let due_at = self.next_fire.filter(|due_at| *due_at <= now)?;
        self.next_fire = self.schedule().and_then(|schedule| schedule.next_after(due_at.max(now)));
        if self.status == Some(JobStatus::Disabled) {
            return None;
        }
        let next = self.next_fire.map_or("never".to_owned(), |next| next.to_string());
        Some(Observation::new("job due").detail(format!("{due_at}, next {next}")))
    }

    /// Records a newly read state and returns how it differs.
    pub(super) fn refresh(&mut self, details: &JobDetails, shards: &[Shard]) -> Vec<Observation> {
        let mut observations = self.update_configuration(details);
        observations.extend(self.update_instances(&details.instances));
        if details.leader != self.leader {
            self.leader.clone_from(&details.leader);
            observations.push(match &details.leader {
                Some(leader) => Observation::new("leader elected").instance(leader),
                None => Observation::new("job has no leader"),
            });
        }
        if Some(details.summary.status) != self.status {
            self.status = Some(details.summary.status);
            let status = serde_json::to_value(details.summary.status).unwrap_or_default();
            observations.push(
                Observation::new("job status changed").detail(status.as_str().unwrap_or("-")),
            );
        }
        let owners: Vec<Option<String>> = shards.iter().map(|shard| shard.owner.clone()).collect();
        let is_assigned = !details.is_assigning && details.resharding_since.is_none();
        if is_assigned && owners != self.owners && owners.iter().any(Option::is_some) {
            let plan: Vec<String> = shards
                .iter()
                .map(|shard| {
                    format!("{}={}", shard.item, shard.owner.as_deref().unwrap_or("unassigned"))
                })
                .collect();
            observations.push(Observation::new("shards assigned").detail(plan.join(", ")));
            self.owners = owners;
        }
        observations
    }

    fn update_configuration(&mut self, details: &JobDetails) -> Vec<Observation> {
        let mut observations = Vec::new();
        let configuration = &details.configuration;
        if let Some(problem) = &configuration.problem
            && self.problem.as_ref() != Some(problem)
        {
            observations.push(Observation::new("configuration unreadable").detail(problem));
        }
        self.problem.clone_from(&configuration.problem);
        let Some(job) = &configuration.job else { return observations };
        let is_rescheduled = match &self.job {
            None => {
                let cron = job.cron.as_ref().map_or("no cron".to_owned(), ToString::to_string);
                let next = details.summary.next_fire;
                let next = next.map_or("never".to_owned(), |next| next.to_string());
                let text = format!("{cron}, {} shards, next {next}", job.shards);
                observations.push(Observation::new("job found").detail(text));
                true
            }
            Some(before) => {
                for change in drift(job, before) {
                    let value = |side: &Option<String>| side.clone().unwrap_or("unset".to_owned());
                    let (from, to) = (value(&change.stored), value(&change.local));
                    let text = format!("{} from {from} to {to}", change.key);
                    observations.push(Observation::new("configuration changed").detail(text));
                }
                (&before.cron, &before.zone) != (&job.cron, &job.zone)
            }
        };
        self.job = Some(job.clone());
        if is_rescheduled {
            self.next_fire = details.summary.next_fire;
        }
        observations
    }

    fn update_instances(&mut self, instances: &[Instance]) -> Vec<Observation> {
        let now: BTreeMap<String, Language> =
            instances.iter().map(|instance| (instance.id.clone(), instance.language)).collect();
        let mut observations = Vec::new();
        for (id, language) in &now {
            if !self.instances.contains_key(id) {
                let language = if *language == Language::Java { "Java" } else { "Rust" };
                observations
                    .push(Observation::new("instance joined").instance(id).detail(language));
            }
        }
        for id in self.instances.keys().filter(|id| !now.contains_key(*id)) {
            observations.push(Observation::new("instance left").instance(id));
        }
        self.instances = now;
        observations
    }

    fn schedule(&self) -> Option<Schedule> {
        self.job.as_ref()?.schedule(&Zone::from(TimeZone::system()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_observed_when_they_appear_and_disappear() {
        let mut observed = ObservedJob {
            owners: vec![None, Some("10.0.0.7@-@1".to_owned())],
            ..ObservedJob::default()
        };
        let runs = ShardMark::at("sharding/1/running").unwrap();

        let begun = observed.mark(runs, true, true).unwrap();
        assert_eq!((begun.message, begun.shard), ("shard started", Some(1)));
        assert_eq!(begun.instance.as_deref(), Some("10.0.0.7@-@1"));
        assert_eq!(observed.mark(runs, true, true), None, "only its data changed");
        assert_eq!(observed.mark(runs, false, true).unwrap().message, "shard ended");
        assert_eq!(observed.mark(ShardMark::at("sharding/0/misfire").unwrap(), true, false), None);

        let taken = ShardMark::at("sharding/1/failover").unwrap();
        assert_eq!(observed.mark(taken, true, true).unwrap().instance, None);
        assert_eq!(observed.mark(runs, true, true).unwrap().instance, None, "not run by the owner");
        assert_eq!(ShardMark::at("leader/failover/items/2").map(|mark| mark.shard), Some(2));
        assert_eq!(ShardMark::at("leader/failover/latch"), None);
    }

    #[test]
    fn each_fire_is_observed_once() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let job = Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap();
        let mut observed = ObservedJob {
            job: Some(job),
            next_fire: Some(at("2026-11-15T10:00:00Z")),
            ..ObservedJob::default()
        };

        assert_eq!(observed.take_fire(at("2026-11-15T09:59:59Z")), None);
        let due = observed.take_fire(at("2026-11-15T10:00:00.2Z")).unwrap();
        assert_eq!(due.detail.as_deref(), Some("2026-11-15T10:00:00Z, next 2026-11-15T11:00:00Z"));
        assert_eq!(observed.take_fire(at("2026-11-15T10:00:01Z")), None);
    }
}
