//! How long to wait before the next attempt to connect: never nothing, so that no failure can make us spin.

use std::time::Duration;

use rand::RngExt;

use super::config::Retry;

/// What even the fastest failure costs.
const LEAST: Duration = Duration::from_millis(5);

/// The pause after `failures` attempts in a row failed, with `servers` to try.
///
/// Within a round the next server is tried almost at once; after each whole round the pause doubles.
pub(super) fn after(failures: u32, servers: usize, retry: Retry) -> Duration {
    let servers = u32::try_from(servers).unwrap_or(u32::MAX).max(1);
    let rounds = failures / servers;
    if rounds == 0 || !failures.is_multiple_of(servers) {
        return jittered(LEAST * 2);
    }
    let doubled = retry.base_sleep.saturating_mul(2_u32.saturating_pow(rounds - 1));
    jittered(doubled.min(retry.max_sleep)).max(LEAST)
}

/// Between half of it and all of it.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry {
        base_sleep: Duration::from_secs(1),
        max_sleep: Duration::from_secs(3),
        max_retries: 3,
    };

    #[test]
    fn the_next_server_of_a_round_is_tried_almost_at_once() {
        for failures in [0, 1, 2, 4, 5] {
            let pause = after(failures, 3, RETRY);

            assert!((LEAST..=LEAST * 2).contains(&pause), "{failures}: {pause:?}");
        }
    }

    #[test]
    fn whole_rounds_wait_longer_and_longer_up_to_the_longest() {
        for (failures, longest) in [(1, 1), (2, 2), (3, 3), (4, 3), (1_000_000, 3)] {
            let pause = after(failures, 1, RETRY);

            let longest = Duration::from_secs(longest);
            assert!((longest / 2..=longest).contains(&pause), "{failures}: {pause:?}");
        }
    }

    #[test]
    fn even_a_careless_configuration_does_not_spin() {
        let retry = Retry { base_sleep: Duration::ZERO, max_sleep: Duration::ZERO, ..RETRY };

        assert!(after(7, 1, retry) >= LEAST);
    }
}
