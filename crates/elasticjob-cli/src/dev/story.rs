//! What there is to say when a job is not as it was.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::{
    admin::{Instance, JobDetails, LastRun, RunState, Shard},
    job::{JobName, RunId},
};
use jiff::SignedDuration;

use super::voice::clock;

/// A run that starts so long after it was due makes up for something.
const LATE: SignedDuration = SignedDuration::from_secs(2);

/// Everything that was told so far. Takes pictures of jobs and says what is new; does nothing else.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What instances are called, by id; the dead are remembered.
    names: BTreeMap<String, String>,
    gone: BTreeSet<String>,
    jobs: BTreeMap<JobName, Chapter>,
}

/// What was told of one job.
#[derive(Debug, Default)]
struct Chapter {
    members: BTreeSet<String>,
    owners: Vec<String>,
    waiting: BTreeSet<u32>,
    runs: BTreeMap<u32, LastRun>,
}

impl Story {
    /// Says what is new in this picture.
    pub(super) fn go_on(
        &mut self,
        job: &JobName,
        details: &JobDetails,
        shards: &[Shard],
    ) -> Vec<String> {
        let mut chapter = self.jobs.remove(job).unwrap_or_default();
        let mut lines = self.members(&mut chapter, &details.instances);
        lines.extend(self.runs(job, &mut chapter, shards));
        if !details.is_dealing && details.resharding_since.is_none() {
            lines.extend(self.owners(job, &mut chapter, shards));
        }
        self.jobs.insert(job.clone(), chapter);
        lines
    }

    /// Whoever came or went; each is told once, whatever it takes part in.
    fn members(&mut self, chapter: &mut Chapter, instances: &[Instance]) -> Vec<String> {
        let mut lines = Vec::new();
        for instance in instances {
            if self.names.contains_key(&instance.id) {
                continue;
            }
            let pid = pid(&instance.id);
            let name = instance.labels.get("name").cloned();
            let called = name.clone().unwrap_or_else(|| format!("pid {pid}"));
            lines.push(match name {
                Some(name) => format!("{name} (pid {pid}) is there"),
                None => format!("{called} is there"),
            });
            self.names.insert(instance.id.clone(), called);
        }
        let now: BTreeSet<String> = instances.iter().map(|instance| instance.id.clone()).collect();
        for id in chapter.members.difference(&now) {
            if self.gone.insert(id.clone()) {
                lines.push(format!("{} is gone: its session is over", self.name(id)));
            }
        }
        chapter.members = now;
        lines
    }

    /// Who owns what, once everything is somebody's.
    fn owners(&self, job: &JobName, chapter: &mut Chapter, shards: &[Shard]) -> Option<String> {
        let owned = |shard: &Shard| shard.owner.clone().filter(|_| shard.is_owner_online);
        let owners: Vec<String> = shards.iter().map(owned).collect::<Option<_>>()?;
        if owners.is_empty() || owners == chapter.owners {
            return None;
        }
        let each: Vec<String> = owners
            .iter()
            .enumerate()
            .map(|(item, owner)| format!("{item} → {}", self.name(owner)))
            .collect();
        chapter.owners = owners;
        Some(format!("{job}: {}", each.join(", ")))
    }

    /// What was left behind, taken over, made up for, or failed.
    fn runs(&self, job: &JobName, chapter: &mut Chapter, shards: &[Shard]) -> Vec<String> {
        let mut lines = Vec::new();
        for shard in shards {
            let item = shard.item;
            if !shard.waits_for_failover {
                chapter.waiting.remove(&item);
            } else if chapter.waiting.insert(item) {
                lines.push(format!("{job}: {item} was not finished and waits to be taken over"));
            }
            let Some(run) = &shard.last_run else { continue };
            let before = chapter.runs.insert(item, run.clone());
            lines
                .extend(self.run(before.as_ref(), run).map(|said| format!("{job}: {item} {said}")));
        }
        lines
    }

    fn run(&self, before: Option<&LastRun>, now: &LastRun) -> Option<String> {
        let before = before?;
        let who = self.name(now.instance.as_deref()?);
        let is_new = (&before.run_id, before.attempt) != (&now.run_id, now.attempt);
        match now.state {
            RunState::Running if is_new && now.attempt > 1 => {
                let whose =
                    before.instance.as_deref().filter(|id| Some(*id) != now.instance.as_deref());
                let from = whose.map_or_else(String::new, |id| format!(" from {}", self.name(id)));
                Some(format!("is taken over by {who}{from}: attempt {}", now.attempt))
            }
            RunState::Running if is_new => {
                let run: RunId = now.run_id.as_deref()?.parse().ok()?;
                let (due_at, since) = (run.due_at()?, now.since?);
                let late = since.duration_since(due_at);
                (late > LATE).then(|| {
                    let seconds = late.as_secs();
                    format!("makes up for {} on {who}, {seconds} s late", clock(due_at))
                })
            }
            RunState::Failed if before.state != RunState::Failed || is_new => {
                Some(format!("failed on {who}"))
            }
            _ => None,
        }
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.get(id).map_or(id, String::as_str)
    }
}

