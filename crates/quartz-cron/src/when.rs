//! A schedule, and when it fires.

use jiff::Timestamp;

use super::{
    civil::DAY,
    cron::Cron,
    dst::Dst,
    fields::{FIRST_YEAR, LAST_YEAR},
    quartz, steady,
    zone::{Zone, timestamp},
};

/// When a job is due: an expression, the clock it is read on, and what to do while that clock is changed.
///
/// ```
/// use elasticjob::schedule::{Dst, Schedule};
///
/// let schedule = Schedule {
///     cron: "0 30 2 * * ?".parse()?,
///     zone: "America/New_York".parse()?,
///     dst: Dst::Default,
/// };
///
/// // In the night to 8 March 2026 the clocks go from 2:00 to 3:00, so half past two is made up for at 3:00.
/// let fires: Vec<String> =
///     schedule.after("2026-03-06T12:00:00Z".parse()?).take(3).map(|at| at.to_string()).collect();
/// assert_eq!(fires, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The expression.
    pub cron: Cron,
    /// The clock it is read on.
    pub zone: Zone,
    /// What happens while that clock is changed.
    pub dst: Dst,
}

impl Schedule {
    /// The first fire after `after`, a whole second; `None` if there is none before the end of 2199.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let from = (floor(after) + 1).max(SPAN.0);
        if from > SPAN.1 {
            return None;
        }
        let fields = self.cron.fields();
        let found = match self.dst {
            Dst::Default => steady::next(fields, &self.zone, from),
            Dst::Quartz => quartz::next(fields, &self.zone, from),
        };
        found.map(timestamp)
    }

    /// The last fire before `before`; `None` if there is none since 1970.
    ///
    /// ```
    /// # use elasticjob::schedule::{Dst, Schedule, Zone};
    /// # let schedule = Schedule { cron: "0 0 0 29 2 ?".parse()?, zone: Zone::utc(), dst: Dst::Default };
    /// let before = schedule.prev_before("2026-11-15T06:36:07Z".parse()?);
    /// assert_eq!(before, Some("2024-02-29T00:00:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prev_before(&self, before: Timestamp) -> Option<Timestamp> {
        let fires_after =
            |second: i64| self.next_after(timestamp(second)).filter(|fire| *fire < before);
        // Far enough back that something fires in between, then halving: fires come in bursts, so counting them would not do.
        let mut late = before.as_second().clamp(SPAN.0, SPAN.1) + 1;
        let mut reach = 60;
        let (mut early, mut found) = loop {
            let early = (late - reach).max(SPAN.0);
            match fires_after(early) {
                Some(fire) => break (early, fire),
                None if early == SPAN.0 => return None,
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

    /// All fires after `after`, one by one.
    pub fn after(&self, after: Timestamp) -> Fires<'_> {
        Fires { schedule: self, last: after, until: Timestamp::MAX }
    }

    /// The fires after `from`, up to and including `to`.
    pub fn fires_between(&self, from: Timestamp, to: Timestamp) -> Fires<'_> {
        Fires { schedule: self, last: from, until: to }
    }
}

/// Fires of a schedule, in order. Made by [`Schedule::after`] and [`Schedule::fires_between`].
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

/// Seconds outside of which nothing fires, wherever the clock hangs.
const SPAN: (i64, i64) =
    ((FIRST_YEAR as i64 - 1970) * 366 * DAY - 2 * DAY, (LAST_YEAR as i64 + 1 - 1970) * 366 * DAY);

fn floor(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}
