//! Jute, ZooKeeper's record encoding: big-endian integers, length-prefixed strings and buffers, counted vectors.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Why bytes cannot be decoded as the expected record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    #[error("record ends inside {field}")]
    Truncated { field: &'static str },
    /// A length or count that exceeds the remaining bytes.
    #[error("{field} has length {length}, but only {remaining} bytes are left")]
    BadLength { field: &'static str, length: i32, remaining: usize },
    #[error("{field} is not UTF-8")]
    NotUtf8 { field: &'static str },
    /// A value that the protocol does not define.
    #[error("{field} has unknown value {value}")]
    BadValue { field: &'static str, value: i32 },
}

/// Reads jute fields from the front of a frame. The buffers it returns share the frame's memory.
#[derive(Debug, Clone)]
pub struct Reader {
    rest: Bytes,
}

impl Reader {
    pub fn new(frame: Bytes) -> Self {
        Self { rest: frame }
    }

    /// Number of bytes that have not been read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that have not been read.
    pub fn into_remaining(self) -> Bytes {
        self.rest
    }

    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.rest.try_get_i32().map_err(|_| DecodeError::Truncated { field })
    }

    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.rest.try_get_i64().map_err(|_| DecodeError::Truncated { field })
    }

    /// One byte; any value but zero is true.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.rest.try_get_u8().map(|byte| byte != 0).map_err(|_| DecodeError::Truncated { field })
    }

    /// A byte buffer; length −1 is null, which differs from empty.
    pub fn buffer(&mut self, field: &'static str) -> Result<Option<Bytes>, DecodeError> {
        let length = self.i32(field)?;
        if length == -1 {
            return Ok(None);
        }
        let remaining = self.rest.len();
        match usize::try_from(length) {
            Ok(wanted) if wanted <= remaining => Ok(Some(self.rest.split_to(wanted))),
            _ => Err(DecodeError::BadLength { field, length, remaining }),
        }
    }

    /// A string; null reads as empty, as all ZooKeeper implementations treat it.
    pub fn string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let bytes = self.buffer(field)?.unwrap_or_default();
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(DecodeError::NotUtf8 { field }),
        }
    }

    /// A counted vector; null reads as empty.
    pub fn vector<T>(
        &mut self,
        field: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let length = self.i32(field)?;
        if length == -1 {
            return Ok(Vec::new());
        }
        // Every item takes at least four bytes, so a count that exceeds the frame is refused before anything is allocated.
        let remaining = self.rest.len();
        let count = match usize::try_from(length) {
            Ok(count) if count <= remaining / 4 => count,
            _ => {
                return Err(DecodeError::BadLength { field, length, remaining });
            }
        };
        let mut items = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn strings(&mut self, field: &'static str) -> Result<Vec<String>, DecodeError> {
        self.vector(field, |reader| reader.string(field))
    }
}

/// Writes jute fields to the end of a buffer.
pub trait Writer {
    fn put_int(&mut self, value: i32);
    fn put_long(&mut self, value: i64);
    fn put_bool(&mut self, value: bool);
    /// A byte buffer; `None` is null.
    fn put_buffer(&mut self, value: Option<&[u8]>);
    fn put_string(&mut self, value: &str);
    fn put_strings<S: AsRef<str>>(&mut self, values: &[S]);
}

impl Writer for BytesMut {
    fn put_int(&mut self, value: i32) {
        self.put_i32(value);
    }

    fn put_long(&mut self, value: i64) {
        self.put_i64(value);
    }

    fn put_bool(&mut self, value: bool) {
        self.put_u8(u8::from(value));
    }

    fn put_buffer(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) => {
                self.put_i32(bytes.len() as i32);
                self.extend_from_slice(bytes);
            }
            None => self.put_i32(-1),
        }
    }

    fn put_string(&mut self, value: &str) {
        self.put_buffer(Some(value.as_bytes()));
    }

    fn put_strings<S: AsRef<str>>(&mut self, values: &[S]) {
        self.put_i32(values.len() as i32);
        for value in values {
            self.put_string(value.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader {
        Reader::new(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn null_and_empty_buffers_are_distinct() {
        let mut out = BytesMut::new();
        out.put_buffer(None);
        out.put_buffer(Some(b""));

        let mut reader = Reader::new(out.freeze());

        assert_eq!(reader.buffer("a").unwrap(), None);
        assert_eq!(reader.buffer("b").unwrap(), Some(Bytes::new()));
    }

    #[test]
    fn length_over_the_frame_is_refused_before_allocating() {
        let huge = [0x7f, 0xff, 0xff, 0xff, 1, 2];

        assert!(matches!(reader(&huge).buffer("x"), Err(DecodeError::BadLength { .. })));
        assert!(matches!(reader(&huge).strings("x"), Err(DecodeError::BadLength { .. })));
        assert!(matches!(reader(&[0xff; 4]).buffer("x"), Ok(None)));
        assert!(matches!(
            reader(&[0xff, 0xff, 0xff, 0xfe]).buffer("x"),
            Err(DecodeError::BadLength { length: -2, .. })
        ));
    }

    #[test]
    fn truncated_record_names_the_field() {
        assert_eq!(
            reader(&[0, 0]).i32("version"),
            Err(DecodeError::Truncated { field: "version" })
        );
    }
}
