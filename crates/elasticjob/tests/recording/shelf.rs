//! A sink that does what a test says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    history::{Ended, Event, Line, Sink, SinkError, Started, Status},
    runtime::{Clock, Monotonic},
    testing::ManualClock,
};
use jiff::Timestamp;

/// How a sink is.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    Good,
    Down,
    Refuses(&'static str),
    /// It keeps no batch with such an event in it.
    Chokes(fn(&Event) -> bool),
    /// It panics.
    Mad,
    /// It never answers.
    Silent,
    /// It takes this long, by tokio's clock.
    Slow(Duration),
}

/// Keeps events, if it is in the mood.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) mood: Mutex<Mood>,
    pub(crate) batches: Mutex<Vec<Vec<Event>>>,
    pub(crate) asked: Mutex<usize>,
}

impl Shelf {
    pub(crate) fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Self {
            mood: Mutex::new(mood),
            batches: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.batches.lock().unwrap().concat()
    }

    pub(crate) fn started(&self) -> Vec<Arc<Started>> {
        let started = self.events().into_iter().filter_map(|event| match event {
            Event::Started(started) => Some(started),
            _ => None,
        });
        started.collect()
    }

    pub(crate) fn ended(&self) -> Vec<Ended> {
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
impl Sink for Shelf {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        *self.asked.lock().unwrap() += 1;
        let mood = self.mood.lock().unwrap().clone();
        match mood {
            Mood::Down => return Err(SinkError::Later("the database is down".into())),
            Mood::Refuses(why) => return Err(SinkError::Refused(why.into())),
            Mood::Chokes(on) if batch.iter().any(on) => {
                return Err(SinkError::Unfit("there is no room for this".into()));
            }
            Mood::Good | Mood::Chokes(_) => {}
            Mood::Mad => panic!("what is this"),
            Mood::Silent => std::future::pending().await,
            Mood::Slow(span) => tokio::time::sleep(span).await,
        }
        self.batches.lock().unwrap().push(batch.to_vec());
        Ok(())
    }
}

/// Lets time pass in small steps, each until everybody has come to rest.
pub(crate) async fn pass(clock: &ManualClock, span: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    let until = clock.monotonic() + span;
    rest().await;
    while clock.monotonic() < until {
        clock.advance(STEP);
        rest().await;
    }
}

/// Paused time moves only when nobody has anything to do.
pub(crate) async fn rest() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Shows noon when the test began; time passes as tokio's does.
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
