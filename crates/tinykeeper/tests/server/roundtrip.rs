//! Properties of the decoders for arbitrary bytes: no decoder panics, and a decoded value encodes to bytes that decode to the same
//! value. Used by these tests and by the fuzz target `wire` in `dev/fuzz`.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use tinykeeper::wire::{
    ConnectRequest, ConnectResponse, DecodeError, Reader, ReplyHeader, Request, RequestHeader,
    Response, WatcherEvent, frame, op,
};

/// Every operation, and one unknown number.
pub(crate) const OPERATIONS: [i32; 29] = [
    op::CREATE,
    op::DELETE,
    op::EXISTS,
    op::GET_DATA,
    op::SET_DATA,
    op::GET_ACL,
    op::SET_ACL,
    op::GET_CHILDREN,
    op::SYNC,
    op::PING,
    op::GET_CHILDREN2,
    op::CHECK,
    op::MULTI,
    op::CREATE2,
    op::CHECK_WATCHES,
    op::REMOVE_WATCHES,
    op::CREATE_CONTAINER,
    op::CREATE_TTL,
    op::MULTI_READ,
    op::AUTH,
    op::SET_WATCHES,
    op::GET_EPHEMERALS,
    op::GET_ALL_CHILDREN_NUMBER,
    op::SET_WATCHES2,
    op::ADD_WATCH,
    op::WHO_AM_I,
    op::CLOSE_SESSION,
    op::ERROR,
    4711,
];

/// Checks all decoders with these bytes.
pub(crate) fn check(bytes: &[u8]) {
    frames(bytes);
    survives(bytes, ConnectRequest::decode, ConnectRequest::encode);
    survives(bytes, ConnectResponse::decode, ConnectResponse::encode);
    survives(bytes, RequestHeader::decode, |header, out| header.encode(out));
    survives(bytes, ReplyHeader::decode, |header, out| header.encode(out));
    survives(bytes, WatcherEvent::decode, WatcherEvent::encode);
    for operation in OPERATIONS {
        check_as(operation, bytes);
    }
}

/// Checks the decoders of one operation's request and response with these bytes.
pub(crate) fn check_as(operation: i32, bytes: &[u8]) {
    if let Ok(request) = Request::decode(operation, &mut reader(bytes)) {
        let mut out = BytesMut::new();
        request.encode(&mut out);
        let again = Request::decode(request.op(), &mut Reader::new(out.freeze()));
        assert_eq!(again.as_ref(), Ok(&request), "operation {operation} as {}", request.op());
    }
    survives(bytes, |reader| Response::decode(operation, reader), Response::encode);
}

/// Checks that splitting into frames loses no bytes.
fn frames(bytes: &[u8]) {
    const LIMIT: usize = 1 << 10;
    let mut buffer = BytesMut::from(bytes);
    let mut written = BytesMut::new();
    while let Ok(Some(body)) = frame::split(&mut buffer, LIMIT) {
        assert!(body.len() <= LIMIT);
        frame::write(&mut written, |out| out.extend_from_slice(&body));
    }
    written.extend_from_slice(&buffer);
    assert_eq!(written, bytes);
}

fn survives<T: PartialEq + Debug>(
    bytes: &[u8],
    decode: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut BytesMut),
) {
    if let Ok(value) = decode(&mut reader(bytes)) {
        let mut out = BytesMut::new();
        encode(&value, &mut out);
        assert_eq!(decode(&mut Reader::new(out.freeze())).as_ref(), Ok(&value));
    }
}

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Bytes::copy_from_slice(bytes))
}
