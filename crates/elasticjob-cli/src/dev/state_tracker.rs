//! Turns changes in the state of jobs into lines of the commentary.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::{
    admin::{Instance, JobDetails, LastRun, LedgerState, Shard},
    job::{JobName, RunId},
};
use jiff::SignedDuration;

use super::print::wall_clock;

/// A run that starts later than this after its due time is a misfire or catch-up run.
const LATE: SignedDuration = SignedDuration::from_secs(2);

/// Compares the state of jobs with the previous one and returns a line for each change; does no I/O.
#[derive(Debug, Default)]
pub(super) struct StateTracker {
    /// Names of instances by id, including those that are gone.
    names: BTreeMap<String, String>,
    gone: BTreeSet<String>,
    jobs: BTreeMap<JobName, TrackedJob>,
}

/// The state of one job as last seen.
#[derive(Debug, Default)]
struct TrackedJob {
    members: BTreeSet<String>,
    owners: Vec<String>,
    waiting: BTreeSet<u32>,
    /// Why its configuration is invalid.
    problem: Option<String>,
    runs: BTreeMap<u32, LastRun>,
}

impl StateTracker {
    /// Records the state of a job and returns the lines for its changes.
    pub(super) fn update(
        &mut self,
        job: &JobName,
        details: &JobDetails,
        shards: &[Shard],
    ) -> Vec<String> {
        let mut tracked = self.jobs.remove(job).unwrap_or_default();
        let mut lines = self.members(&mut tracked, &details.instances);
        if tracked.problem != details.configuration.problem {
            tracked.problem.clone_from(&details.configuration.problem);
            lines.push(match &tracked.problem {
                Some(problem) => format!("{job} is invalid: {problem}"),
                None => format!("{job} is valid again"),
            });
        }
        lines.extend(self.runs(job, &mut tracked, shards));
        if !details.is_assigning && details.resharding_since.is_none() {
            lines.extend(self.owners(job, &mut tracked, shards));
        }
        self.jobs.insert(job.clone(), tracked);
        lines
    }

    /// Instances that joined or left; each is reported once, no matter how many jobs it has.
    fn members(&mut self, tracked: &mut TrackedJob, instances: &[Instance]) -> Vec<String> {
        let mut lines = Vec::new();
        for instance in instances {
            if self.names.contains_key(&instance.id) {
                continue;
            }
            let pid = pid(&instance.id);
            let name = instance.labels.get("name").cloned();
            let called = name.clone().unwrap_or_else(|| format!("pid {pid}"));
            lines.push(match name {
                Some(name) => format!("{name} (pid {pid}) joined"),
                None => format!("{called} joined"),
            });
            self.names.insert(instance.id.clone(), called);
        }
        let now: BTreeSet<String> = instances.iter().map(|instance| instance.id.clone()).collect();
        for id in tracked.members.difference(&now) {
            if self.gone.insert(id.clone()) {
                lines.push(format!("{} is gone: its session has ended", self.name(id)));
            }
        }
        tracked.members = now;
        lines
    }

    /// The shard assignment, once every shard has an owner that is online.
    fn owners(&self, job: &JobName, tracked: &mut TrackedJob, shards: &[Shard]) -> Option<String> {
        let owned = |shard: &Shard| shard.owner.clone().filter(|_| shard.is_owner_online);
        let owners: Vec<String> = shards.iter().map(owned).collect::<Option<_>>()?;
        // An owner that joined after the instances were read has caused another event.
        let is_known = owners.iter().all(|owner| self.names.contains_key(owner));
        if owners.is_empty() || owners == tracked.owners || !is_known {
            return None;
        }
        let each: Vec<String> = owners
            .iter()
            .enumerate()
            .map(|(item, owner)| format!("{item} → {}", self.name(owner)))
            .collect();
        tracked.owners = owners;
        Some(format!("{job}: {}", each.join(", ")))
    }

    /// Shards that await failover, were taken over, started late or failed.
    fn runs(&self, job: &JobName, tracked: &mut TrackedJob, shards: &[Shard]) -> Vec<String> {
        let mut lines = Vec::new();
        for shard in shards {
            let item = shard.item;
            if !shard.awaits_failover {
                tracked.waiting.remove(&item);
            } else if tracked.waiting.insert(item) {
                lines.push(format!("{job}: {item} was not finished and awaits failover"));
            }
            let Some(run) = &shard.last_run else { continue };
            let before = tracked.runs.insert(item, run.clone());
            lines
                .extend(self.run(before.as_ref(), run).map(|text| format!("{job}: {item} {text}")));
        }
        lines
    }

