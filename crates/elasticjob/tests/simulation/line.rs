//! A node's line to the registry, with everything that can happen on it.
//!
//! Requests travel, arrive, and are answered; each step can be slow, be cut, or be the last thing the process does. What holds on a real
//! line holds here: an answer comes after every notification of what was committed before it, a session ends only when the server has
//! not heard of it for the timeout, and its deadline counts from when the newest answered request was sent.

use std::{
    fmt,
    future::pending,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{
    agenda::{Act, Agenda},
    book::Book,
    dice::Dice,
    process::{Life, Process, TrueTime},
};
use elasticjob::{
    registry::{
        Committed, Error, Event, Lease, Namespace, Node, Op, Path, Registry, Session, SessionId,
        SessionState, Stat, StateSource, States, Watch, WatchSource, memory::MemoryRegistry,
    },
    runtime::{Clock, Monotonic},
};

/// How often what goes wrong on a line by itself, in requests; zero for never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Odds {
    pub(super) crash: u64,
    pub(super) lost_answer: u64,
    pub(super) unreachable: u64,
}

/// One member of the cluster, as its process holds it.
pub(super) struct Line {
    shared: Arc<Shared>,
    namespace: Namespace,
}

/// What process, world and watches share about a line.
pub(super) struct Shared {
    me: Weak<Shared>,
    pub(super) node: usize,
    pub(super) process: Process,
    inner: MemoryRegistry,
    time: TrueTime,
    dice: Dice,
    agenda: Agenda,
    book: Arc<Book>,
    timeout: Duration,
    state: Mutex<State>,
    /// How often something was answered: whatever was told by then is heard.
    answers: AtomicU64,
    /// The connection, the session, or how well it is heard has changed. Not a channel, because those wake in any order.
    changed: Notify,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a line")]
struct State {
    /// Until when notifications are held back.
    deaf: Option<Monotonic>,
    session: SessionId,
    deadline: Monotonic,
    odds: Odds,
    /// How long a request or an answer travels, in milliseconds.
    travel: (u64, u64),
    is_up: bool,
    /// How often the connection broke: what was on its way then is lost.
    breaks: u64,
    /// Since when the server has not heard of the process.
    silences: u64,
    is_silent: bool,
    /// The server ended the session.
    is_expired: bool,
    /// The connection has to be made anew.
    is_broken: bool,
    is_closed: bool,
    /// Since when it has heard everything.
    connected_since: Duration,
}

impl Line {
    pub(super) fn new(
        node: usize,
        process: Process,
        inner: MemoryRegistry,
        time: TrueTime,
        dice: Dice,
        agenda: Agenda,
        book: Arc<Book>,
    ) -> Self {
        let session = inner.session();
        let state = State {
            deaf: None,
            session: session.id(),
            deadline: time.monotonic() + session.timeout(),
            odds: Odds::default(),
            travel: (0, 3),
            is_up: true,
            breaks: 0,
            silences: 0,
            is_silent: false,
            is_expired: false,
            is_broken: false,
            is_closed: false,
            connected_since: time.elapsed(),
        };
        let namespace = inner.namespace().clone();
        let timeout = session.timeout();
        let shared = |me: &Weak<Shared>| Shared {
            me: Weak::clone(me),
            node,
            process,
            inner,
            time,
            dice,
            agenda,
            book,
            timeout,
            state: Mutex::new(state),
            answers: AtomicU64::new(0),
            changed: Notify::new(),
        };
        Self { shared: Arc::new_cyclic(shared), namespace }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this session is believed in now.
    pub(super) fn believes_in(&self, session: SessionId) -> bool {
        self.process.life() != Life::Gone && self.time.monotonic() < self.deadline_of(session)
    }

    fn deadline_of(&self, session: SessionId) -> Monotonic {
        let state = self.lock();
        if state.session == session && !state.is_closed {
            state.deadline
        } else {
            Monotonic::from_start(Duration::ZERO)
        }
    }

    /// As the process sees it; `None` once closed.
    fn present(&self) -> Option<SessionState> {
        let state = self.lock();
        let is_connected = state.is_up && !state.is_broken;
        match (state.is_closed, is_connected) {
            (true, _) => None,
            (false, true) => Some(SessionState::Connected(state.session)),
            (false, false) => Some(SessionState::Suspended(state.session)),
        }
    }

    pub(super) fn session_id(&self) -> SessionId {
        self.lock().session
    }

    /// Whether something is wrong with the line, or with the process.
    pub(super) fn is_disturbed(&self) -> bool {
        let state = self.lock();
        let is_over = state.is_closed || (state.is_expired && self.process.life() == Life::Gone);
        !is_over
            && (!state.is_up
                || state.is_expired
                || state.is_silent
                || state.travel.1 > 10
                || state.deaf.is_some()
                || self.process.life() != Life::Runs)
    }

    /// Since when it has heard everything that was told.
    pub(super) fn connected_since(&self) -> Duration {
        self.lock().connected_since
    }

    /// Whether the server will end its session some time.
    pub(super) fn may_expire(&self) -> bool {
        let state = self.lock();
        !state.is_closed && !state.is_expired
    }

    pub(super) fn set_odds(&self, odds: Odds) {
        self.lock().odds = odds;
    }

    pub(super) fn set_travel(&self, low: u64, high: u64) {
        self.lock().travel = (low, high);
    }

    pub(super) fn set_deaf(&self, until: Option<Monotonic>) {
        self.lock().deaf = until;
        self.changed.notify_waiters();
    }

    /// The connection breaks.
    pub(super) fn cut(&self) {
        let mut state = self.lock();
        if !state.is_up || state.is_closed {
            return;
        }
        state.is_up = false;
        state.is_broken = true;
        state.breaks += 1;
        drop(state);
        self.inner.link().cut();
        self.changed.notify_waiters();
        self.listen();
    }

    /// The connection is back, as soon as the process runs.
    pub(super) fn heal(&self) {
        self.lock().is_up = true;
        self.reconnect();
        self.listen();
    }

    pub(super) fn freeze(&self) {
        self.process.set(Life::Frozen);
        self.listen();
    }

    pub(super) fn thaw(&self) {
        self.process.set(Life::Runs);
        self.reconnect();
        self.listen();
    }

    pub(super) fn kill(&self) {
        self.process.set(Life::Gone);
        self.listen();
    }

    /// A process that runs takes its session up again, or begins a new one.
    fn reconnect(&self) {
        let mut state = self.lock();
        if !state.is_up || state.is_closed || self.process.life() != Life::Runs {
            return;
        }
        if !std::mem::take(&mut state.is_broken) {
            return;
        }
        self.inner.link().heal();
        state.connected_since = self.time.elapsed();
        let session = self.inner.session().id();
        if session != state.session {
            state.session = session;
            state.deadline = self.time.monotonic() + self.timeout;
            state.is_expired = false;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The server hears of a process that runs and is connected all the time; of others not at all.
    fn listen(&self) {
        let mut state = self.lock();
        let is_silent = !state.is_up || self.process.life() != Life::Runs;
        if state.is_closed || is_silent == state.is_silent {
            return;
        }
        state.is_silent = is_silent;
        state.silences += 1;
        if is_silent && !state.is_expired {
            // It was heard of a moment ago, and the server looks now and then.
            let heard = self.dice.between(0, self.timeout.as_millis() as u64 / 3);
            let looks = self.dice.between(0, 2_000);
            let now = self.time.monotonic();
            let earliest = state.deadline.max(now + self.timeout - Duration::from_millis(heard));
            let silence = state.silences;
            drop(state);
            let then = earliest + Duration::from_millis(looks);
            self.agenda
                .add(then, Act::Expire { node: self.node, session: self.session_id(), silence });
        }
    }

    /// The server has not heard of it for too long.
    pub(super) fn expire(&self, silence: u64) -> bool {
        let mut state = self.lock();
        if state.silences != silence || state.is_expired || state.is_closed {
            return false;
        }
        state.is_expired = true;
        state.is_broken = true;
        state.breaks += 1;
        drop(state);
        self.inner.link().cut();
        self.inner.link().expire();
        true
    }

    fn lost(&self) -> Error {
        Error::Unknown { endpoint: format!("n{}", self.node) }
    }

    async fn travel(&self) {
        let (low, high) = self.lock().travel;
        let span = self.dice.between(low, high);
        if span > 0 {
            tokio::time::sleep(Duration::from_millis(span)).await;
        }
    }

    async fn crash(&self, what: &str) -> ! {
        self.book.tell(format_args!("n{} crashes {what}", self.node));
        self.kill();
        self.agenda.add(self.time.monotonic(), Act::Crashed { node: self.node });
        pending().await
    }

    async fn request<T>(
        &self,
        what: &str,
        passes_leader: bool,
        act: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.process.runs().await;
        self.book.count_request();
        let sent = self.time.monotonic();
        let (odds, breaks, session) = {
            let state = self.lock();
            if state.is_closed {
                return Err(Error::Closed);
            }
            (state.odds, state.breaks, state.session)
        };
        if self.dice.once_in(odds.crash) {
            self.crash(&format!("before {what}")).await;
        }
        let is_cut = !self.lock().is_up;
        if is_cut || self.dice.once_in(odds.unreachable) {
            if !is_cut {
                self.book.tell(format_args!("n{} is cut off before {what}", self.node));
                self.break_for_a_while();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.process.runs().await;
            return Err(Error::Unreachable {
                endpoint: format!("n{}", self.node),
                source: "the line is cut".into(),
            });
        }
        self.travel().await;
        if self.lock().breaks != breaks {
            self.process.runs().await;
            return Err(self.lost());
        }
        let result = act.await;
        if self.dice.once_in(odds.crash) {
            self.crash(&format!("after {what}")).await;
        }
        if self.dice.once_in(odds.lost_answer) {
            self.book.tell(format_args!("n{} loses the answer to {what}", self.node));
            self.break_for_a_while();
            self.process.runs().await;
            return Err(self.lost());
        }
        self.travel().await;
        self.process.runs().await;
        let mut state = self.lock();
        if state.breaks != breaks && !state.is_closed {
            drop(state);
            return Err(self.lost());
        }
        // Whatever was told before this answer is heard before it.
        self.answers.fetch_add(1, Ordering::Relaxed);
        let is_answer = !matches!(&result, Err(error) if error.is_outage());
        if passes_leader && is_answer && state.session == session {
            state.deadline = state.deadline.max(sent + self.timeout);
        }
        drop(state);
        result
    }

    fn break_for_a_while(&self) {
        self.cut();
        let span = Duration::from_millis(self.dice.between(10, 4_000));
        self.agenda.add(self.time.monotonic() + span, Act::Heal { node: self.node });
    }
}

#[async_trait]
impl Registry for Line {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn session(&self) -> Session {
        let id = self.shared.session_id();
        Session::new(id, self.shared.timeout, Arc::clone(&self.shared) as Arc<dyn Lease>)
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let what = shown(&ops);
        let act = async {
            let session = self.shared.session_id();
            let result = self.shared.inner.multi(ops.clone()).await;
            if result.is_ok() {
                self.shared.book.committed(self.shared.node, session, &ops);
            }
            result
        };
        self.shared.request(&what, true, act).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.shared.request("a read", false, self.shared.inner.get(path)).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.shared.request("a look", false, self.shared.inner.exists(path)).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.shared.request("a list", false, self.shared.inner.children(path)).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.shared.request("a sync", true, self.shared.inner.sync()).await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let inner = self.shared.request("a watch", false, self.shared.inner.watch(prefix)).await?;
        Ok(Watch::new(Held { inner, line: Arc::clone(&self.shared), kept: None, heard: 0 }))
    }

    async fn close(&self) {
        self.shared.process.runs().await;
        let is_up = {
            let mut state = self.shared.lock();
            state.is_closed = state.is_up;
            state.is_up
        };
        self.shared.changed.notify_waiters();
        if is_up {
            self.shared.book.session_ended(self.shared.session_id());
            self.shared.inner.close().await;
        }
    }
}

fn shown(ops: &[Op]) -> String {
    let part = |op: &Op| {
        let (verb, path) = match op {
            Op::Create(create) => ("+", &create.path),
            Op::Set { path, .. } => ("=", path),
            Op::Delete { path, .. } => ("-", path),
            Op::Check { path, .. } => ("?", path),
        };
        format!("{verb}{}", path.as_str().trim_start_matches("/sim"))
    };
    ops.iter().map(part).collect::<Vec<_>>().join(" ")
}

impl Lease for Shared {
    fn deadline(&self, session: SessionId) -> Monotonic {
        self.deadline_of(session)
    }

    fn states(&self) -> States {
        let line = self.me.upgrade().expect("it is asked while it is there");
        let present = line.present();
        States::new(present, Reporter { line, told: present })
    }
}

/// Tells what becomes of the session, to a process that runs.
struct Reporter {
    line: Arc<Shared>,
    told: Option<SessionState>,
}

#[async_trait]
impl StateSource for Reporter {
    async fn newest(&mut self) -> Option<SessionState> {
        loop {
            self.line.process.runs().await;
            let mut changed = pin!(self.line.changed.notified());
            changed.as_mut().enable();
            let present = self.line.present();
            if present != self.told {
                self.told = present;
                return present;
            }
            changed.await;
        }
    }
}

/// A watch whose notifications can be late, though never later than an answer.
struct Held {
    inner: Watch,
    line: Arc<Shared>,
    /// Taken from the queue, and not given out when the process froze.
    kept: Option<Event>,
    /// Up to which answer everything has been heard.
    heard: u64,
}

impl Held {
    fn is_held(&self) -> bool {
        let deaf = self.line.lock().deaf;
        let is_deaf = deaf.is_some_and(|until| self.line.time.monotonic() < until);
        let is_answered = self.line.answers.load(Ordering::Relaxed) != self.heard;
        self.line.process.life() != Life::Runs || (is_deaf && !is_answered)
    }
}

#[async_trait]
impl WatchSource for Held {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.line.process.runs().await;
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            let deaf = self.line.lock().deaf;
            if let Some(until) = deaf.filter(|until| self.line.time.monotonic() < *until) {
                self.line.time.sleep_until(until).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.line.changed.notified() => {}
                event = self.inner.next() => match event {
                    None => return None,
                    Some(event) => self.kept = Some(event),
                }
            }
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        if self.is_held() {
            return None;
        }
        let event = self.kept.take().or_else(|| self.inner.try_next());
        if event.is_none() {
            self.heard = self.line.answers.load(Ordering::Relaxed);
        }
        event
    }

    fn is_current(&self) -> bool {
        self.kept.is_none() && self.inner.is_current()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the line of n{}", self.shared.node)
    }
}
