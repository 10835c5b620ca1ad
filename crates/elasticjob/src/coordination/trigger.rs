//! Triggers and cancellations as they are stored beside the ledger, and the doorbells that announce them.
//!
//! An accepted trigger is one persistent node, `triggers/{run id}`: which shards are to run, and with what. Below it every shard gets an entry when
//! it is claimed, or when it is decided that it cannot run. The entry is created in the transaction of the claim, so that a shard runs once; it is
//! set to the outcome in the transaction of the release. The trigger stays until every shard has an outcome or a reason, whatever happens
//! to the instances meanwhile.
//!
//! A cancellation is a node beside the triggers that names the run and its shards, so that a late one never concerns the next run.
//!
//! A doorbell is a node of Java ElasticJob's tree, `trigger/{instance id}`. Java rings with an empty node, which means: run all your shards now.
//! Rust instances ring each other with a note, which only means: look what is stored.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::shard_ranges::ShardRanges;
use crate::job::{InstanceId, Outcome, RunId, ShardSelection};

/// The format of what this program writes, stored as `v`. Another one is refused: what it asks for is not known.
const FORMAT: u64 = 1;
/// A trigger that has not run by then is skipped, unless its author says otherwise.
pub const DEFAULT_EXPIRY: Duration = Duration::from_hours(24);
/// Largest parameter of a trigger. It is stored once, and read by every instance.
pub const MAX_PARAMETER_BYTES: usize = 64 * 1024;
/// Larger nodes are not parsed.
const MAX_BYTES: usize = 512 * 1024;
/// How the names of cancellations begin, beside the triggers, which are named after their run.
const CANCELLATION_PREFIX: &str = "cancel-";

/// A request to run now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerRequest {
    /// Id of the run, so that a repeated request is the same run. It has to be one of a triggered run.
    pub run: Option<RunId>,
    /// Logical time of the run; the present time if unset.
    pub at: Option<Timestamp>,
    /// The shards to run.
    pub shards: ShardSelection,
    /// Replaces the job's own parameter.
    pub parameter: Option<String>,
    /// The user or program that made the request, for the history.
    pub by: Option<String>,
    /// Shards that have not started after this time are skipped; a day if unset.
    pub expires_in: Option<Duration>,
}

/// An accepted trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    #[serde(rename = "v")]
    format: u64,
    /// Version of the configuration that the shards were taken from.
    #[serde(rename = "config")]
    pub config_version: i32,
    /// The whole job was triggered, including shards that are not in `shards`.
    #[serde(rename = "whole")]
    pub is_whole: bool,
    /// The shards that Rust instances run.
    pub shards: ShardRanges,
    /// Shards of Java instances, which were asked to run them and do not tell what became of that.
    #[serde(default, skip_serializing_if = "ShardRanges::is_empty")]
    pub delegated: ShardRanges,
    /// Logical time of the run.
    pub at: Timestamp,
    /// Replaces the job's own parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The user or program that made the request; `None` for Java ElasticJob, which does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    /// When it was seen that every shard has an outcome or a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Keys that a newer version stored. They are written back unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A triggered run that has shards for an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggeredRun {
    pub run: RunId,
    /// Logical time of the run.
    pub at: Timestamp,
    /// The shards of the run, over all instances.
    pub shards: ShardSelection,
    /// The whole job was triggered.
    pub is_whole: bool,
    /// Replaces the job's own parameter.
    pub parameter: Option<String>,
    pub by: Option<String>,
}

/// What became of a shard of a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardEntry {
    /// An instance has claimed it.
    Claimed {
        owner: InstanceId,
        attempt: u32,
    },
    Ended {
        owner: InstanceId,
        attempt: u32,
        outcome: Outcome,
    },
    /// It does not run.
    Skipped(SkipReason),
}

/// Why a shard of a trigger does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The shard or the job is disabled.
    Disabled,
    /// The job has fewer shards now.
    Vanished,
    /// It did not start in time.
    Expired,
    /// It was assigned to a Java instance after the trigger was accepted.
    MovedToJava,
    /// It was cancelled before it started.
    Cancelled,
}

impl SkipReason {
    pub const ALL: [Self; 5] =
        [Self::Disabled, Self::Vanished, Self::Expired, Self::MovedToJava, Self::Cancelled];

    /// `disabled`, `vanished`, `expired`, `moved_to_java` or `cancelled`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Vanished => "vanished",
            Self::Expired => "expired",
            Self::MovedToJava => "moved_to_java",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A request to cancel shards of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    #[serde(rename = "v")]
    format: u64,
    #[serde(with = "run_as_text")]
    pub run: RunId,
    pub shards: ShardRanges,
    pub requested_at: Timestamp,
}

/// What a doorbell means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// A trigger or a cancellation was stored.
    Look,
    /// Java ElasticJob's trigger: run all your shards.
    RunAll,
}

/// A stored trigger, cancellation, entry or doorbell that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse: {problem}; was it written by a newer version?")]
pub struct TriggerError {
    pub problem: String,
}

