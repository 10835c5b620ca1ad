//! Jute, ZooKeeper's record encoding: big-endian integers, length-prefixed strings and buffers, counted vectors.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Why bytes could not be read as the record they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record ends before its last field.
    #[error("record ends inside {field}")]
    Truncated {
        /// What was being read.
        field: &'static str,
    },
    /// A length or count that the remaining bytes cannot hold.
    #[error("{field} claims a length of {length}, {remaining} bytes are left")]
    BadLength {
        /// What was being read.
        field: &'static str,
        /// The length found.
        length: i32,
        /// How many bytes are left.
        remaining: usize,
    },
    /// Text that is not UTF-8.
    #[error("{field} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        field: &'static str,
    },
    /// A value outside the protocol.
    #[error("{field} has no meaning for {value}")]
    BadValue {
        /// What was being read.
        field: &'static str,
        /// The value found.
        value: i32,
    },
}

/// Reads jute fields off the front of a frame. Buffers it hands out share the frame's memory.
#[derive(Debug, Clone)]
pub struct Reader {
    rest: Bytes,
}

impl Reader {
    /// Reads from `frame`.
    pub fn new(frame: Bytes) -> Self {
        Self { rest: frame }
    }

    /// How many bytes have not been read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that have not been read.
    pub fn into_rest(self) -> Bytes {
        self.rest
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.rest.try_get_i32().map_err(|_| DecodeError::Truncated { field })
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.rest.try_get_i64().map_err(|_| DecodeError::Truncated { field })
    }

    /// One byte, zero or not.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.rest.try_get_u8().map(|byte| byte != 0).map_err(|_| DecodeError::Truncated { field })
    }

    /// A buffer; length −1 is null, which is not the same as empty.
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

    /// Text; null reads as empty, as every peer treats it.
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
        // Every item takes at least four bytes, so a count the frame cannot hold is refused before anything is allocated.
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

    /// A vector of texts.
    pub fn strings(&mut self, field: &'static str) -> Result<Vec<String>, DecodeError> {
        self.vector(field, |reader| reader.string(field))
    }
}

/// Writes jute fields to the end of a buffer.
pub trait Writer {
    /// A 32-bit integer.
    fn put_int(&mut self, value: i32);
    /// A 64-bit integer.
    fn put_long(&mut self, value: i64);
    /// One byte, zero or one.
    fn put_bool(&mut self, value: bool);
    /// A buffer; `None` is null.
    fn put_buffer(&mut self, value: Option<&[u8]>);
    /// Text.
    fn put_string(&mut self, value: &str);
    /// A vector of texts.
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
    fn null_and_empty_buffers_stay_apart() {
        let mut out = BytesMut::new();
        out.put_buffer(None);
        out.put_buffer(Some(b""));

        let mut reader = Reader::new(out.freeze());

        assert_eq!(reader.buffer("a").unwrap(), None);
        assert_eq!(reader.buffer("b").unwrap(), Some(Bytes::new()));
    }

    #[test]
    fn a_length_the_frame_cannot_hold_is_refused_before_allocating() {
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
    fn a_record_that_ends_early_names_the_field() {
        assert_eq!(
            reader(&[0, 0]).i32("version"),
            Err(DecodeError::Truncated { field: "version" })
        );
    }
}
