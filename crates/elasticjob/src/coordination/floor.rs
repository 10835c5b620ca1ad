//! The floor of a job: since when the ledger shows which fires were missed.
//!
//! Fires due before the job or shard was enabled, or before the schedule was stored, must not run: they are neither
//! caught up nor reported as missed. Java writes no ledger pages, so which fires ran in the time of a Java instance is
//! unknown. An instance that starts later sees none of this in the tree. So the instance or admin command that makes or
//! sees such a change records its time in one node beside the pages. It is not part of a page, because only the holder
//! may write a claimed page.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{ledger::with_tolerance, tree::JobTree};
use crate::registry::{Create, ExpectedVersion, Node, Op};

/// The version of the floors that this program writes, stored as `v`; see `docs/dev/formats.md`.
const VERSION: u64 = 1;

const KEYS: [&str; 5] = ["java", "job", "schedule", "shards", "v"];

/// Instances see the same change at slightly different times. Within this time only the first one stores it.
const SAME_CHANGE: Duration = Duration::from_secs(5);

/// Since when the ledger shows which fires of a job were missed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Floor {
    /// When the job was enabled: in its configuration, or its first server.
    pub job: Option<Timestamp>,
    /// When single shards were enabled or added.
    pub shards: BTreeMap<u32, Timestamp>,
    /// When the schedule changed while an instance was up.
    pub schedule: Option<Timestamp>,
    /// When the last Java instance left.
    pub java: Option<Timestamp>,
    /// Keys that a newer version stored. They are written back unchanged.
    pub other: Map<String, Value>,
}

/// A floor that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse floor: {problem}; was it written by a newer version?")]
pub struct FloorError {
    pub problem: String,
}

impl Floor {
    /// The job was enabled at `at`.
    pub fn of_job(at: Timestamp) -> Self {
        Self { job: Some(at), ..Self::default() }
    }

    /// One shard was enabled at `at`.
    pub fn of_shard(shard: u32, at: Timestamp) -> Self {
        Self { shards: BTreeMap::from([(shard, at)]), ..Self::default() }
    }

    /// Since when fires of this shard are to run; `None` if it was never disabled.
    pub fn since(&self, shard: u32) -> Option<Timestamp> {
        self.job.max(self.shards.get(&shard).copied())
    }

    /// Takes the later of both, for the job and for each shard.
    pub fn merge(&mut self, other: &Self) {
        self.job = self.job.max(other.job);
        self.schedule = self.schedule.max(other.schedule);
        self.java = self.java.max(other.java);
        for (shard, at) in &other.shards {
            let since = self.shards.entry(*shard).or_insert(*at);
            *since = (*since).max(*at);
        }
        // The job's own floor is theirs, too.
        let job = self.job;
        self.shards.retain(|_, since| Some(*since) > job);
    }

    /// Lowers what lies after `now`: a clock was ahead.
    pub fn limit(&mut self, now: Timestamp) {
        for since in self.times() {
            *since = (*since).min(now);
        }
    }

    fn times(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let Self { job, shards, schedule, java, .. } = self;
        shards.values_mut().chain(job).chain(schedule).chain(java)
    }

    /// The operation that adds `changed` to what is stored; `None` if nothing has to be written.
    pub fn store(
        tree: &JobTree,
        stored: Option<&Node>,
        changed: &Self,
    ) -> Result<Option<Op>, FloorError> {
        let path = tree.floor();
        let Some(node) = stored else {
            return Ok(Some(Op::Create(Create::persistent(&path, changed.to_bytes()))));
        };
        let known = Self::of_node(node)?;
        let mut merged = known.clone();
        merged.merge(changed);
        let is_known = |at: Option<Timestamp>, since: Option<Timestamp>| {
            at.is_none_or(|at| since.is_some_and(|since| at <= since + SAME_CHANGE))
        };
        let mut shards = changed.shards.iter();
        if is_known(changed.job, known.job)
            && is_known(changed.schedule, known.schedule)
            && is_known(changed.java, known.java)
            && shards.all(|(shard, at)| is_known(Some(*at), known.since(*shard)))
        {
            return Ok(None);
        }
        let expected = ExpectedVersion::Version(node.stat.version);
        Ok(Some(Op::Set { path, data: merged.to_bytes().into(), expected }))
    }

    /// The floor in a node. What was not yet due when the node was written comes from a clock that was ahead.
    pub fn of_node(node: &Node) -> Result<Self, FloorError> {
        let mut floor = Self::read(&node.data)?;
        if let Ok(written_at) = Timestamp::from_millisecond(node.stat.changed_at_ms) {
            let latest = with_tolerance(written_at);
            for since in floor.times() {
                if *since > latest {
                    *since = written_at;
                }
            }
        }
        Ok(floor)
    }

