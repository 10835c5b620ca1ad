//! What was asked on one connection and is not answered yet. Nothing here touches a socket.
//!
//! A server answers in the order it was asked, so the oldest question and the next answer belong together and their numbers
//! must agree. Pings and credentials stand outside that order, each kind in one of its own.

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

/// A request that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For a write, its own transaction; for a read, the last one applied before it.
    pub zxid: i64,
    /// What was answered.
    pub response: Response,
}

/// Who waits for an answer.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A caller of `submit`.
    Caller(oneshot::Sender<Result<Answer, Error>>),
    /// A caller of `watch`.
    Watch { path: String, mode: AddWatchMode, reply: oneshot::Sender<Result<Watch, Error>> },
    /// The watches to be told of the gap.
    Rewatch { set: Box<SetWatches>, cause: GapCause },
    /// Whoever closes the session.
    Close,
    /// Nobody; the answer still counts for the lease.
    Nobody,
}

/// Something the server said.
#[derive(Debug)]
pub(super) enum Heard {
    /// A watched node changed.
    Notification(WatcherEvent),
    /// A ping of our own was answered.
    Pong { sent_at: Duration },
    /// A question was answered.
    Answered {
        waiter: Waiter,
        outcome: Result<Answer, Error>,
        sent_at: Duration,
        /// Whether the leader had to see it and found the session alive.
        from_leader: bool,
        /// The newest transaction seen, if it tells.
        zxid: Option<i64>,
    },
}

/// Why the connection cannot be trusted any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Confused {
    #[error("cannot read what the server sent")]
    Undecodable(#[from] DecodeError),
    #[error("answer to {got}, expected one to {expected:?}")]
    OutOfOrder { got: i32, expected: Option<i32> },
}

#[derive(Debug)]
struct Pending {
    xid: i32,
    op: i32,
    needs_leader: bool,
    sent_at: Duration,
    /// Where in the stream of bytes it begins: what begins after the last byte written was never sent.
    begins: u64,
    waiter: Waiter,
}

/// The questions in flight on one connection.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    in_order: VecDeque<Pending>,
    pings: VecDeque<Pending>,
    credentials: VecDeque<Pending>,
    last_xid: i32,
}

impl Exchange {
    /// Appends the request to `out`, or hands the waiter back when the frame would be over `limit`.
    pub(super) fn ask(
        &mut self,
        out: &mut BytesMut,
        begins: u64,
        request: &Request,
        waiter: Waiter,
        sent_at: Duration,
        limit: usize,
    ) -> Result<(), (Waiter, Error)> {
        let xid = self.number(request);
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
        self.line(xid).push_back(Pending { xid, op, needs_leader, sent_at, begins, waiter });
        Ok(())
    }

    /// Makes sense of a frame.
    pub(super) fn hear(&mut self, frame: Bytes) -> Result<Heard, Confused> {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::decode(&mut reader)?;
        if header.xid == xid::NOTIFICATION {
            return Ok(Heard::Notification(WatcherEvent::decode(&mut reader)?));
        }
        let line = self.line(header.xid);
        let pending = match line.pop_front() {
            Some(pending) if pending.xid == header.xid => pending,
            expected => {
                let expected = expected.map(|pending| {
                    let xid = pending.xid;
                    // Still unanswered, so its waiter must still be told.
                    line.push_front(pending);
                    xid
                });
                return Err(Confused::OutOfOrder { got: header.xid, expected });
            }
        };
        if header.xid == xid::PING && matches!(pending.waiter, Waiter::Nobody) {
            return Ok(Heard::Pong { sent_at: pending.sent_at });
        }
        let outcome = match outcome(header, pending.op, reader) {
            Ok(outcome) => outcome,
            Err(undecodable) => {
                self.line(header.xid).push_front(pending);
                return Err(undecodable.into());
            }
        };
        let Pending { waiter, sent_at, needs_leader, .. } = pending;
        let from_leader = needs_leader && proves_life(header.code);
        let zxid = (header.zxid > 0).then_some(header.zxid);
        Ok(Heard::Answered { waiter, outcome, sent_at, from_leader, zxid })
    }

    /// The connection is gone after `written` bytes. What nobody will answer now, each with what is known of its fate.
    pub(super) fn abandon(self, written: u64) -> impl Iterator<Item = (Waiter, Error)> {
        self.in_order.into_iter().chain(self.pings).chain(self.credentials).map(move |pending| {
            let fate = if pending.begins < written { Error::Unknown } else { Error::NotSent };
            (pending.waiter, fate)
        })
    }

    fn number(&mut self, request: &Request) -> i32 {
        match request {
            Request::Ping => xid::PING,
            Request::Auth { .. } => xid::AUTH,
            Request::SetWatches(_) => xid::SET_WATCHES,
            _ => {
                // Never zero or less: those numbers have meanings of their own.
                self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
                self.last_xid
            }
        }
    }

