//! What there is to tell of a job that is looked at. Takes what was seen and says what is new; does nothing else.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::{
    admin::{Instance, JobDetails, JobStatus, Language, Shard},
    job::{Job, drift},
    schedule::{Schedule, Zone},
};
use jiff::{Timestamp, tz::TimeZone};

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// Always in the same words.
    pub(super) message: &'static str,
    pub(super) shard: Option<u32>,
    pub(super) instance: Option<String>,
    pub(super) detail: Option<String>,
}

impl Note {
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

/// A node of a shard that says something by being there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    kind: MarkKind,
    shard: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MarkKind {
    Running,
    Misfire,
    /// It waits to be taken over.
    Orphaned,
    /// Somebody has taken it over.
    TakenOver,
    Disabled,
}

impl Mark {
    /// The mark that stands at this place below a job.
    pub(super) fn at(place: &str) -> Option<Self> {
        let parts: Vec<&str> = place.split('/').collect();
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

    /// What its coming and going mean.
    fn message(self, is_there: bool) -> Option<&'static str> {
        match (self.kind, is_there) {
            (MarkKind::Running, true) => Some("the shard runs"),
            (MarkKind::Running, false) => Some("the shard has ended"),
            (MarkKind::Misfire, true) => Some("the shard missed a fire"),
            (MarkKind::Misfire, false) => Some("the missed fire is made up for"),
            (MarkKind::Orphaned, true) => Some("the shard waits to be taken over"),
            (MarkKind::TakenOver, true) => Some("the shard is taken over"),
            (MarkKind::Orphaned | MarkKind::TakenOver, false) => None,
            (MarkKind::Disabled, true) => Some("the shard is disabled"),
            (MarkKind::Disabled, false) => Some("the shard is enabled"),
        }
    }
}

/// Whether something at this place below a job is a reason to look at the job.
pub(super) fn matters(place: &str) -> bool {
    let parts: Vec<&str> = place.split('/').collect();
    matches!(
        parts[..],
        ["" | "config"]
            | ["servers" | "instances", _]
            | ["sharding", _, "instance"]
            | ["leader", "election", "instance"]
            | ["leader", "sharding", _]
    )
}

/// What was told of one job.
#[derive(Debug, Default)]
pub(super) struct Chapter {
    job: Option<Job>,
    problem: Option<String>,
    status: Option<JobStatus>,
    instances: BTreeMap<String, Language>,
    leader: Option<String>,
    owners: Vec<Option<String>>,
    marks: BTreeSet<Mark>,
    next_fire: Option<Timestamp>,
}

impl Chapter {
    /// Whether anything was told of it.
    pub(super) fn is_known(&self) -> bool {
        self.job.is_some() || self.problem.is_some()
    }

    /// When it is due next, as far as is known.
    pub(super) fn next_fire(&self) -> Option<Timestamp> {
        self.next_fire
    }

    pub(super) fn forget_marks(&mut self) {
        self.marks.clear();
    }

    /// A mark is there, or not. What was there before anybody looked is known, and no news.
    pub(super) fn mark(&mut self, mark: Mark, is_there: bool, is_news: bool) -> Option<Note> {
        let is_new = if is_there { self.marks.insert(mark) } else { self.marks.remove(&mark) };
        if !is_new || !is_news {
            return None;
        }
        let note = Note { shard: Some(mark.shard), ..Note::new(mark.message(is_there)?) };
        let owner = self.owners.get(mark.shard as usize).cloned().flatten();
        // Whom it belongs to does not say who has taken it over.
        let is_owners = mark.kind == MarkKind::Running
            && !self.marks.contains(&Mark { kind: MarkKind::TakenOver, ..mark });
        Some(match owner {
            Some(owner) if is_owners => note.instance(owner),
            _ => note,
        })
    }

    /// What is due now.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Note> {
        let due_at = self.next_fire.filter(|due_at| *due_at <= now)?;
        self.next_fire = self.schedule().and_then(|schedule| schedule.next_after(due_at.max(now)));
        if self.status == Some(JobStatus::Disabled) {
            return None;
        }
        let next = self.next_fire.map_or("never".to_owned(), |next| next.to_string());
        Some(Note::new("the job is due").detail(format!("{due_at}, next {next}")))
    }

