//! The simulated network: a node's connection to the registry, and the faults on it.
//!
//! A request is sent, performed and answered. Each step can be slow, can fail because the connection breaks, and can be the last thing that the
//! process does. The simulated connection gives the same guarantees as a real one:
//! * a response comes after every notification of a transaction that was committed before it;
//! * a session ends only when the server has not heard from the process for the session timeout;
//! * the deadline of a session counts from the moment at which the newest answered request was sent.

use std::{
    collections::BTreeSet,
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
    oracle::Oracle,
    process::{Process, ProcessState, TrueTime},
    rng::Rng,
    schedule::{Action, Schedule},
};
use elasticjob::{
    registry::{
        Committed, Error, Event, Lease, Limits, Namespace, Node, Op, Path, Registry, Session,
        SessionId, SessionState, SessionStates, Stat, StateSource, Watch, WatchSource,
        memory::MemoryRegistry,
    },
    runtime::{Clock, Monotonic},
};

/// How often faults happen by themselves: once in so many requests; zero means never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FaultRates {
    pub(super) crash: u64,
    pub(super) lost_response: u64,
    pub(super) unreachable: u64,
    /// Refused by a server that is overloaded.
    pub(super) throttled: u64,
    /// Of requests that claim or release shards of more than `large_batch` jobs: the response is lost.
    pub(super) lost_batch: u64,
    pub(super) large_batch: usize,
}

/// The registry as a node sees it.
pub(super) struct SimulatedRegistry {
    connection: Arc<Connection>,
    namespace: Namespace,
    limits: Limits,
}

/// A node's connection to the registry, shared by the node, its watches and the world.
pub(super) struct Connection {
    this: Weak<Connection>,
    pub(super) node: usize,
    pub(super) process: Process,
    inner: MemoryRegistry,
    time: TrueTime,
    rng: Rng,
    /// For faults that came later, so that the numbers of the others stay the same.
    late_rng: Rng,
    schedule: Schedule,
    oracle: Arc<Oracle>,
    timeout: Duration,
    state: Mutex<ConnectionState>,
    /// Number of responses. A watch delivers its pending notifications after every response, even while notifications are held back.
    response_count: AtomicU64,
    /// Notified when the connection, the session or the holding back of notifications changes. Not a channel, because a channel wakes its
    /// receivers in any order.
    changed: Notify,
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts about a connection")]
struct ConnectionState {
    notifications_held_until: Option<Monotonic>,
    session: SessionId,
    deadline: Monotonic,
    fault_rates: FaultRates,
    /// How long a request or a response takes, in milliseconds: shortest and longest.
    latency: (u64, u64),
    is_up: bool,
    /// How often the connection broke. A request or response that was under way at a break is lost.
    break_count: u64,
    /// How often the server stopped or resumed hearing from the process.
    silence_count: u64,
    is_silent: bool,
    /// The server has ended the session.
    is_expired: bool,
    /// The process has to reconnect.
    is_broken: bool,
    is_closed: bool,
    /// Since when the node has received every notification.
    connected_since: Duration,
}

impl SimulatedRegistry {
    pub(super) fn new(
        node: usize,
        process: Process,
        inner: MemoryRegistry,
        time: TrueTime,
        (rng, late_rng): (Rng, Rng),
        schedule: Schedule,
        oracle: Arc<Oracle>,
    ) -> Self {
        let session = inner.session();
        let state = ConnectionState {
            notifications_held_until: None,
            session: session.id(),
            deadline: time.monotonic() + session.timeout(),
            fault_rates: FaultRates::default(),
            latency: (0, 3),
            is_up: true,
            break_count: 0,
            silence_count: 0,
            is_silent: false,
            is_expired: false,
            is_broken: false,
            is_closed: false,
            connected_since: time.elapsed(),
        };
        let namespace = inner.namespace().clone();
        let timeout = session.timeout();
        let connection = |this: &Weak<Connection>| Connection {
            this: Weak::clone(this),
            node,
            process,
            inner,
            time,
            rng,
            late_rng,
            schedule,
            oracle,
            timeout,
            state: Mutex::new(state),
            response_count: AtomicU64::new(0),
            changed: Notify::new(),
        };
        let limits = Limits::ZOOKEEPER;
        Self { connection: Arc::new_cyclic(connection), namespace, limits }
    }

