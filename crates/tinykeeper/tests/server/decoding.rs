//! Decoding of untrusted bytes never panics and is unambiguous. The fuzz target `wire` searches longer: `make fuzz`.

use bytes::{Bytes, BytesMut};
use proptest::{collection::vec, prelude::*, sample::select};
use tinykeeper::wire::{
    Acl, AddWatchMode, AuthId, Code, ConnectRequest, ConnectResponse, Create, CreateMode,
    EventKind, KeeperState, MultiResult, Op, Perms, ReadOp, Request, Response, SetWatches, Stat,
    WatcherEvent, WatcherType, frame,
};

use super::roundtrip::{OPERATIONS, check, check_as};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "/[a-c]{0,3}", "\\PC{0,8}"]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

fn data() -> impl Strategy<Value = Option<Bytes>> {
    proptest::option::of(vec(any::<u8>(), 0..20).prop_map(Bytes::from))
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    let line = (any::<i32>(), text(), text())
        .prop_map(|(perms, scheme, id)| Acl { perms: Perms(perms), id: AuthId { scheme, id } });
    vec(line, 0..3)
}

fn stat() -> impl Strategy<Value = Stat> {
    (any::<[i64; 6]>(), any::<[i32; 5]>()).prop_map(|(longs, ints)| Stat {
        czxid: longs[0],
        mzxid: longs[1],
        ctime: longs[2],
        mtime: longs[3],
        version: ints[0],
        cversion: ints[1],
        aversion: ints[2],
        ephemeral_owner: longs[4],
        data_length: ints[3],
        num_children: ints[4],
        pzxid: longs[5],
    })
}

fn create_op() -> impl Strategy<Value = Op> {
    let mode = prop_oneof![
        select(vec![
            (CreateMode::Persistent, false),
            (CreateMode::Persistent, true),
            (CreateMode::Ephemeral, false),
            (CreateMode::PersistentSequential, true),
            (CreateMode::EphemeralSequential, true),
            (CreateMode::Container, true),
        ]),
        any::<i64>().prop_map(|ttl| (CreateMode::PersistentTtl(ttl), true)),
        any::<i64>().prop_map(|ttl| (CreateMode::PersistentSequentialTtl(ttl), true)),
        (7..i32::MAX, any::<i64>()).prop_map(|(flag, ttl)| (CreateMode::Unknown(flag, ttl), true)),
    ];
    (text(), data(), acl(), mode).prop_map(|(path, data, acl, (mode, with_stat))| {
        Op::Create(Create { path, data, acl, mode, with_stat })
    })
}

fn change() -> impl Strategy<Value = Op> {
    prop_oneof![
        create_op(),
        (text(), any::<i32>()).prop_map(|(path, version)| Op::Delete { path, version }),
        (text(), data(), any::<i32>()).prop_map(|(path, data, version)| Op::SetData {
            path,
            data,
            version
        }),
        (text(), acl(), any::<i32>()).prop_map(|(path, acl, version)| Op::SetAcl {
            path,
            acl,
            version
        }),
    ]
}

fn member() -> impl Strategy<Value = Op> {
    let check = (text(), any::<i32>()).prop_map(|(path, version)| Op::Check { path, version });
    prop_oneof![change(), check]
}

