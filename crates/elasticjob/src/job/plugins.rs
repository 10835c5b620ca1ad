//! Settings chosen by type name: sharding strategy and thread pool.

use std::fmt;

use super::job::Job;

/// The type name of a pluggable component, as it was written. Java ElasticJob compares such names without regard to case and treats an
/// empty name as the default.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TypeName(String);

impl TypeName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares without regard to case.
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

/// How shards are assigned to instances: `jobShardingStrategyType`, or `elasticjob.strategy` for strategies that Java does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Even blocks, in the order of the instances (`AVG_ALLOCATION`).
    #[default]
    AvgAllocation,
    /// Even blocks; the job name's hash decides whether the order is reversed (`ODEVITY`).
    Odevity,
    /// Even blocks; the job name's hash decides which instance comes first (`ROUND_ROBIN`).
    RoundRobin,
    /// For jobs with one shard: the next server for each run (`SINGLE_SHARDING_BALANCE`).
    SingleShardingBalance,
    /// Moves as few shards as possible when instances join or leave (`STICKY`; not in Java).
    Sticky,
    /// In proportion to the `weight` label of each instance (`WEIGHTED`; not in Java).
    Weighted,
    /// A strategy that the program registers.
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

    /// The effective strategy of a job.
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

    /// Whether Java does not know it, so that it must not be stored in `jobShardingStrategyType`.
    pub(super) fn is_rust_only(&self) -> bool {
        matches!(self, Self::Sticky | Self::Weighted)
    }
}

/// From its name in `jobShardingStrategyType`; an unknown name is a strategy that the program registers.
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
    /// Two shards for each processor (`CPU`).
    #[default]
    Cpu,
    /// One shard after the other (`SINGLE_THREAD`).
    SingleThread,
    /// An executor that the program registers ([`Node::executor`](crate::Node::executor)). A name that it does not know, such as one of a Java
    /// program, means [`ThreadPool::Cpu`].
    Named(TypeName),
}

impl ThreadPool {
    /// The thread pool of a job.
    pub fn of(job: &Job) -> Self {
        job.thread_pool_type.as_ref().map_or(Self::Cpu, |name| Self::from(name.as_str()))
    }

    /// How many shards run at once on a machine with this many processors.
    pub fn limit(&self, processors: usize) -> usize {
        match self {
            Self::SingleThread => 1,
            Self::Cpu | Self::Named(_) => (2 * processors).max(1),
        }
    }
}

/// From its name in `jobExecutorThreadPoolSizeProviderType`.
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
    fn strategy_name_ignores_case_and_empty_means_default() {
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
    fn thread_pool_limits_concurrent_shards() {
        let mut job = Job::named("j").unwrap();
        assert_eq!(ThreadPool::of(&job).limit(4), 8);

        job.thread_pool_type = Some("single_thread".into());
        assert_eq!(ThreadPool::of(&job).limit(4), 1);
    }
}