    pub(super) fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process may trust this session now.
    pub(super) fn has_valid_lease(&self, session: SessionId) -> bool {
        self.process.state() != ProcessState::Dead
            && self.time.monotonic() < self.deadline_of(session)
    }

    fn deadline_of(&self, session: SessionId) -> Monotonic {
        let state = self.lock();
        if state.session == session && !state.is_closed {
            state.deadline
        } else {
            Monotonic::from_start(Duration::ZERO)
        }
    }

    /// The state that the process sees; `None` once the session is closed.
    fn session_state(&self) -> Option<SessionState> {
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

    /// Whether a fault affects the connection or the process.
    pub(super) fn is_disturbed(&self) -> bool {
        let state = self.lock();
        let is_over =
            state.is_closed || (state.is_expired && self.process.state() == ProcessState::Dead);
        !is_over
            && (!state.is_up
                || state.is_expired
                || state.is_silent
                || state.latency.1 > 10
                || state.notifications_held_until.is_some()
                || self.process.state() != ProcessState::Running)
    }

    /// Since when the node has received every notification.
    pub(super) fn connected_since(&self) -> Duration {
        self.lock().connected_since
    }

    /// Whether the session may still expire.
    pub(super) fn may_expire(&self) -> bool {
        let state = self.lock();
        !state.is_closed && !state.is_expired
    }

    pub(super) fn set_fault_rates(&self, fault_rates: FaultRates) {
        self.lock().fault_rates = fault_rates;
    }

    pub(super) fn set_latency(&self, low: u64, high: u64) {
        self.lock().latency = (low, high);
    }

    pub(super) fn hold_notifications(&self, until: Option<Monotonic>) {
        self.lock().notifications_held_until = until;
        self.changed.notify_waiters();
    }

    pub(super) fn cut(&self) {
        let mut state = self.lock();
        if !state.is_up || state.is_closed {
            return;
        }
        state.is_up = false;
        state.is_broken = true;
        state.break_count += 1;
        drop(state);
        self.inner.link().cut();
        self.changed.notify_waiters();
        self.update_silence();
    }

    /// Repairs the connection; the process reconnects as soon as it runs.
    pub(super) fn heal(&self) {
        self.lock().is_up = true;
        self.reconnect();
        self.update_silence();
    }

    pub(super) fn freeze(&self) {
        self.process.set(ProcessState::Frozen);
        self.update_silence();
    }

    pub(super) fn thaw(&self) {
        self.process.set(ProcessState::Running);
        self.reconnect();
        self.update_silence();
    }

    pub(super) fn kill(&self) {
        self.process.set(ProcessState::Dead);
        self.update_silence();
    }

    /// A running process resumes its session, or starts a new one if the session has expired.
    fn reconnect(&self) {
        let mut state = self.lock();
        if !state.is_up || state.is_closed || self.process.state() != ProcessState::Running {
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

    /// The server hears from a process exactly while the process is running and connected. When that stops, the end of the session is scheduled.
    fn update_silence(&self) {
        let mut state = self.lock();
        let is_silent = !state.is_up || self.process.state() != ProcessState::Running;
        if state.is_closed || is_silent == state.is_silent {
            return;
        }
        state.is_silent = is_silent;
        state.silence_count += 1;
        if is_silent && !state.is_expired {
            // The last contact was a moment ago, and the server checks for expired sessions only now and then.
            let last_contact_ago = self.rng.between(0, self.timeout.as_millis() as u64 / 3);
            let check_delay = self.rng.between(0, 2_000);
            let now = self.time.monotonic();
            let earliest =
                state.deadline.max(now + self.timeout - Duration::from_millis(last_contact_ago));
            let silence = state.silence_count;
            drop(state);
            let then = earliest + Duration::from_millis(check_delay);
            self.schedule
                .add(then, Action::Expire { node: self.node, session: self.session_id(), silence });
        }
    }

    /// Ends the session, unless the server has heard from the process since `silence`. Returns whether the session ended.
    pub(super) fn expire(&self, silence: u64) -> bool {
        let mut state = self.lock();
        if state.silence_count != silence || state.is_expired || state.is_closed {
            return false;
        }
        state.is_expired = true;
        state.is_broken = true;
        state.break_count += 1;
        drop(state);
        self.inner.link().cut();
        self.inner.link().expire();
        true
    }

    fn unknown_result(&self) -> Error {
        Error::Unknown { endpoint: format!("n{}", self.node) }
    }

    async fn delay(&self) {
        let (low, high) = self.lock().latency;
        let span = self.rng.between(low, high);
        if span > 0 {
            tokio::time::sleep(Duration::from_millis(span)).await;
        }
    }

    async fn crash(&self, moment: &str) -> ! {
        self.oracle.log(format_args!("n{} crashes {moment}", self.node));
        self.kill();
        self.schedule.add(self.time.monotonic(), Action::Crashed { node: self.node });
        pending().await
    }

    async fn request<T>(
        &self,
        operation: &str,
        passes_leader: bool,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.request_for(1, operation, passes_leader, call).await
    }

    /// A request that changes shards of so many jobs.
    async fn request_for<T>(
        &self,
        jobs: usize,
        operation: &str,
        passes_leader: bool,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.process.wait_until_running().await;
        self.oracle.count_request();
        let sent = self.time.monotonic();
        let (fault_rates, break_count, session) = {
            let state = self.lock();
            if state.is_closed {
                return Err(Error::Closed);
            }
            (state.fault_rates, state.break_count, state.session)
        };
        if self.rng.one_in(fault_rates.crash) {
            self.crash(&format!("before {operation}")).await;
        }
        let is_cut = !self.lock().is_up;
        if is_cut || self.rng.one_in(fault_rates.unreachable) {
            if !is_cut {
                self.oracle.log(format_args!("n{} is cut off before {operation}", self.node));
                self.break_for_a_while();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.process.wait_until_running().await;
            return Err(Error::Unreachable {
                endpoint: format!("n{}", self.node),
                source: "connection cut".into(),
            });
        }
        self.delay().await;
        if self.lock().break_count != break_count {
            self.process.wait_until_running().await;
            return Err(self.unknown_result());
        }
        let result = if self.late_rng.one_in(fault_rates.throttled) {
            self.oracle.log(format_args!("n{} is throttled at {operation}", self.node));
            Err(Error::Throttled { path: Path::root(), reason: "throttled".to_owned() })
        } else {
            call.await
        };
        if self.rng.one_in(fault_rates.crash) {
            self.crash(&format!("after {operation}")).await;
        }
        let is_batch_lost =
            jobs > fault_rates.large_batch && self.late_rng.one_in(fault_rates.lost_batch);
        if is_batch_lost {
            self.oracle.batch_lost(self.node, jobs);
        }
        if self.rng.one_in(fault_rates.lost_response) || is_batch_lost {
            self.oracle.log(format_args!("n{} loses the response to {operation}", self.node));
            self.break_for_a_while();
            self.process.wait_until_running().await;
            return Err(self.unknown_result());
        }
        self.delay().await;
        self.process.wait_until_running().await;
        let mut state = self.lock();
        if state.break_count != break_count && !state.is_closed {
            drop(state);
            return Err(self.unknown_result());
        }
        // From here on watches deliver every notification that was sent before this response.
        self.response_count.fetch_add(1, Ordering::Relaxed);
        let is_response = !matches!(&result, Err(error) if error.is_outage());
        if passes_leader && is_response && state.session == session {
            state.deadline = state.deadline.max(sent + self.timeout);
        }
        drop(state);
        result
    }

    fn break_for_a_while(&self) {
        self.cut();
        let span = Duration::from_millis(self.rng.between(10, 4_000));
        self.schedule.add(self.time.monotonic() + span, Action::Heal { node: self.node });
    }
}

#[async_trait]
impl Registry for SimulatedRegistry {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn session(&self) -> Session {
        let id = self.connection.session_id();
        Session::new(id, self.connection.timeout, Arc::clone(&self.connection) as Arc<dyn Lease>)
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let operation = describe(&ops);
        if ops.len() > self.limits.operations && shards(&ops).len() > 1 {
            self.connection.oracle.report_violation(format_args!(
                "n{} sends more shards than fit into one request: {operation}",
                self.connection.node
            ));
        }
        let call = async {
            let session = self.connection.session_id();
            let result = self.connection.inner.multi(ops.clone()).await;
            if result.is_ok() {
                self.connection.oracle.multi_committed(self.connection.node, session, &ops);
            }
            result
        };
        self.connection.request_for(jobs(&ops), &operation, true, call).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.connection.request("get", false, self.connection.inner.get(path)).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.connection.request("exists", false, self.connection.inner.exists(path)).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.connection.request("children", false, self.connection.inner.children(path)).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.connection.request("sync", true, self.connection.inner.sync()).await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        let inner =
            self.connection.request("watch", false, self.connection.inner.watch(prefix)).await?;
        Ok(Watch::new(DelayedWatch {
            inner,
            connection: Arc::clone(&self.connection),
            buffered: None,
            seen_responses: 0,
        }))
    }

    async fn close(&self) {
        self.connection.process.wait_until_running().await;
        let is_up = {
            let mut state = self.connection.lock();
            state.is_closed = state.is_up;
            state.is_up
        };
        self.connection.changed.notify_waiters();
        if is_up {
            self.connection.oracle.session_ended(self.connection.session_id());
            self.connection.inner.close().await;
        }
    }
}

/// The shards that a request changes. The smallest limits of a simulation allow one shard in each request.
fn shards(ops: &[Op]) -> BTreeSet<u32> {
    let changed = ops.iter().filter(|op| !matches!(op, Op::Check { .. }));
    let names = changed.flat_map(|op| op.path().as_str().split('/'));
    names.filter_map(|name| name.parse().ok()).collect()
}

/// How many jobs a request changes the ledger of.
fn jobs(ops: &[Op]) -> usize {
    let paths = ops.iter().filter(|op| matches!(op, Op::Set { .. } | Op::Create(_))).map(Op::path);
    let pages = paths.filter_map(|path| path.as_str().strip_prefix("/sim~ledger/"));
    pages.filter_map(|page| page.split_once('/')).map(|(job, _)| job).collect::<BTreeSet<_>>().len()
}

fn describe(ops: &[Op]) -> String {
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

impl Lease for Connection {
    fn deadline(&self, session: SessionId) -> Monotonic {
        self.deadline_of(session)
    }

    fn states(&self) -> SessionStates {
        let connection = self.this.upgrade().expect("called through a reference to self");
        let session_state = connection.session_state();
        SessionStates::new(
            session_state,
            SessionStateSource { connection, reported: session_state },
        )
    }
}

/// Reports changes of the session to a running process.
struct SessionStateSource {
    connection: Arc<Connection>,
    reported: Option<SessionState>,
}

#[async_trait]
impl StateSource for SessionStateSource {
    async fn newest(&mut self) -> Option<SessionState> {
        loop {
            self.connection.process.wait_until_running().await;
            let mut changed = pin!(self.connection.changed.notified());
            changed.as_mut().enable();
            let session_state = self.connection.session_state();
            if session_state != self.reported {
                self.reported = session_state;
                return session_state;
            }
            changed.await;
        }
    }
}

/// A watch whose notifications can be delayed, but never beyond the next response.
struct DelayedWatch {
    inner: Watch,
    connection: Arc<Connection>,
    /// Taken from the queue but not delivered, because the process froze or notifications are held back.
    buffered: Option<Event>,
    /// Value of `response_count` up to which every notification has been delivered.
    seen_responses: u64,
}

impl DelayedWatch {
    fn is_delayed(&self) -> bool {
        let notifications_held_until = self.connection.lock().notifications_held_until;
        let is_held =
            notifications_held_until.is_some_and(|until| self.connection.time.monotonic() < until);
        let has_new_response =
            self.connection.response_count.load(Ordering::Relaxed) != self.seen_responses;
        self.connection.process.state() != ProcessState::Running || (is_held && !has_new_response)
    }
}

#[async_trait]
impl WatchSource for DelayedWatch {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.connection.process.wait_until_running().await;
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            let notifications_held_until = self.connection.lock().notifications_held_until;
            if let Some(until) =
                notifications_held_until.filter(|until| self.connection.time.monotonic() < *until)
            {
                self.connection.time.sleep_until(until).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.connection.changed.notified() => {}
                event = self.inner.next() => match event {
                    None => return None,
                    Some(event) => self.buffered = Some(event),
                }
            }
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        if self.is_delayed() {
            return None;
        }
        let event = self.buffered.take().or_else(|| self.inner.try_next());
        if event.is_none() {
            self.seen_responses = self.connection.response_count.load(Ordering::Relaxed);
        }
        event
    }

    fn is_current(&self) -> bool {
        self.buffered.is_none() && self.inner.is_current()
    }
}

impl fmt::Debug for SimulatedRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection of n{}", self.connection.node)
    }
}
