//! Sharding strategies that the program provides, by name.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::strategy::{ShardingInput, ShardingStrategy};
use crate::job::{Job, Strategy};

/// Sharding strategies that the program provides, by name. As in Java ElasticJob, names are compared without regard to case.
#[derive(Debug, Clone, Default)]
pub struct CustomStrategies(BTreeMap<String, Arc<dyn ShardingStrategy>>);

impl CustomStrategies {
    /// Registers a strategy. It replaces one of the same name.
    pub fn insert(&mut self, name: impl AsRef<str>, strategy: Arc<dyn ShardingStrategy>) {
        self.0.insert(name.as_ref().to_uppercase(), strategy);
    }

    /// The owner of shard *i* at index *i*, by the strategy that the job names. If the strategy is unknown, panics, or does not assign every shard
    /// to a candidate, `AVG_ALLOCATION` replaces it and the problem is logged: badly assigned shards still run, unassigned ones do not.
    pub fn assign(&self, job: &Job, input: &ShardingInput<'_>) -> Vec<String> {
        let strategy = Strategy::of(job);
        let Strategy::Named(name) = &strategy else { return strategy.assign(input) };
        let Some(custom) = self.0.get(&name.as_str().to_uppercase()) else {
            tracing::warn!(job = %job.name, strategy = name.as_str(), hint = "register it with Node::strategy", "unknown sharding strategy, using AVG_ALLOCATION");
            return Strategy::AvgAllocation.assign(input);
        };
        // A strategy that panics has assigned nothing.
        let plan = catch_unwind(AssertUnwindSafe(|| custom.assign(input))).unwrap_or_default();
        let is_candidate =
            |id: &String| input.candidates.iter().any(|candidate| candidate.id == *id);
        if plan.len() == input.total as usize && plan.iter().all(is_candidate) {
            return plan;
        }
        tracing::error!(job = %job.name, strategy = name.as_str(), "sharding strategy did not assign every shard to a candidate, using AVG_ALLOCATION");
        Strategy::AvgAllocation.assign(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::sharding::Candidate;

    #[derive(Debug)]
    struct Fixed(Vec<&'static str>);

    impl ShardingStrategy for Fixed {
        fn assign(&self, _: &ShardingInput<'_>) -> Vec<String> {
            self.0.iter().map(ToString::to_string).collect()
        }
    }

    fn assign(strategies: &CustomStrategies) -> Vec<String> {
        let mut job = Job::named("j").unwrap().shards(2);
        job.strategy_type = Some("mine".into());
        let candidates = ["a@-@1", "b@-@1"].map(Candidate::new);
        let owners = BTreeMap::new();
        let input = ShardingInput {
            job: "j",
            total: 2,
            candidates: &candidates,
            owners: &owners,
            now_ms: 0,
        };
        strategies.assign(&job, &input)
    }

    #[test]
    fn strategy_name_ignores_case() {
        let mut strategies = CustomStrategies::default();
        strategies.insert("MINE", Arc::new(Fixed(vec!["a@-@1", "a@-@1"])));

        assert_eq!(assign(&strategies), ["a@-@1", "a@-@1"]);
    }

    #[test]
    fn unknown_or_invalid_strategy_is_replaced_by_the_default() {
        let mut strategies = CustomStrategies::default();
        assert_eq!(assign(&strategies), ["b@-@1", "a@-@1"]);
        for bad in [vec!["a@-@1"], vec!["a@-@1", "ghost"]] {
            strategies.insert("mine", Arc::new(Fixed(bad)));

            assert_eq!(assign(&strategies), ["b@-@1", "a@-@1"]);
        }
    }
}
