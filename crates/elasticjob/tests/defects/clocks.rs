//! Wall clocks that are wrong, or that are set: no fire is lost.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    job::{CatchUp, Job},
    registry::memory::MemoryServer,
    runtime::{Clock, Monotonic},
    testing::ManualClock,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    cluster::{Cluster, job},
    log::Log,
    nodes::TestHandler,
};

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A clock whose wall time is ahead; its monotonic time is right.
#[derive(Debug, Clone)]
struct WrongClock {
    time: ManualClock,
    seconds_ahead: Arc<AtomicI64>,
}

impl WrongClock {
    fn new(cluster: &Cluster, ahead: SignedDuration) -> Self {
        Self::of(&cluster.clock, ahead)
    }

    fn of(time: &ManualClock, ahead: SignedDuration) -> Self {
        let seconds_ahead = Arc::new(AtomicI64::new(ahead.as_secs()));
        Self { time: time.clone(), seconds_ahead }
    }

    fn set_ahead(&self, ahead: SignedDuration) {
        self.seconds_ahead.store(ahead.as_secs(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.seconds_ahead.load(Ordering::Relaxed));
        self.time.now().saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    async fn sleep_until(&self, deadline: Monotonic) {
        self.time.sleep_until(deadline).await;
    }
}

fn hourly() -> Job {
    job(2).cron("0 0 * * * ?").unwrap()
}

/// Shard and due time of every attempt.
fn ran(handlers: &[&TestHandler]) -> BTreeSet<(u32, String)> {
    let attempts = handlers.iter().flat_map(|handler| handler.attempts());
    attempts.map(|attempt| (attempt.item, attempt.due_at)).collect()
}

/// Both shards at each of these times.
fn expected(due_at: impl IntoIterator<Item = String>) -> BTreeSet<(u32, String)> {
    due_at.into_iter().flat_map(|due_at| [(0, due_at.clone()), (1, due_at)]).collect()
}

fn assert_none_missing(ran: &BTreeSet<(u32, String)>, expected: &BTreeSet<(u32, String)>) {
    let missing: Vec<_> = expected.difference(ran).collect();
    assert!(missing.is_empty(), "never ran: {missing:?}");
}

#[tokio::test(start_paused = true)]
async fn clock_a_day_ahead_for_five_seconds_loses_no_fire() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    let clock = WrongClock::new(&cluster, SignedDuration::ZERO);
    let (_first, _connection) =
        cluster.node_with_clock(1, hourly(), &one, Arc::new(clock.clone())).await;
    let (_second, _other_connection) = cluster.node(2, hourly(), &two).await;
    cluster.advance(Duration::from_mins(30)).await;

    clock.set_ahead(DAY);
    cluster.advance_seconds(5).await;
    clock.set_ahead(SignedDuration::ZERO);
    cluster.advance(Duration::from_hours(6)).await;

    let expected = expected((7..=12).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
    assert_eq!(ran(&[&one, &two]), expected, "and none early");
}

#[tokio::test(start_paused = true)]
async fn clock_that_stays_hours_wrong_neither_loses_nor_advances_a_fire() {
    for hours in [24, 1, -1] {
        let cluster = Cluster::new().await;
        let handler = TestHandler::immediate();
        let clock = WrongClock::new(&cluster, SignedDuration::ZERO);
        let (_node, _connection) =
            cluster.node_with_clock(1, hourly(), &handler, Arc::new(clock.clone())).await;
        cluster.advance(Duration::from_mins(30)).await;

        Log::start_capture();
        clock.set_ahead(SignedDuration::from_hours(hours));
        cluster.advance(Duration::from_hours(3)).await;

        let expected = expected((7..=9).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
        assert_eq!(ran(&[&handler]), expected);
        assert_eq!(handler.attempts().len(), expected.len(), "each once");
        let logged = Log::captured();
        let reports = logged.matches("clock differs from the registry's").count();
        assert_eq!(reports, 1, "{logged}");
    }
}

#[tokio::test(start_paused = true)]
async fn registry_whose_new_leader_has_another_time_delays_no_fire() {
    for hours in [1, -1] {
        let time = crate::cluster::clock();
        let registry_clock = WrongClock::of(&time, SignedDuration::ZERO);
        let server = MemoryServer::new(Arc::new(registry_clock.clone()));
        let cluster = Cluster::on_server(server, time, "settle").await;
        let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
        let (_first, _connection) = cluster.node(1, hourly(), &one).await;
        let (_second, _other_connection) = cluster.node(2, hourly(), &two).await;
        cluster.advance(Duration::from_mins(90)).await;

        registry_clock.set_ahead(SignedDuration::from_hours(hours));
        cluster.advance(Duration::from_hours(3)).await;
        registry_clock.set_ahead(SignedDuration::ZERO);
        cluster.advance(Duration::from_hours(2)).await;

        let expected = expected((7..=12).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
        assert_eq!(ran(&[&one, &two]), expected, "{hours} h");
        let count = one.attempts().len() + two.attempts().len();
        assert_eq!(count, expected.len(), "each once, {hours} h");
    }
}

#[tokio::test(start_paused = true)]
async fn node_that_starts_beside_a_registry_an_hour_behind_loses_no_fire() {
    let time = crate::cluster::clock();
    let registry_clock = WrongClock::of(&time, SignedDuration::from_hours(-1));
    let server = MemoryServer::new(Arc::new(registry_clock.clone()));
    let cluster = Cluster::on_server(server, time, "settle").await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, hourly(), &handler).await;
    cluster.advance(Duration::from_mins(150)).await;
    // By the registry's time it is 07:30.
    let late = expected((6..=7).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
    assert_eq!(ran(&[&handler]), late);

    registry_clock.set_ahead(SignedDuration::ZERO);
    cluster.advance(Duration::from_hours(2)).await;

    let all = expected((6..=10).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
    assert_eq!(ran(&[&handler]), all);
}

#[tokio::test(start_paused = true)]
async fn fire_due_before_the_right_time_is_noticed_runs() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    // The node starts when its clock and the registry's are a day ahead.
    cluster.clock.set_wall(cluster.clock.now() + DAY);
    let monthly = job(2).cron("0 0 7 15 * ?").unwrap();
    let (_node, _connection) = cluster.node(1, monthly, &handler).await;
    cluster.advance(Duration::from_mins(1)).await;

    cluster.clock.set_wall("2026-11-15T06:59:58Z".parse().unwrap());
    cluster.advance_seconds(30).await;

    let expected = expected(["2026-11-15T07:00:00Z".to_owned()]);
    assert_none_missing(&ran(&[&handler]), &expected);
}

#[tokio::test(start_paused = true)]
async fn trigger_after_an_early_run_hides_no_fire() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, hourly(), &handler).await;
    cluster.advance(Duration::from_mins(30)).await;
    // Node and registry are a day ahead for long enough to believe it.
    cluster.clock.set_wall(cluster.clock.now() + DAY);
    cluster.advance_seconds(40).await;
    cluster.clock.set_wall(cluster.clock.now() - DAY);
    cluster.advance_seconds(40).await;
    assert!(!handler.attempts().is_empty(), "the last fire of the next day ran early");
    handler.clear();

    // A triggered run goes on while 07:00 is due.
    handler.block();
    cluster.advance(Duration::from_mins(28)).await;
    let id = cluster.children(&cluster.tree.instances()).await.remove(0);
    cluster.write(&cluster.tree.trigger(&id), "").await;
    cluster.advance(Duration::from_mins(2)).await;
    handler.unblock();
    cluster.advance_seconds(5).await;

    let expected = expected(["2026-11-15T07:00:00Z".to_owned()]);
    assert_none_missing(&ran(&[&handler]), &expected);
}

#[tokio::test(start_paused = true)]
async fn clock_of_node_and_registry_a_day_ahead_loses_no_fire() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, hourly(), &handler).await;
    cluster.advance(Duration::from_mins(30)).await;

