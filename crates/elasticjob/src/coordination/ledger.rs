//! The ledger: what Rust instances agree on about a shard, beside the ancestor's tree.
//!
//! One persistent node for each shard, in a sibling of the namespace, changed only by versioned set. The nodes of the ancestor's
//! tree are deleted and created again, always at version zero, so a version check on them cannot tell a stranger's node from
//! one's own. A page is never deleted while the job lives: its version only grows, and whoever has read it knows whether
//! anything happened since.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    job::{Fire, InstanceId, RunId},
    registry::Version,
};

/// What the ledger says about a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The newest run of it.
    pub run: Option<RunId>,
    /// When it was last due by its schedule.
    pub due_at: Option<Timestamp>,
    /// How often it was tried.
    pub attempt: u32,
    /// Who tried last.
    pub owner: Option<InstanceId>,
    /// How that stands.
    pub state: State,
    /// What somebody asked for, if it was triggered: whoever takes it over runs the same.
    pub asked: Option<Box<Asked>>,
}

/// What somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The time it is to work for.
    pub at: Timestamp,
    /// What the job is given instead of its own parameter.
    pub parameter: Option<String>,
    /// Who asked.
    pub by: Option<String>,
}

impl Asked {
    fn of(fire: &Fire) -> Option<Box<Self>> {
        let asked = || Self {
            at: fire.due_at,
            parameter: fire.parameter.clone(),
            by: fire.triggered_by.clone(),
        };
        (!fire.run.is_scheduled()).then(|| Box::new(asked()))
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

/// How the newest run of a shard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// It never ran.
    #[default]
    Fresh,
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It ended badly.
    Failed,
    /// Whoever ran it is gone.
    Lost,
}

impl State {
    const WORDS: [(&'static str, State); 5] = [
        ("FRESH", State::Fresh),
        ("RUNNING", State::Running),
        ("DONE", State::Done),
        ("FAILED", State::Failed),
        ("LOST", State::Lost),
    ];

    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, state)| *state == self).map_or("", |(word, _)| word)
    }
}

/// A page and the version it was read in; none if it has not been written yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// What it said.
    pub page: Page,
    /// Its version.
    pub version: Option<Version>,
}

/// A page nobody can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a page of the ledger cannot be read: {problem}; hint: was it written by a newer version?")]
pub struct Illegible {
    /// What is wrong with it.
    pub problem: String,
}