    /// What is not as it was.
    pub(super) fn look(&mut self, details: &JobDetails, shards: &[Shard]) -> Vec<Note> {
        let mut notes = self.configuration(details);
        notes.extend(self.members(&details.instances));
        if details.leader != self.leader {
            self.leader.clone_from(&details.leader);
            notes.push(match &details.leader {
                Some(leader) => Note::new("the job is led").instance(leader),
                None => Note::new("nobody leads the job"),
            });
        }
        if Some(details.summary.status) != self.status {
            self.status = Some(details.summary.status);
            let status = serde_json::to_value(details.summary.status).unwrap_or_default();
            notes.push(Note::new("how the job stands").detail(status.as_str().unwrap_or("-")));
        }
        let owners: Vec<Option<String>> = shards.iter().map(|shard| shard.owner.clone()).collect();
        let is_dealt = !details.is_dealing && details.resharding_since.is_none();
        if is_dealt && owners != self.owners && owners.iter().any(Option::is_some) {
            let plan: Vec<String> = shards
                .iter()
                .map(|shard| {
                    format!("{}={}", shard.item, shard.owner.as_deref().unwrap_or("nobody"))
                })
                .collect();
            notes.push(Note::new("the shards are dealt").detail(plan.join(", ")));
            self.owners = owners;
        }
        notes
    }

    fn configuration(&mut self, details: &JobDetails) -> Vec<Note> {
        let mut notes = Vec::new();
        let configuration = &details.configuration;
        if let Some(problem) = &configuration.problem
            && self.problem.as_ref() != Some(problem)
        {
            notes.push(Note::new("the configuration cannot be read").detail(problem));
        }
        self.problem.clone_from(&configuration.problem);
        let Some(job) = &configuration.job else { return notes };
        let is_rescheduled = match &self.job {
            None => {
                let cron = job.cron.as_ref().map_or("no cron".to_owned(), ToString::to_string);
                let next = details.summary.next_fire;
                let next = next.map_or("never".to_owned(), |next| next.to_string());
                let text = format!("{cron}, {} shards, next {next}", job.shards);
                notes.push(Note::new("the job is there").detail(text));
                true
            }
            Some(before) => {
                for change in drift(job, before) {
                    let value =
                        |side: &Option<String>| side.clone().unwrap_or("nothing".to_owned());
                    let (from, to) = (value(&change.stored), value(&change.local));
                    let text = format!("{} from {from} to {to}", change.key);
                    notes.push(Note::new("the configuration has changed").detail(text));
                }
                (&before.cron, &before.zone) != (&job.cron, &job.zone)
            }
        };
        self.job = Some(job.clone());
        if is_rescheduled {
            self.next_fire = details.summary.next_fire;
        }
        notes
    }

    fn members(&mut self, instances: &[Instance]) -> Vec<Note> {
        let now: BTreeMap<String, Language> =
            instances.iter().map(|instance| (instance.id.clone(), instance.language)).collect();
        let mut notes = Vec::new();
        for (id, language) in &now {
            if !self.instances.contains_key(id) {
                let language = if *language == Language::Java { "Java" } else { "Rust" };
                notes.push(Note::new("an instance is there").instance(id).detail(language));
            }
        }
        for id in self.instances.keys().filter(|id| !now.contains_key(*id)) {
            notes.push(Note::new("an instance is gone").instance(id));
        }
        self.instances = now;
        notes
    }

    fn schedule(&self) -> Option<Schedule> {
        self.job.as_ref()?.schedule(&Zone::from(TimeZone::system()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_when_it_comes_and_when_it_goes_and_one_that_was_there_is_no_news() {
        let mut chapter =
            Chapter { owners: vec![None, Some("10.0.0.7@-@1".to_owned())], ..Chapter::default() };
        let runs = Mark::at("sharding/1/running").unwrap();

        let begun = chapter.mark(runs, true, true).unwrap();
        assert_eq!((begun.message, begun.shard), ("the shard runs", Some(1)));
        assert_eq!(begun.instance.as_deref(), Some("10.0.0.7@-@1"));
        assert_eq!(chapter.mark(runs, true, true), None, "its data changed");
        assert_eq!(chapter.mark(runs, false, true).unwrap().message, "the shard has ended");
        assert_eq!(chapter.mark(Mark::at("sharding/0/misfire").unwrap(), true, false), None);

        let taken = Mark::at("sharding/1/failover").unwrap();
        assert_eq!(chapter.mark(taken, true, true).unwrap().instance, None);
        assert_eq!(chapter.mark(runs, true, true).unwrap().instance, None, "it is not the owner's");
        assert_eq!(Mark::at("leader/failover/items/2").map(|mark| mark.shard), Some(2));
        assert_eq!(Mark::at("leader/failover/latch"), None);
    }

    #[test]
    fn a_job_is_due_once_for_each_fire() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let job = Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap();
        let mut chapter = Chapter {
            job: Some(job),
            next_fire: Some(at("2026-11-15T10:00:00Z")),
            ..Chapter::default()
        };

        assert_eq!(chapter.due(at("2026-11-15T09:59:59Z")), None);
        let due = chapter.due(at("2026-11-15T10:00:00.2Z")).unwrap();
        assert_eq!(due.detail.as_deref(), Some("2026-11-15T10:00:00Z, next 2026-11-15T11:00:00Z"));
        assert_eq!(chapter.due(at("2026-11-15T10:00:01Z")), None);
    }
}
