//! Watches whether this machine's clock and the registry's agree.
//!
//! The answers to a node's writes tell the registry's time. A node that writes seldom has to ask: if both clocks were set, schedule time must not run
//! on without them for longer than necessary.

use std::{sync::Arc, time::Duration};

use super::{identity::Identity, schedule_clock::ScheduleClock};
use crate::{
    coordination::process,
    registry::{Error, Registry},
    runtime::{Clock, Randomness},
};

const INTERVAL: Duration = Duration::from_secs(10);

/// Asks for the registry's time while the clocks disagree, and logs when they begin and cease to. Never returns.
pub(super) async fn run(
    clock: Arc<ScheduleClock>,
    registry: Arc<dyn Registry>,
    identity: Arc<Identity>,
    randomness: Arc<dyn Randomness>,
) {
    let mut is_reported = false;
    loop {
        clock.sleep_until(clock.monotonic() + INTERVAL).await;
        if clock.is_free_running()
            && let Err(error) = read_time(&*registry, &identity, &*randomness).await
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

async fn read_time(
    registry: &dyn Registry,
    identity: &Identity,
    randomness: &dyn Randomness,
) -> Result<(), Error> {
    let id = identity.current(registry, randomness).await?;
    process::touch(registry, &id).await
}
