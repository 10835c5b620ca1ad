//! A job: every property of the ancestor's configuration as a type, and how to say what one wants.

use std::time::Duration;

use super::{
    duration,
    error::Invalid,
    extra::Extra,
    kinds::{Strategy, ThreadPool, TypeName},
    name::JobName,
    policy::{
        CatchUp, Failover, LeaseLoss, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile,
        Resharding, Retry,
    },
    props::{Props, keys},
    shards::{ItemParameters, ShardCount},
};
use crate::schedule::{Cron, Dst, Schedule, Zone};

/// What is to be done, when, in how many parts, and what happens if something goes wrong. The defaults are the ancestor's
/// documented ones.
///
/// ```
/// use elasticjob::job::{Failover, Job, Misfire};
///
/// let job = Job::named("settle-orders")?
///     .cron("0/5 * * * * ?")?
///     .shards(4)
///     .items("0=Beijing,1=Shanghai")?
///     .if_node_dies(Failover::TakeOver)
///     .if_late(Misfire::RunOnce);
/// assert_eq!(job.items.get(1), Some("Shanghai"));
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// What it is called.
    pub name: JobName,
    /// When it is due; a job without runs only when somebody asks for it.
    pub cron: Option<Cron>,
    /// Where the clock hangs that the cron means; without, the machine's own.
    pub zone: Option<Zone>,
    /// How many shards it has.
    pub shards: ShardCount,
    /// What each shard is given.
    pub items: ItemParameters,
    /// What every shard is given.
    pub parameter: String,
    /// What the registry is told about running shards.
    pub monitor: Monitor,
    /// If the node that runs a shard dies.
    pub failover: Failover,
    /// If it is due while its last run is not over.
    pub misfire: Misfire,
    /// How far a node's clock may be from the registry's.
    pub max_time_diff: MaxTimeDiff,
    /// How often the leader looks whether every shard's owner is still there.
    pub reconcile: Reconcile,
    /// How shards are dealt, as Java sees it; [`Strategy::of`] is what counts.
    pub strategy_type: Option<TypeName>,
    /// How many shards run at once; see [`ThreadPool::of`].
    pub thread_pool_type: Option<TypeName>,
    /// Who is told about failures, as Java sees it; [`Alert::of`](super::Alert::of) is what counts.
    pub error_handler_type: Option<TypeName>,
    /// Java listeners, by name. A Java instance stops at one it does not know.
    pub listener_types: Vec<String>,
    /// Blocks that belong to somebody else.
    pub extra: Extra,
    /// For people.
    pub description: String,
    /// Everything else.
    pub props: Props,
    /// Whether instances start disabled.
    pub disabled: bool,
    /// If this and the stored configuration differ at start.
    pub overwrite: Overwrite,
    /// Not used by anybody.
    pub label: Option<String>,
    /// When shards are dealt again.
    pub resharding: Resharding,
    /// In whose words it is stored.
    pub spelling: Spelling,
    /// Keys whose stored text was empty.
    pub(super) blank: Blank,
}

/// In whose words a configuration is stored. A Java instance stops at a key it does not know, so this is for the oldest one that has to
/// read it; a stored configuration keeps the words it was read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// Up to 3.0.4: `jobExecutorServiceHandlerType`.
    UpTo304,
    /// From 3.0.5 on: `jobExecutorThreadPoolSizeProviderType`.
    #[default]
    Since305,
}

/// Keys whose stored text was empty, which means the same as no key at all. Remembered for one purpose: a document is written as it
/// was read. So it does not count when two jobs are compared.
#[derive(Debug, Clone, Copy, Default, Eq)]
pub(super) struct Blank {
    pub(super) cron: bool,
    pub(super) zone: bool,
}

impl PartialEq for Blank {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Job {
    /// A job with one shard that runs when somebody asks for it.
    pub fn named(name: &str) -> Result<Self, Invalid> {
        Ok(Self::new(name.parse()?))
    }

    pub(super) fn new(name: JobName) -> Self {
        Self {
            name,
            cron: None,
            zone: None,
            shards: ShardCount::ONE,
            items: ItemParameters::default(),
            parameter: String::new(),
            monitor: Monitor::default(),
            failover: Failover::default(),
            misfire: Misfire::default(),
            max_time_diff: MaxTimeDiff::default(),
            reconcile: Reconcile::default(),
            strategy_type: None,
            thread_pool_type: None,
            error_handler_type: None,
            listener_types: Vec::new(),
            extra: Extra::default(),
            description: String::new(),
            props: Props::default(),
            disabled: false,
            overwrite: Overwrite::default(),
            label: None,
            resharding: Resharding::default(),
            spelling: Spelling::default(),
            blank: Blank::default(),
        }
    }