fn reading() -> impl Strategy<Value = ReadOp> {
    prop_oneof![
        text().prop_map(|path| ReadOp::GetData { path }),
        text().prop_map(|path| ReadOp::GetChildren { path }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let about_node = || (text(), any::<bool>());
    let watches = (any::<i64>(), [texts(), texts(), texts(), texts(), texts()]).prop_map(
        |(relative_zxid, [data, exist, child, persistent, persistent_recursive])| SetWatches {
            relative_zxid,
            data,
            exist,
            child,
            persistent,
            persistent_recursive,
        },
    );
    let modes = select(vec![AddWatchMode::Persistent, AddWatchMode::PersistentRecursive]);
    let kinds = select(vec![
        WatcherType::Children,
        WatcherType::Data,
        WatcherType::Any,
        WatcherType::Persistent,
        WatcherType::PersistentRecursive,
    ]);
    let about_watches = (text(), kinds, any::<bool>()).prop_map(|(path, kind, check)| {
        if check {
            Request::CheckWatches { path, kind }
        } else {
            Request::RemoveWatches { path, kind }
        }
    });
    let alone = select(vec![Request::Ping, Request::WhoAmI, Request::CloseSession]);
    let reads = prop_oneof![
        about_node().prop_map(|(path, watch)| Request::Exists { path, watch }),
        about_node().prop_map(|(path, watch)| Request::GetData { path, watch }),
        about_node().prop_map(|(path, watch)| Request::GetChildren { path, watch }),
        about_node().prop_map(|(path, watch)| Request::GetChildrenStat { path, watch }),
        text().prop_map(|path| Request::GetAcl { path }),
        text().prop_map(|path| Request::GetAllChildrenNumber { path }),
        text().prop_map(|prefix| Request::GetEphemerals { prefix }),
        text().prop_map(|path| Request::Sync { path }),
    ];
    prop_oneof![
        4 => change().prop_map(Request::Write),
        4 => vec(member(), 0..4).prop_map(Request::Multi),
        1 => vec(reading(), 0..4).prop_map(Request::MultiRead),
        4 => reads,
        1 => (text(), data()).prop_map(|(scheme, auth)| {
            Request::Auth { scheme, auth: auth.unwrap_or_default() }
        }),
        2 => watches.prop_map(Request::SetWatches),
        1 => (text(), modes).prop_map(|(path, mode)| Request::AddWatch { path, mode }),
        1 => about_watches,
        1 => alone,
    ]
}

fn result() -> impl Strategy<Value = MultiResult> {
    prop_oneof![
        text().prop_map(|path| MultiResult::Create { path }),
        (text(), stat()).prop_map(|(path, stat)| MultiResult::Create2 { path, stat }),
        Just(MultiResult::Delete),
        stat().prop_map(|stat| MultiResult::SetData { stat }),
        Just(MultiResult::Check),
        (data(), stat()).prop_map(|(data, stat)| MultiResult::GetData { data, stat }),
        texts().prop_map(|children| MultiResult::GetChildren { children }),
        any::<i32>().prop_map(|code| MultiResult::Error(Code(code))),
    ]
}

/// A response, and an operation it responds to.
fn response() -> impl Strategy<Value = (i32, Response)> {
    use tinykeeper::wire::op;
    let users = vec((text(), text()), 0..3);
    prop_oneof![
        text().prop_map(|path| (op::CREATE, Response::Create { path })),
        (text(), stat()).prop_map(|(path, stat)| (op::CREATE2, Response::Create2 { path, stat })),
        stat().prop_map(|stat| (op::EXISTS, Response::Stat(stat))),
        (data(), stat()).prop_map(|(data, stat)| (op::GET_DATA, Response::Data { data, stat })),
        (acl(), stat()).prop_map(|(acl, stat)| (op::GET_ACL, Response::Acl { acl, stat })),
        texts().prop_map(|names| (op::GET_CHILDREN, Response::Children(names))),
        (texts(), stat()).prop_map(|(children, stat)| {
            (op::GET_CHILDREN2, Response::ChildrenStat { children, stat })
        }),
        texts().prop_map(|paths| (op::GET_EPHEMERALS, Response::Paths(paths))),
        any::<i32>().prop_map(|number| (op::GET_ALL_CHILDREN_NUMBER, Response::Number(number))),
        text().prop_map(|path| (op::SYNC, Response::Sync { path })),
        vec(result(), 0..4).prop_map(|results| (op::MULTI, Response::Multi(results))),
        users.prop_map(|users| (op::WHO_AM_I, Response::WhoAmI(users))),
    ]
}

/// First frames and notifications, which have no operation.
fn other() -> impl Strategy<Value = Vec<u8>> {
    let kinds = select(vec![EventKind::NodeCreated, EventKind::NodeDeleted, EventKind::None]);
    let read_only = proptest::option::of(any::<bool>());
    prop_oneof![
        (any::<(i32, i64, i32, i64)>(), data(), read_only.clone()).prop_map(
            |((protocol_version, last_zxid_seen, timeout_ms, session_id), password, read_only)| {
                let password = password.unwrap_or_default();
                encoded(|out| {
                    ConnectRequest {
                        protocol_version,
                        last_zxid_seen,
                        timeout_ms,
                        session_id,
                        password,
                        read_only,
                    }
                    .encode(out);
                })
            }
        ),
        (any::<(i32, i32, i64)>(), data(), read_only).prop_map(
            |((protocol_version, timeout_ms, session_id), password, read_only)| {
                let password = password.unwrap_or_default();
                encoded(|out| {
                    ConnectResponse {
                        protocol_version,
                        timeout_ms,
                        session_id,
                        password,
                        read_only,
                    }
                    .encode(out);
                })
            }
        ),
        (kinds, any::<i32>(), text()).prop_map(|(kind, state, path)| {
            encoded(|out| WatcherEvent { kind, state: KeeperState(state), path }.encode(out))
        }),
        vec(vec(any::<u8>(), 0..20), 0..4).prop_map(|bodies| {
            encoded(|out| {
                for body in bodies {
                    frame::write(out, |out| out.extend_from_slice(&body));
                }
            })
        }),
    ]
}

fn encoded(encode: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode(&mut out);
    out.to_vec()
}

/// A corruption of bytes in transit.
#[derive(Debug, Clone)]
enum Corruption {
    Flip(u8),
    /// A number with a special meaning as a length or code.
    Number(i32),
    Cut,
    Insert(Vec<u8>),
    Remove(usize),
}

fn corruptions() -> impl Strategy<Value = Vec<(prop::sample::Index, Corruption)>> {
    let corruption = prop_oneof![
        (1..=u8::MAX).prop_map(Corruption::Flip),
        select(vec![-2, -1, 0, 1, 4, 5, 1 << 16, i32::MAX, i32::MIN]).prop_map(Corruption::Number),
        Just(Corruption::Cut),
        vec(any::<u8>(), 1..9).prop_map(Corruption::Insert),
        (1..9_usize).prop_map(Corruption::Remove),
    ];
    vec((any::<prop::sample::Index>(), corruption), 0..3)
}

fn corrupt(bytes: &mut Vec<u8>, corruptions: Vec<(prop::sample::Index, Corruption)>) {
    for (place, corruption) in corruptions {
        if bytes.is_empty() {
            return;
        }
        let at = place.index(bytes.len());
        match corruption {
            Corruption::Flip(bits) => bytes[at] ^= bits,
            Corruption::Number(number) => {
                let end = bytes.len().min(at + 4);
                bytes[at..end].copy_from_slice(&number.to_be_bytes()[..end - at]);
            }
            Corruption::Cut => bytes.truncate(at),
            Corruption::Insert(more) => {
                bytes.splice(at..at, more);
            }
            Corruption::Remove(count) => {
                bytes.drain(at..bytes.len().min(at + count));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn request_round_trips(request in request()) {
        let bytes = encoded(|out| request.encode(out));

        let mut reader = tinykeeper::wire::Reader::new(bytes.into());
        let understood = Request::decode(request.op(), &mut reader);

        prop_assert_eq!(understood, Ok(request));
        prop_assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn response_round_trips((operation, response) in response()) {
        let bytes = encoded(|out| response.encode(out));

        let mut reader = tinykeeper::wire::Reader::new(bytes.into());
        let understood = Response::decode(operation, &mut reader);

        prop_assert_eq!(understood, Ok(response));
        prop_assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn corrupted_request_never_panics_and_round_trips_if_decoded(
        request in request(),
        corruptions in corruptions(),
        other in select(OPERATIONS.to_vec()),
    ) {
        let mut bytes = encoded(|out| request.encode(out));
        corrupt(&mut bytes, corruptions);

        check_as(request.op(), &bytes);
        check_as(other, &bytes);
    }

    #[test]
    fn corrupted_response_never_panics_and_round_trips_if_decoded(
        (operation, response) in response(),
        corruptions in corruptions(),
    ) {
        let mut bytes = encoded(|out| response.encode(out));
        corrupt(&mut bytes, corruptions);

        check_as(operation, &bytes);
    }

    #[test]
    fn corrupted_first_frame_never_panics_and_round_trips_if_decoded(
        mut bytes in other(),
        corruptions in corruptions(),
    ) {
        corrupt(&mut bytes, corruptions);

        check(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_round_trip_if_decoded(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }
}
