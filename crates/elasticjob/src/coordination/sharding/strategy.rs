//! Who gets which shard: the ancestor's strategies to the letter, and two of our own.
//!
//! A strategy is a pure function of what the leader saw, so every node that saw the same decides the same. The ancestor's are
//! all `AVG_ALLOCATION` over the instances in some order, and the order starts from *descending* ids, compared as Java compares
//! strings.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use crate::job::{Strategy, server_of};

/// What a strategy decides from.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// The job.
    pub job: &'a str,
    /// How many shards there are.
    pub total: u32,
    /// Who can take some, in any order.
    pub candidates: &'a [Candidate],
    /// Who has which shard now; shards without an owner are missing. Only `STICKY` looks at it.
    pub owners: &'a BTreeMap<u32, String>,
    /// The registry's clock in milliseconds since 1970. Only `SINGLE_SHARDING_BALANCE` looks at it.
    pub now_ms: i64,
}

/// An instance that can take shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: String,
    /// Its share compared with others, one unless its labels say otherwise.
    pub weight: u32,
}

impl Candidate {
    /// An instance with the usual weight.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), weight: 1 }
    }

    /// The address in front of the id's mark.
    fn address(&self) -> &str {
        server_of(&self.id)
    }
}

/// A way to decide who gets which shard. Programs can bring their own, by name.
pub trait Dealer: fmt::Debug + Send + Sync {
    /// The owner of shard *i* at index *i*. Called with at least one candidate; must return `total` ids of candidates.
    fn deal(&self, situation: &Situation<'_>) -> Vec<String>;
}

/// The strategies that come with the library. One that only the program knows is for the program to resolve; here it is dealt
/// as the ancestor deals what it does not know.
impl Dealer for Strategy {
    fn deal(&self, situation: &Situation<'_>) -> Vec<String> {
        let mut order: Vec<&Candidate> = situation.candidates.iter().collect();
        order.sort_by_cached_key(|candidate| {
            Reverse(candidate.id.encode_utf16().collect::<Vec<_>>())
        });
        if order.is_empty() {
            return Vec::new();
        }
        let hash = java_hash(situation.job);
        match self {
            Strategy::Odevity => {
                if hash % 2 == 0 {
                    order.reverse();
                }
            }
            Strategy::RoundRobin => rotate(&mut order, hash),
            Strategy::SingleShardingBalance => {
                rotate(&mut order, hash.wrapping_add(situation.now_ms as i32));
            }
            Strategy::Sticky => return sticky(situation, &order),
            Strategy::Weighted => return weighted(situation.total, &order),
            Strategy::AvgAllocation | Strategy::Named(_) => {}
        }
        average(situation.total, &order)
    }
}

/// Java's `String.hashCode`.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// To the left, by the hash's absolute value. For the one hash that has none Java fails; the smallest number's own distance
/// from zero is what was meant.
fn rotate(order: &mut [&Candidate], hash: i32) {
    let offset = hash.unsigned_abs() as usize % order.len();
    order.rotate_left(offset);
}

fn average(total: u32, order: &[&Candidate]) -> Vec<String> {
    let (total, count) = (total as usize, order.len());
    let each = total / count;
    (0..total)
        .map(|shard| if shard < each * count { shard / each } else { shard - each * count })
        .map(|instance| order[instance].id.clone())
        .collect()
}

/// Everybody keeps what they have up to their fair share; what is left goes to whoever has least.
fn sticky(situation: &Situation<'_>, order: &[&Candidate]) -> Vec<String> {
    let kept_by = successors(situation, order);
    let mut held: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
    for (shard, owner) in situation.owners.range(..situation.total) {
        if let Some(instance) = kept_by.get(owner.as_str()) {
            held[*instance].push(*shard);
        }
    }
    let (total, count) = (situation.total as usize, order.len());
    let (each, mut one_more) = (total / count, total % count);
    // Those who hold most get the larger shares, so that the fewest shards have to move.
    let mut by_holding: Vec<usize> = (0..count).collect();
    by_holding.sort_by_key(|instance| Reverse(held[*instance].len()));
    let mut share = vec![each; count];
    for instance in &by_holding {
        if one_more > 0 {
            share[*instance] += 1;
            one_more -= 1;
        }
        held[*instance].truncate(share[*instance]);
    }
    let mut plan: Vec<Option<usize>> = vec![None; total];
    for (instance, shards) in held.iter().enumerate() {
        for shard in shards {
            plan[*shard as usize] = Some(instance);
        }
    }
    let mut room = (0..count).flat_map(|instance| {
        std::iter::repeat_n(instance, share[instance].saturating_sub(held[instance].len()))
    });
    plan.into_iter()
        .map(|owner| owner.or_else(|| room.next()).unwrap_or(0))
        .map(|instance| order[instance].id.clone())
        .collect()
}

/// For each former owner the instance that carries on: itself, or one at its address that owned nothing before.
fn successors<'a>(situation: &'a Situation<'_>, order: &[&Candidate]) -> BTreeMap<&'a str, usize> {
    let former: std::collections::BTreeSet<&str> =
        situation.owners.range(..situation.total).map(|(_, owner)| owner.as_str()).collect();
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in &former {
        if let Some(instance) = order.iter().position(|candidate| candidate.id == *owner) {
            found.insert(owner, instance);
        }
    }
    for owner in &former {
        if found.contains_key(owner) {
            continue;
        }
        let heir = (0..order.len()).find(|instance| {
            order[*instance].address() == server_of(owner)
                && !found.values().any(|taken| taken == instance)
        });
        if let Some(instance) = heir {
            found.insert(owner, instance);
        }
    }
    found
}

/// Largest remainder: whole shares first, then one more to those who were cut short most.
fn weighted(total: u32, order: &[&Candidate]) -> Vec<String> {
    let weights: Vec<u64> = order.iter().map(|candidate| u64::from(candidate.weight)).collect();
    let sum: u64 = weights.iter().sum();
    if sum == 0 {
        return average(total, order);
    }
    let mut shares: Vec<u64> =
        weights.iter().map(|weight| u64::from(total) * weight / sum).collect();
    let mut by_remainder: Vec<usize> = (0..order.len()).collect();
    by_remainder.sort_by_key(|instance| Reverse(u64::from(total) * weights[*instance] % sum));
    let left = u64::from(total) - shares.iter().sum::<u64>();
    for instance in by_remainder.into_iter().take(left as usize) {
        shares[instance] += 1;
    }
    order
        .iter()
        .zip(shares)
        .flat_map(|(candidate, share)| std::iter::repeat_n(candidate.id.clone(), share as usize))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    // By name, because proptest has strategies of its own.
    use crate::job::Strategy;

    const ALL: [Strategy; 6] = [
        Strategy::AvgAllocation,
        Strategy::Odevity,
        Strategy::RoundRobin,
        Strategy::SingleShardingBalance,
        Strategy::Sticky,
        Strategy::Weighted,
    ];

    fn plan(
        strategy: &Strategy,
        total: u32,
        ids: &[String],
        owners: &BTreeMap<u32, String>,
    ) -> Vec<String> {
        let candidates: Vec<Candidate> = ids.iter().map(Candidate::new).collect();
        strategy.deal(&Situation { job: "job", total, candidates: &candidates, owners, now_ms: 0 })
    }

    fn owners(plan: &[String]) -> BTreeMap<u32, String> {
        (0..).zip(plan.iter().cloned()).collect()
    }

    fn instance(host: u32) -> String {
        format!("10.0.0.{host}@-@{}", 100 + host)
    }

    fn moves(before: &[String], after: &[String]) -> usize {
        before.iter().zip(after).filter(|(before, after)| before != after).count()
    }

    #[test]
    fn the_one_hash_without_an_absolute_value_still_shards() {
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        let candidates: Vec<Candidate> =
            (1..=3).map(|host| Candidate::new(instance(host))).collect();

        let plan = Strategy::RoundRobin.deal(&Situation {
            job: "polygenelubricants",
            total: 3,
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: 0,
        });

        assert_eq!(plan.len(), 3);
    }

    #[test]
    fn a_restarted_instance_gets_its_shards_back_by_address() {
        let before =
            plan(&Strategy::Sticky, 6, &[instance(1), instance(2), instance(3)], &BTreeMap::new());
        let restarted = "10.0.0.2@-@999".to_owned();

        let after = plan(
            &Strategy::Sticky,
            6,
            &[instance(1), restarted.clone(), instance(3)],
            &owners(&before),
        );

        let renamed: Vec<String> = before
            .iter()
            .map(|id| if *id == instance(2) { restarted.clone() } else { id.clone() })
            .collect();
        assert_eq!(after, renamed);
    }

    #[test]
    fn weights_are_proportions() {
        let candidates =
            [Candidate { id: "a".into(), weight: 3 }, Candidate { id: "b".into(), weight: 1 }];
        let situation = Situation {
            job: "j",
            total: 8,
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: 0,
        };

        let plan = Strategy::Weighted.deal(&situation);

        assert_eq!(plan.iter().filter(|id| *id == "a").count(), 6);
        assert_eq!(plan.len(), 8);
    }

    proptest! {
        #[test]
        fn sticky_moves_at_most_a_fair_share_when_one_joins_or_leaves(
            total in 1..200_u32,
            count in 1..20_u32,
            who in any::<prop::sample::Index>(),
        ) {
            let some: Vec<String> = (1..=count).map(instance).collect();
            let mut more = some.clone();
            more.insert(who.index(some.len() + 1), instance(count + 1));
            let share = (total as usize).div_ceil(more.len());

            let start = plan(&Strategy::Sticky, total, &some, &BTreeMap::new());
            let joined = plan(&Strategy::Sticky, total, &more, &owners(&start));
            let mut fewer = more.clone();
            fewer.remove(who.index(more.len()));
            let left = plan(&Strategy::Sticky, total, &fewer, &owners(&joined));

            prop_assert!(moves(&start, &joined) <= share);
            prop_assert!(moves(&joined, &left) <= share);
        }

        #[test]
        fn every_strategy_gives_every_shard_to_a_candidate_and_is_fair(
            total in 1..100_u32,
            hosts in prop::collection::btree_set(1..200_u32, 1..12),
            which in 0..6_usize,
            job in "[a-zA-Z\u{4e00}-\u{4e20}]{1,12}",
            now_ms in any::<i64>(),
        ) {
            let candidates: Vec<Candidate> = hosts.iter().map(|host| Candidate::new(instance(*host))).collect();
            let situation = Situation { job: &job, total, candidates: &candidates, owners: &BTreeMap::new(), now_ms };

            let plan = ALL[which].deal(&situation);

            prop_assert_eq!(plan.len(), total as usize);
            let fair = (total as usize) / candidates.len();
            for candidate in &candidates {
                let share = plan.iter().filter(|id| **id == candidate.id).count();
                prop_assert!((fair..=fair + 1).contains(&share), "{} got {share}", candidate.id);
            }
        }
    }
}