    /// Due by this expression, in Quartz's words. When the clocks change, nothing falls silent and nothing runs twice, unless
    /// [`dst`](Self::dst) says otherwise.
    pub fn cron(mut self, expression: &str) -> Result<Self, Invalid> {
        let cron = expression.parse::<Cron>();
        let cron = cron.map_err(|error| {
            let place = error.field.map(|field| format!("{field} {:?} ", error.part));
            let place = place.unwrap_or_default();
            Invalid::new(
                "cron",
                expression,
                format!("{place}{}; hint: {}", error.problem, error.hint),
            )
        })?;
        let before = self.cron.replace(cron);
        // A job that had a schedule keeps its rule, also the one that Java does not spell out.
        if before.is_none() && self.props.get(keys::DST).is_none() {
            self.props.set(keys::DST, Dst::Default.to_string())?;
        }
        Ok(self)
    }

    /// By the clock of this zone: `Europe/Paris`, or `GMT+8:00` where Java instances have to understand it.
    pub fn zone(mut self, zone: &str) -> Result<Self, Invalid> {
        let parsed = zone.parse::<Zone>();
        self.zone = Some(parsed.map_err(|error| {
            Invalid::new("time zone", zone, format!("{}; hint: {}", error.problem, error.hint))
        })?);
        Ok(self)
    }

    /// What happens when the clocks change.
    #[must_use]
    pub fn dst(self, rule: Dst) -> Self {
        self.with(keys::DST, &rule.to_string())
    }

    /// Split into this many shards.
    ///
    /// # Panics
    ///
    /// If there are none. A number that comes from outside is a [`ShardCount`] first.
    #[must_use]
    #[track_caller]
    pub fn shards(mut self, count: u32) -> Self {
        match ShardCount::try_from(count) {
            Ok(count) => self.shards = count,
            Err(error) => panic!("{error}"),
        }
        self
    }

    /// What each shard is given: `0=Beijing,1=Shanghai`.
    pub fn items(mut self, parameters: &str) -> Result<Self, Invalid> {
        self.items = parameters.parse()?;
        Ok(self)
    }

    /// What every shard is given.
    #[must_use]
    pub fn parameter(mut self, parameter: impl Into<String>) -> Self {
        self.parameter = parameter.into();
        self
    }

    /// What the registry is told about running shards.
    #[must_use]
    pub fn monitor(mut self, monitor: Monitor) -> Self {
        self.monitor = monitor;
        self
    }

    /// If the node that runs a shard dies.
    #[must_use]
    pub fn if_node_dies(mut self, failover: Failover) -> Self {
        self.failover = failover;
        self
    }

    /// If it is due while its last run is not over.
    #[must_use]
    pub fn if_late(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// If this and the stored configuration differ at start.
    #[must_use]
    pub fn if_stored_differs(mut self, overwrite: Overwrite) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// If a running shard's lease is lost.
    #[must_use]
    pub fn if_lease_is_lost(self, policy: LeaseLoss) -> Self {
        self.with(keys::ON_LEASE_LOSS, &policy.to_string())
    }

    /// If a shard fails.
    #[must_use]
    pub fn if_shard_fails(self, retry: Retry) -> Self {
        self.with(keys::RETRY_MAX_ATTEMPTS, &retry.max_attempts.to_string())
            .with(keys::RETRY_BACKOFF, &retry.backoff.to_string())
    }

    /// If nobody was there when it was due.
    #[must_use]
    pub fn if_nobody_was_there(self, policy: CatchUp) -> Self {
        self.with(keys::CATCH_UP, &policy.to_string())
    }

    /// A shard that runs longer is cancelled and has failed.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(keys::TIMEOUT, &duration::text(timeout))
    }

    /// How shards are dealt. Java is told only what it knows; among Java instances ours are dealt in even blocks.
    #[must_use]
    pub fn strategy(mut self, strategy: &Strategy) -> Self {
        if strategy.is_ours() {
            self.strategy_type = None;
            return self.with(keys::STRATEGY, &strategy.to_string());
        }
        self.props.remove(keys::STRATEGY);
        self.strategy_type = Some(strategy.to_string().into());
        self
    }

    /// How many shards of a run an instance runs at once.
    #[must_use]
    pub fn threads(mut self, pool: &ThreadPool) -> Self {
        self.thread_pool_type = Some(pool.to_string().into());
        self
    }

    /// Who is told about failures: `LOG`, `IGNORE`, `THROW`, `EMAIL`, `WECHAT`, `DINGTALK`, `WEBHOOK`. What it has to know stands in
    /// the properties; see [`Alert`](super::Alert).
    #[must_use]
    pub fn alert(mut self, name: impl Into<TypeName>) -> Self {
        let name = name.into();
        if name.is("WEBHOOK") {
            return self.with(keys::ALERT, name.as_str());
        }
        self.props.remove(keys::ALERT);
        self.error_handler_type = Some(name);
        self
    }

    /// The Java listeners of a job shared with Java.
    #[must_use]
    pub fn java_listeners<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.listener_types = types.into_iter().map(Into::into).collect();
        self
    }

