//! Sharding strategies that the program provides, by name.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::strategy::{Dealer, Situation};
use crate::job::{Job, Strategy};

/// Sharding strategies that the program provides, by name. As in Java ElasticJob, names are compared without regard to case.
#[derive(Debug, Clone, Default)]
pub struct Dealers(BTreeMap<String, Arc<dyn Dealer>>);

impl Dealers {
    /// Registers a strategy. It replaces one of the same name.
    pub fn insert(&mut self, name: impl AsRef<str>, strategy: Arc<dyn Dealer>) {
        self.0.insert(name.as_ref().to_uppercase(), strategy);
    }

    /// The owner of shard *i* at index *i*, by the strategy that the job names. If the strategy is unknown, panics, or does not assign every shard
    /// to a candidate, `AVG_ALLOCATION` replaces it and the problem is logged: badly assigned shards still run, unassigned ones do not.
    pub fn deal(&self, job: &Job, input: &Situation<'_>) -> Vec<String> {
        let strategy = Strategy::of(job);
        let Strategy::Named(name) = &strategy else { return strategy.deal(input) };
        let Some(custom) = self.0.get(&name.as_str().to_uppercase()) else {
            tracing::warn!(job = %job.name, strategy = name.as_str(), "unknown sharding strategy, using AVG_ALLOCATION; hint: register it with Node::strategy");
            return Strategy::AvgAllocation.deal(input);
        };
        // A strategy that panics has assigned nothing.
        let plan = catch_unwind(AssertUnwindSafe(|| custom.deal(input))).unwrap_or_default();
        let is_candidate =
            |id: &String| input.candidates.iter().any(|candidate| candidate.id == *id);
        if plan.len() == input.total as usize && plan.iter().all(is_candidate) {
            return plan;
        }
        tracing::error!(job = %job.name, strategy = name.as_str(), "sharding strategy did not assign every shard to a candidate, using AVG_ALLOCATION");
        Strategy::AvgAllocation.deal(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::sharding::Candidate;

    #[derive(Debug)]
    struct Fixed(Vec<&'static str>);

    impl Dealer for Fixed {
        fn deal(&self, _: &Situation<'_>) -> Vec<String> {
            self.0.iter().map(ToString::to_string).collect()
        }
    }

    fn assign(strategies: &Dealers) -> Vec<String> {
        let mut job = Job::named("j").unwrap().shards(2);
        job.strategy_type = Some("mine".into());
        let candidates = ["a@-@1", "b@-@1"].map(Candidate::new);
        let owners = BTreeMap::new();
        let input =
            Situation { job: "j", total: 2, candidates: &candidates, owners: &owners, now_ms: 0 };
        strategies.deal(&job, &input)
    }

    #[test]
    fn strategy_name_ignores_case() {
        let mut strategies = Dealers::default();
        strategies.insert("MINE", Arc::new(Fixed(vec!["a@-@1", "a@-@1"])));

        assert_eq!(assign(&strategies), ["a@-@1", "a@-@1"]);
    }

    #[test]
    fn unknown_or_invalid_strategy_is_replaced_by_the_default() {
        let mut strategies = Dealers::default();
        assert_eq!(assign(&strategies), ["b@-@1", "a@-@1"]);
        for bad in [vec!["a@-@1"], vec!["a@-@1", "ghost"]] {
            strategies.insert("mine", Arc::new(Fixed(bad)));

            assert_eq!(assign(&strategies), ["b@-@1", "a@-@1"]);
        }
    }
}
