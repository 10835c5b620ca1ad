//! The registry sessions of a node. Each is an instance of its own: a connection, an instance id, a process node, a lease.
//!
//! When a session ends, ZooKeeper writes the paths of all its ephemeral nodes into one transaction, and cannot restart if that has more than about
//! 2 MB (ZOOKEEPER-4306). So a job reserves, before it is joined, what its instance may hold at most, and another session is opened when all are
//! full. A job stays in its session for everything it reads, watches and writes: only so is a write also a sync. The loss of a session concerns its
//! jobs alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;

use super::session::{NodeSession, SessionMaker};
use crate::{
    coordination::{ephemerals, tree::JobTree},
    registry::{Error, Registry},
    runtime::Tasks,
};

pub(super) struct SessionPool {
    /// Opens further sessions.
    source: Arc<dyn Registry>,
    maker: SessionMaker,
    first: Arc<NodeSession>,
    state: Mutex<PoolState>,
    /// Held while a session is opened, so that concurrent joins share it.
    opening: tokio::sync::Mutex<()>,
}

struct PoolState {
    /// In the order in which they were opened.
    sessions: Vec<OpenSession>,
    /// Keep the leases.
    tasks: Tasks,
    is_overfull_reported: bool,
}

struct OpenSession {
    session: Arc<NodeSession>,
    reserved: usize,
}

/// A job's place in a session, until it is dropped.
pub(super) struct SessionPlace {
    pool: Arc<SessionPool>,
    session: Arc<NodeSession>,
    tree: JobTree,
    bytes: Mutex<usize>,
}

impl SessionPool {
    /// A pool whose first session is that of `source`.
    pub(super) fn new(source: Arc<dyn Registry>, maker: SessionMaker) -> Self {
        let (sessions, tasks) = (Vec::new(), Tasks::new());
        let mut state = PoolState { sessions, tasks, is_overfull_reported: false };
        let first = state.add(&maker, Arc::clone(&source), 0);
        let (state, opening) = (Mutex::new(state), tokio::sync::Mutex::new(()));
        Self { source, maker, first, state, opening }
    }

    /// The session that the node started with. What belongs to no job goes through it.
    pub(super) fn first(&self) -> &Arc<NodeSession> {
        &self.first
    }

    pub(super) fn sessions(&self) -> Vec<Arc<NodeSession>> {
        self.lock().sessions.iter().map(|open| Arc::clone(&open.session)).collect()
    }

    /// Reserves what an instance may hold in a job of so many shards, in the first session with room, or in a new one.
    pub(super) async fn place(
        self: &Arc<Self>,
        tree: JobTree,
        shards: u32,
    ) -> Result<SessionPlace, Error> {
        let bytes = ephemerals::most_bytes(&tree, shards);
        let session = self.find_session(bytes).await?;
        Ok(SessionPlace { pool: Arc::clone(self), session, tree, bytes: Mutex::new(bytes) })
    }

    /// Closes every session. Each job has deleted its nodes when it was left, so there is little to delete at once.
    pub(super) async fn close(&self) {
        let sessions = self.sessions();
        join_all(sessions.iter().map(|session| session.registry.close())).await;
    }

    async fn find_session(&self, bytes: usize) -> Result<Arc<NodeSession>, Error> {
        if let Some(session) = self.reserve(bytes) {
            return Ok(session);
        }
        let _opening = self.opening.lock().await;
        if let Some(session) = self.reserve(bytes) {
            return Ok(session);
        }
        let Some(source) = self.source.another_session().await? else {
            return Ok(self.reserve_beyond(bytes));
        };
        let mut state = self.lock();
        let session = state.add(&self.maker, source, bytes);
        let sessions = state.sessions.len();
        tracing::info!(sessions, "registry session added, the others are full");
        Ok(session)
    }

    /// An empty session takes any job: a job that is too large for one has it for itself.
    fn reserve(&self, bytes: usize) -> Option<Arc<NodeSession>> {
        let limit = self.maker.limits.reserved;
        let mut state = self.lock();
        let has_room =
            |open: &&mut OpenSession| open.reserved == 0 || open.reserved + bytes <= limit;
        let open = state.sessions.iter_mut().find(has_room)?;
        open.reserved += bytes;
        Some(Arc::clone(&open.session))
    }

