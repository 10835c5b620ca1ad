//! Keeps the lease of an idle node long enough to start a run.
//!
//! A contact with the registry extends the lease only once another request has followed it to the registry's leader. Pings do not reach the
//! leader, and a claim confirms only what was sent well before it. So with short sessions, an idle instance would find its lease too short to
//! start anything when a fire comes due or another instance dies.

use std::{sync::Arc, time::Duration};

use super::run_lease::margin;
use crate::{registry::Registry, runtime::Clock};

/// Sessions at least this long need no refresh: pings are a third of the timeout apart and count at most 1.25 s later, so the last ping before
/// a claim leaves half of the timeout, which is enough to start.
const LONG_SESSION: Duration = Duration::from_secs(10);

/// Syncs with the leader whenever the lease of a short session becomes too short to start a run. A node that writes often hardly ever needs it.
pub(super) async fn run(registry: Arc<dyn Registry>, clock: Arc<dyn Clock>) {
    while registry.session().timeout() < LONG_SESSION {
        let session = registry.session();
        let (now, timeout) = (clock.monotonic(), session.timeout());
        let too_short = session.deadline() - (margin(timeout) * 2 + timeout / 6);
        if now >= too_short {
            tokio::select! {
                answer = registry.sync() => if let Err(error) = answer {
                    tracing::debug!(%error, "lease renewal failed");
                },
                () = clock.sleep_until(now + timeout / 6) => {}
            }
        }
        clock.sleep_until((now + timeout / 12).max(too_short)).await;
    }
}
