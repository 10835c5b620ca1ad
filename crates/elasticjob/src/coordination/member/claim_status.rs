//! Whether a claimed shard is still ours.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    job::LeaseLoss,
    runtime::{CancelReason, CancelToken},
};

/// Whether a claimed shard is still ours. The member watches the claim: if it vanishes, or another instance overwrites it, it is lost.
#[derive(Debug)]
pub struct ClaimStatus {
    lost: AtomicBool,
    cancel: CancelToken,
}

impl ClaimStatus {
    pub(super) fn new(cancel: CancelToken) -> Self {
        Self { lost: AtomicBool::new(false), cancel }
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The request that cancels this shard.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// The claim is lost. `true` if it was not known to be.
    pub(super) fn lose(&self, policy: LeaseLoss) -> bool {
        let is_news = !self.lost.swap(true, Ordering::AcqRel);
        if is_news && policy == LeaseLoss::Cancel {
            self.cancel.cancel(CancelReason::LeaseLost);
        }
        is_news
    }
}
