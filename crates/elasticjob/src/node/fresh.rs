//! Keeps the lease long enough to start something with, while nothing runs.
//!
//! What a lease is built on is known late: a contact counts once another request has followed it to the registry's leader. Pings do
//! not get there, and a claim vouches only for what was sent well before it. So whoever was idle would find, when something is due or
//! somebody dies, that its lease is too short to start anything, if sessions are short.

use std::{sync::Arc, time::Duration};

use super::run::margin;
use crate::{registry::Registry, runtime::Clock};

/// From here on the last ping before a claim leaves enough of the lease: pings are a third of the timeout apart, they count a second
/// later at most, and half of the timeout is enough to start.
const LONG: Duration = Duration::from_secs(10);

/// Asks the leader whenever the lease of a short session gets too short to start something, before anything has to be. Where enough is
/// written anyway it hardly ever asks.
pub(super) async fn keep(registry: Arc<dyn Registry>, clock: Arc<dyn Clock>) {
    while registry.session().timeout() < LONG {
        let session = registry.session();
        let (now, timeout) = (clock.monotonic(), session.timeout());
        let too_short = session.deadline() - (margin(timeout) * 2 + timeout / 6);
        if now >= too_short {
            tokio::select! {
                answer = registry.sync() => if let Err(error) = answer {
                    tracing::debug!(%error, "the lease was not renewed this time");
                },
                () = clock.sleep_until(now + timeout / 6) => {}
            }
        }
        clock.sleep_until((now + timeout / 12).max(too_short)).await;
    }
}
