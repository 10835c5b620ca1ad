//! Delay before the next connection attempt. It is never zero, so that no kind of failure causes a busy loop.

use std::time::Duration;

use rand::RngExt;

use super::config::Retry;

const MIN_DELAY: Duration = Duration::from_millis(5);

/// The delay after `failures` consecutive failed attempts, with `servers` to try.
///
/// Within a round the next server is tried almost at once; the delay doubles with every complete round.
pub(super) fn delay(failures: u32, servers: usize, retry: Retry) -> Duration {
    let servers = u32::try_from(servers).unwrap_or(u32::MAX).max(1);
    let rounds = failures / servers;
    if rounds == 0 || !failures.is_multiple_of(servers) {
        return jittered(MIN_DELAY * 2);
    }
    let doubled = retry.base_sleep.saturating_mul(2_u32.saturating_pow(rounds - 1));
    jittered(doubled.min(retry.max_sleep)).max(MIN_DELAY)
}

/// A random duration between half of `delay` and `delay`.
fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(rand::rng().random_range(0.5..=1.0))
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
    fn next_server_of_a_round_is_tried_almost_at_once() {
        for failures in [0, 1, 2, 4, 5] {
            let delay = delay(failures, 3, RETRY);

            assert!((MIN_DELAY..=MIN_DELAY * 2).contains(&delay), "{failures}: {delay:?}");
        }
    }

    #[test]
    fn delay_doubles_per_round_up_to_the_maximum() {
        for (failures, longest) in [(1, 1), (2, 2), (3, 3), (4, 3), (1_000_000, 3)] {
            let delay = delay(failures, 1, RETRY);

            let longest = Duration::from_secs(longest);
            assert!((longest / 2..=longest).contains(&delay), "{failures}: {delay:?}");
        }
    }

    #[test]
    fn zero_sleep_configuration_still_delays() {
        let retry = Retry { base_sleep: Duration::ZERO, max_sleep: Duration::ZERO, ..RETRY };

        assert!(delay(7, 1, retry) >= MIN_DELAY);
    }
}
