//! The requests of one connection that have no reply yet. This module does no I/O.
//!
//! A server replies in the order of the requests, so the next reply belongs to the oldest pending request and their numbers
//! must agree. Pings and authentication are exempt from that order; each has its own queue.

use std::{collections::VecDeque, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::{
    error::Error,
    watch::{GapCause, Watch},
};
use crate::wire::{
    AddWatchMode, Code, DecodeError, Reader, ReplyHeader, Request, RequestHeader, Response,
    SetWatches, WatcherEvent, frame, op, xid,
};

/// Reply to a successful request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// For a write, its own transaction; for a read, the last one applied before it.
    pub zxid: i64,
    pub response: Response,
}

/// The receiver of a reply.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A caller of `submit`.
    Caller(oneshot::Sender<Result<Reply, Error>>),
    /// A caller of `watch`.
    Watch { path: String, mode: AddWatchMode, reply: oneshot::Sender<Result<Watch, Error>> },
    /// The restored watches, which then report the gap.
    RestoreWatches { set: Box<SetWatches>, cause: GapCause },
    /// The closing of the session.
    Close,
    /// No receiver; the reply still counts for the lease.
    None,
}

/// A decoded frame from the server.
#[derive(Debug)]
pub(super) enum Incoming {
    Notification(WatcherEvent),
    /// Reply to a ping of the client itself.
    Pong {
        sent_at: Duration,
    },
    Reply {
        waiter: Waiter,
        outcome: Result<Reply, Error>,
        sent_at: Duration,
        /// Whether the leader processed the request and found the session alive.
        confirmed_by_leader: bool,
        /// The transaction in the reply's header, if it has one.
        zxid: Option<i64>,
    },
}

/// Why the connection must be given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProtocolError {
    #[error("cannot decode a frame of the server")]
    Undecodable(#[from] DecodeError),
    #[error("reply to request {got}, expected {expected:?}")]
    OutOfOrder { got: i32, expected: Option<i32> },
}

#[derive(Debug)]
struct PendingRequest {
    xid: i32,
    op: i32,
    needs_leader: bool,
    sent_at: Duration,
    /// Offset of its first byte in the output stream; it was never sent if that is after the last byte written.
    offset: u64,
    waiter: Waiter,
}

/// The pending requests of one connection.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    in_order: VecDeque<PendingRequest>,
    pings: VecDeque<PendingRequest>,
    credentials: VecDeque<PendingRequest>,
    last_xid: i32,
}

impl PendingRequests {
    /// Appends the request to `out`; returns the waiter with an error if the frame exceeds `limit`.
    pub(super) fn push(
        &mut self,
        out: &mut BytesMut,
        offset: u64,
        request: &Request,
        waiter: Waiter,
        sent_at: Duration,
        limit: usize,
    ) -> Result<(), (Waiter, Error)> {
        let xid = self.next_xid(request);
        let op = request.op();
        let start = out.len();
        frame::write(out, |out| {
            RequestHeader { xid, op }.encode(out);
            request.encode(out);
        });
        let length = out.len() - start - 4;
        if length > limit {
            out.truncate(start);
            return Err((waiter, Error::TooLarge { length, limit }));
        }
        let needs_leader = request.needs_leader();
        self.queue(xid).push_back(PendingRequest {
            xid,
            op,
            needs_leader,
            sent_at,
            offset,
            waiter,
        });
        Ok(())
    }

    /// Decodes a frame and removes the request it replies to.
    pub(super) fn receive(&mut self, frame: Bytes) -> Result<Incoming, ProtocolError> {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::decode(&mut reader)?;
        if header.xid == xid::NOTIFICATION {
            return Ok(Incoming::Notification(WatcherEvent::decode(&mut reader)?));
        }
        let queue = self.queue(header.xid);
        let pending = match queue.pop_front() {
            Some(pending) if pending.xid == header.xid => pending,
            expected => {
                let expected = expected.map(|pending| {
                    let xid = pending.xid;
                    // It has no reply, so it must still fail with the connection.
                    queue.push_front(pending);
                    xid
                });
                return Err(ProtocolError::OutOfOrder { got: header.xid, expected });
            }
        };
        if header.xid == xid::PING && matches!(pending.waiter, Waiter::None) {
            return Ok(Incoming::Pong { sent_at: pending.sent_at });
        }
        let outcome = match outcome(header, pending.op, reader) {
            Ok(outcome) => outcome,
            Err(undecodable) => {
                self.queue(header.xid).push_front(pending);
                return Err(undecodable.into());
            }
        };
        let PendingRequest { waiter, sent_at, needs_leader, .. } = pending;
        let confirmed_by_leader = needs_leader && proves_session_alive(header.code);
        let zxid = (header.zxid > 0).then_some(header.zxid);
        Ok(Incoming::Reply { waiter, outcome, sent_at, confirmed_by_leader, zxid })
    }

