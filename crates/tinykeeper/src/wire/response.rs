//! Responses of a server. Jute has no type tags, so decoding needs the operation of the request.

use bytes::{Bytes, BytesMut};

use super::{
    acl::Acl,
    jute::{DecodeError, Reader, Writer},
    multi::MultiResult,
    request::op,
    stat::Stat,
};

/// The body of a reply whose code is OK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// No body: ping, delete, auth, set, check and remove watches, close.
    Empty,
    Create {
        path: String,
    },
    Create2 {
        path: String,
        stat: Stat,
    },
    Stat(Stat),
    Data {
        data: Option<Bytes>,
        stat: Stat,
    },
    Acl {
        acl: Vec<Acl>,
        stat: Stat,
    },
    Children(Vec<String>),
    ChildrenStat {
        children: Vec<String>,
        stat: Stat,
    },
    Paths(Vec<String>),
    Number(i32),
    Sync {
        path: String,
    },
    Multi(Vec<MultiResult>),
    /// Response to `addWatch`: a record with a second result code.
    AddWatch(i32),
    /// Scheme and user of every id of this connection.
    WhoAmI(Vec<(String, String)>),
}

impl Response {
    /// Decodes the response to operation `operation`.
    pub fn decode(operation: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match operation {
            op::CREATE => Response::Create { path: reader.string("path")? },
            op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                Response::Create2 { path: reader.string("path")?, stat: Stat::decode(reader)? }
            }
            op::EXISTS | op::SET_DATA | op::SET_ACL => Response::Stat(Stat::decode(reader)?),
            op::GET_DATA => {
                Response::Data { data: reader.buffer("data")?, stat: Stat::decode(reader)? }
            }
            op::GET_ACL => {
                Response::Acl { acl: Acl::decode_list(reader)?, stat: Stat::decode(reader)? }
            }
            op::GET_CHILDREN => Response::Children(reader.strings("children")?),
            op::GET_CHILDREN2 => Response::ChildrenStat {
                children: reader.strings("children")?,
                stat: Stat::decode(reader)?,
            },
            op::GET_EPHEMERALS => Response::Paths(reader.strings("ephemerals")?),
            op::GET_ALL_CHILDREN_NUMBER => Response::Number(reader.i32("totalNumber")?),
            op::SYNC => Response::Sync { path: reader.string("path")? },
            op::MULTI | op::MULTI_READ => Response::Multi(MultiResult::decode_list(reader)?),
            op::ADD_WATCH => Response::AddWatch(reader.i32("err")?),
            op::WHO_AM_I => Response::WhoAmI(reader.vector("clientInfo", |reader| {
                Ok((reader.string("authScheme")?, reader.string("user")?))
            })?),
            _ => Response::Empty,
        })
    }

    /// Encodes the body, without the header.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Response::Empty => {}
            Response::Create { path } | Response::Sync { path } => out.put_string(path),
            Response::Create2 { path, stat } => {
                out.put_string(path);
                stat.encode(out);
            }
            Response::Stat(stat) => stat.encode(out),
            Response::Data { data, stat } => {
                out.put_buffer(data.as_deref());
                stat.encode(out);
            }
            Response::Acl { acl, stat } => {
                Acl::encode_list(acl, out);
                stat.encode(out);
            }
            Response::Children(names) | Response::Paths(names) => out.put_strings(names),
            Response::ChildrenStat { children, stat } => {
                out.put_strings(children);
                stat.encode(out);
            }
            Response::Number(number) | Response::AddWatch(number) => out.put_int(*number),
            Response::Multi(results) => MultiResult::encode_list(results, out),
            Response::WhoAmI(users) => {
                out.put_int(users.len() as i32);
                for (scheme, user) in users {
                    out.put_string(scheme);
                    out.put_string(user);
                }
            }
        }
    }
}
