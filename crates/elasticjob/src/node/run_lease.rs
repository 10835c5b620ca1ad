//! How long a run may trust its session: before it starts, while it runs, and when the session ends.

use std::{sync::Arc, time::Duration};

use super::run::RunContext;
use crate::{
    coordination::{flaw::Flaw, member::ClaimStatus},
    execution::{Guard, Lease},
    job::LeaseLoss,
    registry::Session,
    runtime::{CancelReason, CancelToken},
};

impl RunContext {
    /// Whether the lease is long enough to start a run: twice the margin, if necessary after one more sync.
    pub(super) async fn has_lease_to_start(&self, session: &Session) -> bool {
        let is_enough = |now| session.deadline() > now + margin(session.timeout()) * 2;
        if is_enough(self.clock.monotonic()) || self.flaws.has(Flaw::IgnoreLease) {
            return true;
        }
        let timeout = self.clock.monotonic() + session.timeout() / 6;
        tokio::select! {
            biased;
            _ = self.session.registry.sync() => {}
            () = self.clock.sleep_until(timeout) => {}
        }
        is_enough(self.clock.monotonic())
    }

    /// A guard that lets a handler be polled while the session certainly lives and the claim still holds. The handler is cancelled one margin
    /// earlier; a handler that does not end by then is not polled again.
    pub(super) fn guard(&self, session: &Session, status: Arc<ClaimStatus>) -> Guard {
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        let on_loss = self.job.props.policies().on_lease_loss;
        let flaws = self.flaws;
        Guard::new(on_loss, move || {
            (!status.is_lost() && clock.monotonic() < session.deadline())
                || flaws.has(Flaw::IgnoreLease)
        })
    }

    /// How long work outside this process may continue, if the job's policy ends it with the lease.
    pub(super) fn lease(&self, session: &Session) -> Lease {
        if self.job.props.policies().on_lease_loss != LeaseLoss::Cancel {
            return Lease::none();
        }
        let (session, clock) = (session.clone(), Arc::clone(&self.clock));
        Lease::new(move || session.deadline().saturating_since(clock.monotonic()))
    }

    /// Cancels the shards if the lease, which [`lease_keeper`](super::lease_keeper) keeps while they run, is about to expire all the same. A guard alone
    /// is not enough: it acts when a handler is polled, and an idle handler is not polled. Never returns.
    pub(super) async fn watch_lease(&self, session: &Session, running: &CancelToken) {
        let margin = margin(session.timeout());
        let cancels = self.job.props.policies().on_lease_loss == LeaseLoss::Cancel
            && !self.flaws.has(Flaw::IgnoreLease);
        loop {
            let (now, end) = (self.clock.monotonic(), session.deadline() - margin);
            if now >= end && cancels {
                running.cancel(CancelReason::LeaseLost);
            }
            let next = now + session.timeout() / 6;
            let check_at = if end > now { next.min(end) } else { next };
            self.clock.sleep_until(check_at).await;
        }
    }
}

/// How long before the registry may end a session its running shards are cancelled.
pub(super) fn margin(timeout: Duration) -> Duration {
    (timeout / 4).clamp(Duration::from_millis(500), Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_a_quarter_of_the_timeout_within_bounds() {
        assert_eq!(margin(Duration::from_secs(1)), Duration::from_millis(500));
        assert_eq!(margin(Duration::from_secs(8)), Duration::from_secs(2));
        assert_eq!(margin(Duration::from_mins(1)), Duration::from_secs(5));
    }
}
