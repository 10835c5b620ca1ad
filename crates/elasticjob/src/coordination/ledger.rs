//! The ledger: what Rust instances record about each shard, beside Java ElasticJob's tree.
//!
//! Each shard has one ledger page: a persistent node in a sibling of the namespace, changed only by versioned set. The nodes of Java's
//! tree are deleted and re-created, always at version zero, so a version check on them cannot tell one instance's node from another's. A page is
//! never deleted while the job exists: its version only grows, so an instance that has read it can tell whether anything has happened since.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    job::{Fire, InstanceId, RunId},
    registry::Version,
};

/// The version of the pages that this program writes, stored as `v`. A page of any version is read; an error names the version.
const VERSION: u64 = 1;

const KEYS: [&str; 7] = ["asked", "attempt", "dueAt", "owner", "run", "state", "v"];

/// How far clocks may differ. A page that names a fire due later than this after the page was written is the work of a clock that was ahead.
pub(crate) const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// The latest time that a clock may show when another one shows `at`.
pub fn with_tolerance(at: Timestamp) -> Timestamp {
    at.saturating_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX)
}

/// A ledger page: the record of a shard's last claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerPage {
    /// The run that the shard was last claimed for; `None` if the shard was never claimed, or if the run that was lost is unknown.
    pub run: Option<RunId>,
    /// The newest scheduled fire that was started.
    pub due_at: Option<Timestamp>,
    /// Number of the last attempt within `run`, counted across all instances.
    pub attempt: u32,
    /// The instance that claimed the shard last.
    pub holder: Option<InstanceId>,
    /// The state of the last attempt.
    pub state: LedgerState,
    /// The trigger's details if the run was triggered, so that an instance that takes the shard over runs the same.
    pub trigger: Option<Box<TriggerDetails>>,
    /// Keys that a newer version stored. They are written back unchanged.
    pub other: Option<Box<Map<String, Value>>>,
}

/// The details of a trigger, as far as a takeover needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerDetails {
    /// Logical time of the run.
    pub at: Timestamp,
    /// Replaces the job's own parameter. Pages of before triggers were stored have it; now it is in the trigger, once for all shards.
    pub parameter: Option<String>,
    /// The user or program that made the request.
    pub by: Option<String>,
}

impl TriggerDetails {
    fn from_fire(fire: &Fire) -> Option<Box<Self>> {
        let details = || Self { at: fire.due_at, parameter: None, by: fire.triggered_by.clone() };
        (!fire.run.is_scheduled()).then(|| Box::new(details()))
    }

    fn read(value: &Map<String, Value>) -> Option<Box<Self>> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let owned = |key: &str| text(key).map(ToOwned::to_owned);
        let at = text("at")?.parse().ok()?;
        Some(Box::new(Self { at, parameter: owned("parameter"), by: owned("by") }))
    }

    fn to_json(&self) -> Value {
        json!({ "at": self.at.to_string(), "parameter": self.parameter, "by": self.by })
    }
}

/// The state of a shard's last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LedgerState {
    /// The shard has never run.
    #[default]
    Fresh,
    Running,
    /// It succeeded.
    Done,
    Failed,
    /// The instance that ran it died.
    Lost,
}

impl LedgerState {
    const STORED_NAMES: [(&'static str, LedgerState); 5] = [
        ("FRESH", LedgerState::Fresh),
        ("RUNNING", LedgerState::Running),
        ("DONE", LedgerState::Done),
        ("FAILED", LedgerState::Failed),
        ("LOST", LedgerState::Lost),
    ];

    fn stored_name(self) -> &'static str {
        Self::STORED_NAMES.iter().find(|(_, state)| *state == self).map_or("", |(name, _)| name)
    }
}

/// A page with the version in which it was read or written; no version if it does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionedPage {
    pub page: LedgerPage,
    pub version: Option<Version>,
    /// When the page was written, by the registry's clock; `None` for a page that this instance wrote.
    pub written_at: Option<Timestamp>,
}

impl VersionedPage {
    /// Whether any instance has started this fire. A scheduled fire also counts as started once a later one was, unless the page was written
    /// before that later fire was due: then a clock was ahead, and the page covers the fire that it names and what was due when it was written.
    pub fn has_started(&self, fire: &Fire, now: Timestamp) -> bool {
        if !fire.run.is_scheduled() {
            return self.page.run.as_ref() == Some(&fire.run);
        }
        self.page.due_at.is_some_and(|known| {
            // A page written long after `now` is the work of a registry whose clock was ahead, too.
            let was_due =
                |written_at| fire.due_at <= written_at && written_at <= with_tolerance(now);
            known == fire.due_at
                || known > fire.due_at
                    && (self.is_plausible(known, now) || self.written_at.is_some_and(was_due))
        })
    }

