//! One timer for all jobs of a process.
//!
//! Every job has one entry: when it is due next, and when after that. The task sleeps until the earliest, tells every job that is due, and
//! only then looks up when each is due again, so that nobody waits for somebody else's calendar. It goes by the wall clock, which can be
//! set, on a machine that can sleep. What was due meanwhile is told once, with the newest instant; how much else was missed is the
//! job's affair.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_channel::mpsc;
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{runtime::Clock, schedule::Schedule};

/// The timer of a process. Clones are the same timer.
#[derive(Debug, Clone)]
pub(super) struct Timer {
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    book: Mutex<Book>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Book {
    next_key: u64,
    entries: BTreeMap<u64, Entry>,
    order: BTreeSet<(Timestamp, u64)>,
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    due_at: Option<Timestamp>,
    /// The one after `due_at`: what has not passed is not looked for when it is time.
    then: Option<Timestamp>,
    tell: mpsc::UnboundedSender<Timestamp>,
}

/// A job's place in the timer. Dropping it ends its fires.
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

    /// Tells the alarm whenever `schedule` is due from now on.
    pub(super) fn set(&self, schedule: Schedule) -> Alarm {
        let (tell, due) = mpsc::unbounded();
        let now = self.clock.now();
        let mut book = self.shared.lock();
        book.next_key += 1;
        let key = book.next_key;
        book.entries.insert(key, Entry { schedule, due_at: None, then: None, tell });
        book.arrange(key, now);
        drop(book);
        self.shared.changed.notify_one();
        Alarm { key, shared: Arc::clone(&self.shared), due }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(self) {
        loop {
            let now = self.clock.now();
            let told = self.shared.lock().ring(now);
            if !told.is_empty() {
                // Those who were told go first.
                tokio::task::yield_now().await;
                let mut book = self.shared.lock();
                for (key, told) in told {
                    book.arrange(key, now.max(told));
                }
            }
            let next = self.shared.lock().order.first().map(|(due_at, _)| *due_at);
            let due = async {
                match next {
                    Some(due_at) => self.clock.sleep_until_shown(due_at).await,
                    None => std::future::pending().await,
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
    /// The next instant at which the job is due.
    pub(super) async fn due(&mut self) -> Timestamp {
        match self.due.next().await {
            Some(due_at) => due_at,
            // The other end lives in the book until this one is dropped.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut book = self.shared.lock();
        if let Some(entry) = book.entries.remove(&self.key)
            && let Some(due_at) = entry.due_at
        {
            book.order.remove(&(due_at, self.key));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing under this lock panics half way.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Tells everybody who is due; says whom and what, for them to be arranged anew.
    fn ring(&mut self, now: Timestamp) -> Vec<(u64, Timestamp)> {
        let mut told = Vec::new();
        while let Some((due_at, key)) =
            self.order.first().copied().filter(|(due_at, _)| *due_at <= now)
        {
            self.order.remove(&(due_at, key));
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            // After a sleep several may have passed: the newest one counts.
            let newest = if entry.then.is_some_and(|then| then <= now) {
                entry.schedule.prev_before(now + jiff::SignedDuration::from_nanos(1))
            } else {
                None
            };
            let due_at = newest.unwrap_or(due_at);
            let _ = entry.tell.unbounded_send(due_at);
            entry.due_at = None;
            told.push((key, due_at));
        }
        told
    }

    /// Looks up when somebody is due after `from`.
    fn arrange(&mut self, key: u64, from: Timestamp) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let next = |from| entry.schedule.next_after(from);
        entry.due_at = entry.then.filter(|then| *then > from).or_else(|| next(from));
        entry.then = entry.due_at.and_then(next);
        if let Some(due_at) = entry.due_at {
            self.order.insert((due_at, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::SignedDuration;

    use super::*;
    use crate::{
        job::Job,
        runtime::{SystemClock, Tasks},
        testing::ManualClock,
    };

    fn schedule(cron: &str) -> Schedule {
        let job = Job::named("j").unwrap().cron(cron).unwrap().zone("UTC").unwrap();
        job.schedule(&crate::schedule::Zone::utc()).expect("it has a cron")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn every_job_is_told_when_it_is_due_and_not_before() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock.clone()));
        let (mut five, mut ten) =
            (timer.set(schedule("0/5 * * * * ?")), timer.set(schedule("0/10 * * * * ?")));
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
    async fn what_was_due_while_the_machine_slept_is_told_once() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock.clone()));
        let mut alarm = timer.set(schedule("0/5 * * * * ?"));
        let mut tasks = Tasks::new();
        tasks.spawn(timer.clone().run());

        clock.advance(Duration::from_mins(1));

        assert_eq!(alarm.due().await, at("2026-11-15T06:01:00Z"));
        clock.advance(Duration::from_secs(4));
        assert_eq!(alarm.due().await, at("2026-11-15T06:01:05Z"));
    }

    #[tokio::test]
    async fn a_dropped_alarm_is_forgotten() {
        let clock = ManualClock::at(at("2026-11-15T06:00:01Z"));
        let timer = Timer::new(Arc::new(clock));
        let alarm = timer.set(schedule("0/5 * * * * ?"));

        drop(alarm);

        assert!(timer.shared.lock().entries.is_empty() && timer.shared.lock().order.is_empty());
    }

    /// Measures time: `make test` runs it while nothing else runs.
    mod alone {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn thousand_jobs_due_together_ring_within_ten_milliseconds() {
            const JOBS: usize = 1_000;
            const SECONDS: usize = 5;
            let timer = Timer::new(Arc::new(SystemClock));
            let mut alarms: Vec<Alarm> =
                (0..JOBS).map(|_| timer.set(schedule("* * * * * ?"))).collect();
            let mut tasks = Tasks::new();
            tasks.spawn(timer.run());

            let mut typical = Vec::new();
            while typical.len() < SECONDS {
                let mut late = Vec::new();
                for alarm in &mut alarms {
                    let due_at = alarm.due().await;
                    late.push(SystemClock.now().duration_since(due_at));
                }
                late.sort_unstable();
                typical.push(late[JOBS * 99 / 100]);
            }

            // A timer that is late is late in every second; what else this machine does is not its fault. All are printed.
            typical.sort_unstable();
            tracing::info!(p99 = ?typical, "late, second by second");
            assert!(typical[0] < SignedDuration::from_millis(10), "{typical:?}");
        }
    }
}