    fn line(&mut self, number: i32) -> &mut VecDeque<Pending> {
        match number {
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
) -> Result<Result<Answer, Error>, DecodeError> {
    let ReplyHeader { zxid, code, .. } = header;
    match code {
        Code::OK => {
            // What a caller keeps of a node's data would keep the whole read buffer, so it gets its own copy.
            let mut reader = match operation {
                op::GET_DATA | op::MULTI_READ => {
                    Reader::new(Bytes::copy_from_slice(&reader.into_remaining()))
                }
                _ => reader,
            };
            let response = Response::decode(operation, &mut reader)?;
            Ok(Ok(Answer { zxid, response }))
        }
        // The server itself does not know.
        Code::CONNECTION_LOSS | Code::OPERATION_TIMEOUT | Code::REQUEST_TIMEOUT => {
            Ok(Err(Error::Unknown))
        }
        code => Ok(Err(Error::Refused { code, zxid })),
    }
}

/// Whether a request for the leader that ended so was judged by the leader, in a living session. The codes a server can give
/// on its own account are left out.
fn proves_life(code: Code) -> bool {
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

    fn ask(exchange: &mut Exchange, request: &Request, begins: u64) -> BytesMut {
        let mut out = BytesMut::new();
        let sent_at = Duration::from_secs(begins);
        exchange.ask(&mut out, begins, request, Waiter::Nobody, sent_at, LIMIT).unwrap();
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
    fn only_what_the_leader_judged_is_from_the_leader() {
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
            let mut exchange = Exchange::default();
            ask(&mut exchange, &request, 5);

            let heard = exchange.hear(reply(1, code, response)).unwrap();

            let Heard::Answered { from_leader, .. } = heard else { panic!("{heard:?}") };
            assert_eq!(from_leader, expected, "{request:?} {code}");
        }
    }

    #[test]
    fn an_answer_out_of_order_is_noticed_and_loses_no_waiter() {
        let mut exchange = Exchange::default();
        ask(&mut exchange, &exists(), 0);

        let confused = exchange.hear(reply(2, Code::OK, None)).unwrap_err();

        assert_eq!(confused.to_string(), "answer to 2, expected one to Some(1)");
        assert_eq!(exchange.abandon(1).count(), 1);
    }

    #[test]
    fn an_answer_nobody_asked_for_is_noticed() {
        for number in [0, 1, 77, xid::PING, xid::AUTH, xid::SET_WATCHES, i32::MIN] {
            assert!(Exchange::default().hear(reply(number, Code::OK, None)).is_err());
        }
    }

    #[test]
    fn a_body_that_ends_early_leaves_its_waiter_waiting() {
        let mut exchange = Exchange::default();
        ask(&mut exchange, &exists(), 0);

        assert!(exchange.hear(reply(1, Code::OK, None)).is_err());

        let fates: Vec<_> = exchange.abandon(1).map(|(_, fate)| fate).collect();
        assert_eq!(fates, [Error::Unknown]);
    }

    #[test]
    fn what_never_left_is_not_called_unknown() {
        let mut exchange = Exchange::default();
        ask(&mut exchange, &exists(), 0);
        ask(&mut exchange, &exists(), 30);
        ask(&mut exchange, &exists(), 60);

        let fates: Vec<_> = exchange.abandon(31).map(|(_, fate)| fate).collect();

        assert_eq!(fates, [Error::Unknown, Error::Unknown, Error::NotSent]);
    }

    #[test]
    fn what_is_too_large_leaves_no_trace() {
        let mut exchange = Exchange::default();
        let mut out = BytesMut::from(&b"before"[..]);
        let request = Request::GetAcl { path: "x".repeat(LIMIT) };

        let (_, error) =
            exchange.ask(&mut out, 0, &request, Waiter::Nobody, Duration::ZERO, LIMIT).unwrap_err();

        assert_eq!(error, Error::TooLarge { length: 8 + 4 + LIMIT, limit: LIMIT });
        assert_eq!(out, b"before"[..]);
        assert_eq!(exchange.abandon(1).count(), 0);
    }

    #[test]
    fn numbers_start_again_before_they_mean_something_else() {
        let mut exchange = Exchange { last_xid: i32::MAX, ..Exchange::default() };

        let sent = ask(&mut exchange, &exists(), 0);

        assert_eq!(sent[4..8], 1_i32.to_be_bytes());
    }

    #[test]
    fn pings_and_notifications_stand_outside_the_order() {
        let mut exchange = Exchange::default();
        ask(&mut exchange, &exists(), 0);
        ask(&mut exchange, &Request::Ping, 1);
        let mut notification = BytesMut::new();
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.encode(&mut notification);
        let event = WatcherEvent {
            kind: EventKind::NodeCreated,
            state: KeeperState::SYNC_CONNECTED,
            path: "/a".into(),
        };
        event.encode(&mut notification);

        let first = exchange.hear(notification.freeze()).unwrap();
        let second = exchange.hear(reply(xid::PING, Code::OK, None)).unwrap();
        let third = exchange.hear(reply(1, Code::NO_NODE, None)).unwrap();

        assert!(matches!(first, Heard::Notification(heard) if heard == event));
        assert!(matches!(second, Heard::Pong { .. }));
        assert!(matches!(third, Heard::Answered { zxid: Some(9), .. }));
    }
}
