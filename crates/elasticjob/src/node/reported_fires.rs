//! Which fires of a job were reported, so that none is reported twice.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use crate::schedule::{Missed, Schedule};

/// Maximum number of remembered reports. When one is dropped, all fires up to its last one count as reported.
const MAX_REPORTS: usize = 200;

/// The fires that a job loop has reported. Each report is about the shards that the instance owned then: a shard that it is assigned later may lack
/// other fires. Clones share their state.
#[derive(Debug, Clone)]
pub(super) struct ReportedFires(Arc<Mutex<Reports>>);

#[derive(Debug)]
struct Reports {
    /// Fires before this instant belong to catch-up or to an earlier schedule.
    since: Timestamp,
    /// First and last fire of each report.
    ranges: VecDeque<(Timestamp, Timestamp)>,
}

impl ReportedFires {
    pub(super) fn since(since: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Reports { since, ranges: VecDeque::new() })))
    }

    /// Another schedule applies from now on.
    pub(super) fn restart(&self, now: Timestamp) {
        *self.lock() = Reports { since: now, ranges: VecDeque::new() };
    }

    pub(super) fn note(&self, fires: Missed) {
        let mut reports = self.lock();
        reports.ranges.push_back((fires.first, fires.last));
        if reports.ranges.len() > MAX_REPORTS
            && let Some((_, last)) = reports.ranges.pop_front()
        {
            reports.since = reports.since.max(last);
        }
    }

    /// The fires after `last` and before `next` that were not reported, by a clock that shows `now` and may have been set back.
    pub(super) fn unreported(
        &self,
        schedule: &Schedule,
        (last, next): (Timestamp, Timestamp),
        now: Timestamp,
    ) -> Option<Missed> {
        let mut reports = self.lock();
        reports.since = reports.since.min(now);
        reports.ranges.retain(|(first, _)| *first <= now);
        let until = next - SignedDuration::from_nanos(1);
        let fires = schedule.fires_between(last.max(reports.since), until);
        let mut fires = fires
            .filter(|due| !reports.ranges.iter().any(|(first, last)| first <= due && due <= last));
        let first = fires.next()?;
        let mut found = Missed { first, last: first, count: 1 };
        for due in fires.take(Missed::MAX_COUNT - 1) {
            found = Missed { last: due, count: found.count + 1, ..found };
        }
        if found.count == Missed::MAX_COUNT {
            found.last = schedule.prev_before(next).unwrap_or(found.last);
        }
        Some(found)
    }

    fn lock(&self) -> MutexGuard<'_, Reports> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::Job, schedule::Zone};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn fires(first: i64, last: i64, count: usize) -> Missed {
        Missed { first: at(first), last: at(last), count }
    }

    fn every_ten() -> Schedule {
        let job = Job::named("j").unwrap().cron("0/10 * * * * ?").unwrap();
        job.schedule(&Zone::utc()).expect("the job has a cron")
    }

    #[test]
    fn only_what_was_not_reported_is_left() {
        let reported = ReportedFires::since(at(5));
        let left = |last, next| reported.unreported(&every_ten(), (at(last), at(next)), at(100));
        assert_eq!(left(0, 40), Some(fires(10, 30, 3)));
        assert_eq!(left(30, 40), None);

        // Fires that this instance skipped; then it is assigned a shard that lacks an earlier fire, too.
        reported.note(fires(30, 40, 2));
        assert_eq!(left(10, 60), Some(fires(20, 50, 2)));

        reported.restart(at(55));
        assert_eq!(left(0, 70), Some(fires(60, 60, 1)));
    }

    #[test]
    fn reports_of_a_clock_that_was_ahead_are_forgotten() {
        let reported = ReportedFires::since(at(50));
        reported.note(fires(80, 90, 2));

        assert_eq!(reported.unreported(&every_ten(), (at(0), at(20)), at(20)), None);
        let left = reported.unreported(&every_ten(), (at(0), at(100)), at(100));
        assert_eq!(left, Some(fires(30, 90, 7)), "the clock was set back");
    }
}
