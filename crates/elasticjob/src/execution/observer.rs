//! Observation of attempts.

use super::attempt_result::AttemptResult;
use crate::job::Shard;

/// Observes every attempt of every shard. Called from within the run, so it must not block.
pub trait Observer: Send + Sync + 'static {
    /// An attempt starts.
    fn attempt_started(&self, shard: &Shard);

    /// An attempt has ended. Another one may follow.
    fn attempt_ended(&self, shard: &Shard, result: &AttemptResult);
}

/// Ignores all attempts.
impl Observer for () {
    fn attempt_started(&self, _: &Shard) {}
    fn attempt_ended(&self, _: &Shard, _: &AttemptResult) {}
}
