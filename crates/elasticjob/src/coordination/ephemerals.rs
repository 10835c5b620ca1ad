//! How many bytes the ephemeral nodes of an instance take in the transaction that ends its session.
//!
//! ZooKeeper writes the paths of all ephemeral nodes of a session into one transaction when the session ends, and after a restart it refuses to read
//! a transaction of more than about 2 MB (ZOOKEEPER-4306). So what one session may hold is bounded.

use super::tree::{JobTree, ShardNode};
use crate::registry::Path;

/// A session takes jobs until they have reserved this much.
pub const MOST_RESERVED: usize = 500_000;
/// Further shards wait while a session holds this much. Above the reservations, because the shards of a job may become more after it was joined.
pub const MOST_CLAIMED: usize = 700_000;

/// What the transaction adds to every path: its length.
const LENGTH_PREFIX: usize = 4;
/// The longest id of an instance: an address, a process id and the random part.
const LONGEST_ID: &str = "255.255.255.255@-@4194304-ffffffff";
/// An entry in the queue of a latch, which the registry numbers.
const LATCH_ENTRY: &str = "_c_00000000-0000-0000-0000-000000000000-latch-0000000000";

/// The bytes of one ephemeral node.
pub fn bytes_of(path: &Path) -> usize {
    path.as_str().len() + LENGTH_PREFIX
}

/// The most that one instance holds in a job: it leads, queues in every latch, and runs or has taken over every shard.
pub fn most_bytes(tree: &JobTree, shards: u32) -> usize {
    let latches = [tree.election_latch(), tree.failover_latch(), tree.completed_latch()];
    let latches = latches.iter().map(|latch| bytes_of(latch) + 1 + LATCH_ENTRY.len());
    let nodes =
        [tree.instance(LONGEST_ID), tree.leader(), tree.processing(), tree.next_instance_ip()];
    let fixed = latches.chain(nodes.iter().map(bytes_of)).sum::<usize>();
    let largest_shard = tree.shard(shards.saturating_sub(1), ShardNode::Failover);
    fixed + bytes_of(&largest_shard) * shards as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_megabyte_is_enough_for_some_hundred_jobs_of_four_shards() {
        let namespace = "shop".parse().unwrap();
        let of = |name: &str, shards| {
            most_bytes(&JobTree::new(&namespace, &name.parse().unwrap()).unwrap(), shards)
        };

        assert_eq!(MOST_RESERVED / of("settle-orders", 4), 722);
        assert_eq!(of("settle-orders", 5) - of("settle-orders", 4), 43);
    }
}
