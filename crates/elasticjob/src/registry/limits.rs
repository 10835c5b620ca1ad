//! What fits into one request.

use super::operation::Op;

/// What fits into one request. A change that grows with the shards of a job is cut into requests that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The sum of [`Op::size`].
    pub bytes: usize,
    pub operations: usize,
}

impl Limits {
    /// ZooKeeper's default (`jute.maxbuffer`). It limits the bytes that are sent, of which [`Op::size`] is an upper bound.
    pub const ZOOKEEPER: Self = Self { bytes: 0xf_ffff, operations: usize::MAX };

    /// What fits both.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            operations: self.operations.min(other.operations),
        }
    }

    /// How many of `ops`, from the first, fit together with `others`.
    pub fn fitting(self, others: &[Op], ops: &[Op]) -> usize {
        let mut bytes: usize = others.iter().map(Op::size).sum();
        let mut count = 0;
        for op in ops {
            bytes += op.size();
            if bytes > self.bytes || others.len() + count >= self.operations {
                break;
            }
            count += 1;
        }
        count
    }

    /// Cuts `ops` into batches. Each fits into a request together with `others`, unless a single operation does not.
    pub fn batches<'a>(
        self,
        others: &'a [Op],
        mut ops: &'a [Op],
    ) -> impl Iterator<Item = &'a [Op]> {
        std::iter::from_fn(move || {
            let count = self.fitting(others, ops).max(1).min(ops.len());
            let (batch, rest) = ops.split_at(count);
            ops = rest;
            (!batch.is_empty()).then_some(batch)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{ExpectedVersion, Path};

    #[test]
    fn batches_leave_room_for_what_goes_with_each_of_them() {
        let op = |path: &str| {
            let path: Path = path.parse().unwrap();
            Op::Check { path, expected: ExpectedVersion::Any }
        };
        let (others, ops) = ([op("/always")], [op("/a"), op("/b"), op("/c"), op("/d"), op("/e")]);
        let lengths = |limits: Limits| -> Vec<usize> {
            limits.batches(&others, &ops).map(<[Op]>::len).collect()
        };

        assert_eq!(lengths(Limits::ZOOKEEPER), [5]);
        assert_eq!(lengths(Limits { operations: 3, ..Limits::ZOOKEEPER }), [2, 2, 1]);
        let bytes = others[0].size() + 2 * ops[0].size() + 1;
        assert_eq!(lengths(Limits { bytes, ..Limits::ZOOKEEPER }), [2, 2, 1]);
        assert_eq!(lengths(Limits { operations: 1, ..Limits::ZOOKEEPER }), [1; 5]);
    }
}
