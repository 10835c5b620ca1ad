//! Requests: each is executed on the tree, and its reply and the notifications that it causes are buffered in order.

use bytes::BytesMut;

use super::{
    super::{
        auth, clock,
        respond::{exceeds_watch_limit, respond},
    },
    ConnectionId, Core,
};
use crate::{
    tree::{Caller, Notification, WatcherId, WriteResult, is_allowed},
    wire::{Code, KeeperState, Perms, ReplyHeader, Request, Response, WatcherEvent, frame, xid},
};

impl Core {
    pub(super) fn process_request(&mut self, id: ConnectionId, xid: i32, request: &Request) {
        // Requests of a connection that was aborted or closed may still arrive; they are dropped.
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(session) = connection.session else {
            return;
        };
        let caller = Caller { session, ids: &connection.ids };
        let (zxid, response) = match request {
            Request::Auth { scheme, auth } => {
                let is_proved = auth::authenticate(scheme, auth, connection.peer.ip())
                    .is_some_and(|id| auth::add_id(&mut connection.ids, id));
                let response = if is_proved { Ok(Response::Empty) } else { Err(Code::AUTH_FAILED) };
                (self.tree.zxid(), response)
            }
            Request::WhoAmI => {
                let ids = connection.ids.iter();
                let users =
                    ids.map(|id| (id.scheme.clone(), auth::user_name(id).to_owned())).collect();
                (self.tree.zxid(), Ok(Response::WhoAmI(users)))
            }
            Request::CloseSession => {
                let written = self.tree.close_session(session, clock::unix_ms());
                let zxid = written.zxid;
                self.expiry.forget(session);
                self.session_slots.remove(&session);
                self.record(written);
                (zxid, Ok(Response::Empty))
            }
            request
                if exceeds_watch_limit(
                    &self.tree,
                    WatcherId(id),
                    request,
                    self.config.max_watch_bytes,
                ) =>
            {
                if self.warnings.is_first(connection.peer.ip(), "too many watches") {
                    tracing::warn!(
                        peer = %connection.peer,
                        max_watch_bytes = self.config.max_watch_bytes,
                        "request refused: too many watches"
                    );
                }
                (self.tree.zxid(), Err(Code::QUOTA_EXCEEDED))
            }
            request => {
                let now_ms = clock::unix_ms();
                let result = respond(&mut self.tree, caller, WatcherId(id), request, now_ms);
                let zxid = result.written.as_ref().map_or(self.tree.zxid(), |written| written.zxid);
                self.notify(zxid, &result.missed);
                if let Some(written) = result.written {
                    self.record(written);
                }
                (zxid, result.response)
            }
        };
        self.reply(id, xid, zxid, response.as_ref());
        let must_close = match (request, &response) {
            // A client ignores that its watches are not restored, and would wait for notifications in vain.
            (Request::CloseSession, _) | (Request::SetWatches(_), Err(_)) => true,
            (_, result) => *result == Err(Code::AUTH_FAILED),
        };
        if must_close {
            self.close_after_flush(id);
        }
    }

    fn reply(&mut self, id: ConnectionId, xid: i32, zxid: i64, response: Result<&Response, &Code>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let code = response.err().copied().unwrap_or(Code::OK);
        let buffered = connection.buffer.len();
        frame::write(&mut connection.buffer, |out| {
            ReplyHeader { xid, zxid, code }.encode(out);
            if let Ok(response) = response {
                response.encode(out);
            }
        });
        self.turn_bytes += connection.buffer.len() - buffered;
        connection.sent += 1;
        self.counters.sent += 1;
        self.with_output.insert(id);
    }

    /// Notifies the watchers of a transaction and adds it to the log.
    pub(super) fn record(&mut self, written: WriteResult) {
        self.notify(written.zxid, &written.notifications);
        if let Some(transaction) = written.transaction.filter(|_| self.journal.is_some()) {
            let mut bytes = BytesMut::with_capacity(128);
            transaction.encode(&mut bytes);
            self.turn_bytes += bytes.len();
            self.batch.records.push((transaction.zxid, bytes.freeze()));
            self.since_snapshot += 1;
        }
    }

    fn notify(&mut self, zxid: i64, notifications: &[Notification]) {
        for notification in notifications {
            let id = notification.watcher.0;
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            if notification
                .acl
                .as_ref()
                .is_some_and(|acl| !is_allowed(acl, Perms::READ, &connection.ids))
            {
                continue;
            }
            let event = WatcherEvent {
                kind: notification.kind,
                state: KeeperState::SYNC_CONNECTED,
                path: notification.path.to_string(),
            };
            let buffered = connection.buffer.len();
            frame::write(&mut connection.buffer, |out| {
                ReplyHeader { xid: xid::NOTIFICATION, zxid, code: Code::OK }.encode(out);
                event.encode(out);
            });
            self.turn_bytes += connection.buffer.len() - buffered;
            connection.sent += 1;
            self.counters.sent += 1;
            self.with_output.insert(id);
        }
    }
}
