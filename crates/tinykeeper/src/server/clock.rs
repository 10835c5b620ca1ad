//! The only module of the server that reads the clock, and the numbers that derive from it.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

/// 2020-01-01T00:00:00Z, the origin of transaction ids.
const EPOCH_2020_MS: i64 = 1_577_836_800_000;

/// Monotonic time, for timeouts.
#[expect(clippy::disallowed_methods, reason = "the only module of the server that reads the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Wall clock time in milliseconds since 1970, for stats.
#[expect(clippy::disallowed_methods, reason = "the only module of the server that reads the clock")]
pub(super) fn unix_ms() -> i64 {
    let since_1970 =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

/// Waits until the wall clock shows a different millisecond.
pub(super) async fn next_millisecond() {
    let now = unix_ms();
    while unix_ms() == now {
        sleep(Duration::from_millis(1)).await;
    }
}

/// The lower bound for transaction ids of a server that starts at `unix_ms`.
///
/// The bound is the number of milliseconds since 2020, with room for four million transactions in each. No server writes
/// faster than that, so even a server that lost its data starts above every id it ever issued, and fencing tokens never
/// decrease, unless the clock was set back. Valid until 2089.
pub(super) fn first_zxid(unix_ms: i64) -> i64 {
    (unix_ms - EPOCH_2020_MS).clamp(0, (1 << 41) - 1) << 22
}

/// The first session id of a server that starts at `unix_ms`. It is below 2^56, so that no session id looks like the owner
/// marker of a container or a time to live.
pub(super) fn first_session(unix_ms: i64) -> i64 {
    ((unix_ms - EPOCH_2020_MS) & 0xff_ffff_ffff) << 16 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_one_millisecond_later_leaves_room_for_four_million_zxids() {
        let now = 1_795_000_000_000;

        assert_eq!(first_zxid(now + 1) - first_zxid(now), 1 << 22);
        assert!(first_zxid(now) > 0);
        assert!(first_zxid(4_000_000_000_000) > 0, "a clock far ahead does not wrap around");
        assert_eq!(first_zxid(0), 0, "a clock before 2020 starts at the beginning");
    }

    #[test]
    fn session_id_never_looks_like_an_owner_marker() {
        let session = first_session(1_795_000_000_000);

        assert!(session > 0 && session < 1 << 56);
    }
}