    cluster.clock.set_wall(cluster.clock.now() + DAY);
    cluster.advance_seconds(5).await;
    cluster.clock.set_wall(cluster.clock.now() - DAY);
    cluster.advance(Duration::from_hours(6)).await;

    let expected = expected((7..=12).map(|hour| format!("2026-11-15T{hour:02}:00:00Z")));
    let ran = ran(&[&handler]);
    assert_none_missing(&ran, &expected);
    assert!(ran.len() <= expected.len() + 2, "at most one early run per shard: {ran:?}");
}

#[tokio::test(start_paused = true)]
async fn clock_an_hour_behind_repeats_no_fire() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    let clock = WrongClock::new(&cluster, SignedDuration::ZERO);
    let every_minute = || job(2).cron("0 * * * * ?").unwrap();
    let (_first, _connection) =
        cluster.node_with_clock(1, every_minute(), &one, Arc::new(clock.clone())).await;
    let (_second, _other_connection) = cluster.node(2, every_minute(), &two).await;
    cluster.advance(Duration::from_mins(70)).await;

    clock.set_ahead(SignedDuration::from_hours(-1));
    cluster.advance(Duration::from_mins(5)).await;
    clock.set_ahead(SignedDuration::ZERO);
    cluster.advance(Duration::from_mins(5)).await;

    let ran = ran(&[&one, &two]);
    assert_eq!(ran.len(), one.attempts().len() + two.attempts().len(), "each fire ran once");
    let expected = expected((15..=20).map(|minute| format!("2026-11-15T07:{minute:02}:00Z")));
    assert_none_missing(&ran, &expected);
}

#[tokio::test(start_paused = true)]
async fn node_started_with_a_clock_ahead_loses_no_fire_once_it_is_set() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let clock = WrongClock::new(&cluster, SignedDuration::from_hours(1));
    let every_minute = job(2).cron("0 * * * * ?").unwrap();
    let (_node, _connection) =
        cluster.node_with_clock(1, every_minute, &handler, Arc::new(clock.clone())).await;
    cluster.advance_seconds(5).await;

    clock.set_ahead(SignedDuration::ZERO);
    cluster.advance(Duration::from_mins(10)).await;

    let expected = expected((1..=10).map(|minute| format!("2026-11-15T06:{minute:02}:00Z")));
    assert_eq!(ran(&[&handler]), expected, "and none early");
}

#[tokio::test(start_paused = true)]
async fn registry_minutes_behind_repeats_no_fire_after_a_restart() {
    let cluster = Cluster::new().await;
    let (one, two) = (TestHandler::immediate(), TestHandler::immediate());
    // Both nodes have the right time, and the registry is behind.
    let clock = WrongClock::new(&cluster, SignedDuration::from_mins(3));
    let window = Duration::from_hours(1);
    let every_minute = || job(2).cron("0 * * * * ?").unwrap().catch_up(CatchUp::All { window });
    let (first, first_connection) =
        cluster.node_with_clock(1, every_minute(), &one, Arc::new(clock.clone())).await;
    cluster.advance(Duration::from_mins(5)).await;
    first.stop().await;
    drop(first_connection);

    let (_second, _connection) =
        cluster.node_with_clock(2, every_minute(), &two, Arc::new(clock.clone())).await;
    cluster.advance(Duration::from_mins(5)).await;

    let ran = ran(&[&one, &two]);
    assert!(!two.attempts().is_empty());
    assert_eq!(ran.len(), one.attempts().len() + two.attempts().len(), "each fire ran once");
}