    pub fn read(data: &[u8]) -> Result<Self, FloorError> {
        let invalid = |problem: String| FloorError { problem };
        let mut value: Map<String, Value> =
            serde_json::from_slice(data).map_err(|error| invalid(error.to_string()))?;
        let time = |key: &str, value: &Value| -> Result<Timestamp, FloorError> {
            let time = value.as_str().and_then(|text| text.parse().ok());
            time.ok_or_else(|| invalid(format!("{key} {value}")))
        };
        let optional = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(at) => time(key, at).map(Some),
        };
        let (job, schedule, java) = (optional("job")?, optional("schedule")?, optional("java")?);
        let mut shards = BTreeMap::new();
        for (shard, at) in value.get("shards").and_then(Value::as_object).into_iter().flatten() {
            let number = shard.parse().map_err(|_| invalid(format!("shard {shard:?}")))?;
            shards.insert(number, time(shard, at)?);
        }
        value.retain(|key, _| !KEYS.contains(&key.as_str()));
        Ok(Self { job, shards, schedule, java, other: value })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut floor = self.other.clone();
        let shards =
            self.shards.iter().map(|(shard, at)| (shard.to_string(), json!(at.to_string())));
        floor.insert("v".into(), VERSION.into());
        floor.insert("job".into(), self.job.map(|at| at.to_string()).into());
        floor.insert("shards".into(), Value::Object(shards.collect()));
        floor.insert("schedule".into(), self.schedule.map(|at| at.to_string()).into());
        floor.insert("java".into(), self.java.map(|at| at.to_string()).into());
        Value::Object(floor).to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Stat, Version, Zxid};

    const STAT: Stat = Stat {
        created: Zxid(1),
        changed: Zxid(1),
        changed_at_ms: 0,
        version: Version(0),
        owner: None,
        children: 0,
    };

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(data: &[u8], written_at: i64) -> Node {
        let stat = Stat { changed_at_ms: written_at * 1_000, version: Version(3), ..STAT };
        Node { data: data.to_vec().into(), stat }
    }

    fn tree() -> JobTree {
        JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap()
    }

    #[test]
    fn floor_survives_a_round_trip_with_keys_of_a_newer_version() {
        let stored = br#"{"job":"1970-01-01T00:01:00Z","shards":{"3":"1970-01-01T00:02:00Z"},"v":9,"why":"holidays"}"#;

        let floor = Floor::read(stored).unwrap();

        assert_eq!((floor.since(3), floor.since(4)), (Some(second(120)), Some(second(60))));
        assert_eq!(Floor::read(&floor.to_bytes()), Ok(floor.clone()));
        assert_eq!(floor.other["why"], "holidays");
        for bad in ["", "[]", r#"{"job":"soon"}"#, r#"{"shards":{"x":"1970-01-01T00:02:00Z"}}"#] {
            assert!(Floor::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn later_of_two_floors_counts() {
        let mut floor = Floor::of_shard(0, second(50));
        floor.merge(&Floor::of_shard(1, second(90)));
        floor.merge(&Floor::of_job(second(60)));
        floor.merge(&Floor::of_job(second(40)));

        assert_eq!(floor.job, Some(second(60)));
        assert_eq!(floor.shards, BTreeMap::from([(1, second(90))]));
    }

    #[test]
    fn enabling_that_another_instance_stored_is_not_written_again() {
        let stored = node(&Floor::of_job(second(100)).to_bytes(), 100);
        let store = |at| Floor::store(&tree(), Some(&stored), &Floor::of_job(second(at))).unwrap();

        assert_eq!(store(103), None);
        assert!(matches!(
            store(200),
            Some(Op::Set { expected: ExpectedVersion::Version(Version(3)), .. })
        ));
        let of_shard = Floor::store(&tree(), Some(&stored), &Floor::of_shard(2, second(90)));
        assert_eq!(of_shard.unwrap(), None);
        assert!(Floor::store(&tree(), Some(&node(b"?", 0)), &Floor::of_job(second(1))).is_err());
    }

    #[test]
    fn floor_of_a_clock_ahead_ends_when_it_was_written() {
        let ahead = Floor::of_job(second(86_400)).to_bytes();

        assert_eq!(Floor::of_node(&node(&ahead, 1_000)).unwrap().job, Some(second(1_000)));
        assert_eq!(Floor::of_node(&node(&ahead, 86_350)).unwrap().job, Some(second(86_400)));
    }
}
