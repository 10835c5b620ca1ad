//! Sets of shards as they are stored: ranges, so that a job of many shards takes little space.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::job::ShardCount;

/// Shards, stored as a list of ranges: `[[0,3],[5,5]]`. Ranges are sorted and do not touch each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardRanges(Vec<(u32, u32)>);

impl ShardRanges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, shard: u32) -> bool {
        let index = self.0.partition_point(|(_, last)| *last < shard);
        self.0.get(index).is_some_and(|(first, _)| *first <= shard)
    }

    /// The highest shard.
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|(_, last)| *last)
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many shards they are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(first, last)| (last - first) as usize + 1).sum()
    }
}

/// `0-3,5`.
impl fmt::Display for ShardRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl FromIterator<u32> for ShardRanges {
    fn from_iter<I: IntoIterator<Item = u32>>(shards: I) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for shard in shards.into_iter().collect::<BTreeSet<u32>>() {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(shard) => *last = shard,
                _ => ranges.push((shard, shard)),
            }
        }
        Self(ranges)
    }
}

impl Serialize for ShardRanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

/// Refuses ranges that are not in order, and shards that no job can have.
impl<'de> Deserialize<'de> for ShardRanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ranges = Vec::<(u32, u32)>::deserialize(deserializer)?;
        let is_ordered = ranges.is_sorted_by(|(_, last), (next, _)| last.saturating_add(1) < *next);
        let is_valid = |(first, last): &(u32, u32)| first <= last && *last < ShardCount::MAX.get();
        if !is_ordered || !ranges.iter().all(is_valid) {
            return Err(D::Error::custom("shards are not ranges of increasing numbers"));
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_survive_a_round_trip() {
        let ranges: ShardRanges = [5, 1, 0, 3, 2].into_iter().collect();

        let stored = serde_json::to_string(&ranges).unwrap();

        assert_eq!(stored, "[[0,3],[5,5]]");
        assert_eq!(serde_json::from_str::<ShardRanges>(&stored).unwrap(), ranges);
        assert_eq!((ranges.len(), ranges.contains(4), ranges.contains(5)), (5, false, true));
        assert_eq!(ranges.iter().collect::<Vec<u32>>(), [0, 1, 2, 3, 5]);
        assert_eq!((ranges.last(), ranges.to_string().as_str()), (Some(5), "0-3,5"));
    }

    #[test]
    fn ranges_that_overlap_or_exceed_every_job_are_refused() {
        for bad in ["[[1,0]]", "[[0,3],[3,4]]", "[[2,2],[0,0]]", "[[0,4294967295]]", "[0]"] {
            assert!(serde_json::from_str::<ShardRanges>(bad).is_err(), "{bad}");
        }
    }
}
