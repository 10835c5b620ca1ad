//! Requests of a client.

use bytes::{Bytes, BytesMut};

use super::{
    acl::Acl,
    jute::{DecodeError, Reader, Writer},
    multi::{self, ReadOp},
};

/// Operation numbers.
pub mod op {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_ACL: i32 = 6;
    pub const SET_ACL: i32 = 7;
    pub const GET_CHILDREN: i32 = 8;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN2: i32 = 12;
    pub const CHECK: i32 = 13;
    pub const MULTI: i32 = 14;
    pub const CREATE2: i32 = 15;
    pub const CHECK_WATCHES: i32 = 17;
    pub const REMOVE_WATCHES: i32 = 18;
    pub const CREATE_CONTAINER: i32 = 19;
    pub const CREATE_TTL: i32 = 21;
    pub const MULTI_READ: i32 = 22;
    pub const AUTH: i32 = 100;
    pub const SET_WATCHES: i32 = 101;
    pub const GET_EPHEMERALS: i32 = 103;
    pub const GET_ALL_CHILDREN_NUMBER: i32 = 104;
    pub const SET_WATCHES2: i32 = 105;
    pub const ADD_WATCH: i32 = 106;
    pub const WHO_AM_I: i32 = 107;
    pub const CLOSE_SESSION: i32 = -11;
    pub const ERROR: i32 = -1;
}

/// Lifetime of a new node, and whether the server appends a sequence number to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateMode {
    Persistent,
    /// Deleted when the session that created it ends.
    Ephemeral,
    PersistentSequential,
    EphemeralSequential,
    /// Deleted by the server some time after its last child was deleted.
    Container,
    /// Deleted by the server when it has no children and has not changed for this many milliseconds.
    PersistentTtl(i64),
    PersistentSequentialTtl(i64),
    /// Flags that the protocol does not define, kept so that the server can refuse them with a protocol code.
    Unknown(i32, i64),
}

impl CreateMode {
    fn from_flags(flags: i32, ttl: i64) -> Self {
        match (flags, ttl) {
            (0, -1) => CreateMode::Persistent,
            (1, -1) => CreateMode::Ephemeral,
            (2, -1) => CreateMode::PersistentSequential,
            (3, -1) => CreateMode::EphemeralSequential,
            (4, -1) => CreateMode::Container,
            (5, ttl) => CreateMode::PersistentTtl(ttl),
            (6, ttl) => CreateMode::PersistentSequentialTtl(ttl),
            (flags, ttl) => CreateMode::Unknown(flags, ttl),
        }
    }

    fn flags(self) -> i32 {
        match self {
            CreateMode::Persistent => 0,
            CreateMode::Ephemeral => 1,
            CreateMode::PersistentSequential => 2,
            CreateMode::EphemeralSequential => 3,
            CreateMode::Container => 4,
            CreateMode::PersistentTtl(_) => 5,
            CreateMode::PersistentSequentialTtl(_) => 6,
            CreateMode::Unknown(flags, _) => flags,
        }
    }

    fn ttl(self) -> Option<i64> {
        match self {
            CreateMode::PersistentTtl(ttl)
            | CreateMode::PersistentSequentialTtl(ttl)
            | CreateMode::Unknown(_, ttl) => Some(ttl),
            _ => None,
        }
    }

    /// The operation reserved for this mode, if there is one.
    fn operation(self) -> Option<i32> {
        match self {
            CreateMode::Container => Some(op::CREATE_CONTAINER),
            mode => mode.ttl().map(|_| op::CREATE_TTL),
        }
    }

    /// Whether the server appends a sequence number to the name.
    pub fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::PersistentSequentialTtl(_)
        )
    }

    /// Whether the node is deleted when its session ends.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }
}

/// A node to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The path; the server appends ten digits to that of a sequential node.
    pub path: String,
    /// `None` is null, which differs from empty.
    pub data: Option<Bytes>,
    pub acl: Vec<Acl>,
    pub mode: CreateMode,
    /// Whether the response contains the new node's stat.
    pub with_stat: bool,
}

impl Create {
    fn op(&self) -> i32 {
        match (self.mode.operation(), self.with_stat) {
            (Some(operation), _) => operation,
            (None, true) => op::CREATE2,
            (None, false) => op::CREATE,
        }
    }

    fn decode(operation: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = reader.string("path")?;
        let data = reader.buffer("data")?;
        let acl = Acl::decode_list(reader)?;
        let flags = reader.i32("flags")?;
        let ttl = if operation == op::CREATE_TTL { reader.i64("ttl")? } else { -1 };
        let mode = CreateMode::from_flags(flags, ttl);
        // A mode with its own operation always gets the stat in the response, whatever operation requested it.
        let with_stat = operation != op::CREATE || mode.operation().is_some();
        Ok(Self { path, data, acl, mode, with_stat })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_string(&self.path);
        out.put_buffer(self.data.as_deref());
        Acl::encode_list(&self.acl, out);
        out.put_int(self.mode.flags());
        if let Some(ttl) = self.mode.ttl() {
            out.put_long(ttl);
        }
    }
}