    /// The newest scheduled fire that was started; if a clock was ahead, the time at which it was started.
    pub fn last_due(&self, now: Timestamp) -> Option<Timestamp> {
        let due_at = self.page.due_at?;
        Some(if self.is_plausible(due_at, now) { due_at } else { self.started_before(now) })
    }

    /// The page as the next writer has to see it. If a clock was ahead, a write would make the page look as if its fire had been due by then.
    #[must_use]
    pub fn corrected(mut self, now: Timestamp) -> Self {
        self.page.due_at = self.last_due(now);
        self
    }

    fn is_plausible(&self, due_at: Timestamp, now: Timestamp) -> bool {
        due_at <= with_tolerance(self.started_before(now))
    }

    /// The latest time at which the fire of the page can have been started.
    fn started_before(&self, now: Timestamp) -> Timestamp {
        self.written_at.map_or(now, |written_at| written_at.min(now))
    }
}

/// A ledger page that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse ledger page: {problem}; was it written by a newer version?")]
pub struct LedgerPageError {
    pub problem: String,
}

impl LedgerPage {
    pub fn read(data: &[u8]) -> Result<Self, LedgerPageError> {
        let mut value: Map<String, Value> = serde_json::from_slice(data)
            .map_err(|error| LedgerPageError { problem: error.to_string() })?;
        let version = value.get("v").and_then(Value::as_u64).unwrap_or_default();
        let invalid = |problem: String| {
            let problem = match version {
                0..=VERSION => problem,
                newer => format!("{problem} in a page of version {newer}"),
            };
            LedgerPageError { problem }
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let name = text("state").unwrap_or_default();
        let state = LedgerState::STORED_NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, state)| *state);
        let mut page = Self {
            run: text("run")
                .map(|run| run.parse().map_err(|_| invalid(format!("run {run:?}"))))
                .transpose()?,
            due_at: text("dueAt")
                .map(|due| due.parse().map_err(|_| invalid(format!("dueAt {due:?}"))))
                .transpose()?,
            attempt: value
                .get("attempt")
                .and_then(Value::as_u64)
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
            holder: text("owner")
                .map(|owner| owner.parse().map_err(|_| invalid(format!("owner {owner:?}"))))
                .transpose()?,
            state: state.ok_or_else(|| invalid(format!("state {name:?}")))?,
            trigger: value.get("asked").and_then(Value::as_object).and_then(TriggerDetails::read),
            other: None,
        };
        value.retain(|key, _| !KEYS.contains(&key.as_str()));
        page.other = (!value.is_empty()).then(|| Box::new(value));
        Ok(page)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut page = self.other.as_deref().cloned().unwrap_or_default();
        page.insert("v".into(), VERSION.into());
        page.insert("run".into(), self.run.as_ref().map(ToString::to_string).into());
        page.insert("dueAt".into(), self.due_at.map(|due| due.to_string()).into());
        page.insert("attempt".into(), self.attempt.into());
        page.insert("owner".into(), self.holder.as_ref().map(ToString::to_string).into());
        page.insert("state".into(), self.state.stored_name().into());
        if let Some(details) = &self.trigger {
            page.insert("asked".into(), details.to_json());
        }
        Value::Object(page).to_string().into_bytes()
    }

    /// The page after `holder` has claimed the shard for this fire. A triggered run leaves `due_at` unchanged.
    #[must_use]
    pub fn after_claim(&self, fire: &Fire, holder: &InstanceId) -> Self {
        let is_same_run = self.run.as_ref() == Some(&fire.run);
        Self {
            run: Some(fire.run.clone()),
            due_at: if fire.run.is_scheduled() { Some(fire.due_at) } else { self.due_at },
            attempt: if is_same_run { self.attempt.saturating_add(1) } else { 1 },
            holder: Some(holder.clone()),
            state: LedgerState::Running,
            trigger: TriggerDetails::from_fire(fire),
            other: self.other.clone(),
        }
    }

    /// The page after `holder`, which ran the shard, has died. The run is unknown if the page does not record it: Java writes no ledger.
    #[must_use]
    pub fn after_loss(&self, holder: &InstanceId) -> Self {
        if self.state == LedgerState::Running && self.holder.as_ref() == Some(holder) {
            return Self { state: LedgerState::Lost, ..self.clone() };
        }
        Self {
            run: None,
            due_at: self.due_at,
            attempt: 1,
            holder: Some(holder.clone()),
            state: LedgerState::Lost,
            trigger: None,
            other: self.other.clone(),
        }
    }

    /// The other instance that runs the shard according to the page. That instance may be dead.
    pub fn other_holder(&self, me: &InstanceId) -> Option<&InstanceId> {
        self.holder.as_ref().filter(|holder| self.state == LedgerState::Running && *holder != me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_started(page: &LedgerPage, fire: &Fire) -> bool {
        let seen = VersionedPage { page: page.clone(), ..VersionedPage::default() };
        seen.has_started(fire, fire.due_at)
    }

    #[test]
    fn page_survives_a_round_trip() {
        let due_at: Timestamp = "2026-11-15T06:36:07Z".parse().unwrap();
        for (_, state) in LedgerState::STORED_NAMES {
            let page = LedgerPage {
                run: Some(RunId::scheduled("settle".parse().unwrap(), due_at)),
                due_at: Some(due_at),
                attempt: 2,
                holder: Some("10.0.0.7@-@4711-ab12".parse().unwrap()),
                state,
                trigger: None,
                other: None,
            };

            assert_eq!(LedgerPage::read(&page.to_bytes()), Ok(page));
        }
        assert_eq!(LedgerPage::read(&LedgerPage::default().to_bytes()), Ok(LedgerPage::default()));
        let triggered = Fire::triggered("settle".parse().unwrap(), due_at, RunId::triggered(7))
            .by(Some("jane".into()))
            .given(Some("42".into()));
        let page =
            LedgerPage::default().after_claim(&triggered, &"10.0.0.7@-@4711-ab12".parse().unwrap());
        assert_eq!(LedgerPage::read(&page.to_bytes()), Ok(page));
    }

    #[test]
    fn invalid_page_is_an_error() {
        for bad in ["", "[]", "{}", r#"{"state":"ASLEEP"}"#, r#"{"state":"DONE","dueAt":"soon"}"#] {
            assert!(LedgerPage::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn error_names_the_version_of_a_newer_page() {
        let error = LedgerPage::read(br#"{"v":9,"state":"ASLEEP"}"#).unwrap_err();

        assert_eq!(error.problem, r#"state "ASLEEP" in a page of version 9"#);
    }

    #[test]
    fn unknown_keys_survive_every_rewrite() {
        let stored = br#"{"v":9,"state":"DONE","dueAt":"2026-11-15T06:36:07Z","floor":{"at":"2026-11-15T06:00:00Z"}}"#;
        let (me, dead) = ("10.0.0.7@-@4711".parse().unwrap(), "10.0.0.8@-@1-b".parse().unwrap());
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T07:00:00Z".parse().unwrap());
        let page = LedgerPage::read(stored).unwrap();
        let claimed = page.after_claim(&due, &me);

        for page in [&page, &claimed, &claimed.after_loss(&me), &claimed.after_loss(&dead)] {
            let written: Map<String, Value> = serde_json::from_slice(&page.to_bytes()).unwrap();
            assert_eq!(written["floor"]["at"], "2026-11-15T06:00:00Z");
            assert_eq!(written["v"], 1, "the version of the writer");
        }
    }

    #[test]
    fn page_without_a_version_is_read() {
        let stored = br#"{"attempt":2,"dueAt":"2026-11-15T06:36:07Z","owner":"10.0.0.7@-@4711-9f86d081","run":"settle/1794724567000","state":"DONE"}"#;

        let page = LedgerPage::read(stored).unwrap();

        assert_eq!((page.attempt, page.state, page.other), (2, LedgerState::Done, None));
    }

    #[test]
    fn largest_attempt_number_stays() {
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T07:00:00Z".parse().unwrap());
        let stored = format!(r#"{{"state":"LOST","attempt":4294967295,"run":"{}"}}"#, due.run);
        let page = LedgerPage::read(stored.as_bytes()).unwrap();

        assert_eq!(page.after_claim(&due, &"10.0.0.7@-@4711".parse().unwrap()).attempt, u32::MAX);
    }

    #[test]
    fn fire_has_started_when_it_or_a_later_one_was_claimed() {
        let fire =
            |due_at: &str| Fire::scheduled("settle".parse().unwrap(), due_at.parse().unwrap());
        let due = fire("2026-11-15T06:36:07Z");
        let running = LedgerPage::default().after_claim(&due, &"10.0.0.7@-@4711".parse().unwrap());
        let in_state = |state| LedgerPage { state, ..running.clone() };

        assert!(has_started(&running, &due) && has_started(&in_state(LedgerState::Lost), &due));
        assert!(has_started(&running, &fire("2026-11-15T06:36:02Z")));
        assert!(!has_started(&in_state(LedgerState::Done), &fire("2026-11-15T06:36:12Z")));
        assert!(!has_started(&LedgerPage::default(), &due));
    }

    #[test]
    fn page_of_a_clock_ahead_covers_no_fire_due_after_it_was_written() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let fire = |due_at: &str| Fire::scheduled("settle".parse().unwrap(), at(due_at));
        let early = fire("2026-11-16T06:00:00Z");
        let (written_at, now) = (at("2026-11-15T06:30:00Z"), at("2026-11-15T07:00:00Z"));
        let page = LedgerPage::default().after_claim(&early, &"10.0.0.7@-@4711".parse().unwrap());
        let seen = |written_at| VersionedPage { page: page.clone(), version: None, written_at };

        assert!(seen(Some(written_at)).has_started(&early, now));
        assert!(!seen(Some(written_at)).has_started(&fire("2026-11-15T07:00:00Z"), now));
        let earlier = fire("2026-11-15T06:00:00Z");
        assert!(
            seen(Some(written_at)).has_started(&earlier, now),
            "what ran before is not repeated"
        );
        let a_bit_slow = at("2026-11-15T06:29:30Z");
        assert!(seen(Some(written_at)).has_started(&earlier, a_bit_slow));
        assert_eq!(seen(Some(written_at)).last_due(now), Some(written_at));
        // The registry's clock was ahead, too, and is right again.
        assert!(!seen(Some(early.due_at)).has_started(&fire("2026-11-15T07:00:00Z"), now));
        let a_minute_before = at("2026-11-16T05:59:00Z");
        assert!(
            seen(Some(a_minute_before)).has_started(&fire("2026-11-16T05:00:00Z"), a_minute_before),
            "clocks may differ by a minute"
        );
    }

    #[test]
    fn page_of_a_clock_ahead_hides_no_fire_after_a_trigger_rewrote_it() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let me = "10.0.0.7@-@4711".parse().unwrap();
        let fire = |due_at: &str| Fire::scheduled("settle".parse().unwrap(), at(due_at));
        let page = LedgerPage::default().after_claim(&fire("2026-11-16T06:00:00Z"), &me);
        let written_at = Some(at("2026-11-15T06:30:00Z"));
        let seen = VersionedPage { page, version: None, written_at };
        let now = at("2026-11-15T06:59:50Z");
        let trigger = Fire::triggered("settle".parse().unwrap(), now, RunId::triggered(7));

        let page = seen.corrected(now).page.after_claim(&trigger, &me);

        // The triggered run ends, which writes the page again.
        let written_at = Some(at("2026-11-15T07:00:10Z"));
        let seen = VersionedPage { page, version: None, written_at };
        let now = at("2026-11-15T07:00:10Z");
        assert!(!seen.has_started(&fire("2026-11-15T07:00:00Z"), now));
        assert!(seen.has_started(&fire("2026-11-15T06:00:00Z"), now));
    }

    #[test]
    fn lost_page_keeps_its_run_and_counts_the_next_attempt() {
        let (dead, successor) =
            ("10.0.0.7@-@1-a".parse().unwrap(), "10.0.0.8@-@1-b".parse().unwrap());
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T06:36:07Z".parse().unwrap());

        let lost = LedgerPage::default().after_claim(&due, &dead).after_loss(&dead);
        let again = lost.after_claim(&due, &successor);

        assert_eq!((&lost.run, lost.state), (&Some(due.run.clone()), LedgerState::Lost));
        assert_eq!((again.attempt, again.state), (2, LedgerState::Running));
        assert_eq!(again.other_holder(&dead), Some(&successor));
        assert_eq!(
            again.after_loss(&dead).run,
            None,
            "the page does not record a run of the dead instance"
        );
    }

    #[test]
    fn triggered_run_does_not_start_a_scheduled_fire() {
        let me = "10.0.0.7@-@4711".parse().unwrap();
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T06:36:07Z".parse().unwrap());
        let later = "2026-11-15T06:36:09Z".parse().unwrap();
        let triggered = Fire::triggered("settle".parse().unwrap(), later, RunId::triggered(7));

        let page = LedgerPage::default().after_claim(&triggered, &me);

        assert!(has_started(&page, &triggered));
        assert!(!has_started(&page, &due), "the scheduled fire has not started");
        assert!(has_started(&page.after_claim(&due, &me), &due));
    }
}
