//! Schedules and their fires.

use jiff::Timestamp;

use super::{
    civil::DAY_SECONDS,
    cron::Cron,
    default_rule,
    dst::Dst,
    fields::{FIRST_YEAR, LAST_YEAR},
    quartz_rule,
    zone::{Zone, timestamp},
};

/// When a job is due: an expression, its time zone, and the daylight saving rule.
///
/// ```
/// use quartz_cron::{Dst, Schedule};
///
/// let schedule = Schedule {
///     cron: "0 30 2 * * ?".parse()?,
///     zone: "America/New_York".parse()?,
///     dst: Dst::Default,
/// };
///
/// // In the night to 8 March 2026 the clocks go from 2:00 to 3:00, so the fire of 2:30 happens at 3:00.
/// let fires: Vec<String> =
///     schedule.after("2026-03-06T12:00:00Z".parse()?).take(3).map(|at| at.to_string()).collect();
/// assert_eq!(fires, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    pub cron: Cron,
    pub zone: Zone,
    pub dst: Dst,
}

impl Schedule {
    /// The first fire after `after`; `None` if there is none before the end of 2199.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let from = (floor_second(after) + 1).max(SEARCH_RANGE.0);
        if from > SEARCH_RANGE.1 {
            return None;
        }
        let fields = self.cron.fields();
        let found = match self.dst {
            Dst::Default => default_rule::next(fields, &self.zone, from),
            Dst::Quartz => quartz_rule::next(fields, &self.zone, from),
        };
        found.map(timestamp)
    }

    /// The last fire before `before`; `None` if there is none since 1970.
    ///
    /// ```
    /// # use quartz_cron::{Dst, Schedule, Zone};
    /// # let schedule = Schedule { cron: "0 0 0 29 2 ?".parse()?, zone: Zone::utc(), dst: Dst::Default };
    /// let before = schedule.prev_before("2026-11-15T06:36:07Z".parse()?);
    /// assert_eq!(before, Some("2024-02-29T00:00:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prev_before(&self, before: Timestamp) -> Option<Timestamp> {
        let fires_after =
            |second: i64| self.next_after(timestamp(second)).filter(|fire| *fire < before);
        // Search backwards in growing steps until there is a fire, then bisect. Fires come in bursts, so iterating over them could take long.
        let mut late = before.as_second().clamp(SEARCH_RANGE.0, SEARCH_RANGE.1) + 1;
        let mut reach = 60;
        let (mut early, mut found) = loop {
            let early = (late - reach).max(SEARCH_RANGE.0);
            match fires_after(early) {
                Some(fire) => break (early, fire),
                None if early == SEARCH_RANGE.0 => return None,
                None => reach *= 16,
            }
        };
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            match fires_after(middle) {
                Some(fire) => (early, found) = (middle, fire),
                None => late = middle,
            }
        }
        Some(found)
    }

    /// All fires after `after`, in order.
    pub fn after(&self, after: Timestamp) -> Fires<'_> {
        Fires { schedule: self, last: after, until: Timestamp::MAX }
    }

    /// The fires after `from`, up to and including `to`.
    pub fn fires_between(&self, from: Timestamp, to: Timestamp) -> Fires<'_> {
        Fires { schedule: self, last: from, until: to }
    }
}

/// Iterator over fires. Returned by [`Schedule::after`] and [`Schedule::fires_between`].
#[derive(Debug, Clone)]
pub struct Fires<'a> {
    schedule: &'a Schedule,
    last: Timestamp,
    until: Timestamp,
}

impl Iterator for Fires<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let fire = self.schedule.next_after(self.last).filter(|fire| *fire <= self.until)?;
        self.last = fire;
        Some(fire)
    }
}

/// Seconds outside of which nothing fires in any time zone.
const SEARCH_RANGE: (i64, i64) = (
    (FIRST_YEAR as i64 - 1970) * 366 * DAY_SECONDS - 2 * DAY_SECONDS,
    (LAST_YEAR as i64 + 1 - 1970) * 366 * DAY_SECONDS,
);

fn floor_second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}
