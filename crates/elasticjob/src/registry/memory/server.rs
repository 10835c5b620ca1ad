//! The shared tree and its connected members.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tinykeeper::{
    tree::{Caller, Notification, Tree, WatcherId, WriteResult, is_allowed},
    wire::{Acl, AddWatchMode, AuthId, Code, Op, Perms},
};
use tokio::sync::{Notify, watch};

use super::{link::Link, member::MemoryRegistry, watch::Feed};
use crate::{
    registry::{
        connect::ensure_path,
        error::Error,
        limits::Limits,
        path::{Namespace, Path},
        session::{SessionId, SessionState},
        settings::Digest,
        translate,
        watch::Event,
    },
    runtime::{Clock, Monotonic},
};

/// A tree in memory that several members share. Clones refer to the same tree.
#[derive(Clone)]
pub struct MemoryServer {
    state: Arc<Mutex<ServerState>>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemberId(u64);

/// State behind the lock.
pub(super) struct ServerState {
    pub(super) tree: Tree,
    members: BTreeMap<MemberId, Member>,
    feeds: BTreeMap<WatcherId, (MemberId, Feed)>,
    last_id: u64,
}

/// The server's record of a member.
pub(super) struct Member {
    pub(super) session: SessionId,
    pub(super) ids: Vec<AuthId>,
    pub(super) deadline: Monotonic,
    /// `None` once closed.
    pub(super) states: watch::Sender<Option<SessionState>>,
    pub(super) connection: Connection,
    pub(super) is_frozen: bool,
    /// The next request is executed and the connection breaks before its answer; see [`Link`](super::Link::cut_after_next_request).
    pub(super) loses_next_answer: bool,
    pub(super) thawed: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Up,
    Cut,
    Closed,
}

impl MemoryServer {
    /// Creates an empty tree. Session deadlines are ten seconds by `clock`, but a session ends only when a test ends it.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = ServerState {
            tree: Tree::new(),
            members: BTreeMap::new(),
            feeds: BTreeMap::new(),
            last_id: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            clock,
            timeout: Duration::from_secs(10),
            limits: Limits::ZOOKEEPER,
        }
    }

    /// Sets the session timeout.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets what fits into one request; by default what every ZooKeeper accepts.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a member with its own session.
    pub async fn join(&self, namespace: Namespace) -> Result<MemoryRegistry, Error> {
        self.join_as(namespace, None).await
    }

    /// Adds a member with its own session. With a user, every node it creates is accessible to that user only.
    pub async fn join_as(
        &self,
        namespace: Namespace,
        user: Option<Digest>,
    ) -> Result<MemoryRegistry, Error> {
        let acl = if user.is_some() { Acl::creator_all() } else { Acl::open() };
        let ids = user.map(|user| AuthId::digest(&format!("{}:{}", user.user, user.password)));
        self.join_with(namespace, ids.into_iter().collect(), acl).await
    }

    pub(super) async fn join_with(
        &self,
        namespace: Namespace,
        ids: Vec<AuthId>,
        acl: Vec<Acl>,
    ) -> Result<MemoryRegistry, Error> {
        let now = self.clock.monotonic();
        let now_ms = self.now_ms();
        let id = {
            let mut state = self.lock();
            let id = MemberId(state.next_id());
            let session = state.open_session(self.timeout, now_ms);
            state.members.insert(
                id,
                Member {
                    session,
                    ids,
                    deadline: now + self.timeout,
                    states: watch::Sender::new(Some(SessionState::Connected(session))),
                    connection: Connection::Up,
                    is_frozen: false,
                    loses_next_answer: false,
                    thawed: Arc::new(Notify::new()),
                },
            );
            id
        };
        let registry = MemoryRegistry::new(self.clone(), id, namespace.clone(), acl);
        ensure_path(&registry, namespace.path()).await?;
        Ok(registry)
    }

    /// Controls the connection of the member that has this session; `None` if there is none.
    pub fn link(&self, session: SessionId) -> Option<Link> {
        let state = self.lock();
        let mut members = state.members.iter();
        let (member, _) = members.find(|(_, member)| member.session == session)?;
        Some(Link { server: self.clone(), member: *member })
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn request_limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ServerState> {
        // No code under this lock can panic with the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryServer")
            .field("nodes", &state.tree.node_count())
            .field("members", &state.members.len())
            .finish_non_exhaustive()
    }
}

impl ServerState {
    pub(super) fn member(&mut self, id: MemberId) -> &mut Member {
        self.members.get_mut(&id).expect("members stay registered until their registry is dropped")
    }

    pub(super) fn write(&mut self, id: MemberId, ops: &[Op], now_ms: i64) -> WriteResult {
        let (tree, caller) = self.on_behalf_of(id);
        let written = tree.write(caller, ops, now_ms);
        self.notify(&written.notifications);
        written
    }

    /// The tree, and the member as the caller of its operations.
    pub(super) fn on_behalf_of(&mut self, id: MemberId) -> (&mut Tree, Caller<'_>) {
        let Self { tree, members, .. } = self;
        let member = &members[&id];
        (tree, Caller { session: member.session.0, ids: &member.ids })
    }

    /// Sets a recursive watch; the feed begins with a snapshot.
    pub(super) fn watch(&mut self, id: MemberId, prefix: &Path) -> (WatcherId, Feed) {
        let watcher = WatcherId(self.next_id());
        let feed = Feed::new(prefix.clone());
        if self.member(id).connection == Connection::Up {
            self.start_watch(id, watcher, &feed);
        }
        self.feeds.insert(watcher, (id, feed.clone()));
        (watcher, feed)
    }