impl TriggerError {
    fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into() }
    }
}

impl Trigger {
    /// A trigger as it is accepted at `now`.
    pub fn new(
        request: &TriggerRequest,
        config_version: i32,
        shards: ShardRanges,
        delegated: ShardRanges,
        now: Timestamp,
    ) -> Self {
        let expiry = request.expires_in.unwrap_or(DEFAULT_EXPIRY);
        Self {
            format: FORMAT,
            config_version,
            is_whole: request.shards == ShardSelection::All,
            shards,
            delegated,
            at: request.at.unwrap_or(now),
            parameter: request.parameter.clone(),
            by: request.by.clone(),
            requested_at: now,
            expires_at: now.checked_add(expiry).unwrap_or(Timestamp::MAX),
            ended_at: None,
            other: Map::new(),
        }
    }

    pub fn read(data: &[u8]) -> Result<Self, TriggerError> {
        let trigger: Self = read(data)?;
        let bytes = trigger.parameter.as_ref().map_or(0, String::len);
        if bytes > MAX_PARAMETER_BYTES {
            return Err(TriggerError::new(format!("a parameter of {bytes} bytes")));
        }
        Ok(trigger)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether this is what the request asks for, so that a repeated request gets the same answer.
    pub fn answers(&self, request: &TriggerRequest) -> bool {
        let has_shards = match request.shards.items() {
            None => self.is_whole,
            Some(items) => !self.is_whole && self.shards == items.iter().copied().collect(),
        };
        has_shards
            && self.parameter == request.parameter
            && request.at.is_none_or(|at| at == self.at)
    }
}

impl ShardEntry {
    pub fn read(data: &[u8]) -> Result<Self, TriggerError> {
        let value: Map<String, Value> = parse(data)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        if let Some(name) = text("skipped") {
            let mut reasons = SkipReason::ALL.into_iter();
            let reason = reasons.find(|reason| reason.as_str() == name);
            return reason
                .map(Self::Skipped)
                .ok_or_else(|| TriggerError::new(format!("skipped {name:?}")));
        }
        let owner = text("owner").unwrap_or_default();
        let owner = owner.parse().map_err(|_| TriggerError::new(format!("owner {owner:?}")))?;
        let attempt = value.get("attempt").and_then(Value::as_u64).unwrap_or(1);
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        let Some(name) = text("outcome") else { return Ok(Self::Claimed { owner, attempt }) };
        let outcome = Outcome::from_name(name)
            .ok_or_else(|| TriggerError::new(format!("outcome {name:?}")))?;
        Ok(Self::Ended { owner, attempt, outcome })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let value = match self {
            Self::Claimed { owner, attempt } => {
                json!({ "owner": owner.as_str(), "attempt": attempt })
            }
            Self::Ended { owner, attempt, outcome } => {
                json!({ "owner": owner.as_str(), "attempt": attempt, "outcome": outcome.as_str() })
            }
            Self::Skipped(reason) => json!({ "skipped": reason.as_str() }),
        };
        value.to_string().into_bytes()
    }

    /// Whether nothing more happens to the shard.
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Claimed { .. })
    }
}

impl Cancellation {
    pub fn new(run: RunId, shards: ShardRanges, now: Timestamp) -> Self {
        Self { format: FORMAT, run, shards, requested_at: now }
    }

    /// The name of a new cancellation.
    pub fn name(random: u128) -> String {
        format!("{CANCELLATION_PREFIX}{}", RunId::triggered(random))
    }

    /// Whether a node beside the triggers is a cancellation.
    pub fn has_name(name: &str) -> bool {
        name.starts_with(CANCELLATION_PREFIX)
    }

