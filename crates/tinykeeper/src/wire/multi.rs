//! Multi: a list of operations, each preceded by a small header and terminated by an end header.

use bytes::{Bytes, BytesMut};

use super::{
    code::Code,
    jute::{DecodeError, Reader, Writer},
    request::op,
    stat::Stat,
};

/// A read that may be part of a `multiRead`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOp {
    GetData { path: String },
    GetChildren { path: String },
}

impl ReadOp {
    /// The operation number, one of [`op`].
    pub fn number(&self) -> i32 {
        match self {
            ReadOp::GetData { .. } => op::GET_DATA,
            ReadOp::GetChildren { .. } => op::GET_CHILDREN,
        }
    }

    pub(super) fn decode(operation: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = reader.string("path")?;
        reader.bool("watch")?;
        match operation {
            op::GET_DATA => Ok(ReadOp::GetData { path }),
            op::GET_CHILDREN => Ok(ReadOp::GetChildren { path }),
            value => Err(DecodeError::BadValue { field: "operation", value }),
        }
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        match self {
            ReadOp::GetData { path } | ReadOp::GetChildren { path } => out.put_string(path),
        }
        out.put_bool(false);
    }
}

/// Result of one operation of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiResult {
    Create {
        path: String,
    },
    Create2 {
        path: String,
        stat: Stat,
    },
    Delete,
    SetData {
        stat: Stat,
    },
    Check,
    GetData {
        data: Option<Bytes>,
        stat: Stat,
    },
    GetChildren {
        children: Vec<String>,
    },
    /// The multi failed. The code is the reason for the operation that failed, [`Code::OK`] for the ones before it and
    /// [`Code::RUNTIME_INCONSISTENCY`] for the ones after it.
    Error(Code),
}

impl MultiResult {
    fn number(&self) -> i32 {
        match self {
            MultiResult::Create { .. } => op::CREATE,
            MultiResult::Create2 { .. } => op::CREATE2,
            MultiResult::Delete => op::DELETE,
            MultiResult::SetData { .. } => op::SET_DATA,
            MultiResult::Check => op::CHECK,
            MultiResult::GetData { .. } => op::GET_DATA,
            MultiResult::GetChildren { .. } => op::GET_CHILDREN,
            MultiResult::Error(_) => op::ERROR,
        }
    }

    fn decode(kind: i32, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match kind {
            op::CREATE => MultiResult::Create { path: reader.string("path")? },
            op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                MultiResult::Create2 { path: reader.string("path")?, stat: Stat::decode(reader)? }
            }
            op::DELETE => MultiResult::Delete,
            op::SET_DATA => MultiResult::SetData { stat: Stat::decode(reader)? },
            op::CHECK => MultiResult::Check,
            op::GET_DATA => {
                MultiResult::GetData { data: reader.buffer("data")?, stat: Stat::decode(reader)? }
            }
            op::GET_CHILDREN => MultiResult::GetChildren { children: reader.strings("children")? },
            op::ERROR => MultiResult::Error(Code(reader.i32("err")?)),
            value => {
                return Err(DecodeError::BadValue { field: "multi result", value });
            }
        })
    }

    pub fn decode_list(reader: &mut Reader) -> Result<Vec<Self>, DecodeError> {
        decode_ops(reader, Self::decode)
    }

    pub fn encode_list(results: &[Self], out: &mut BytesMut) {
        for result in results {
            let code = if let MultiResult::Error(code) = result { *code } else { Code::OK };
            header(out, result.number(), false, code.0);
            match result {
                MultiResult::Create { path } => out.put_string(path),
                MultiResult::Create2 { path, stat } => {
                    out.put_string(path);
                    stat.encode(out);
                }
                MultiResult::Delete | MultiResult::Check => {}
                MultiResult::SetData { stat } => stat.encode(out),
                MultiResult::GetData { data, stat } => {
                    out.put_buffer(data.as_deref());
                    stat.encode(out);
                }
                MultiResult::GetChildren { children } => out.put_strings(children),
                MultiResult::Error(code) => out.put_int(code.0),
            }
        }
        header(out, -1, true, -1);
    }
}

/// Decodes operations or results, each after its header, up to the end header.
pub(super) fn decode_ops<T>(
    reader: &mut Reader,
    decode: impl Fn(i32, &mut Reader) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut items = Vec::new();
    loop {
        let kind = reader.i32("multi type")?;
        let done = reader.bool("multi done")?;
        reader.i32("multi err")?;
        if done {
            return Ok(items);
        }
        items.push(decode(kind, reader)?);
    }
}

/// Encodes operations, each after its header, and the end header.
pub(super) fn encode_ops<'a, T: 'a>(
    out: &mut BytesMut,
    ops: impl Iterator<Item = (i32, &'a T)>,
    encode: impl Fn(&T, &mut BytesMut),
) {
    for (kind, op) in ops {
        header(out, kind, false, -1);
        encode(op, out);
    }
    header(out, -1, true, -1);
}

fn header(out: &mut BytesMut, kind: i32, done: bool, err: i32) {
    out.put_int(kind);
    out.put_bool(done);
    out.put_int(err);
}
