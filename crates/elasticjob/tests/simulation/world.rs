//! The cluster, and what is done to it.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio::task::{AbortHandle, JoinSet};

use super::{
    agenda::{Act, Agenda},
    book::Book,
    dice::Dice,
    java::Java,
    jobs::{Plan, Stage},
    line::{Line, Odds, Shared},
    process::{Life, Process, ProcessClock, TrueTime},
};
use elasticjob::{
    coordination::{flaw::Flaws, tree::JobTree},
    job::{RunId, Shard},
    node::{Node, NodeError, NodeJob, Running},
    registry::memory::{MemoryRegistry, MemoryServer},
    runtime::Clock,
    schedule::Zone,
};

pub(super) const NAMESPACE: &str = "sim";
/// How long the server waits before it ends a session it does not hear of.
const SESSION: Duration = Duration::from_secs(6);
/// How long what runs may take when a node stops.
const DRAIN: Duration = Duration::from_secs(5);
/// How long stopping may take: drained, told, and told goodbye.
const STOPS_WITHIN: Duration = Duration::from_mins(2);
/// How long after the last fault everything has to have come to rest: longer than anybody waits for a second look.
pub(super) const SETTLES_WITHIN: Duration = Duration::from_secs(90);
/// How long everything is watched after that.
pub(super) const WATCHED: Duration = Duration::from_secs(65);

pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) time: TrueTime,
    server: MemoryServer,
    /// Sees and writes what a console would.
    pub(super) observer: MemoryRegistry,
    pub(super) agenda: Agenda,
    pub(super) book: Arc<Book>,
    flaws: Flaws,
    pub(super) plans: Vec<Arc<Mutex<Plan>>>,
    pub(super) slots: Vec<Slot>,
    /// Every process whose session may still live.
    pub(super) lines: BTreeMap<usize, Arc<Shared>>,
    /// Who lived from when until when, and in which place.
    pub(super) lives: Vec<Living>,
    tasks: JoinSet<Told>,
    /// Java instances.
    strangers: JoinSet<()>,
    is_calm: Arc<AtomicBool>,
    pub(super) temper: Temper,
    pub(super) settled_at: Duration,
    /// What somebody asked for when everything had come to rest: of which plan, as which run.
    pub(super) asked: Vec<(usize, RunId)>,
}

/// A process that took part.
pub(super) struct Living {
    pub(super) node: usize,
    pub(super) slot: usize,
    pub(super) from: Duration,
    pub(super) until: Option<Duration>,
}

/// How rough it gets.
#[derive(Clone, Copy)]
pub(super) struct Temper {
    odds: Odds,
    /// The longest pause between two deeds, in milliseconds.
    pause: u64,
    chaos: Duration,
    pub(super) touches_configuration: bool,
}

/// A place for a process: an address.
pub(super) struct Slot {
    pub(super) node: Option<usize>,
    incarnations: usize,
    pub(super) running: Option<Running>,
    busy: Option<AbortHandle>,
    pub(super) ahead: Arc<AtomicI64>,
}

/// What a node's start or stop came to.
enum Told {
    Started(usize, Result<Running, NodeError>),
    Stopped(usize, bool),
}

impl World {
    pub(super) async fn new(seed: u64, flaws: Flaws) -> Self {
        let dice = Dice::new(seed);
        let epoch = "2026-11-15T06:00:00Z".parse().expect("an instant");
        let time = TrueTime::starting_at(epoch);
        let server = MemoryServer::new(Arc::new(time)).session_timeout(SESSION);
        let namespace = NAMESPACE.parse().expect("a good namespace");
        let observer = server.join(namespace).await.expect("memory is always there");
        let odds = Odds {
            crash: dice.pick(&[0, 0, 1_500, 4_000]),
            lost_answer: dice.pick(&[0, 200, 800]),
            unreachable: dice.pick(&[0, 300, 1_000]),
        };
        let temper = Temper {
            odds,
            pause: dice.pick(&[2_000, 6_000, 20_000, 60_000]),
            chaos: Duration::from_secs(dice.between(60, 180)),
            touches_configuration: dice.percent(60),
        };
        let jobs = dice.between(1, 3) as usize;
        let has_java = dice.percent(20);
        let plans = (0..jobs).map(|number| {
            let mut plan = Plan::draw(number, &dice);
            plan.has_java = has_java && number == 0 && plan.is_for_java();
            Arc::new(Mutex::new(plan))
        });
        let plans = plans.collect();
        let slots = dice.between(3, 7);
        let slots = (0..slots).map(|_| Slot {
            node: None,
            incarnations: 0,
            running: None,
            busy: None,
            ahead: Arc::new(AtomicI64::new(if dice.percent(50) {
                dice.between(0, 4_000) as i64 - 2_000
            } else {
                0
            })),
        });
        let slots = slots.collect();
        Self {
            time,
            server,
            observer,
            agenda: Agenda::default(),
            book: Arc::new(Book::new(time)),
            flaws,
            plans,
            slots,
            lines: BTreeMap::new(),
            lives: Vec::new(),
            tasks: JoinSet::new(),
            strangers: JoinSet::new(),
            is_calm: Arc::default(),
            temper,
            settled_at: Duration::ZERO,
            asked: Vec::new(),
            dice,
        }
    }

