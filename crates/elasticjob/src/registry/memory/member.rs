//! One member: implements the registry trait on the shared tree.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use tinykeeper::wire::{Acl, AuthId, Code};
use tokio::sync::watch;

use super::{
    link::Link,
    server::{Connection, MemberId, MemoryServer, ServerState},
    watch::FeedSource,
};
use crate::{
    registry::{
        Registry,
        error::{Error, SizeUnit},
        limits::Limits,
        operation::{Committed, Op},
        path::{Namespace, Path},
        session::{Lease, Session, SessionId, SessionState, SessionStates, StateSource},
        stat::{Node, Stat, Zxid},
        translate,
        watch::Watch,
    },
    runtime::Monotonic,
};

const ENDPOINT: &str = "memory:";

/// A member of a [`MemoryServer`].
pub struct MemoryRegistry {
    inner: Arc<Inner>,
    namespace: Namespace,
    acl: Vec<Acl>,
}

struct Inner {
    server: MemoryServer,
    id: MemberId,
}

impl MemoryRegistry {
    pub(super) fn new(
        server: MemoryServer,
        id: MemberId,
        namespace: Namespace,
        acl: Vec<Acl>,
    ) -> Self {
        Self { inner: Arc::new(Inner { server, id }), namespace, acl }
    }

    fn check_size(&self, ops: &[Op]) -> Result<(), Error> {
        let limits = self.limits();
        let bytes: usize = ops.iter().map(Op::size).sum();
        let sizes = [
            (bytes, SizeUnit::Bytes, limits.bytes),
            (ops.len(), SizeUnit::Operations, limits.operations),
        ];
        match sizes.into_iter().find(|(size, _, limit)| size > limit) {
            Some((size, unit, limit)) => {
                let path = ops.first().map_or_else(Path::root, |op| op.path().clone());
                Err(Error::TooLarge { path, size, unit, limit })
            }
            None => Ok(()),
        }
    }

    /// Controls this member's connection, for tests.
    pub fn link(&self) -> Link {
        Link { server: self.inner.server.clone(), member: self.inner.id }
    }
}

impl Inner {
    /// Executes a request as a connection would: it may fail to be sent, lose its answer, or wait while frozen.
    async fn request<T>(
        &self,
        required_session: Option<SessionId>,
        passes_leader: bool,
        operation: impl FnOnce(&mut ServerState) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let sent = self.server.clock().monotonic();
        // Let other tasks run, as they would while the request is on the wire.
        tokio::task::yield_now().await;
        loop {
            let thawed = {
                let mut state = self.server.lock();
                let member = state.member(self.id);
                if !member.is_frozen {
                    return self.execute(
                        &mut state,
                        sent,
                        required_session,
                        passes_leader,
                        operation,
                    );
                }
                Arc::clone(&member.thawed).notified_owned()
            };
            thawed.await;
        }
    }

    fn execute<T>(
        &self,
        state: &mut ServerState,
        sent: Monotonic,
        required_session: Option<SessionId>,
        passes_leader: bool,
        operation: impl FnOnce(&mut ServerState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let member = state.member(self.id);
        if member.connection == Connection::Closed {
            return Err(Error::Closed);
        }
        if member.connection == Connection::Cut {
            return Err(Error::Unreachable {
                endpoint: ENDPOINT.into(),
                source: "the link is cut".into(),
            });
        }
        if required_session.is_some_and(|session| session != member.session) {
            return Err(Error::SessionExpired);
        }
        let loses_answer = std::mem::take(&mut member.loses_next_answer);
        let result = operation(state);
        if loses_answer {
            state.cut(self.id);
            return Err(Error::Unknown { endpoint: ENDPOINT.into() });
        }
        if passes_leader {
            let member = state.member(self.id);
            member.deadline = member.deadline.max(sent + self.server.timeout());
        }
        result
    }
}

#[async_trait]
impl Registry for MemoryRegistry {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn session(&self) -> Session {
        let inner = &self.inner;
        let id = inner.server.lock().member(inner.id).session;
        Session::new(id, inner.server.timeout(), Arc::clone(inner) as Arc<dyn Lease>)
    }

