//! Things chosen by name: how shards are dealt, how many run at once.

use std::fmt;

use super::job::Job;

/// The name of something pluggable, as it was written. The ancestor compares such names without regard to case and takes an
/// empty one for the default.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TypeName(String);

impl TypeName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it means this.
    pub fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name)
    }
}

impl<T: Into<String>> From<T> for TypeName {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// How shards are dealt to instances: `jobShardingStrategyType`, or `elasticjob.strategy` for those only we know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// In even blocks, in the order of the instances (`AVG_ALLOCATION`).
    #[default]
    AvgAllocation,
    /// As above; the job's name says from which end (`ODEVITY`).
    Odevity,
    /// As above; the job's name says with whom it starts (`ROUND_ROBIN`).
    RoundRobin,
    /// For one shard: to the next server each time (`SINGLE_SHARDING_BALANCE`).
    SingleShardingBalance,
    /// So that as few shards as possible move when instances come and go (`STICKY`; ours).
    Sticky,
    /// In proportion to the `weight` label of each instance (`WEIGHTED`; ours).
    Weighted,
    /// One that the program brings along.
    Named(TypeName),
}

impl Strategy {
    const KNOWN: [(&str, Strategy); 6] = [
        ("AVG_ALLOCATION", Self::AvgAllocation),
        ("ODEVITY", Self::Odevity),
        ("ROUND_ROBIN", Self::RoundRobin),
        ("SINGLE_SHARDING_BALANCE", Self::SingleShardingBalance),
        ("STICKY", Self::Sticky),
        ("WEIGHTED", Self::Weighted),
    ];

    /// The one this job is dealt by.
    pub fn of(job: &Job) -> Self {
        job.props
            .policies()
            .strategy
            .clone()
            .unwrap_or_else(|| Self::named(job.strategy_type.as_ref()))
    }

    pub(super) fn named(name: Option<&TypeName>) -> Self {
        match name {
            None => Self::default(),
            Some(name) if name.0.is_empty() => Self::default(),
            Some(name) => Self::KNOWN
                .into_iter()
                .find(|(known, _)| name.is(known))
                .map_or_else(|| Self::Named(name.clone()), |(_, strategy)| strategy),
        }
    }

    /// Whether the ancestor has never heard of it, so that it must not be told.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Sticky | Self::Weighted)
    }
}

/// By its name, as [`jobShardingStrategyType`](Strategy) has it; one that nobody knows is the program's own.
impl From<&str> for Strategy {
    fn from(name: &str) -> Self {
        Self::named(Some(&name.into()))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => name.fmt(f),
            known => Self::KNOWN
                .into_iter()
                .find(|(_, strategy)| strategy == known)
                .map_or(Ok(()), |(name, _)| f.write_str(name)),
        }
    }
}

/// How many shards of one run an instance runs at once: `jobExecutorThreadPoolSizeProviderType`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ThreadPool {
    /// Two for each processor (`CPU`).
    #[default]
    Cpu,
    /// One after the other (`SINGLE_THREAD`).
    SingleThread,
    /// One that only a Java program knows; here it counts as [`ThreadPool::Cpu`].
    Named(TypeName),
}

impl ThreadPool {
    /// The one of this job.
    pub fn of(job: &Job) -> Self {
        job.thread_pool_type.as_ref().map_or(Self::Cpu, |name| Self::from(name.as_str()))
    }

    /// How many shards run at once on a machine with so many processors.
    pub fn limit(&self, processors: usize) -> usize {
        match self {
            Self::SingleThread => 1,
            Self::Cpu | Self::Named(_) => (2 * processors).max(1),
        }
    }
}

/// By its name, as [`jobExecutorThreadPoolSizeProviderType`](ThreadPool) has it.
impl From<&str> for ThreadPool {
    fn from(name: &str) -> Self {
        match TypeName::from(name) {
            name if name.is("SINGLE_THREAD") => Self::SingleThread,
            name if name.0.is_empty() || name.is("CPU") => Self::Cpu,
            name => Self::Named(name),
        }
    }
}

impl fmt::Display for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("CPU"),
            Self::SingleThread => f.write_str("SINGLE_THREAD"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_same_in_any_case_and_an_empty_one_the_default() {
        let strategy = |name: &str| Strategy::named(Some(&name.into()));

        assert_eq!(strategy("Odevity"), Strategy::Odevity);
        assert_eq!(strategy(""), Strategy::AvgAllocation);
        assert_eq!(strategy("mine"), Strategy::Named("mine".into()));
        assert_eq!(Strategy::named(None), Strategy::AvgAllocation);
        for (name, known) in Strategy::KNOWN {
            assert_eq!(known.to_string(), name);
        }
    }

    #[test]
    fn a_pool_is_a_limit() {
        let mut job = Job::named("j").unwrap();
        assert_eq!(ThreadPool::of(&job).limit(4), 8);

        job.thread_pool_type = Some("single_thread".into());
        assert_eq!(ThreadPool::of(&job).limit(4), 1);
    }
}
