//! A job: every property of Java ElasticJob's configuration as a typed field, and a builder.

use std::time::Duration;

use super::{
    duration,
    error::InvalidValue,
    foreign_config::ForeignConfig,
    name::JobName,
    plugins::{Strategy, ThreadPool, TypeName},
    policy::{
        CatchUp, Failover, LeaseLoss, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile,
        Resharding, Retry,
    },
    props::{Props, keys},
    shards::{ItemParameters, ShardCount},
};
use crate::schedule::{Cron, Dst, Schedule, Zone};

/// A job definition: schedule, shards, parameters and failure policies. The defaults are those that Java ElasticJob documents.
///
/// ```
/// use elasticjob::job::{Failover, Job, Misfire};
///
/// let job = Job::named("settle-orders")?
///     .cron("0/5 * * * * ?")?
///     .shards(4)
///     .items("0=Beijing,1=Shanghai")?
///     .failover(Failover::TakeOver)
///     .misfire(Misfire::RunOnce);
/// assert_eq!(job.items.get(1), Some("Shanghai"));
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    pub name: JobName,
    /// A job without a cron expression runs only when it is triggered.
    pub cron: Option<Cron>,
    /// Time zone of `cron`; if unset, the node's default zone.
    pub zone: Option<Zone>,
    pub shards: ShardCount,
    /// The parameter of each shard.
    pub items: ItemParameters,
    /// The parameter of the whole job, passed to every shard.
    pub parameter: String,
    /// Whether running shards are recorded in the registry.
    pub monitor: Monitor,
    /// What happens to a running shard whose instance dies.
    pub failover: Failover,
    /// What happens to a fire that is due while the previous run is still going.
    pub misfire: Misfire,
    /// How far an instance's clock may differ from the registry's.
    pub max_time_diff: MaxTimeDiff,
    /// How often the leader checks that every shard's owner is alive.
    pub reconcile: Reconcile,
    /// The sharding strategy that Java uses; [`Strategy::of`] returns the effective one.
    pub strategy_type: Option<TypeName>,
    /// How many shards run at once; see [`ThreadPool::of`].
    pub thread_pool_type: Option<TypeName>,
    /// The error handler that Java uses; [`Alert::of`](super::Alert::of) returns the effective one.
    pub error_handler_type: Option<TypeName>,
    /// Names of Java listeners. A Java instance that does not know one of them fails to start the job.
    pub listener_types: Vec<String>,
    /// Configuration of other programs.
    pub foreign_config: ForeignConfig,
    pub description: String,
    /// Free properties, including settings that only this library has.
    pub props: Props,
    /// Whether instances start disabled.
    pub disabled: bool,
    /// Which configuration is used if this one and the stored one differ at start.
    pub overwrite: Overwrite,
    /// Stored for compatibility; neither Java nor this library uses it.
    pub label: Option<String>,
    /// When shards are reassigned.
    pub resharding: Resharding,
    /// The key names that the configuration is stored with.
    pub spelling: KeySpelling,
    pub(super) empty_values: EmptyValues,
}

/// The key names that a configuration is stored with. A Java instance rejects a document with an unknown key, so choose the spelling of
/// the oldest version that has to read it. A stored configuration keeps the spelling it was read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeySpelling {
    /// Up to 3.0.4: `jobExecutorServiceHandlerType`.
    UpTo304,
    /// From 3.0.5 on: `jobExecutorThreadPoolSizeProviderType`.
    #[default]
    Since305,
}

/// Which keys were stored with an empty value. That means the same as no key at all; it is remembered only so that a document is written
/// back as it was read. Comparison of jobs therefore ignores it.
#[derive(Debug, Clone, Copy, Default, Eq)]
pub(super) struct EmptyValues {
    pub(super) cron: bool,
    pub(super) zone: bool,
}

impl PartialEq for EmptyValues {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Job {
    /// A job with one shard and no schedule.
    pub fn named(name: &str) -> Result<Self, InvalidValue> {
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
            foreign_config: ForeignConfig::default(),
            description: String::new(),
            props: Props::default(),
            disabled: false,
            overwrite: Overwrite::default(),
            label: None,
            resharding: Resharding::default(),
            spelling: KeySpelling::default(),
            empty_values: EmptyValues::default(),
        }
    }