    fn limits(&self) -> Limits {
        self.inner.server.request_limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let session = ops.iter().find_map(translate::session_of);
        self.check_size(&ops)?;
        let requests = translate::ops(&ops, &self.acl);
        let now_ms = self.inner.server.now_ms();
        let id = self.inner.id;
        let operation = |state: &mut ServerState| {
            let written = state.write(id, &requests, now_ms);
            match written.outcome {
                Ok(done) => Ok(Committed {
                    zxid: Zxid(written.zxid),
                    written_at_ms: done.iter().find_map(translate::written_at_in_tree),
                    done: ops
                        .iter()
                        .zip(done)
                        .map(|(op, done)| translate::done_from_tree(op, done))
                        .collect(),
                }),
                Err(refused) => Err(Error::Operation {
                    index: refused.index,
                    cause: Box::new(translate::refusal(refused.code, &ops[refused.index])),
                }),
            }
        };
        self.inner.request(session, true, operation).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        let operation = |state: &mut ServerState| {
            let (tree, caller) = state.on_behalf_of(self.inner.id);
            none_if_absent(path, tree.data(caller, path.as_str(), None))
        };
        let answer = self.inner.request(None, false, operation).await?;
        Ok(answer.map(|(data, stat)| Node {
            data: data.unwrap_or_default(),
            stat: translate::stat(&stat, 0),
        }))
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        let operation =
            |state: &mut ServerState| none_if_absent(path, state.tree.exists(path.as_str(), None));
        let answer = self.inner.request(None, false, operation).await?;
        Ok(answer.map(|stat| translate::stat(&stat, 0)))
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        let operation = |state: &mut ServerState| {
            let (tree, caller) = state.on_behalf_of(self.inner.id);
            none_if_absent(path, tree.children(caller, path.as_str(), None))
        };
        let answer = self.inner.request(None, false, operation).await?;
        Ok(answer.map(|(children, _)| children))
    }

    async fn sync(&self) -> Result<(), Error> {
        self.inner.request(None, true, |_| Ok(())).await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        // An unreadable prefix must fail here instead of looking empty for ever.
        self.children(prefix).await?;
        let operation = |state: &mut ServerState| Ok(state.watch(self.inner.id, prefix));
        let (watcher, feed) = self.inner.request(None, false, operation).await?;
        Ok(Watch::new(FeedSource { server: self.inner.server.clone(), watcher, feed }))
    }

    async fn another_session(&self) -> Result<Option<Arc<dyn Registry>>, Error> {
        let (server, ids) = (&self.inner.server, server_ids(&self.inner));
        let another = server.join_with(self.namespace.clone(), ids, self.acl.clone()).await?;
        Ok(Some(Arc::new(another)))
    }

    async fn close(&self) {
        let now_ms = self.inner.server.now_ms();
        self.inner.server.lock().close(self.inner.id, now_ms);
    }
}

fn server_ids(inner: &Inner) -> Vec<AuthId> {
    inner.server.lock().member(inner.id).ids.clone()
}

fn none_if_absent<T>(path: &Path, answer: Result<T, Code>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Code::NO_NODE) => Ok(None),
        Err(code) => Err(translate::read_refusal(code, path)),
    }
}

impl Lease for Inner {
    fn deadline(&self, session: SessionId) -> Monotonic {
        let mut state = self.server.lock();
        let member = state.member(self.id);
        if member.session == session && member.connection != Connection::Closed {
            member.deadline
        } else {
            Monotonic::from_start(std::time::Duration::ZERO)
        }
    }

    fn states(&self) -> SessionStates {
        let mut receiver = self.server.lock().member(self.id).states.subscribe();
        let present = *receiver.borrow_and_update();
        SessionStates::new(present, StateReceiver(receiver))
    }
}

struct StateReceiver(watch::Receiver<Option<SessionState>>);

#[async_trait]
impl StateSource for StateReceiver {
    async fn newest(&mut self) -> Option<SessionState> {
        self.0.changed().await.ok()?;
        *self.0.borrow_and_update()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let now_ms = self.server.now_ms();
        self.server.lock().remove(self.id, now_ms);
    }
}

impl fmt::Debug for MemoryRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.namespace)
    }
}