    /// Everything that happens, until it is over or a promise is broken.
    pub(super) async fn run(&mut self) {
        self.open();
        loop {
            let now = self.time.monotonic();
            if let Some(act) = self.agenda.take(now) {
                if matches!(act, Act::End) {
                    return;
                }
                self.act(act).await;
                self.book.disturbed(self.is_disturbed());
                continue;
            }
            let Some(next) = self.agenda.next_at() else { return };
            tokio::select! {
                biased;
                () = self.book.broken.notified() => return,
                Some(told) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Ok(told) = told {
                        self.told(told);
                    }
                }
                () = self.agenda.changed() => {}
                () = self.time.sleep_until(next) => {}
            }
            self.book.disturbed(self.is_disturbed());
        }
    }

    fn open(&mut self) {
        let now = self.time.monotonic();
        for slot in 0..self.slots.len() {
            let then = now + Duration::from_millis(self.dice.between(0, 5_000));
            self.agenda.add(then, Act::Start { slot });
        }
        self.agenda.add(now + Duration::from_secs(6), Act::Mischief);
        for plan in self.plans.iter().filter(|plan| lock(plan).has_java) {
            let java = Java {
                server: self.server.clone(),
                time: self.time,
                dice: self.dice.fork(),
                plan: Arc::clone(plan),
                book: Arc::clone(&self.book),
                is_calm: Arc::clone(&self.is_calm),
                number: 4_000,
            };
            self.strangers.spawn(java.live());
        }
        let calm = now + Duration::from_secs(10) + self.temper.chaos;
        self.agenda.add(calm, Act::Calm);
    }

    fn is_disturbed(&self) -> bool {
        self.lines.values().any(|line| line.is_disturbed())
            || self.slots.iter().any(|slot| slot.busy.is_some())
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Expire { node, session, silence } => {
                if let Some(line) = self.lines.get(&node)
                    && line.expire(silence)
                {
                    self.book.tell(format_args!("the session of n{node} is over"));
                    self.book.session_ended(session);
                    if line.process.life() == Life::Gone {
                        self.lines.remove(&node);
                    }
                }
            }
            Act::Crashed { node } => self.bury(node),
            Act::Heal { node } => {
                if let Some(line) = self.lines.get(&node) {
                    self.book.tell(format_args!("n{node} is connected again"));
                    line.heal();
                }
            }
            Act::Thaw { node } => {
                if let Some(line) = self.lines.get(&node) {
                    self.book.tell(format_args!("n{node} thaws"));
                    line.thaw();
                }
            }
            Act::Recover { node } => {
                if let Some(line) = self.lines.get(&node) {
                    line.set_travel(0, 3);
                    line.set_deaf(None);
                }
            }
            Act::Start { slot } => self.start(slot).await,
            Act::Stop { node } => {
                if self.slots[node % 10].node == Some(node) {
                    self.stop(node % 10);
                }
            }
            Act::Mischief => {
                if !self.is_calm.load(Ordering::Relaxed) {
                    self.mischief().await;
                    let pause = Duration::from_millis(self.dice.between(200, self.temper.pause));
                    self.agenda.add(self.time.monotonic() + pause, Act::Mischief);
                }
            }
            Act::Enable { job } => self.enable(job).await,
            Act::End => {}
            Act::Calm => self.calm().await,
            Act::Settled => {
                self.settled_at = self.time.elapsed();
                self.book.tell(format_args!("everything should have come to rest"));
                self.ask_for_all().await;
            }
        }
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Started(node, started) => {
                let slot = node % 10;
                if self.slots[slot].node != Some(node) {
                    return;
                }
                self.slots[slot].busy = None;
                match started {
                    Ok(running) => {
                        self.book.tell(format_args!("n{node} has joined"));
                        self.slots[slot].running = Some(running);
                        let from = self.time.elapsed();
                        self.lives.push(Living { node, slot, from, until: None });
                    }
                    Err(error) => {
                        self.book.tell(format_args!("n{node} did not join: {error}"));
                        if let Some(line) = self.lines.get(&node) {
                            line.kill();
                        }
                        self.bury(node);
                    }
                }
            }
            Told::Stopped(node, in_time) => {
                if !in_time {
                    self.book
                        .violated(format_args!("n{node} did not stop within {STOPS_WITHIN:?}"));
                }
                self.book.tell(format_args!("n{node} has left"));
                if let Some(line) = self.lines.get(&node) {
                    line.kill();
                }
                self.bury(node);
            }
        }
    }

    /// A process is gone; another takes its place after a while.
    pub(super) fn bury(&mut self, node: usize) {
        let slot = node % 10;
        if self.slots[slot].node != Some(node) {
            return;
        }
        self.end_life(node);
        self.book.process_gone(node);
        let place = &mut self.slots[slot];
        place.node = None;
        drop(place.running.take());
        if let Some(busy) = place.busy.take() {
            busy.abort();
        }
        if self.lines.get(&node).is_some_and(|line| !line.may_expire()) {
            self.lines.remove(&node);
        }
        let pause = self
            .dice
            .between(500, if self.is_calm.load(Ordering::Relaxed) { 2_000 } else { 25_000 });
        self.agenda.add(self.time.monotonic() + Duration::from_millis(pause), Act::Start { slot });
    }

    pub(super) fn end_life(&mut self, node: usize) {
        let now = self.time.elapsed();
        for life in self.lives.iter_mut().filter(|life| life.node == node && life.until.is_none()) {
            life.until = Some(now);
        }
    }

    async fn start(&mut self, slot: usize) {
        if self.slots[slot].node.is_some() {
            return;
        }
        let namespace = NAMESPACE.parse().expect("a good namespace");
        let Ok(inner) = self.server.join(namespace).await else { return };
        let place = &mut self.slots[slot];
        let node = place.incarnations * 10 + slot;
        place.incarnations += 1;
        place.node = Some(node);
        self.book.tell(format_args!("n{node} starts"));
        let process = Process::new();
        let clock = ProcessClock {
            time: self.time,
            process: process.clone(),
            ahead: Arc::clone(&place.ahead),
        };
        let line = Line::new(
            node,
            process,
            inner,
            self.time,
            self.dice.fork(),
            self.agenda.clone(),
            Arc::clone(&self.book),
        );
        let shared = Arc::clone(line.shared());
        if !self.is_calm.load(Ordering::Relaxed) {
            shared.set_odds(self.temper.odds);
        }
        self.lines.insert(node, Arc::clone(&shared));
        let dice = Arc::new(self.dice.fork());
        let mut builder = Node::on(Arc::new(line))
            .address(Ipv4Addr::new(10, 0, 0, slot as u8 + 1))
            .clock(Arc::new(clock.clone()))
            .randomness(Arc::new(self.dice.fork()))
            .flaws(self.flaws)
            .drain(DRAIN)
            .zone(Zone::utc());
        for plan in &self.plans {
            let job = lock(plan).job.clone();
            let stage = Stage {
                book: Arc::clone(&self.book),
                line: Arc::clone(&shared),
                clock: clock.clone(),
                dice: Arc::clone(&dice),
                plan: Arc::clone(plan),
                is_calm: Arc::clone(&self.is_calm),
            };
            let handler = move |shard: Shard| stage.clone().work(shard);
            builder = builder.with(NodeJob::code(job, handler));
        }
        let starting = async move { Told::Started(node, builder.start().await) };
        self.slots[slot].busy = Some(self.tasks.spawn(starting));
    }

    pub(super) fn stop(&mut self, slot: usize) {
        let place = &mut self.slots[slot];
        let (Some(node), Some(running)) = (place.node, place.running.take()) else { return };
        self.book.tell(format_args!("n{node} is asked to stop"));
        let stopping = async move {
            let in_time = tokio::time::timeout(STOPS_WITHIN, running.stop()).await.is_ok();
            Told::Stopped(node, in_time)
        };
        place.busy = Some(self.tasks.spawn(stopping));
        self.end_life(node);
    }

    /// No more faults: what is wrong is put right, and everybody has some time.
    async fn calm(&mut self) {
        self.book.tell(format_args!("no more faults"));
        self.is_calm.store(true, Ordering::Relaxed);
        for line in self.lines.values() {
            line.set_odds(Odds::default());
            line.set_travel(0, 3);
            line.set_deaf(None);
            line.heal();
            line.thaw();
        }
        for slot in &self.slots {
            slot.ahead.store(0, Ordering::Relaxed);
        }
        for number in 0..self.plans.len() {
            self.enable(number).await;
        }
        // Between two fires, so that nothing runs when it is looked at.
        let now = self.time.elapsed() + SETTLES_WITHIN;
        let settled =
            Duration::from_secs(now.as_secs().next_multiple_of(5)) + Duration::from_millis(2_500);
        let start = self.time.monotonic() + settled.saturating_sub(self.time.elapsed());
        self.agenda.add(start, Act::Settled);
        self.agenda.add(start + WATCHED, Act::End);
    }

    /// Everybody leaves, in time.
    pub(super) async fn close(&mut self) {
        for slot in 0..self.slots.len() {
            self.stop(slot);
        }
        let all = async {
            while let Some(told) = self.tasks.join_next().await {
                if let Ok(Told::Stopped(node, false)) = told {
                    self.book
                        .violated(format_args!("n{node} did not stop within {STOPS_WITHIN:?}"));
                }
            }
        };
        if tokio::time::timeout(STOPS_WITHIN * 2, all).await.is_err() {
            self.book.violated(format_args!("not everybody came to an end"));
        }
    }

    /// The places of those who run.
    pub(super) fn running(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.slots[*slot].running.is_some()).collect()
    }
}

pub(super) fn tree_of(plan: &Arc<Mutex<Plan>>) -> JobTree {
    let name = lock(plan).job.name.clone();
    JobTree::new(&NAMESPACE.parse().expect("a good namespace"), &name).expect("a good name")
}

pub(super) fn lock(plan: &Arc<Mutex<Plan>>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}