    /// How far a node's clock may be from the registry's.
    #[must_use]
    pub fn max_time_diff(mut self, limit: MaxTimeDiff) -> Self {
        self.max_time_diff = limit;
        self
    }

    /// How often the leader looks whether every shard's owner is still there.
    #[must_use]
    pub fn reconcile(mut self, interval: Reconcile) -> Self {
        self.reconcile = interval;
        self
    }

    /// When shards are dealt again.
    #[must_use]
    pub fn resharding(mut self, resharding: Resharding) -> Self {
        self.resharding = resharding;
        self
    }

    /// For people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Carried along for whoever asks.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Instances start disabled.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.disabled = true;
        self
    }

    /// Which Rust handler it belongs to: another one with this job's name is refused.
    #[must_use]
    pub fn handler(self, name: &str) -> Self {
        self.with(keys::HANDLER, name)
    }

    /// Any other property. One of [ours](keys) has to have a value that can be read.
    pub fn prop(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, Invalid> {
        self.props.set(key, value)?;
        Ok(self)
    }

    /// When it is due, if it has a schedule; `local` is the clock of jobs that name no zone.
    pub fn schedule(&self, local: &Zone) -> Option<Schedule> {
        Some(Schedule {
            cron: self.cron.clone()?,
            zone: self.zone.clone().unwrap_or_else(|| local.clone()),
            dst: self.props.policies().dst,
        })
    }

    /// A property whose value was written by its own type, so that it can be read.
    fn with(mut self, key: &str, value: &str) -> Self {
        let result = self.props.set(key, value);
        debug_assert_eq!(result, Ok(()), "{key}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let job = Job::named("j").unwrap();

        assert_eq!(
            (job.monitor, job.failover, job.misfire, job.overwrite),
            (Monitor::Executions, Failover::Wait, Misfire::RunOnce, Overwrite::StoredWins)
        );
        assert_eq!((job.max_time_diff.get(), job.reconcile.get()), (-1, 10));
        assert!(job.props.is_empty() && job.cron.is_none() && !job.disabled);
    }

    #[test]
    fn what_we_schedule_says_so_and_what_java_scheduled_follows_quartz() {
        let ours = Job::named("j").unwrap().cron("0 0 2 * * ?").unwrap();
        let theirs = Job::named("j").unwrap();

        assert_eq!(ours.props.get(keys::DST), Some("default"));
        assert_eq!(ours.props.policies().dst, Dst::Default);
        assert_eq!(theirs.props.policies().dst, Dst::Quartz);
    }

    #[test]
    fn a_job_that_gets_another_schedule_keeps_its_rule_for_changing_clocks() {
        let document = b"jobName: j\nshardingTotalCount: 1\ncron: 0 0 2 * * ?\n";
        let javas = Job::read(&"j".parse().unwrap(), document).unwrap();
        let quartz = Job::named("j").unwrap().dst(Dst::Quartz);

        assert!(javas.cron("0 0 3 * * ?").unwrap().props.is_empty());
        assert_eq!(quartz.cron("0 0 3 * * ?").unwrap().props.policies().dst, Dst::Quartz);
    }

    #[test]
    fn policies_are_said_in_types_and_stored_as_text() {
        let job = Job::named("j")
            .unwrap()
            .timeout(Duration::from_secs(90))
            .if_shard_fails(
                Retry::attempts(3).backoff(Duration::from_secs(2), Duration::from_secs(1)),
            )
            .if_nobody_was_there(CatchUp::All { window: Duration::from_hours(2) })
            .if_lease_is_lost(LeaseLoss::FinishFenced)
            .strategy(&Strategy::Sticky);

        assert_eq!(
            job.props.iter().collect::<Vec<_>>(),
            [
                ("elasticjob.timeout", "90s"),
                ("elasticjob.retry.max.attempts", "3"),
                ("elasticjob.retry.backoff", "2s"),
                ("elasticjob.catch.up", "all:2h"),
                ("elasticjob.on.lease.loss", "finish-fenced"),
                ("elasticjob.strategy", "STICKY"),
            ]
        );
        assert_eq!(Strategy::of(&job), Strategy::Sticky);
        assert_eq!(Strategy::of(&job.strategy(&Strategy::Odevity)), Strategy::Odevity);
    }

    #[test]
    fn a_schedule_that_is_wrong_is_told_once() {
        let job = || Job::named("j").unwrap();

        assert_eq!(
            job().cron("0 0 24 * * ?").unwrap_err().to_string(),
            r#"cron "0 0 24 * * ?": hours "24" is out of range; hint: hours are 0 to 23"#
        );
        let zone = job().zone("Mars/Olympus").unwrap_err().to_string();
        assert_eq!(zone.matches("Mars/Olympus").count(), 1, "{zone}");
    }

    #[test]
    #[should_panic(expected = "at least one shard")]
    fn no_shards_at_all_is_a_mistake_in_the_program() {
        let _ = Job::named("j").unwrap().shards(0);
    }
}