    /// Drains the requests of a connection that was lost after `written` bytes, each with the error for its waiter.
    pub(super) fn fail_all(self, written: u64) -> impl Iterator<Item = (Waiter, Error)> {
        self.in_order.into_iter().chain(self.pings).chain(self.credentials).map(move |pending| {
            let error = if pending.offset < written { Error::Unknown } else { Error::NotSent };
            (pending.waiter, error)
        })
    }

    fn next_xid(&mut self, request: &Request) -> i32 {
        match request {
            Request::Ping => xid::PING,
            Request::Auth { .. } => xid::AUTH,
            Request::SetWatches(_) => xid::SET_WATCHES,
            _ => {
                // Always positive: the other numbers are reserved.
                self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
                self.last_xid
            }
        }
    }

    fn queue(&mut self, xid: i32) -> &mut VecDeque<PendingRequest> {
        match xid {
            xid::PING => &mut self.pings,
            xid::AUTH => &mut self.credentials,
            _ => &mut self.in_order,
        }
    }
}

fn outcome(
    header: ReplyHeader,
    operation: i32,
    reader: Reader,
) -> Result<Result<Reply, Error>, DecodeError> {
    let ReplyHeader { zxid, code, .. } = header;
    match code {
        Code::OK => {
            // A slice of a node's data would keep the whole read buffer alive, so the caller gets a copy.
            let mut reader = match operation {
                op::GET_DATA | op::MULTI_READ => {
                    Reader::new(Bytes::copy_from_slice(&reader.into_remaining()))
                }
                _ => reader,
            };
            let response = Response::decode(operation, &mut reader)?;
            Ok(Ok(Reply { zxid, response }))
        }
        // The server itself does not know the outcome.
        Code::CONNECTION_LOSS | Code::OPERATION_TIMEOUT | Code::REQUEST_TIMEOUT => {
            Ok(Err(Error::Unknown))
        }
        code => Ok(Err(Error::Refused { code, zxid })),
    }
}

