//! Computes a shard assignment without a registry.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::error::AdminError;
use crate::{
    coordination::sharding::{Candidate, ShardingInput, ShardingStrategy},
    job::{InstanceId, ShardCount, Strategy},
};

/// The strategies that every instance knows, for messages.
pub const STRATEGIES: &str =
    "AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, SINGLE_SHARDING_BALANCE, STICKY or WEIGHTED";

/// Assigns shards as the leader would: the owner of shard *i* is at index *i*.
pub fn assign(
    job: &str,
    total: u32,
    strategy: &str,
    instances: &[String],
    at: Timestamp,
) -> Result<Vec<String>, AdminError> {
    let total = ShardCount::try_from(total)?.get();
    let strategy = Strategy::from(strategy);
    if let Strategy::Named(name) = &strategy {
        let problem = format!("unknown sharding strategy {:?}", name.as_str());
        return Err(AdminError::invalid(problem, STRATEGIES));
    }
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for id in instances {
        let id: InstanceId = id.parse()?;
        if !seen.insert(id.clone()) {
            let problem = format!("instance {id} is named twice");
            return Err(AdminError::invalid(problem, "name each instance once"));
        }
        candidates.push(Candidate::new(id.as_str()));
    }
    Ok(strategy.assign(&ShardingInput {
        job,
        total,
        candidates: &candidates,
        owners: &BTreeMap::new(),
        now_ms: at.as_millisecond(),
    }))
}
