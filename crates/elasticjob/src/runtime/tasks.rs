//! Who stops what was started.

use std::{future::Future, time::Duration};

use tokio::task::JoinSet;

/// Tasks with one owner: whoever spawns through it can wait for all of them, and dropping it ends them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use elasticjob::runtime::Tasks;
///
/// let mut tasks = Tasks::new();
/// tasks.spawn(async { /* until its token says stop */ });
/// assert!(tasks.finish(Duration::from_secs(1)).await, "all have ended by themselves");
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<()>,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task that lives at most as long as this owner.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Those that have ended are let go here, so that a long life does not collect them.
        while self.set.try_join_next().is_some() {}
        self.set.spawn(task);
    }

    /// Waits until all have ended by themselves; after `patience` the rest are ended. Says whether all ended by themselves.
    pub async fn finish(mut self, patience: Duration) -> bool {
        let all = async { while self.set.join_next().await.is_some() {} };
        let ended = tokio::time::timeout(patience, all).await.is_ok();
        self.set.shutdown().await;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn finish_waits_for_those_that_end_and_ends_those_that_do_not() {
        let mut good = Tasks::new();
        good.spawn(tokio::time::sleep(Duration::from_secs(1)));
        let mut stuck = Tasks::new();
        stuck.spawn(std::future::pending());

        assert!(good.finish(Duration::from_secs(2)).await);
        assert!(!stuck.finish(Duration::from_secs(2)).await);
    }
}