    /// Sets the schedule, a Quartz cron expression. A job that had none before follows [`Dst::Default`] when the clocks change, unless
    /// [`dst`](Self::dst) sets another rule.
    pub fn cron(mut self, expression: &str) -> Result<Self, InvalidValue> {
        let cron = expression.parse::<Cron>();
        let cron = cron.map_err(|error| {
            let location = error.field.map(|field| format!("{field} {:?} ", error.part));
            let location = location.unwrap_or_default();
            InvalidValue::new("cron", expression, format!("{location}{}", error.problem))
                .with_hint(error.hint)
        })?;
        let before = self.cron.replace(cron);
        // A job that already had a schedule keeps its DST rule, including Quartz's, which a Java document does not store.
        if before.is_none() && self.props.get(keys::DST).is_none() {
            self.props.set(keys::DST, Dst::Default.to_string())?;
        }
        Ok(self)
    }

    /// Sets the time zone: `Europe/Paris`, or `GMT+8:00` if Java instances share the job.
    pub fn zone(mut self, zone: &str) -> Result<Self, InvalidValue> {
        let parsed = zone.parse::<Zone>();
        self.zone = Some(parsed.map_err(|error| {
            InvalidValue::new("time zone", zone, error.problem).with_hint(error.hint)
        })?);
        Ok(self)
    }

    /// Sets what happens when the clocks change.
    #[must_use]
    pub fn dst(self, rule: Dst) -> Self {
        self.with_prop(keys::DST, &rule.to_string())
    }

    /// Sets the number of shards.
    ///
    /// # Panics
    ///
    /// If `count` is zero or above [`ShardCount::MAX`]. Check untrusted numbers with [`ShardCount::try_from`] and set the field instead.
    #[must_use]
    #[track_caller]
    pub fn shards(mut self, count: u32) -> Self {
        match ShardCount::try_from(count) {
            Ok(count) => self.shards = count,
            Err(error) => panic!("{error}"),
        }
        self
    }

    /// Sets the parameter of each shard: `0=Beijing,1=Shanghai`.
    pub fn items(mut self, parameters: &str) -> Result<Self, InvalidValue> {
        self.items = parameters.parse()?;
        Ok(self)
    }

    /// Sets the parameter of the whole job, passed to every shard.
    #[must_use]
    pub fn parameter(mut self, parameter: impl Into<String>) -> Self {
        self.parameter = parameter.into();
        self
    }

    /// Sets whether running shards are recorded in the registry.
    #[must_use]
    pub fn monitor(mut self, monitor: Monitor) -> Self {
        self.monitor = monitor;
        self
    }

    /// Sets what happens to a running shard whose instance dies.
    #[must_use]
    pub fn failover(mut self, failover: Failover) -> Self {
        self.failover = failover;
        self
    }

    /// Sets what happens to a fire that is due while the previous run is still going.
    #[must_use]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Sets which configuration is used if this one and the stored one differ at start.
    #[must_use]
    pub fn overwrite(mut self, overwrite: Overwrite) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets what happens to a running shard whose instance loses its lease.
    #[must_use]
    pub fn on_lease_loss(self, policy: LeaseLoss) -> Self {
        self.with_prop(keys::ON_LEASE_LOSS, &policy.to_string())
    }