/// Whether this code, in reply to a request that needs the leader, proves that the leader processed it in a live session. Codes
/// that a server can return without asking the leader are not included.
fn proves_session_alive(code: Code) -> bool {
    matches!(
        code,
        Code::OK
            | Code::NO_NODE
            | Code::NO_AUTH
            | Code::BAD_VERSION
            | Code::NO_CHILDREN_FOR_EPHEMERALS
            | Code::NODE_EXISTS
            | Code::NOT_EMPTY
            | Code::INVALID_ACL
            | Code::BAD_ARGUMENTS
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{EventKind, KeeperState, Op};

    const LIMIT: usize = 1024;

    fn sync() -> Request {
        Request::Sync { path: "/".into() }
    }

    fn exists() -> Request {
        Request::Exists { path: "/a".into(), watch: false }
    }

    fn push(pending: &mut PendingRequests, request: &Request, offset: u64) -> BytesMut {
        let mut out = BytesMut::new();
        let sent_at = Duration::from_secs(offset);
        pending.push(&mut out, offset, request, Waiter::None, sent_at, LIMIT).unwrap();
        out
    }

    fn reply(xid: i32, code: Code, response: Option<&Response>) -> Bytes {
        let mut out = BytesMut::new();
        ReplyHeader { xid, zxid: 9, code }.encode(&mut out);
        if let Some(response) = response {
            response.encode(&mut out);
        }
        out.freeze()
    }

    #[test]
    fn reply_is_confirmed_by_leader_only_if_the_leader_processed_it() {
        let delete = Request::Write(Op::Delete { path: "/a".into(), version: -1 });
        let done = Response::Sync { path: "/".into() };
        let stat = Response::Stat(crate::wire::Stat::default());
        let cases = [
            (sync(), Code::OK, Some(&done), true),
            (delete.clone(), Code::NO_NODE, None, true),
            (delete.clone(), Code::SESSION_EXPIRED, None, false),
            (delete.clone(), Code::SESSION_MOVED, None, false),
            (delete, Code::THROTTLED, None, false),
            (exists(), Code::OK, Some(&stat), false),
            (exists(), Code::NO_NODE, None, false),
        ];
        for (request, code, response, expected) in cases {
            let mut pending = PendingRequests::default();
            push(&mut pending, &request, 5);

            let incoming = pending.receive(reply(1, code, response)).unwrap();

            let Incoming::Reply { confirmed_by_leader, .. } = incoming else {
                panic!("{incoming:?}")
            };
            assert_eq!(confirmed_by_leader, expected, "{request:?} {code}");
        }
    }

    #[test]
    fn reply_out_of_order_is_an_error_and_loses_no_waiter() {
        let mut pending = PendingRequests::default();
        push(&mut pending, &exists(), 0);

        let error = pending.receive(reply(2, Code::OK, None)).unwrap_err();

        assert_eq!(error.to_string(), "reply to request 2, expected Some(1)");
        assert_eq!(pending.fail_all(1).count(), 1);
    }

    #[test]
    fn reply_without_a_request_is_an_error() {
        for number in [0, 1, 77, xid::PING, xid::AUTH, xid::SET_WATCHES, i32::MIN] {
            assert!(PendingRequests::default().receive(reply(number, Code::OK, None)).is_err());
        }
    }

    #[test]
    fn truncated_reply_leaves_its_request_pending() {
        let mut pending = PendingRequests::default();
        push(&mut pending, &exists(), 0);

        assert!(pending.receive(reply(1, Code::OK, None)).is_err());

        let errors: Vec<_> = pending.fail_all(1).map(|(_, error)| error).collect();
        assert_eq!(errors, [Error::Unknown]);
    }

    #[test]
    fn unwritten_request_fails_as_not_sent() {
        let mut pending = PendingRequests::default();
        push(&mut pending, &exists(), 0);
        push(&mut pending, &exists(), 30);
        push(&mut pending, &exists(), 60);

        let errors: Vec<_> = pending.fail_all(31).map(|(_, error)| error).collect();

        assert_eq!(errors, [Error::Unknown, Error::Unknown, Error::NotSent]);
    }

    #[test]
    fn oversized_request_leaves_the_output_unchanged() {
        let mut pending = PendingRequests::default();
        let mut out = BytesMut::from(&b"before"[..]);
        let request = Request::GetAcl { path: "x".repeat(LIMIT) };

        let (_, error) =
            pending.push(&mut out, 0, &request, Waiter::None, Duration::ZERO, LIMIT).unwrap_err();

        assert_eq!(error, Error::TooLarge { length: 8 + 4 + LIMIT, limit: LIMIT });
        assert_eq!(out, b"before"[..]);
        assert_eq!(pending.fail_all(1).count(), 0);
    }

    #[test]
    fn xid_wraps_around_to_one() {
        let mut pending = PendingRequests { last_xid: i32::MAX, ..PendingRequests::default() };

        let sent = push(&mut pending, &exists(), 0);

        assert_eq!(sent[4..8], 1_i32.to_be_bytes());
    }

    #[test]
    fn pings_and_notifications_are_exempt_from_the_order() {
        let mut pending = PendingRequests::default();
        push(&mut pending, &exists(), 0);
        push(&mut pending, &Request::Ping, 1);
        let mut notification = BytesMut::new();
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.encode(&mut notification);
        let event = WatcherEvent {
            kind: EventKind::NodeCreated,
            state: KeeperState::SYNC_CONNECTED,
            path: "/a".into(),
        };
        event.encode(&mut notification);

        let first = pending.receive(notification.freeze()).unwrap();
        let second = pending.receive(reply(xid::PING, Code::OK, None)).unwrap();
        let third = pending.receive(reply(1, Code::NO_NODE, None)).unwrap();

        assert!(matches!(first, Incoming::Notification(received) if received == event));
        assert!(matches!(second, Incoming::Pong { .. }));
        assert!(matches!(third, Incoming::Reply { zxid: Some(9), .. }));
    }
}
