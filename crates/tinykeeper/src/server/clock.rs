//! The one place where the server asks what time it is.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

/// 2020-01-01T00:00:00Z, where transaction numbers begin to count.
const EPOCH_2020_MS: i64 = 1_577_836_800_000;

/// For timeouts.
#[expect(clippy::disallowed_methods, reason = "the one place where the server asks for the time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// For stats: milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place where the server asks for the time")]
pub(super) fn wall_ms() -> i64 {
    let since_1970 =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

/// Waits until the clock shows another millisecond than it does now.
pub(super) async fn tick() {
    let now = wall_ms();
    while wall_ms() == now {
        sleep(Duration::from_millis(1)).await;
    }
}

/// The transaction number below which a server that starts now must not write.
///
/// Milliseconds since 2020 with room for four million transactions in each: no server can write faster than that, so a
/// server that lost its memory still starts above every number it ever gave out, and fencing tokens never go back. Good
/// until 2089.
pub(super) fn first_zxid(wall_ms: i64) -> i64 {
    (wall_ms - EPOCH_2020_MS).clamp(0, (1 << 41) - 1) << 22
}

/// The number from which a server that starts now counts its sessions: below 2^56, so that no session looks like a marker.
pub(super) fn first_session(wall_ms: i64) -> i64 {
    ((wall_ms - EPOCH_2020_MS) & 0xff_ffff_ffff) << 16 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_started_a_millisecond_later_counts_from_above_four_million_transactions() {
        let now = 1_795_000_000_000;

        assert_eq!(first_zxid(now + 1) - first_zxid(now), 1 << 22);
        assert!(first_zxid(now) > 0);
        assert!(first_zxid(4_000_000_000_000) > 0, "a clock far ahead does not wrap around");
        assert_eq!(first_zxid(0), 0, "a clock before 2020 starts at the beginning");
    }

    #[test]
    fn a_session_never_looks_like_a_container_or_a_time_to_live() {
        let session = first_session(1_795_000_000_000);

        assert!(session > 0 && session < 1 << 56);
    }
}
