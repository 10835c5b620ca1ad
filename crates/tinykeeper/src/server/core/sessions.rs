//! Sessions: clients open and resume them, and they expire.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use rand::RngExt;
use tokio::time::Instant;

use super::{
    super::{auth, clock, outbox::Outbox},
    Connection, ConnectionId, Core,
};
use crate::wire::{ConnectRequest, ConnectResponse, PASSWORD_LEN, frame};

/// By how much a clock may have been set back. It is limited, so that no client can use up the transaction ids.
const MAX_CLOCK_STEP_MS: i64 = 366 * 24 * 3_600_000;

impl Core {
    pub(super) fn connect(
        &mut self,
        id: ConnectionId,
        peer: SocketAddr,
        request: &ConnectRequest,
        outbox: Outbox,
    ) {
        if self.has_forgotten(request.last_zxid_seen) {
            if self.warnings.is_first(peer.ip(), "transaction ids continue after the client's") {
                tracing::warn!(%peer, "transaction ids continue after the client's last one: was the clock set back?");
            }
            self.tree.raise_zxid(request.last_zxid_seen);
        }
        if request.last_zxid_seen > self.tree.zxid() {
            let (client_zxid, zxid) = (request.last_zxid_seen, self.tree.zxid());
            if self.warnings.is_first(peer.ip(), "client is ahead of this server") {
                tracing::warn!(
                    %peer,
                    client_zxid = format_args!("{client_zxid:#x}"),
                    zxid = format_args!("{zxid:#x}"),
                    "connection refused: client is ahead of this server"
                );
            }
            outbox.abort();
            return;
        }
        let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64)
            .clamp(self.config.min_session_timeout, self.config.max_session_timeout);
        let timeout_ms = timeout.as_millis() as i32;
        let mut connection = Connection {
            peer,
            session: None,
            ids: vec![auth::address_id(peer.ip())],
            outbox,
            buffer: BytesMut::new(),
            pending: VecDeque::new(),
            is_unfinished: false,
            received: 1,
            sent: 1,
        };
        self.counters.received += 1;
        let response = if request.session_id == 0 {
            if self.expiry.len() >= self.config.max_sessions {
                if self.warnings.is_first(peer.ip(), "too many sessions") {
                    tracing::warn!(%peer, max_sessions = self.config.max_sessions, "connection refused: too many sessions");
                }
                connection.outbox.abort();
                return;
            }
            let Some(slot) = self.session_limit.try_take(peer.ip()) else {
                if self.warnings.is_first(peer.ip(), "too many sessions of this address") {
                    tracing::warn!(
                        %peer,
                        max_sessions_per_address = self.config.max_sessions_per_address,
                        "connection refused: too many sessions of this address"
                    );
                }
                connection.outbox.abort();
                return;
            };
            let (session, password) = self.open_session(timeout_ms);
            self.session_slots.insert(session, slot);
            self.bind(session, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: session,
                password,
                read_only: request.read_only.map(|_| false),
            }
        } else if self.tree.is_valid_session(request.session_id, &request.password) {
            self.bind(request.session_id, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: request.session_id,
                password: request.password.clone(),
                read_only: request.read_only.map(|_| false),
            }
        } else {
            tracing::debug!(%peer, session = format_args!("{:#x}", request.session_id), "session unknown or expired");
            ConnectResponse::expired(request.read_only)
        };
        self.counters.sent += 1;
        frame::write(&mut connection.buffer, |out| response.encode(out));
        let keep = connection.session.is_some();
        self.connections.insert(id, connection);
        self.with_output.insert(id);
        if !keep {
            self.close_after_flush(id);
        }
    }

    /// Whether an earlier start of this server may have issued this id, which is above the current one.
    ///
    /// A server without data does not know which ids it issued before it started. Its first id derives from the clock, which is
    /// too small if the clock was set back. A client's last id is the only memory then, and refusing the client would lock it
    /// out until the clock has caught up. A server with data knows its ids: a client ahead of it has seen data that is lost.
    fn has_forgotten(&self, zxid: i64) -> bool {
        self.journal.is_none()
            && zxid > self.tree.zxid()
            && zxid < clock::first_zxid(clock::unix_ms().saturating_add(MAX_CLOCK_STEP_MS))
    }

    fn open_session(&mut self, timeout_ms: i32) -> (i64, Bytes) {
        let session = self.next_session;
        self.next_session += 1;
        let password = Bytes::copy_from_slice(&rand::rng().random::<[u8; PASSWORD_LEN]>());
        let written =
            self.tree.open_session(session, timeout_ms, password.clone(), clock::unix_ms());
        self.record(written);
        (session, password)
    }

    /// Binds the session to this connection and aborts its previous one.
    fn bind(
        &mut self,
        session: i64,
        id: ConnectionId,
        timeout: Duration,
        connection: &mut Connection,
    ) {
        connection.session = Some(session);
        self.expiry.track(session, timeout, clock::now());
        if let Some(previous) = self.by_session.insert(session, id) {
            self.abort(previous);
        }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        for session in self.expiry.expired(now) {
            tracing::info!(session = format_args!("{session:#x}"), "session expired");
            let written = self.tree.close_session(session, clock::unix_ms());
            self.session_slots.remove(&session);
            self.record(written);
            if let Some(id) = self.by_session.get(&session).copied() {
                self.abort(id);
            }
        }
    }
}