    fn run(&self, before: Option<&LastRun>, now: &LastRun) -> Option<String> {
        let before = before?;
        let who = self.name(now.instance.as_deref()?);
        let is_new = (&before.run_id, before.attempt) != (&now.run_id, now.attempt);
        match now.state {
            LedgerState::Running if is_new && now.attempt > 1 => {
                let whose =
                    before.instance.as_deref().filter(|id| Some(*id) != now.instance.as_deref());
                let from = whose.map_or_else(String::new, |id| format!(" from {}", self.name(id)));
                Some(format!("is taken over by {who}{from}: attempt {}", now.attempt))
            }
            LedgerState::Running if is_new => {
                let run: RunId = now.run_id.as_deref()?.parse().ok()?;
                let (due_at, since) = (run.due_at()?, now.since?);
                let late = since.duration_since(due_at);
                (late > LATE).then(|| {
                    let seconds = late.as_secs();
                    format!(
                        "runs on {who} for the fire of {}, {seconds} s late",
                        wall_clock(due_at)
                    )
                })
            }
            LedgerState::Failed if before.state != LedgerState::Failed || is_new => {
                Some(format!("failed on {who}"))
            }
            _ => None,
        }
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.get(id).map_or(id, String::as_str)
    }
}

/// The process id in an instance id.
fn pid(id: &str) -> &str {
    let process = id.rsplit("@-@").next().unwrap_or(id);
    process.split('-').next().unwrap_or(process)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use elasticjob::{admin::Admin, job::Job, registry};

    use super::*;

    /// A job without instances; tests fill in the rest.
    async fn idle_job() -> (JobName, JobDetails, Shard) {
        let registry = registry::connect(&"memory:".parse().unwrap()).await.unwrap();
        let admin = Admin::new(Arc::clone(&registry));
        let job = Job::named("settle").unwrap();
        let name = job.name.clone();
        let plan = admin.plan(elasticjob::admin::Edit::new(job)).await.unwrap();
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

    fn run(millis: i64, attempt: u32, instance: &str, state: LedgerState, late: i64) -> LastRun {
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
    async fn owner_is_named_once_it_has_joined() {
        let (job, mut details, mut shard) = idle_job().await;
        let mut tracker = StateTracker::default();
        (shard.owner, shard.is_owner_online) = (Some(ONE.to_owned()), true);

        // The instances were read a moment before the shards.
        assert!(tracker.update(&job, &details, &[shard.clone()]).is_empty());
        details.instances = vec![instance(ONE, "worker-1")];
        assert_eq!(
            tracker.update(&job, &details, &[shard]),
            ["worker-1 (pid 11) joined", "settle: 0 → worker-1"]
        );
    }

    #[tokio::test]
    async fn lost_instance_is_reported_once_then_the_failover() {
        let (job, mut details, mut shard) = idle_job().await;
        let mut tracker = StateTracker::default();
        details.instances = vec![instance(ONE, "worker-1"), instance(TWO, "worker-2")];
        (shard.owner, shard.is_owner_online) = (Some(ONE.to_owned()), true);
        shard.last_run = Some(run(10_000, 1, ONE, LedgerState::Running, 5));

        assert_eq!(
            tracker.update(&job, &details, &[shard.clone()]),
            ["worker-1 (pid 11) joined", "worker-2 (pid 22) joined", "settle: 0 → worker-1"]
        );
        assert!(tracker.update(&job, &details, &[shard.clone()]).is_empty(), "nothing is new");
        details.instances.remove(0);
        (shard.is_owner_online, shard.awaits_failover) = (false, true);
        assert_eq!(
            tracker.update(&job, &details, &[shard.clone()]),
            [
                "worker-1 is gone: its session has ended",
                "settle: 0 was not finished and awaits failover"
            ]
        );
        shard.awaits_failover = false;
        shard.last_run = Some(run(10_000, 2, TWO, LedgerState::Running, 4_000));
        assert_eq!(
            tracker.update(&job, &details, &[shard]),
            ["settle: 0 is taken over by worker-2 from worker-1: attempt 2"]
        );
    }

    #[tokio::test]
    async fn only_late_and_failed_runs_are_reported() {
        let (job, details, mut shard) = idle_job().await;
        let mut tracker = StateTracker::default();
        let mut update = |run: LastRun| {
            shard.last_run = Some(run);
            tracker.update(&job, &details, &[shard.clone()])
        };

        assert!(update(run(10_000, 1, ONE, LedgerState::Done, 20)).is_empty());
        assert!(update(run(20_000, 1, ONE, LedgerState::Running, 20)).is_empty());
        let late = update(run(30_000, 1, ONE, LedgerState::Running, 4_000));
        let failed = update(run(30_000, 1, ONE, LedgerState::Failed, 5_000));

        assert!(
            late[0].starts_with(&format!("settle: 0 runs on {ONE} for the fire of ")),
            "{late:?}"
        );
        assert!(late[0].ends_with(", 4 s late"), "{late:?}");
        assert_eq!(failed, [format!("settle: 0 failed on {ONE}")]);
    }
}
