//! Who wants to know about every attempt.

use super::outcome::Outcome;
use crate::job::Shard;

/// Is told about every attempt of every shard, as it happens. Called from within the run: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// An attempt begins.
    fn begins(&self, shard: &Shard);

    /// An attempt has ended. There may be another one.
    fn ended(&self, shard: &Shard, outcome: &Outcome);
}

/// Does not want to know.
impl Observer for () {
    fn begins(&self, _: &Shard) {}
    fn ended(&self, _: &Shard, _: &Outcome) {}
}
