//! Whether a claimed shard still is ours.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    job::LeaseLoss,
    runtime::{CancelReason, CancelToken},
};

/// Whether a claimed shard still is ours. Its claim is watched: when it is gone, or somebody else's, the shard is not ours any more.
#[derive(Debug)]
pub struct Hold {
    lost: AtomicBool,
    cancel: CancelToken,
}

impl Hold {
    pub(super) fn new(cancel: CancelToken) -> Self {
        Self { lost: AtomicBool::new(false), cancel }
    }

    /// Whether it was taken away.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// What the shard is cancelled by.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// It was taken away. `true` if that is news.
    pub(super) fn lose(&self, policy: LeaseLoss) -> bool {
        let is_news = !self.lost.swap(true, Ordering::AcqRel);
        if is_news && policy == LeaseLoss::Cancel {
            self.cancel.cancel(CancelReason::LeaseLost);
        }
        is_news
    }
}