/// A write, or a condition for one: alone, or part of a multi. Version −1 matches any version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Create(Create),
    /// Delete a node without children.
    Delete {
        path: String,
        version: i32,
    },
    /// Replace a node's data.
    SetData {
        path: String,
        data: Option<Bytes>,
        version: i32,
    },
    /// Replace a node's access list.
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        version: i32,
    },
    /// Fail unless the node exists in this version.
    Check {
        path: String,
        version: i32,
    },
}

impl Op {
    /// The operation number, one of [`op`].
    pub fn number(&self) -> i32 {
        match self {
            Op::Create(create) => create.op(),
            Op::Delete { .. } => op::DELETE,
            Op::SetData { .. } => op::SET_DATA,
            Op::SetAcl { .. } => op::SET_ACL,
            Op::Check { .. } => op::CHECK,
        }
    }

    pub fn path(&self) -> &str {
        match self {
            Op::Create(create) => &create.path,
            Op::Delete { path, .. }
            | Op::SetData { path, .. }
            | Op::SetAcl { path, .. }
            | Op::Check { path, .. } => path,
        }
    }

    pub(super) fn decode(operation: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match operation {
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                Op::Create(Create::decode(operation, reader)?)
            }
            op::DELETE => {
                Op::Delete { path: reader.string("path")?, version: reader.i32("version")? }
            }
            op::SET_DATA => Op::SetData {
                path: reader.string("path")?,
                data: reader.buffer("data")?,
                version: reader.i32("version")?,
            },
            op::SET_ACL => Op::SetAcl {
                path: reader.string("path")?,
                acl: Acl::decode_list(reader)?,
                version: reader.i32("version")?,
            },
            op::CHECK => {
                Op::Check { path: reader.string("path")?, version: reader.i32("version")? }
            }
            value => {
                return Err(DecodeError::BadValue { field: "operation", value });
            }
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        match self {
            Op::Create(create) => create.encode(out),
            Op::Delete { path, version } | Op::Check { path, version } => {
                out.put_string(path);
                out.put_int(*version);
            }
            Op::SetData { path, data, version } => {
                out.put_string(path);
                out.put_buffer(data.as_deref());
                out.put_int(*version);
            }
            Op::SetAcl { path, acl, version } => {
                out.put_string(path);
                Acl::encode_list(acl, out);
                out.put_int(*version);
            }
        }
    }
}

/// How a watch set with `addWatch` behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddWatchMode {
    /// Stays after it fires; reports changes of the node and of its list of children.
    Persistent,
    /// Stays after it fires; reports changes of the node and all its descendants, but no `NodeChildrenChanged`.
    PersistentRecursive,
}

/// The kind of watches that `checkWatches` and `removeWatches` apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatcherType {
    Children,
    Data,
    Any,
    Persistent,
    PersistentRecursive,
}

impl WatcherType {
    fn number(self) -> i32 {
        match self {
            WatcherType::Children => 1,
            WatcherType::Data => 2,
            WatcherType::Any => 3,
            WatcherType::Persistent => 4,
            WatcherType::PersistentRecursive => 5,
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match reader.i32("watcher type")? {
            1 => WatcherType::Children,
            2 => WatcherType::Data,
            3 => WatcherType::Any,
            4 => WatcherType::Persistent,
            5 => WatcherType::PersistentRecursive,
            value => {
                return Err(DecodeError::BadValue { field: "watcher type", value });
            }
        })
    }
}

/// The watches that a client restores after a reconnect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetWatches {
    /// The newest transaction the client has seen; the server reports later changes at once.
    pub relative_zxid: i64,
    /// One-shot watches on data.
    pub data: Vec<String>,
    /// One-shot watches on nodes that did not exist.
    pub exist: Vec<String>,
    /// One-shot watches on children.
    pub child: Vec<String>,
    pub persistent: Vec<String>,
    pub persistent_recursive: Vec<String>,
}

