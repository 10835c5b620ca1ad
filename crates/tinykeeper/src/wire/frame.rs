//! Frames: a big-endian length, then that many bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Default limit for frames a server accepts. ZooKeeper's own limit is one byte less.
pub const DEFAULT_LIMIT: usize = 1 << 20;

/// A frame whose announced length is negative or over the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes is outside the limit of {limit}")]
pub struct FrameTooLarge {
    pub length: i32,
    pub limit: usize,
}

/// Removes the next frame from the front of `buffer`; `None` if it is not complete yet.
pub fn split(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, FrameTooLarge> {
    let Some(prefix) = buffer.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*prefix);
    let wanted = match usize::try_from(length) {
        Ok(wanted) if wanted <= limit => wanted,
        _ => return Err(FrameTooLarge { length, limit }),
    };
    if buffer.len() < 4 + wanted {
        buffer.reserve(4 + wanted - buffer.len());
        return Ok(None);
    }
    buffer.advance(4);
    Ok(Some(buffer.split_to(wanted).freeze()))
}

/// Appends a frame whose body `write` produces.
pub fn write(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_i32(0);
    write(out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_correctly_even_if_bytes_arrive_one_by_one() {
        let mut all = BytesMut::new();
        write(&mut all, |out| out.put_slice(b"one"));
        write(&mut all, |_| {});
        write(&mut all, |out| out.put_slice(b"three"));

        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        for byte in all {
            buffer.put_u8(byte);
            while let Some(frame) = split(&mut buffer, 16).unwrap() {
                frames.push(frame);
            }
        }

        assert_eq!(frames, [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn length_outside_the_limit_is_refused_at_once() {
        for length in [-1, 17, i32::MAX] {
            let mut buffer = BytesMut::from(&length.to_be_bytes()[..]);

            assert_eq!(split(&mut buffer, 16), Err(FrameTooLarge { length, limit: 16 }));
        }
    }
}