    pub(super) fn unwatch(&mut self, watcher: WatcherId) {
        self.feeds.remove(&watcher);
        self.tree.remove_watcher(watcher);
    }

    /// Breaks the connection: requests fail, and watches get no changes.
    pub(super) fn cut(&mut self, id: MemberId) {
        let member = self.member(id);
        member.connection = Connection::Cut;
        member.states.send_replace(Some(SessionState::Suspended(member.session)));
        for watcher in self.watchers_of(id) {
            self.tree.remove_watcher(watcher);
            self.feeds[&watcher].1.mark_gap();
        }
    }

    /// Restores the connection: the member learns whether its session still exists, and its watches start over.
    pub(super) fn heal(&mut self, id: MemberId, now: Monotonic, timeout: Duration, now_ms: i64) {
        let session = self.member(id).session;
        let is_alive = self.tree.sessions().any(|known| known.id == session.0);
        let session = if is_alive { session } else { self.open_session(timeout, now_ms) };
        let member = self.member(id);
        member.connection = Connection::Up;
        // Resuming the session alone would not extend the deadline; the sync that a client sends after it does.
        member.deadline = now + timeout;
        member.session = session;
        member.states.send_replace(Some(SessionState::Connected(session)));
        for watcher in self.watchers_of(id) {
            let feed = self.feeds[&watcher].1.clone();
            self.tree.remove_watcher(watcher);
            self.start_watch(id, watcher, &feed);
        }
    }

    /// Ends the session; a connected member learns of it at once.
    pub(super) fn expire(&mut self, id: MemberId, now: Monotonic, timeout: Duration, now_ms: i64) {
        self.end_session(id, now_ms);
        if self.member(id).connection == Connection::Up {
            self.heal(id, now, timeout, now_ms);
        }
    }

    pub(super) fn thaw(&mut self, id: MemberId) {
        let member = self.member(id);
        member.is_frozen = false;
        member.thawed.notify_waiters();
        for watcher in self.watchers_of(id) {
            self.feeds[&watcher].1.thaw();
        }
    }

    pub(super) fn freeze(&mut self, id: MemberId) {
        self.member(id).is_frozen = true;
        for watcher in self.watchers_of(id) {
            self.feeds[&watcher].1.freeze();
        }
    }

    pub(super) fn close(&mut self, id: MemberId, now_ms: i64) {
        self.end_session(id, now_ms);
        let member = self.member(id);
        member.connection = Connection::Closed;
        member.states.send_replace(None);
        for watcher in self.watchers_of(id) {
            self.tree.remove_watcher(watcher);
            self.feeds[&watcher].1.close();
        }
    }

    pub(super) fn remove(&mut self, id: MemberId, now_ms: i64) {
        self.close(id, now_ms);
        self.feeds.retain(|_, (member, _)| *member != id);
        self.members.remove(&id);
    }

    fn end_session(&mut self, id: MemberId, now_ms: i64) {
        let session = self.member(id).session;
        let written = self.tree.close_session(session.0, now_ms);
        self.notify(&written.notifications);
    }

    fn open_session(&mut self, timeout: Duration, now_ms: i64) -> SessionId {
        let session = self.next_id() as i64;
        self.tree.open_session(session, timeout.as_millis() as i32, Bytes::new(), now_ms);
        SessionId(session)
    }

    fn start_watch(&mut self, id: MemberId, watcher: WatcherId, feed: &Feed) {
        self.tree.add_watch(feed.prefix().as_str(), watcher, AddWatchMode::PersistentRecursive);
        let mut found = Vec::new();
        let mut pending = vec![feed.prefix().clone()];
        while let Some(path) = pending.pop() {
            // Children are listed by name, so the same tree always gives the same snapshot.
            let (tree, caller) = self.on_behalf_of(id);
            let (children, stat) = match tree.children(caller, path.as_str(), None) {
                Ok(listed) => listed,
                // It exists, although what is below it is unknown.
                Err(Code::NO_AUTH) => match tree.exists(path.as_str(), None) {
                    Ok(stat) => (Vec::new(), stat),
                    Err(_) => continue,
                },
                Err(_) => continue,
            };
            let (tree, caller) = self.on_behalf_of(id);
            let data = tree.data(caller, path.as_str(), None).ok();
            let data = data.map(|(data, _)| data.unwrap_or_default());
            pending.extend(children.iter().rev().filter_map(|name| path.join(name).ok()));
            found.push(Event::InitApply { path, stat: translate::stat(&stat, 0), data });
        }
        feed.restart(found);
    }

    fn notify(&mut self, notifications: &[Notification]) {
        for notification in notifications {
            let Some((id, feed)) = self.feeds.get(&notification.watcher) else {
                continue;
            };
            let may_read = notification.acl.as_ref().is_none_or(|acl| {
                self.members.get(id).is_some_and(|member| is_allowed(acl, Perms::READ, &member.ids))
            });
            if !may_read {
                continue;
            }
            if let Some(event) = translate::event(notification.kind, &notification.path) {
                feed.push(event);
            }
        }
    }

    fn watchers_of(&self, id: MemberId) -> Vec<WatcherId> {
        self.feeds
            .iter()
            .filter(|(_, (member, _))| *member == id)
            .map(|(watcher, _)| *watcher)
            .collect()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
