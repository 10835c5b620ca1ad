//! Ownership of spawned tasks.

use std::{future::Future, time::Duration};

use tokio::task::JoinSet;

/// A set of tasks with one owner. The owner can wait for all of them; dropping the set aborts them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use elasticjob::runtime::Tasks;
///
/// let mut tasks = Tasks::new();
/// tasks.spawn(async { /* runs until it is cancelled */ });
/// assert!(tasks.finish(Duration::from_secs(1)).await, "all tasks ended by themselves");
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<()>,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task that runs at most as long as this set exists.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Remove finished tasks here, so that they do not accumulate in a long-lived set.
        while self.set.try_join_next().is_some() {}
        self.set.spawn(task);
    }

    /// Waits at most `timeout` for all tasks to end, then aborts the rest. Returns whether all ended by themselves.
    pub async fn finish(mut self, timeout: Duration) -> bool {
        let all = async { while self.set.join_next().await.is_some() {} };
        let ended = tokio::time::timeout(timeout, all).await.is_ok();
        self.set.shutdown().await;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn finish_waits_for_tasks_and_aborts_those_that_do_not_end() {
        let mut good = Tasks::new();
        good.spawn(tokio::time::sleep(Duration::from_secs(1)));
        let mut stuck = Tasks::new();
        stuck.spawn(std::future::pending());

        assert!(good.finish(Duration::from_secs(2)).await);
        assert!(!stuck.finish(Duration::from_secs(2)).await);
    }
}