/// A client's request.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    Ping,
    /// A single write. `Op::Check` is valid in a multi only.
    Write(Op),
    Multi(Vec<Op>),
    MultiRead(Vec<ReadOp>),
    Exists {
        path: String,
        watch: bool,
    },
    GetData {
        path: String,
        watch: bool,
    },
    GetAcl {
        path: String,
    },
    GetChildren {
        path: String,
        watch: bool,
    },
    /// `getChildren2`: the children and the node's stat.
    GetChildrenStat {
        path: String,
        watch: bool,
    },
    GetAllChildrenNumber {
        path: String,
    },
    GetEphemerals {
        prefix: String,
    },
    Sync {
        path: String,
    },
    Auth {
        scheme: String,
        auth: Bytes,
    },
    /// Sent as `setWatches` if there is no persistent watch, otherwise as `setWatches2`.
    SetWatches(SetWatches),
    AddWatch {
        path: String,
        mode: AddWatchMode,
    },
    CheckWatches {
        path: String,
        kind: WatcherType,
    },
    RemoveWatches {
        path: String,
        kind: WatcherType,
    },
    WhoAmI,
    CloseSession,
    /// An operation this implementation does not support; the server replies with the code `UNIMPLEMENTED`.
    Unknown {
        op: i32,
    },
}

impl Request {
    /// The operation number, one of [`op`].
    pub fn op(&self) -> i32 {
        match self {
            Request::Ping => op::PING,
            Request::Write(change) => change.number(),
            Request::Multi(_) => op::MULTI,
            Request::MultiRead(_) => op::MULTI_READ,
            Request::Exists { .. } => op::EXISTS,
            Request::GetData { .. } => op::GET_DATA,
            Request::GetAcl { .. } => op::GET_ACL,
            Request::GetChildren { .. } => op::GET_CHILDREN,
            Request::GetChildrenStat { .. } => op::GET_CHILDREN2,
            Request::GetAllChildrenNumber { .. } => op::GET_ALL_CHILDREN_NUMBER,
            Request::GetEphemerals { .. } => op::GET_EPHEMERALS,
            Request::Sync { .. } => op::SYNC,
            Request::Auth { .. } => op::AUTH,
            Request::SetWatches(watches)
                if watches.persistent.is_empty() && watches.persistent_recursive.is_empty() =>
            {
                op::SET_WATCHES
            }
            Request::SetWatches(_) => op::SET_WATCHES2,
            Request::AddWatch { .. } => op::ADD_WATCH,
            Request::CheckWatches { .. } => op::CHECK_WATCHES,
            Request::RemoveWatches { .. } => op::REMOVE_WATCHES,
            Request::WhoAmI => op::WHO_AM_I,
            Request::CloseSession => op::CLOSE_SESSION,
            Request::Unknown { op } => *op,
        }
    }

    /// Whether the ensemble's leader processes the request. Only replies to such requests prove that the session is alive.
    pub fn needs_leader(&self) -> bool {
        matches!(self, Request::Write(_) | Request::Multi(_) | Request::Sync { .. })
    }

    /// Decodes the body of operation `operation`.
    pub fn decode(operation: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        fn watched(reader: &mut Reader) -> Result<(String, bool), DecodeError> {
            Ok((reader.string("path")?, reader.bool("watch")?))
        }
        Ok(match operation {
            op::PING => Request::Ping,
            op::CREATE
            | op::CREATE2
            | op::CREATE_CONTAINER
            | op::CREATE_TTL
            | op::DELETE
            | op::SET_DATA
            | op::SET_ACL => Request::Write(Op::decode(operation, reader)?),
            op::MULTI => Request::Multi(multi::decode_ops(reader, Op::decode)?),
            op::MULTI_READ => Request::MultiRead(multi::decode_ops(reader, ReadOp::decode)?),
            op::EXISTS => {
                let (path, watch) = watched(reader)?;
                Request::Exists { path, watch }
            }
            op::GET_DATA => {
                let (path, watch) = watched(reader)?;
                Request::GetData { path, watch }
            }
            op::GET_CHILDREN => {
                let (path, watch) = watched(reader)?;
                Request::GetChildren { path, watch }
            }
            op::GET_CHILDREN2 => {
                let (path, watch) = watched(reader)?;
                Request::GetChildrenStat { path, watch }
            }
            op::GET_ACL => Request::GetAcl { path: reader.string("path")? },
            op::GET_ALL_CHILDREN_NUMBER => {
                Request::GetAllChildrenNumber { path: reader.string("path")? }
            }
            op::GET_EPHEMERALS => Request::GetEphemerals { prefix: reader.string("prefixPath")? },
            op::SYNC => Request::Sync { path: reader.string("path")? },
            op::AUTH => {
                reader.i32("type")?;
                Request::Auth {
                    scheme: reader.string("scheme")?,
                    auth: reader.buffer("auth")?.unwrap_or_default(),
                }
            }
            op::SET_WATCHES | op::SET_WATCHES2 => {
                let mut watches = SetWatches {
                    relative_zxid: reader.i64("relativeZxid")?,
                    data: reader.strings("dataWatches")?,
                    exist: reader.strings("existWatches")?,
                    child: reader.strings("childWatches")?,
                    ..SetWatches::default()
                };
                if operation == op::SET_WATCHES2 {
                    watches.persistent = reader.strings("persistentWatches")?;
                    watches.persistent_recursive = reader.strings("persistentRecursiveWatches")?;
                }
                Request::SetWatches(watches)
            }
            op::ADD_WATCH => Request::AddWatch {
                path: reader.string("path")?,
                mode: match reader.i32("mode")? {
                    0 => AddWatchMode::Persistent,
                    1 => AddWatchMode::PersistentRecursive,
                    value => {
                        return Err(DecodeError::BadValue { field: "watch mode", value });
                    }
                },
            },
            op::CHECK_WATCHES => Request::CheckWatches {
                path: reader.string("path")?,
                kind: WatcherType::decode(reader)?,
            },
            op::REMOVE_WATCHES => Request::RemoveWatches {
                path: reader.string("path")?,
                kind: WatcherType::decode(reader)?,
            },
            op::WHO_AM_I => Request::WhoAmI,
            op::CLOSE_SESSION => Request::CloseSession,
            op => Request::Unknown { op },
        })
    }

