//! ZooKeeper's wire protocol, shared by client and server.
//!
//! A connection carries *frames*: a big-endian length, then that many bytes ([`frame`]). The first frame each way opens the
//! session ([`ConnectRequest`], [`ConnectResponse`]); after that a client sends a [`RequestHeader`] and a [`Request`], a server
//! a [`ReplyHeader`] and a [`Response`] or a [`WatcherEvent`]. Records are *jute*: fields one after the other, without names or
//! tags ([`jute`]), so a reply can be decoded only with the operation of its request.
//!
//! This module opens no sockets and keeps no state. The bytes are untrusted: decoding never panics and never allocates more
//! than the size of the frame justifies.

mod acl;
mod code;
mod connect;
pub mod frame;
mod header;
pub mod jute;
mod multi;
mod request;
mod response;
mod stat;

pub use self::{
    acl::{Acl, AuthId, Perms},
    code::Code,
    connect::{ConnectRequest, ConnectResponse, PASSWORD_LEN},
    header::{EventKind, KeeperState, ReplyHeader, RequestHeader, WatcherEvent, xid},
    jute::{DecodeError, Reader, Writer},
    multi::{MultiResult, ReadOp},
    request::{AddWatchMode, Create, CreateMode, Op, Request, SetWatches, WatcherType, op},
    response::Response,
    stat::Stat,
};
