//! A sink whose behaviour the tests control.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    history::{AttemptEnded, AttemptStarted, Event, Line, Sink, SinkError, Status},
    runtime::{Clock, Monotonic},
    testing::ManualClock,
};
use jiff::Timestamp;

/// How the sink reacts to a batch.
#[derive(Debug, Clone)]
pub(crate) enum Behaviour {
    Good,
    Down,
    Refuses(&'static str),
    /// Rejects a batch that contains such an event.
    Rejects(fn(&Event) -> bool),
    Panics,
    Hangs,
    /// Takes this long, by tokio's clock.
    Slow(Duration),
}

/// Stores events in memory.
#[derive(Debug)]
pub(crate) struct TestSink {
    pub(crate) behaviour: Mutex<Behaviour>,
    pub(crate) batches: Mutex<Vec<Vec<Event>>>,
    pub(crate) calls: Mutex<usize>,
}

impl TestSink {
    pub(crate) fn new(behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            behaviour: Mutex::new(behaviour),
            batches: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    pub(crate) fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(crate) fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.batches.lock().unwrap().concat()
    }

    pub(crate) fn started(&self) -> Vec<Arc<AttemptStarted>> {
        let started = self.events().into_iter().filter_map(|event| match event {
            Event::Started(started) => Some(started),
            _ => None,
        });
        started.collect()
    }

    pub(crate) fn ended(&self) -> Vec<AttemptEnded> {
        let ended = self.events().into_iter().filter_map(|event| match event {
            Event::Ended(ended) => Some(ended),
            _ => None,
        });
        ended.collect()
    }

    pub(crate) fn statuses(&self) -> Vec<Status> {
        let statuses = self.events().into_iter().filter_map(|event| match event {
            Event::Status(status) => Some(status),
            _ => None,
        });
        statuses.collect()
    }

    pub(crate) fn lines(&self) -> Vec<(u32, Line)> {
        let printed = self.events().into_iter().filter_map(|event| match event {
            Event::Printed(printed) => Some((printed.item, printed.lines)),
            _ => None,
        });
        printed.flat_map(|(item, lines)| lines.into_iter().map(move |line| (item, line))).collect()
    }
}

#[async_trait]
impl Sink for TestSink {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        *self.calls.lock().unwrap() += 1;
        let behaviour = self.behaviour.lock().unwrap().clone();
        match behaviour {
            Behaviour::Down => return Err(SinkError::Unavailable("the database is down".into())),
            Behaviour::Refuses(why) => return Err(SinkError::Refused(why.into())),
            Behaviour::Rejects(on) if batch.iter().any(on) => {
                return Err(SinkError::InvalidEvent("event too large".into()));
            }
            Behaviour::Good | Behaviour::Rejects(_) => {}
            Behaviour::Panics => panic!("simulated panic"),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::Slow(span) => tokio::time::sleep(span).await,
        }
        self.batches.lock().unwrap().push(batch.to_vec());
        Ok(())
    }
}

/// Advances the clock in small steps, and waits after each until all tasks are idle.
pub(crate) async fn advance(clock: &ManualClock, span: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    let until = clock.monotonic() + span;
    wait_until_idle().await;
    while clock.monotonic() < until {
        clock.advance(STEP);
        wait_until_idle().await;
    }
}

/// Waits until all tasks are idle: only then paused time moves.
pub(crate) async fn wait_until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Starts at noon and follows tokio's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokioClock(tokio::time::Instant);

impl TokioClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        "2026-11-15T12:00:00Z".parse::<Timestamp>().unwrap() + self.0.elapsed()
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_hours(1) + self.0.elapsed())
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        tokio::time::sleep(deadline.saturating_since(self.monotonic())).await;
    }
}