    /// Encodes the body, without the header.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Request::Ping | Request::WhoAmI | Request::CloseSession | Request::Unknown { .. } => {}
            Request::Write(change) => change.encode(out),
            Request::Multi(ops) => {
                multi::encode_ops(out, ops.iter().map(|op| (op.number(), op)), |op, out| {
                    op.encode(out);
                });
            }
            Request::MultiRead(ops) => {
                multi::encode_ops(out, ops.iter().map(|op| (op.number(), op)), |op, out| {
                    op.encode(out);
                });
            }
            Request::Exists { path, watch }
            | Request::GetData { path, watch }
            | Request::GetChildren { path, watch }
            | Request::GetChildrenStat { path, watch } => {
                out.put_string(path);
                out.put_bool(*watch);
            }
            Request::GetAcl { path }
            | Request::GetAllChildrenNumber { path }
            | Request::GetEphemerals { prefix: path }
            | Request::Sync { path } => out.put_string(path),
            Request::Auth { scheme, auth } => {
                out.put_int(0);
                out.put_string(scheme);
                out.put_buffer(Some(auth));
            }
            Request::SetWatches(watches) => {
                out.put_long(watches.relative_zxid);
                out.put_strings(&watches.data);
                out.put_strings(&watches.exist);
                out.put_strings(&watches.child);
                if self.op() == op::SET_WATCHES2 {
                    out.put_strings(&watches.persistent);
                    out.put_strings(&watches.persistent_recursive);
                }
            }
            Request::AddWatch { path, mode } => {
                out.put_string(path);
                out.put_int(match mode {
                    AddWatchMode::Persistent => 0,
                    AddWatchMode::PersistentRecursive => 1,
                });
            }
            Request::CheckWatches { path, kind } | Request::RemoveWatches { path, kind } => {
                out.put_string(path);
                out.put_int(kind.number());
            }
        }
    }
}

// Not derived, because an auth request contains a password.
impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Request::Ping => f.write_str("Ping"),
            Request::Write(op) => f.debug_tuple("Write").field(op).finish(),
            Request::Multi(ops) => f.debug_tuple("Multi").field(ops).finish(),
            Request::MultiRead(ops) => f.debug_tuple("MultiRead").field(ops).finish(),
            Request::Exists { path, watch } => write!(f, "Exists({path}, watch: {watch})"),
            Request::GetData { path, watch } => write!(f, "GetData({path}, watch: {watch})"),
            Request::GetAcl { path } => write!(f, "GetAcl({path})"),
            Request::GetChildren { path, watch } => {
                write!(f, "GetChildren({path}, watch: {watch})")
            }
            Request::GetChildrenStat { path, watch } => {
                write!(f, "GetChildrenStat({path}, watch: {watch})")
            }
            Request::GetAllChildrenNumber { path } => write!(f, "GetAllChildrenNumber({path})"),
            Request::GetEphemerals { prefix } => write!(f, "GetEphemerals({prefix})"),
            Request::Sync { path } => write!(f, "Sync({path})"),
            Request::Auth { scheme, .. } => write!(f, "Auth({scheme}, …)"),
            Request::SetWatches(watches) => f.debug_tuple("SetWatches").field(watches).finish(),
            Request::AddWatch { path, mode } => write!(f, "AddWatch({path}, {mode:?})"),
            Request::CheckWatches { path, kind } => write!(f, "CheckWatches({path}, {kind:?})"),
            Request::RemoveWatches { path, kind } => write!(f, "RemoveWatches({path}, {kind:?})"),
            Request::WhoAmI => f.write_str("WhoAmI"),
            Request::CloseSession => f.write_str("CloseSession"),
            Request::Unknown { op } => write!(f, "Unknown({op})"),
        }
    }
}
