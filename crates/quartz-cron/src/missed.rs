//! Missed fires and misfires.

use jiff::{SignedDuration, Timestamp};

use super::schedule::Schedule;

/// Fires that were not started. A catch-up policy chooses none, the last or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    pub first: Timestamp,
    pub last: Timestamp,
    /// At most [`Missed::MAX_COUNT`], so that a year of fires per second need not be counted.
    pub count: usize,
}

impl Missed {
    /// Upper limit of `count`.
    pub const MAX_COUNT: usize = 1000;
}

impl Schedule {
    /// The fires after `last`, the last one known to be started, up to and including `now`, but not earlier than `window` before `now`.
    /// `None` if there are none.
    ///
    /// ```
    /// # use quartz_cron::{Dst, Schedule, Zone};
    /// use jiff::SignedDuration;
    ///
    /// # let schedule = Schedule { cron: "0 0 * * * ?".parse()?, zone: Zone::utc(), dst: Dst::Default };
    /// // Hourly, and no instance was up since the evening before.
    /// let missed = schedule
    ///     .missed("2026-11-14T20:00:00Z".parse()?, "2026-11-15T06:36:07Z".parse()?, SignedDuration::from_hours(3))
    ///     .unwrap();
    ///
    /// assert_eq!(missed.first, "2026-11-15T04:00:00Z".parse()?);
    /// assert_eq!(missed.last, "2026-11-15T06:00:00Z".parse()?);
    /// assert_eq!(missed.count, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn missed(
        &self,
        last: Timestamp,
        now: Timestamp,
        window: SignedDuration,
    ) -> Option<Missed> {
        // A fire at the edge of the window is included, and the search excludes its start.
        let edge = now.checked_sub(window).unwrap_or(Timestamp::MIN);
        let edge = edge.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(edge);
        let mut fires = self.fires_between(last.max(edge), now);
        let first = fires.next()?;
        let (mut latest, mut count) = (first, 1);
        for fire in fires.take(Missed::MAX_COUNT - 1) {
            (latest, count) = (fire, count + 1);
        }
        if count == Missed::MAX_COUNT {
            let after_now = now.checked_add(SignedDuration::from_nanos(1)).unwrap_or(now);
            latest = self.prev_before(after_now).unwrap_or(latest);
        }
        Some(Missed { first, last: latest, count })
    }
}

/// Whether a fire is later than `tolerance`.
pub fn is_misfire(due_at: Timestamp, now: Timestamp, tolerance: SignedDuration) -> bool {
    now.duration_since(due_at) > tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn schedule(cron: &str) -> Schedule {
        Schedule {
            cron: cron.parse().unwrap(),
            zone: "Europe/Berlin".parse().unwrap(),
            dst: super::super::Dst::Default,
        }
    }

    #[test]
    fn fire_within_tolerance_is_on_time() {
        let due_at = at("2026-03-29T02:00:00Z");
        let tolerance = SignedDuration::from_secs(5);

        assert!(!is_misfire(due_at, due_at + tolerance, tolerance));
        assert!(is_misfire(due_at, due_at + SignedDuration::from_secs(6), tolerance));
        assert!(!is_misfire(due_at, due_at - tolerance, SignedDuration::ZERO));
    }

    #[test]
    fn last_started_fire_is_not_missed_and_fire_due_now_is() {
        let every_ten_minutes = schedule("0 0/10 * * * ?");
        let (last, now) = (at("2026-11-15T06:00:00Z"), at("2026-11-15T06:30:00Z"));

        let missed = every_ten_minutes.missed(last, now, SignedDuration::from_hours(24)).unwrap();

        assert_eq!(missed.first, at("2026-11-15T06:10:00Z"));
        assert_eq!((missed.last, missed.count), (now, 3));
        assert_eq!(every_ten_minutes.missed(now, now, SignedDuration::from_hours(24)), None);
    }

    #[test]
    fn fire_at_the_edge_of_the_window_is_included() {
        let hourly = schedule("0 0 * * * ?");
        let (last, now) = (at("2026-11-01T00:00:00Z"), at("2026-11-15T06:00:00Z"));

        let missed = hourly.missed(last, now, SignedDuration::from_hours(1)).unwrap();

        assert_eq!((missed.first, missed.last), (at("2026-11-15T05:00:00Z"), now));
    }

    #[test]
    fn count_is_limited_but_last_fire_is_exact() {
        let every_second = schedule("* * * * * ?");
        let (last, now) = (at("2020-01-01T00:00:00Z"), at("2026-11-15T06:00:00Z"));

        let missed =
            every_second.missed(last, now, SignedDuration::from_hours(24 * 36500)).unwrap();

        assert_eq!((missed.last, missed.count), (now, Missed::MAX_COUNT));
    }

    #[test]
    fn nothing_is_missed_in_an_empty_window_or_before_now() {
        let hourly = schedule("0 0 * * * ?");
        let now = at("2026-11-15T06:30:00Z");

        assert_eq!(hourly.missed(Timestamp::MIN, now, SignedDuration::ZERO), None);
        assert_eq!(hourly.missed(now, at("2026-11-01T00:00:00Z"), SignedDuration::MAX), None);
    }
}
