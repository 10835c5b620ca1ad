//! The shared tree and everybody who is connected to it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tinykeeper::{
    tree::{Caller, Notification, Tree, WatcherId, WriteResult, is_allowed},
    wire::{Acl, AddWatchMode, AuthId, Op, Perms},
};
use tokio::sync::{Notify, watch};

use super::{member::MemoryRegistry, watch::Feed};
use crate::{
    registry::{
        connect::plant,
        error::Error,
        path::{Namespace, Path},
        session::{SessionId, SessionState},
        settings::Digest,
        translate,
        watch::Event,
    },
    runtime::{Clock, Monotonic},
};

/// A tree in memory that several members share. Clones are the same tree.
#[derive(Clone)]
pub struct MemoryServer {
    world: Arc<Mutex<World>>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
}

/// A member, as the server numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemberId(u64);

/// Everything behind the lock.
pub(super) struct World {
    pub(super) tree: Tree,
    members: BTreeMap<MemberId, Member>,
    feeds: BTreeMap<WatcherId, (MemberId, Feed)>,
    numbers: u64,
}

/// What the server knows of a member.
pub(super) struct Member {
    pub(super) session: SessionId,
    pub(super) ids: Vec<AuthId>,
    pub(super) deadline: Monotonic,
    /// `None` once closed.
    pub(super) states: watch::Sender<Option<SessionState>>,
    pub(super) connection: Connection,
    pub(super) is_frozen: bool,
    /// The next request is carried out and the connection breaks before its answer.
    pub(super) loses_next_answer: bool,
    pub(super) thawed: Arc<Notify>,
}

/// How a member is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Up,
    Cut,
    Closed,
}

impl MemoryServer {
    /// An empty tree; sessions time out after ten seconds by `clock` as far as their deadline goes, and end when told to.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let world = World {
            tree: Tree::new(),
            members: BTreeMap::new(),
            feeds: BTreeMap::new(),
            numbers: 0,
        };
        Self { world: Arc::new(Mutex::new(world)), clock, timeout: Duration::from_secs(10) }
    }

    /// The same with another session timeout.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// A new member with a session of its own.
    pub async fn join(&self, namespace: Namespace) -> Result<MemoryRegistry, Error> {
        self.join_as(namespace, None).await
    }

    /// A new member; with a user, everything it creates is this user's alone.
    pub async fn join_as(
        &self,
        namespace: Namespace,
        user: Option<Digest>,
    ) -> Result<MemoryRegistry, Error> {
        let acl = if user.is_some() { Acl::creator_all() } else { Acl::open() };
        let ids = user.map(|user| AuthId::digest(&format!("{}:{}", user.user, user.password)));
        let now = self.clock.monotonic();
        let now_ms = self.now_ms();
        let id = {
            let mut world = self.lock();
            let id = MemberId(world.number());
            let session = world.open_session(self.timeout, now_ms);
            world.members.insert(
                id,
                Member {
                    session,
                    ids: ids.into_iter().collect(),
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
        plant(&registry, namespace.path()).await?;
        Ok(registry)
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        // Nothing under this lock panics half way.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.lock();
        f.debug_struct("MemoryServer")
            .field("nodes", &world.tree.node_count())
            .field("members", &world.members.len())
            .finish_non_exhaustive()
    }
}

impl World {
    pub(super) fn member(&mut self, id: MemberId) -> &mut Member {
        self.members.get_mut(&id).expect("a member is known until its registry is dropped")
    }

    pub(super) fn write(&mut self, id: MemberId, ops: &[Op], now_ms: i64) -> WriteResult {
        let (tree, caller) = self.on_behalf_of(id);
        let written = tree.write(caller, ops, now_ms);
        self.tell(&written.notifications);
        written
    }

    /// The tree, and on whose behalf it is asked.
    pub(super) fn on_behalf_of(&mut self, id: MemberId) -> (&mut Tree, Caller<'_>) {
        let Self { tree, members, .. } = self;
        let member = &members[&id];
        (tree, Caller { session: member.session.0, ids: &member.ids })
    }

    /// Sets a recursive watch; the feed begins with a snapshot.
    pub(super) fn watch(&mut self, id: MemberId, prefix: &Path) -> (WatcherId, Feed) {
        let watcher = WatcherId(self.number());
        let feed = Feed::new(prefix.clone());
        if self.member(id).connection == Connection::Up {
            self.start(id, watcher, &feed);
        }
        self.feeds.insert(watcher, (id, feed.clone()));
        (watcher, feed)
    }

    pub(super) fn unwatch(&mut self, watcher: WatcherId) {
        self.feeds.remove(&watcher);
        self.tree.remove_watcher(watcher);
    }

    /// The connection breaks: requests fail, watches are blind.
    pub(super) fn cut(&mut self, id: MemberId) {
        let member = self.member(id);
        member.connection = Connection::Cut;
        member.states.send_replace(Some(SessionState::Suspended(member.session)));
        for watcher in self.watchers_of(id) {
            self.tree.remove_watcher(watcher);
            self.feeds[&watcher].1.blind();
        }
    }

    /// The connection is back: the member learns what became of its session, and its watches start over.
    pub(super) fn heal(&mut self, id: MemberId, now: Monotonic, timeout: Duration, now_ms: i64) {
        let session = self.member(id).session;
        let lives = self.tree.sessions().any(|known| known.id == session.0);
        let session = if lives { session } else { self.open_session(timeout, now_ms) };
        let member = self.member(id);
        member.connection = Connection::Up;
        // Taking the session up again proves nothing, but the sync that follows it does.
        member.deadline = now + timeout;
        member.session = session;
        member.states.send_replace(Some(SessionState::Connected(session)));
        for watcher in self.watchers_of(id) {
            let feed = self.feeds[&watcher].1.clone();
            self.tree.remove_watcher(watcher);
            self.start(id, watcher, &feed);
        }
    }

    /// The server ends the session; a member that is connected learns it at once.
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
        self.tell(&written.notifications);
    }

    fn open_session(&mut self, timeout: Duration, now_ms: i64) -> SessionId {
        let session = self.number() as i64;
        self.tree.open_session(session, timeout.as_millis() as i32, Bytes::new(), now_ms);
        SessionId(session)
    }

    fn start(&mut self, id: MemberId, watcher: WatcherId, feed: &Feed) {
        self.tree.add_watch(feed.prefix().as_str(), watcher, AddWatchMode::PersistentRecursive);
        let mut found = Vec::new();
        let mut waiting = vec![feed.prefix().clone()];
        while let Some(path) = waiting.pop() {
            // The model lists by name, so the same tree always gives the same snapshot.
            let (tree, caller) = self.on_behalf_of(id);
            let Ok((children, stat)) = tree.children(caller, path.as_str(), None) else {
                continue;
            };
            waiting.extend(children.iter().rev().filter_map(|name| path.join(name).ok()));
            found.push(Event::InitApply { path, stat: translate::stat(&stat, 0) });
        }
        feed.restart(found);
    }

    fn tell(&mut self, notifications: &[Notification]) {
        for notification in notifications {
            let Some((id, feed)) = self.feeds.get(&notification.watcher) else {
                continue;
            };
            let may_hear = notification.acl.as_ref().is_none_or(|acl| {
                self.members.get(id).is_some_and(|member| is_allowed(acl, Perms::READ, &member.ids))
            });
            if !may_hear {
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

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