    /// This registry has one session: better too many nodes in it than a job that does not run.
    fn reserve_beyond(&self, bytes: usize) -> Arc<NodeSession> {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_overfull_reported, true) {
            tracing::warn!(
                hint = "spread the jobs over several nodes",
                "this registry opens no further session, and the one of this node has too many ephemeral nodes"
            );
        }
        self.first.meter.lift_limit();
        state.sessions[0].reserved += bytes;
        Arc::clone(&self.first)
    }

    /// Changes what is reserved in a session.
    fn adjust(&self, session: &Arc<NodeSession>, from: usize, to: usize) {
        let mut state = self.lock();
        let mut sessions = state.sessions.iter_mut();
        if let Some(open) = sessions.find(|open| Arc::ptr_eq(&open.session, session)) {
            open.reserved = (open.reserved + to).saturating_sub(from);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // No code panics while it holds this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn add(
        &mut self,
        maker: &SessionMaker,
        source: Arc<dyn Registry>,
        reserved: usize,
    ) -> Arc<NodeSession> {
        let session = maker.make(source);
        self.tasks.spawn(session.keep_lease(maker));
        self.sessions.push(OpenSession { session: Arc::clone(&session), reserved });
        session
    }
}

impl SessionPlace {
    pub(super) fn session(&self) -> &Arc<NodeSession> {
        &self.session
    }

    pub(super) fn tree(&self) -> &JobTree {
        &self.tree
    }

    /// The job has this many shards now. It stays in its session even if that has no room for them: claims wait then.
    pub(super) fn resize(&self, shards: u32) {
        let to = ephemerals::most_bytes(&self.tree, shards);
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let from = std::mem::replace(&mut *bytes, to);
        self.pool.adjust(&self.session, from, to);
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        self.session.meter.forget_below(self.tree.root());
        let bytes = *self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        self.pool.adjust(&self.session, bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        node::{schedule_clock::ScheduleClock, session::SessionLimits},
        registry::memory::MemoryServer,
        runtime::SystemClock,
    };

    async fn pool(reserved: usize) -> Arc<SessionPool> {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let maker = SessionMaker {
            wrap: Box::new(|registry| registry),
            schedule_clock: Arc::new(ScheduleClock::new(Arc::new(SystemClock))),
            address: [10, 0, 0, 1].into(),
            limits: SessionLimits { reserved, claimed: reserved },
        };
        Arc::new(SessionPool::new(Arc::new(registry), maker))
    }

    fn tree(job: &str) -> JobTree {
        JobTree::new(&"shop".parse().unwrap(), &job.parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn jobs_fill_one_session_after_the_other_and_leave_room_behind() {
        let one = ephemerals::most_bytes(&tree("job-0"), 4);
        let pool = pool(2 * one).await;
        let mut places = Vec::new();
        for number in 0..5 {
            places.push(pool.place(tree(&format!("job-{number}")), 4).await.unwrap());
        }

        assert_eq!(pool.sessions().len(), 3);
        assert!(Arc::ptr_eq(places[0].session(), pool.first()));
        assert!(Arc::ptr_eq(places[2].session(), places[3].session()));
        drop(places.remove(0));
        let place = pool.place(tree("job-5"), 4).await.unwrap();
        assert!(Arc::ptr_eq(place.session(), pool.first()));

        // A job that has become larger counts for what it is now.
        place.resize(1_000);
        drop(places.remove(0));
        let elsewhere = pool.place(tree("job-6"), 4).await.unwrap();
        assert!(!Arc::ptr_eq(elsewhere.session(), pool.first()));
        drop(place);
        let here = pool.place(tree("job-7"), 4).await.unwrap();
        assert!(Arc::ptr_eq(here.session(), pool.first()));
        assert_eq!(pool.sessions().len(), 3);
    }

    #[tokio::test]
    async fn concurrent_joins_share_a_new_session() {
        let one = ephemerals::most_bytes(&tree("job-0"), 4);
        let pool = pool(4 * one).await;

        let places = (0..8).map(|number| pool.place(tree(&format!("job-{number}")), 4));
        let places = join_all(places).await;

        assert!(places.iter().all(Result::is_ok));
        assert_eq!(pool.sessions().len(), 2);
    }

    #[tokio::test]
    async fn job_too_large_for_any_session_has_one_for_itself() {
        let pool = pool(1_000).await;

        let large = pool.place(tree("large"), 10_000).await.unwrap();
        let other = pool.place(tree("other"), 1).await.unwrap();

        assert!(!Arc::ptr_eq(large.session(), other.session()));
    }
}