    pub fn read(data: &[u8]) -> Result<Self, TriggerError> {
        read(data)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Doorbell {
    /// Data that begins as a note of a Rust instance and is none is refused; everything else is Java's.
    pub fn read(data: &[u8]) -> Result<Self, TriggerError> {
        if !data.trim_ascii_start().starts_with(b"{") {
            return Ok(Self::RunAll);
        }
        let note: Map<String, Value> = parse(data)?;
        match note.get("v").and_then(Value::as_u64) {
            Some(_) => Ok(Self::Look),
            None => Err(TriggerError::new("no format version")),
        }
    }

    /// The note that a Rust instance or a console leaves. `about` is for people who look at the registry.
    pub fn note(about: &str) -> Vec<u8> {
        json!({ "v": FORMAT, "look": about }).to_string().into_bytes()
    }
}

fn parse<'de, T: Deserialize<'de>>(data: &'de [u8]) -> Result<T, TriggerError> {
    if data.len() > MAX_BYTES {
        return Err(TriggerError::new(format!("{} bytes", data.len())));
    }
    serde_json::from_slice(data).map_err(|error| TriggerError::new(error.to_string()))
}

/// Parses a document of this format.
fn read<'de, T: Deserialize<'de>>(data: &'de [u8]) -> Result<T, TriggerError> {
    #[derive(Deserialize)]
    struct Format {
        v: u64,
    }
    match parse::<Format>(data)? {
        Format { v: FORMAT } => parse(data),
        Format { v } => Err(TriggerError::new(format!("format version {v}"))),
    }
}

mod run_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use crate::job::RunId;

    pub(super) fn serialize<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(run)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn request() -> TriggerRequest {
        TriggerRequest {
            run: Some(RunId::triggered(7)),
            at: Some(at("2026-11-15T06:36:07Z")),
            shards: ShardSelection::only([0, 2]).unwrap(),
            parameter: Some("2026-11".into()),
            by: Some("ann".into()),
            expires_in: Some(Duration::from_mins(1)),
        }
    }

    fn trigger(request: &TriggerRequest) -> Trigger {
        let shards = [0, 2].into_iter().collect();
        Trigger::new(request, 3, shards, ShardRanges::default(), at("2026-11-15T07:00:00Z"))
    }

    #[test]
    fn trigger_survives_a_round_trip() {
        for request in [request(), TriggerRequest::default()] {
            let trigger = trigger(&request);
            assert_eq!(Trigger::read(&trigger.to_bytes()), Ok(trigger.clone()));
        }
        assert_eq!(trigger(&request()).expires_at, at("2026-11-15T07:01:00Z"));
    }

    #[test]
    fn trigger_keeps_keys_of_a_newer_version() {
        let mut trigger = trigger(&request());
        trigger.other.insert("priority".into(), 3.into());

        let written = String::from_utf8(trigger.to_bytes()).unwrap();

        assert!(written.contains("\"priority\":3"), "{written}");
        assert_eq!(Trigger::read(written.as_bytes()), Ok(trigger));
    }

    #[test]
    fn repeated_request_gets_the_same_answer_and_another_one_does_not() {
        let accepted = trigger(&request());
        let parameter = Some("2026-12".to_owned());

        assert!(accepted.answers(&request()));
        assert!(accepted.answers(&TriggerRequest { at: None, ..request() }));
        assert!(!accepted.answers(&TriggerRequest { parameter, ..request() }));
        assert!(!accepted.answers(&TriggerRequest { shards: ShardSelection::All, ..request() }));
    }

    #[test]
    fn hostile_trigger_is_refused() {
        let valid = String::from_utf8(trigger(&request()).to_bytes()).unwrap();
        let large = valid.replace("\"2026-11\"", &format!("{:?}", "p".repeat(64 * 1024 + 1)));
        for bad in [
            "",
            "{}",
            "[]",
            &valid.replace("\"v\":1", "\"v\":2"),
            &valid.replace("[0,0]", "[0,99999999]"),
            &valid.replace("2026-11-15T07:00:00Z", "soon"),
            &large,
        ] {
            assert!(Trigger::read(bad.as_bytes()).is_err(), "{}", &bad[..bad.len().min(200)]);
        }
        let newer = Trigger::read(valid.replace("\"v\":1", "\"v\":2").as_bytes()).unwrap_err();
        assert_eq!(newer.problem, "format version 2");
    }

    #[test]
    fn entry_survives_a_round_trip() {
        let owner: InstanceId = "10.0.0.7@-@4711-9f86d081".parse().unwrap();
        let claimed = ShardEntry::Claimed { owner: owner.clone(), attempt: 2 };
        let ended = Outcome::ALL.map(|outcome| ShardEntry::Ended {
            owner: owner.clone(),
            attempt: 1,
            outcome,
        });
        let skipped = SkipReason::ALL.map(ShardEntry::Skipped);
        for entry in [claimed].into_iter().chain(ended).chain(skipped) {
            assert_eq!(ShardEntry::read(&entry.to_bytes()), Ok(entry));
        }
        for bad in ["", "{}", r#"{"skipped":"bored"}"#, r#"{"owner":"a@-@1","outcome":"lucky"}"#] {
            assert!(ShardEntry::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn cancellation_survives_a_round_trip() {
        let run = RunId::scheduled("settle".parse().unwrap(), at("2026-11-15T06:36:07Z"));
        let shards = [0, 1].into_iter().collect();
        let cancellation = Cancellation::new(run, shards, at("2026-11-15T07:00:00Z"));

        assert_eq!(Cancellation::read(&cancellation.to_bytes()), Ok(cancellation));
        assert!(Cancellation::has_name(&Cancellation::name(7)));
        assert!(!Cancellation::has_name(&RunId::triggered(7).to_string()));
    }

    #[test]
    fn doorbell_is_a_note_or_javas_and_what_looks_like_a_broken_note_is_refused() {
        assert_eq!(Doorbell::read(&Doorbell::note("a run")), Ok(Doorbell::Look));
        for java in ["", "TRIGGER", "[]", "7"] {
            assert_eq!(Doorbell::read(java.as_bytes()), Ok(Doorbell::RunAll), "{java}");
        }
        for bad in ["{", "{}", " {\"run\":7}", "{\"v\":\"1\"}"] {
            assert!(Doorbell::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
