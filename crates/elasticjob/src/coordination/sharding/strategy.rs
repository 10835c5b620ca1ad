//! Built-in sharding strategies: exactly those of Java ElasticJob, and two more, `STICKY` and `WEIGHTED`.
//!
//! A strategy is a pure function of the leader's view, so every instance with the same view computes the same assignment. Java's strategies are
//! all `AVG_ALLOCATION` over the instances in some order. Each order starts from *descending* ids, compared as Java compares strings: by UTF-16
//! code units.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use crate::job::{Strategy, server_of};

/// The input of a sharding strategy.
#[derive(Debug, Clone)]
pub struct ShardingInput<'a> {
    pub job: &'a str,
    pub total: u32,
    /// The instances that can own shards, in any order.
    pub candidates: &'a [Candidate],
    /// The present owner of each shard; unassigned shards are absent. Only `STICKY` uses it.
    pub owners: &'a BTreeMap<u32, String>,
    /// The registry's clock in milliseconds since 1970. Only `SINGLE_SHARDING_BALANCE` uses it.
    pub now_ms: i64,
}

/// An instance that can own shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: String,
    /// Share relative to the other instances; one unless the instance's labels say otherwise.
    pub weight: u32,
}

impl Candidate {
    /// An instance with the default weight, one.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), weight: 1 }
    }

    fn address(&self) -> &str {
        server_of(&self.id)
    }
}

/// A sharding strategy: decides which instance owns which shard. Programs can provide their own, by name.
pub trait ShardingStrategy: fmt::Debug + Send + Sync {
    /// Returns the owner of shard *i* at index *i*. It is called with at least one candidate and must return `total` ids of candidates.
    fn assign(&self, input: &ShardingInput<'_>) -> Vec<String>;
}

/// The built-in strategies. A custom strategy is resolved elsewhere ([`CustomStrategies`](super::CustomStrategies)); here its name is treated as Java ElasticJob
/// treats an unknown one: as `AVG_ALLOCATION`.
impl ShardingStrategy for Strategy {
    fn assign(&self, input: &ShardingInput<'_>) -> Vec<String> {
        let mut order: Vec<&Candidate> = input.candidates.iter().collect();
        order.sort_by_cached_key(|candidate| {
            Reverse(candidate.id.encode_utf16().collect::<Vec<_>>())
        });
        if order.is_empty() {
            return Vec::new();
        }
        let hash = java_hash(input.job);
        match self {
            Strategy::Odevity => {
                if hash % 2 == 0 {
                    order.reverse();
                }
            }
            Strategy::RoundRobin => rotate(&mut order, hash),
            Strategy::SingleShardingBalance => {
                rotate(&mut order, hash.wrapping_add(input.now_ms as i32));
            }
            Strategy::Sticky => return sticky(input, &order),
            Strategy::Weighted => return weighted(input.total, &order),
            Strategy::AvgAllocation | Strategy::Named(_) => {}
        }
        average(input.total, &order)
    }
}

/// Java's `String.hashCode`.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Rotates to the left by the absolute value of the hash. Java fails for `Integer.MIN_VALUE`, whose absolute value is not an `int`; its distance
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

/// Each instance keeps its shards up to its fair share; the remaining shards go to instances that are below theirs.
fn sticky(input: &ShardingInput<'_>, order: &[&Candidate]) -> Vec<String> {
    let successors = successors(input, order);
    let mut kept: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
    for (shard, owner) in input.owners.range(..input.total) {
        if let Some(instance) = successors.get(owner.as_str()) {
            kept[*instance].push(*shard);
        }
    }
    let (total, count) = (input.total as usize, order.len());
    let (each, mut one_more) = (total / count, total % count);
    // The instances with the most shards get the larger shares, so that the fewest shards move.
    let mut by_count: Vec<usize> = (0..count).collect();
    by_count.sort_by_key(|instance| Reverse(kept[*instance].len()));
    let mut share = vec![each; count];
    for instance in &by_count {
        if one_more > 0 {
            share[*instance] += 1;
            one_more -= 1;
        }
        kept[*instance].truncate(share[*instance]);
    }
    let mut plan: Vec<Option<usize>> = vec![None; total];
    for (instance, shards) in kept.iter().enumerate() {
        for shard in shards {
            plan[*shard as usize] = Some(instance);
        }
    }
    let mut free_slots = (0..count).flat_map(|instance| {
        std::iter::repeat_n(instance, share[instance].saturating_sub(kept[instance].len()))
    });
    plan.into_iter()
        .map(|owner| owner.or_else(|| free_slots.next()).unwrap_or(0))
        .map(|instance| order[instance].id.clone())
        .collect()
}

/// For each former owner, the index of the instance that keeps its shards: itself, or an instance at the same address that owned nothing before.
fn successors<'a>(input: &'a ShardingInput<'_>, order: &[&Candidate]) -> BTreeMap<&'a str, usize> {
    let former: std::collections::BTreeSet<&str> =
        input.owners.range(..input.total).map(|(_, owner)| owner.as_str()).collect();
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
        let successor = (0..order.len()).find(|instance| {
            order[*instance].address() == server_of(owner)
                && !found.values().any(|taken| taken == instance)
        });
        if let Some(instance) = successor {
            found.insert(owner, instance);
        }
    }
    found
}

/// Largest remainder method: each instance gets the whole part of its share; the remaining shards go to the largest fractions, one each.
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
    // Imported by name, because the prelude of proptest has a `Strategy`, too.
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
        strategy.assign(&ShardingInput {
            job: "job",
            total,
            candidates: &candidates,
            owners,
            now_ms: 0,
        })
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
    fn minimum_hash_is_rotated_without_overflow() {
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        let candidates: Vec<Candidate> =
            (1..=3).map(|host| Candidate::new(instance(host))).collect();

        let plan = Strategy::RoundRobin.assign(&ShardingInput {
            job: "polygenelubricants",
            total: 3,
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: 0,
        });

        assert_eq!(plan.len(), 3);
    }

    #[test]
    fn sticky_returns_shards_to_a_restarted_instance_by_address() {
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
    fn weighted_assigns_shards_in_proportion() {
        let candidates =
            [Candidate { id: "a".into(), weight: 3 }, Candidate { id: "b".into(), weight: 1 }];
        let input = ShardingInput {
            job: "j",
            total: 8,
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: 0,
        };

        let plan = Strategy::Weighted.assign(&input);

        assert_eq!(plan.iter().filter(|id| *id == "a").count(), 6);
        assert_eq!(plan.len(), 8);
    }

    proptest! {
        #[test]
        fn sticky_moves_at_most_a_fair_share_when_an_instance_joins_or_leaves(
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
        fn every_strategy_assigns_every_shard_fairly(
            total in 1..100_u32,
            hosts in prop::collection::btree_set(1..200_u32, 1..12),
            which in 0..6_usize,
            job in "[a-zA-Z\u{4e00}-\u{4e20}]{1,12}",
            now_ms in any::<i64>(),
        ) {
            let candidates: Vec<Candidate> = hosts.iter().map(|host| Candidate::new(instance(*host))).collect();
            let input = ShardingInput { job: &job, total, candidates: &candidates, owners: &BTreeMap::new(), now_ms };

            let plan = ALL[which].assign(&input);

            prop_assert_eq!(plan.len(), total as usize);
            let fair = (total as usize) / candidates.len();
            for candidate in &candidates {
                let share = plan.iter().filter(|id| **id == candidate.id).count();
                prop_assert!((fair..=fair + 1).contains(&share), "{} got {share}", candidate.id);
            }
        }
    }
}