/// The process in an instance's id.
fn pid(id: &str) -> &str {
    let process = id.rsplit("@-@").next().unwrap_or(id);
    process.split('-').next().unwrap_or(process)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use elasticjob::{admin::Admin, job::Job, registry};

    use super::*;

    /// A job that nobody runs; tests draw the rest.
    async fn picture() -> (JobName, JobDetails, Shard) {
        let registry = registry::connect(&"memory:".parse().unwrap()).await.unwrap();
        let admin = Admin::on(Arc::clone(&registry));
        let job = Job::named("settle").unwrap();
        let name = job.name.clone();
        let plan = admin.plan(elasticjob::admin::Edit::of(job)).await.unwrap();
        admin.apply(&plan).await.unwrap();
        let details = admin.job(&name).await.unwrap();
        let shard = admin.shards(&name).await.unwrap().remove(0);
        (name, JobDetails { resharding_since: None, ..details }, shard)
    }

    fn instance(id: &str, name: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            server: "127.0.0.1".to_owned(),
            labels: BTreeMap::from([("name".to_owned(), name.to_owned())]),
            language: elasticjob::admin::Language::Rust,
            since: None,
            problem: None,
        }
    }

    fn run(millis: i64, attempt: u32, instance: &str, state: RunState, late: i64) -> LastRun {
        let at = |millis| jiff::Timestamp::from_millisecond(millis).ok();
        LastRun {
            run_id: Some(format!("settle/{millis}")),
            due_at: at(millis),
            attempt,
            instance: Some(instance.to_owned()),
            state,
            since: at(millis + late),
        }
    }

    const ONE: &str = "127.0.0.1@-@11-a";
    const TWO: &str = "127.0.0.1@-@22-b";

    #[tokio::test]
    async fn a_death_is_told_once_and_then_who_takes_over() {
        let (job, mut details, mut shard) = picture().await;
        let mut story = Story::default();
        details.instances = vec![instance(ONE, "worker-1"), instance(TWO, "worker-2")];
        (shard.owner, shard.is_owner_online) = (Some(ONE.to_owned()), true);
        shard.last_run = Some(run(10_000, 1, ONE, RunState::Running, 5));

        assert_eq!(
            story.go_on(&job, &details, &[shard.clone()]),
            ["worker-1 (pid 11) is there", "worker-2 (pid 22) is there", "settle: 0 → worker-1"]
        );
        assert!(story.go_on(&job, &details, &[shard.clone()]).is_empty(), "nothing is new");
        details.instances.remove(0);
        (shard.is_owner_online, shard.waits_for_failover) = (false, true);
        assert_eq!(
            story.go_on(&job, &details, &[shard.clone()]),
            [
                "worker-1 is gone: its session is over",
                "settle: 0 was not finished and waits to be taken over"
            ]
        );
        shard.waits_for_failover = false;
        shard.last_run = Some(run(10_000, 2, TWO, RunState::Running, 4_000));
        assert_eq!(
            story.go_on(&job, &details, &[shard]),
            ["settle: 0 is taken over by worker-2 from worker-1: attempt 2"]
        );
    }

    #[tokio::test]
    async fn a_run_that_starts_late_makes_up_for_something_and_one_on_time_is_not_worth_a_word() {
        let (job, details, mut shard) = picture().await;
        let mut story = Story::default();
        let mut told = |run: LastRun| {
            shard.last_run = Some(run);
            story.go_on(&job, &details, &[shard.clone()])
        };

        assert!(told(run(10_000, 1, ONE, RunState::Done, 20)).is_empty());
        assert!(told(run(20_000, 1, ONE, RunState::Running, 20)).is_empty());
        let late = told(run(30_000, 1, ONE, RunState::Running, 4_000));
        let failed = told(run(30_000, 1, ONE, RunState::Failed, 5_000));

        assert!(late[0].ends_with(&format!("on {ONE}, 4 s late")), "{late:?}");
        assert_eq!(failed, [format!("settle: 0 failed on {ONE}")]);
    }
}