impl Page {
    /// Reads a page.
    pub fn read(data: &[u8]) -> Result<Self, Illegible> {
        let wrong = |problem: String| Illegible { problem };
        let value: Map<String, Value> =
            serde_json::from_slice(data).map_err(|error| wrong(error.to_string()))?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let word = text("state").unwrap_or_default();
        let state = State::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state);
        Ok(Self {
            run: text("run")
                .map(|run| run.parse().map_err(|_| wrong(format!("run {run:?}"))))
                .transpose()?,
            due_at: text("dueAt")
                .map(|due| due.parse().map_err(|_| wrong(format!("dueAt {due:?}"))))
                .transpose()?,
            attempt: value
                .get("attempt")
                .and_then(Value::as_u64)
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
            owner: text("owner")
                .map(|owner| owner.parse().map_err(|_| wrong(format!("owner {owner:?}"))))
                .transpose()?,
            state: state.ok_or_else(|| wrong(format!("state {word:?}")))?,
            asked: value.get("asked").and_then(Value::as_object).and_then(Asked::read),
        })
    }

    /// Writes a page.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut page = json!({
            "run": self.run.as_ref().map(ToString::to_string),
            "dueAt": self.due_at.map(|due| due.to_string()),
            "attempt": self.attempt,
            "owner": self.owner.as_ref().map(ToString::to_string),
            "state": self.state.word(),
        });
        if let Some(asked) = &self.asked {
            page["asked"] = asked.to_json();
        }
        page.to_string().into_bytes()
    }

    /// Whether this fire has been started, by anybody: a scheduled one when a later one was, a triggered one when it was itself.
    pub fn has_started(&self, fire: &Fire) -> bool {
        if fire.run.is_scheduled() {
            self.due_at.is_some_and(|known| known >= fire.due_at)
        } else {
            self.run.as_ref() == Some(&fire.run)
        }
    }

    /// The page once `owner` runs this fire. What was triggered leaves alone when the shard was last due.
    #[must_use]
    pub fn started(&self, fire: &Fire, owner: &InstanceId) -> Self {
        let is_same = self.run.as_ref() == Some(&fire.run);
        Self {
            run: Some(fire.run.clone()),
            due_at: if fire.run.is_scheduled() { Some(fire.due_at) } else { self.due_at },
            attempt: if is_same { self.attempt + 1 } else { 1 },
            owner: Some(owner.clone()),
            state: State::Running,
            asked: Asked::of(fire),
        }
    }

    /// The page once it is known that `owner`, who ran it, is gone. Java keeps no ledger: of what it ran only that is known.
    #[must_use]
    pub fn lost(&self, owner: &InstanceId) -> Self {
        if self.state == State::Running && self.owner.as_ref() == Some(owner) {
            return Self { state: State::Lost, ..self.clone() };
        }
        Self {
            run: None,
            due_at: self.due_at,
            attempt: 1,
            owner: Some(owner.clone()),
            state: State::Lost,
            asked: None,
        }
    }

    /// Whether somebody else is running it, by the ledger. Whether they live is another question.
    pub fn is_held_by_other(&self, me: &InstanceId) -> Option<&InstanceId> {
        self.owner.as_ref().filter(|owner| self.state == State::Running && *owner != me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_it_was_written() {
        let due_at: Timestamp = "2026-11-15T06:36:07Z".parse().unwrap();
        for (_, state) in State::WORDS {
            let page = Page {
                run: Some(RunId::scheduled("settle".parse().unwrap(), due_at)),
                due_at: Some(due_at),
                attempt: 2,
                owner: Some("10.0.0.7@-@4711-ab12".parse().unwrap()),
                state,
                asked: None,
            };

            assert_eq!(Page::read(&page.to_bytes()), Ok(page));
        }
        assert_eq!(Page::read(&Page::default().to_bytes()), Ok(Page::default()));
        let asked = Fire::triggered("settle".parse().unwrap(), due_at, RunId::triggered(7))
            .by(Some("jane".into()))
            .given(Some("42".into()));
        let page = Page::default().started(&asked, &"10.0.0.7@-@4711-ab12".parse().unwrap());
        assert_eq!(Page::read(&page.to_bytes()), Ok(page));
    }

    #[test]
    fn a_page_nobody_can_read_says_why() {
        for bad in ["", "[]", "{}", r#"{"state":"ASLEEP"}"#, r#"{"state":"DONE","dueAt":"soon"}"#] {
            assert!(Page::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fire_has_started_when_it_or_a_later_one_was() {
        let fire =
            |due_at: &str| Fire::scheduled("settle".parse().unwrap(), due_at.parse().unwrap());
        let due = fire("2026-11-15T06:36:07Z");
        let running = Page::default().started(&due, &"10.0.0.7@-@4711".parse().unwrap());
        let in_state = |state| Page { state, ..running.clone() };

        assert!(running.has_started(&due) && in_state(State::Lost).has_started(&due));
        assert!(running.has_started(&fire("2026-11-15T06:36:02Z")));
        assert!(!in_state(State::Done).has_started(&fire("2026-11-15T06:36:12Z")));
        assert!(!Page::default().has_started(&due));
    }

    #[test]
    fn a_lost_run_keeps_what_it_was_and_its_next_try_is_counted() {
        let (dead, heir) = ("10.0.0.7@-@1-a".parse().unwrap(), "10.0.0.8@-@1-b".parse().unwrap());
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T06:36:07Z".parse().unwrap());

        let lost = Page::default().started(&due, &dead).lost(&dead);
        let again = lost.started(&due, &heir);

        assert_eq!((&lost.run, lost.state), (&Some(due.run.clone()), State::Lost));
        assert_eq!((again.attempt, again.state), (2, State::Running));
        assert_eq!(again.is_held_by_other(&dead), Some(&heir));
        assert_eq!(again.lost(&dead).run, None, "what the dead one ran is not in the ledger");
    }

    #[test]
    fn what_was_triggered_does_not_stand_for_what_is_due() {
        let me = "10.0.0.7@-@4711".parse().unwrap();
        let due =
            Fire::scheduled("settle".parse().unwrap(), "2026-11-15T06:36:07Z".parse().unwrap());
        let later = "2026-11-15T06:36:09Z".parse().unwrap();
        let asked = Fire::triggered("settle".parse().unwrap(), later, RunId::triggered(7));

        let page = Page::default().started(&asked, &me);

        assert!(page.has_started(&asked));
        assert!(!page.has_started(&due), "it is still to run");
        assert!(page.started(&due, &me).has_started(&due));
    }
}
