//! Watches whether this machine's clock and the registry's agree.
//!
//! The answers to a node's writes tell the registry's time. A node that writes seldom has to ask: if both clocks were set, schedule time must not run
//! on without them for longer than necessary.

use std::{sync::Arc, time::Duration};

use super::{schedule_clock::ScheduleClock, session::NodeSession};
use crate::{
    coordination::process,
    registry::Error,
    runtime::{Clock, Randomness},
};

const INTERVAL: Duration = Duration::from_secs(10);

/// Asks for the registry's time while the clocks disagree, and logs when they begin and cease to. Never returns.
pub(super) async fn run(
    clock: Arc<ScheduleClock>,
    session: Arc<NodeSession>,
    randomness: Arc<dyn Randomness>,
) {
    let mut is_reported = false;
    loop {
        clock.sleep_until(clock.monotonic() + INTERVAL).await;
        if clock.is_free_running()
            && let Err(error) = read_time(&session, &*randomness).await
        {
            tracing::debug!(%error, "reading the registry's time failed");
            continue;
        }
        let skew_ms = clock.skew().map_or(0, |skew| skew.as_millis());
        match (clock.is_free_running(), is_reported) {
            (true, false) => {
                tracing::error!(
                    skew_ms,
                    hint = "is a time service running, here and on the registry's servers?",
                    "clock differs from the registry's, schedules go on without it"
                );
            }
            (false, true) => tracing::info!(skew_ms, "clock agrees with the registry's again"),
            _ => {}
        }
        is_reported = clock.is_free_running();
    }
}

async fn read_time(session: &NodeSession, randomness: &dyn Randomness) -> Result<(), Error> {
    let id = session.identity.current(&*session.registry, randomness).await?;
    process::touch(&*session.registry, &id).await
}
