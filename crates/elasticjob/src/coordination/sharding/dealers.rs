//! Ways to deal shards that the program brings, by name.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::strategy::{Dealer, Situation};
use crate::job::{Job, Strategy};

/// Ways to deal shards that the program brings, by name. Names are compared as the ancestor compares types: in any case.
#[derive(Debug, Clone, Default)]
pub struct Dealers(BTreeMap<String, Arc<dyn Dealer>>);

impl Dealers {
    /// Brings one.
    pub fn insert(&mut self, name: impl AsRef<str>, dealer: Arc<dyn Dealer>) {
        self.0.insert(name.as_ref().to_uppercase(), dealer);
    }

    /// The owner of shard *i* at index *i*, by the strategy the job names. One that nobody brought, that panics, or that did not give every
    /// shard to a candidate, is replaced by `AVG_ALLOCATION`, with a warning: badly dealt shards still run, undealt ones do not.
    pub fn deal(&self, job: &Job, situation: &Situation<'_>) -> Vec<String> {
        let strategy = Strategy::of(job);
        let Strategy::Named(name) = &strategy else { return strategy.deal(situation) };
        let Some(dealer) = self.0.get(&name.as_str().to_uppercase()) else {
            tracing::warn!(job = %job.name, strategy = name.as_str(), "this instance does not know the strategy: shards are dealt by AVG_ALLOCATION; hint: Node::strategy brings one");
            return Strategy::AvgAllocation.deal(situation);
        };
        // One that panics gave nothing to anybody.
        let plan = catch_unwind(AssertUnwindSafe(|| dealer.deal(situation))).unwrap_or_default();
        let is_candidate =
            |id: &String| situation.candidates.iter().any(|candidate| candidate.id == *id);
        if plan.len() == situation.total as usize && plan.iter().all(is_candidate) {
            return plan;
        }
        tracing::error!(job = %job.name, strategy = name.as_str(), "the strategy did not give every shard to an instance that is there: shards are dealt by AVG_ALLOCATION");
        Strategy::AvgAllocation.deal(situation)
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

    fn dealt(dealers: &Dealers) -> Vec<String> {
        let mut job = Job::named("j").unwrap().shards(2);
        job.strategy_type = Some("mine".into());
        let candidates = ["a@-@1", "b@-@1"].map(Candidate::new);
        let owners = BTreeMap::new();
        let situation =
            Situation { job: "j", total: 2, candidates: &candidates, owners: &owners, now_ms: 0 };
        dealers.deal(&job, &situation)
    }

    #[test]
    fn a_strategy_is_found_by_name_in_any_case() {
        let mut dealers = Dealers::default();
        dealers.insert("MINE", Arc::new(Fixed(vec!["a@-@1", "a@-@1"])));

        assert_eq!(dealt(&dealers), ["a@-@1", "a@-@1"]);
    }

    #[test]
    fn one_that_is_unknown_or_deals_badly_is_replaced() {
        let mut dealers = Dealers::default();
        assert_eq!(dealt(&dealers), ["b@-@1", "a@-@1"]);
        for bad in [vec!["a@-@1"], vec!["a@-@1", "ghost"]] {
            dealers.insert("mine", Arc::new(Fixed(bad)));

            assert_eq!(dealt(&dealers), ["b@-@1", "a@-@1"]);
        }
    }
}