    /// Sets how often and when a failed shard is retried.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        self.with_prop(keys::RETRY_MAX_ATTEMPTS, &retry.max_attempts.to_string())
            .with_prop(keys::RETRY_BACKOFF, &retry.backoff.to_string())
    }

    /// Sets what happens to fires that were due while no instance was up.
    #[must_use]
    pub fn catch_up(self, policy: CatchUp) -> Self {
        self.with_prop(keys::CATCH_UP, &policy.to_string())
    }

    /// Sets the time limit of an attempt; a shard that runs longer is cancelled and counts as failed.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with_prop(keys::TIMEOUT, &duration::format(timeout))
    }

    /// Sets the sharding strategy. One that Java does not know is stored in `props`; Java then assigns shards in even blocks.
    #[must_use]
    pub fn strategy(mut self, strategy: &Strategy) -> Self {
        if strategy.is_rust_only() {
            self.strategy_type = None;
            return self.with_prop(keys::STRATEGY, &strategy.to_string());
        }
        self.props.remove(keys::STRATEGY);
        self.strategy_type = Some(strategy.to_string().into());
        self
    }

    /// Sets how many shards of a run an instance runs at once.
    #[must_use]
    pub fn threads(mut self, pool: &ThreadPool) -> Self {
        self.thread_pool_type = Some(pool.to_string().into());
        self
    }

    /// Sets where failures are reported: `LOG`, `IGNORE`, `THROW`, `EMAIL`, `WECHAT`, `DINGTALK`, `WEBHOOK`. Their settings are
    /// properties; see [`Alert`](super::Alert).
    #[must_use]
    pub fn alert(mut self, name: impl Into<TypeName>) -> Self {
        let name = name.into();
        if name.is("WEBHOOK") {
            return self.with_prop(keys::ALERT, name.as_str());
        }
        self.props.remove(keys::ALERT);
        self.error_handler_type = Some(name);
        self
    }

    /// Sets the Java listeners of a job that Java instances share.
    #[must_use]
    pub fn java_listeners<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.listener_types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how far an instance's clock may differ from the registry's.
    #[must_use]
    pub fn max_time_diff(mut self, limit: MaxTimeDiff) -> Self {
        self.max_time_diff = limit;
        self
    }

    /// Sets how often the leader checks that every shard's owner is alive.
    #[must_use]
    pub fn reconcile(mut self, interval: Reconcile) -> Self {
        self.reconcile = interval;
        self
    }

    /// Sets when shards are reassigned.
    #[must_use]
    pub fn resharding(mut self, resharding: Resharding) -> Self {
        self.resharding = resharding;
        self
    }

    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the label, which is stored and otherwise unused.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Makes instances start disabled.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.disabled = true;
        self
    }

    /// Names the Rust handler of this job; a program with another handler for the same job name is then refused.
    #[must_use]
    pub fn handler(self, name: &str) -> Self {
        self.with_prop(keys::HANDLER, name)
    }

    /// Sets a free property. The value of a property in [`keys`] must be valid.
    pub fn prop(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        self.props.set(key, value)?;
        Ok(self)
    }

    /// The schedule, if the job has one; `local` is the zone of jobs that set none.
    pub fn schedule(&self, local: &Zone) -> Option<Schedule> {
        Some(Schedule {
            cron: self.cron.clone()?,
            zone: self.zone.clone().unwrap_or_else(|| local.clone()),
            dst: self.props.policies().dst,
        })
    }

    /// Sets a property whose value was formatted by its own type and is therefore valid.
    fn with_prop(mut self, key: &str, value: &str) -> Self {
        let result = self.props.set(key, value);
        debug_assert_eq!(result, Ok(()), "{key}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_that_java_documents() {
        let job = Job::named("j").unwrap();

        assert_eq!(
            (job.monitor, job.failover, job.misfire, job.overwrite),
            (Monitor::Executions, Failover::Wait, Misfire::RunOnce, Overwrite::StoredWins)
        );
        assert_eq!((job.max_time_diff.get(), job.reconcile.get()), (-1, 10));
        assert!(job.props.is_empty() && job.cron.is_none() && !job.disabled);
    }

    #[test]
    fn rust_schedule_stores_its_dst_rule_and_default_is_quartz() {
        let scheduled = Job::named("j").unwrap().cron("0 0 2 * * ?").unwrap();
        let unset = Job::named("j").unwrap();

        assert_eq!(scheduled.props.get(keys::DST), Some("default"));
        assert_eq!(scheduled.props.policies().dst, Dst::Default);
        assert_eq!(unset.props.policies().dst, Dst::Quartz);
    }

    #[test]
    fn changed_schedule_keeps_the_dst_rule() {
        let document = b"jobName: j\nshardingTotalCount: 1\ncron: 0 0 2 * * ?\n";
        let from_java = Job::read(&"j".parse().unwrap(), document).unwrap();
        let quartz = Job::named("j").unwrap().dst(Dst::Quartz);

        assert!(from_java.cron("0 0 3 * * ?").unwrap().props.is_empty());
        assert_eq!(quartz.cron("0 0 3 * * ?").unwrap().props.policies().dst, Dst::Quartz);
    }

    #[test]
    fn typed_policies_are_stored_as_text() {
        let job = Job::named("j")
            .unwrap()
            .timeout(Duration::from_secs(90))
            .retry(Retry::attempts(3).backoff(Duration::from_secs(2), Duration::from_secs(1)))
            .catch_up(CatchUp::All { window: Duration::from_hours(2) })
            .on_lease_loss(LeaseLoss::FinishFenced)
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
    fn schedule_error_quotes_the_text_once() {
        let job = || Job::named("j").unwrap();

        let cron = job().cron("0 0 24 * * ?").unwrap_err();
        assert_eq!(cron.to_string(), r#"cron "0 0 24 * * ?": hours "24" is out of range"#);
        assert_eq!(cron.hint.as_deref(), Some("hours are 0 to 23"));
        let zone = job().zone("Mars/Olympus").unwrap_err().to_string();
        assert_eq!(zone.matches("Mars/Olympus").count(), 1, "{zone}");
    }

    #[test]
    #[should_panic(expected = "at least one shard")]
    fn zero_shards_panics() {
        let _ = Job::named("j").unwrap().shards(0);
    }
}
