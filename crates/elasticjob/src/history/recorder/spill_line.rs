//! Encodes an event as a line of a spill file.
//!
//! `{checksum} {json}`: eight hexadecimal digits of CRC-32 over the JSON, to recognize torn and damaged lines. JSON contains no line ends, so the
//! next line is found whatever happened to this one.

use std::{num::NonZeroU32, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    history::{
        AttemptEnded, AttemptLost, AttemptStarted, Event, FiresMissed, Line, MissedReason,
        OutputCut, OutputPrinted, Status, StatusState,
        stored_reason::{read_reason, stored_reason},
    },
    job::{Attempt, ExpectedShards, FencingToken, Outcome, ShardCount},
};

/// Encodes the event with a line end.
pub(super) fn encode(event: &Event) -> String {
    // Cannot fail: there are no maps with keys other than strings.
    let json = serde_json::to_string(&EventRecord::from(event)).unwrap_or_default();
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// Decodes a line; `None` if it is torn or damaged, or was written by a later version.
pub(super) fn decode(line: &[u8]) -> Option<Event> {
    let line = std::str::from_utf8(line).ok()?;
    let (checksum, json) = line.split_once(' ')?;
    if u32::from_str_radix(checksum, 16).ok()? != crc32fast::hash(json.as_bytes()) {
        return None;
    }
    serde_json::from_str::<EventRecord>(json).ok()?.into_event()
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum EventRecord {
    Started(StartRecord),
    Ended {
        started: StartRecord,
        at: Timestamp,
        ending: String,
        message: Option<String>,
    },
    Lost {
        run: String,
        item: u32,
        instance: String,
        token: i64,
        at: Timestamp,
    },
    Status {
        run: String,
        task: String,
        state: String,
        message: String,
        at: Timestamp,
    },
    Missed {
        job: String,
        first: Timestamp,
        last: Timestamp,
        count: u64,
        why: String,
        at: Timestamp,
    },
    Printed {
        id: String,
        run: String,
        item: u32,
        part: u32,
        lines: Vec<(Timestamp, String, String)>,
    },
    Cut {
        id: String,
        run: String,
        item: u32,
        from: u32,
        to: u32,
        bytes: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct StartRecord {
    id: String,
    job: String,
    run: String,
    due_at: Timestamp,
    /// Whether the run was triggered, rather than scheduled.
    triggered: bool,
    by: Option<String>,
    item: u32,
    total: u32,
    attempt: u32,
    reason: String,
    token: i64,
    task: String,
    host: String,
    at: Timestamp,
    trace: Option<String>,
    /// Older versions write neither this nor the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<u32>,
}

impl From<&AttemptStarted> for StartRecord {
    fn from(started: &AttemptStarted) -> Self {
        Self {
            id: started.id.to_string(),
            job: started.job.to_string(),
            run: started.run.to_string(),
            due_at: started.due_at,
            triggered: !started.run.is_scheduled(),
            by: started.triggered_by.clone(),
            item: started.item,
            total: started.total.get(),
            attempt: started.attempt.number.get(),
            reason: stored_reason(started.attempt.reason).to_owned(),
            token: started.token.get(),
            task: started.task.to_string(),
            host: started.host.to_string(),
            at: started.at,
            trace: started.trace.clone(),
            expected: started.expected.map(|expected| expected.tracked),
            untracked: started.expected.map(|expected| expected.untracked),
        }
    }
}

impl StartRecord {
    fn into_started(self) -> Option<Arc<AttemptStarted>> {
        let reason = read_reason(&self.reason, self.triggered)?;
        Some(Arc::new(AttemptStarted {
            id: self.id.parse().ok()?,
            job: self.job.parse().ok()?,
            run: self.run.parse().ok()?,
            due_at: self.due_at,
            triggered_by: self.by,
            item: self.item,
            total: ShardCount::try_from(self.total).ok()?,
            expected: self.expected.map(|tracked| ExpectedShards {
                tracked,
                untracked: self.untracked.unwrap_or_default(),
            }),
            attempt: Attempt { number: NonZeroU32::new(self.attempt)?, reason },
            token: FencingToken::new(self.token),
            task: self.task.parse().ok()?,
            host: self.host.into(),
            at: self.at,
            trace: self.trace,
        }))
    }
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> Self {
        match event {
            Event::Started(started) => Self::Started(StartRecord::from(&**started)),
            Event::Ended(AttemptEnded { started, at, outcome, message }) => Self::Ended {
                started: StartRecord::from(&**started),
                at: *at,
                ending: outcome.as_str().to_owned(),
                message: message.clone(),
            },
            Event::Lost(AttemptLost { run, item, instance, token, at }) => Self::Lost {
                run: run.to_string(),
                item: *item,
                instance: instance.to_string(),
                token: token.get(),
                at: *at,
            },
            Event::Status(Status { run, task, state, message, at }) => Self::Status {
                run: run.to_string(),
                task: task.to_string(),
                state: state.as_str().to_owned(),
                message: message.clone(),
                at: *at,
            },
            Event::Missed(FiresMissed { job, first, last, count, reason, at }) => Self::Missed {
                job: job.to_string(),
                first: *first,
                last: *last,
                count: *count,
                why: reason.as_str().to_owned(),
                at: *at,
            },
            Event::Printed(OutputPrinted { id, run, item, part, lines }) => Self::Printed {
                id: id.to_string(),
                run: run.to_string(),
                item: *item,
                part: *part,
                lines: lines
                    .iter()
                    .map(|line| (line.at, line.stream.to_owned(), line.text.clone()))
                    .collect(),
            },
            Event::Cut(OutputCut { id, run, item, from, to, bytes }) => Self::Cut {
                id: id.to_string(),
                run: run.to_string(),
                item: *item,
                from: *from,
                to: *to,
                bytes: *bytes,
            },
        }
    }
}

impl EventRecord {
    fn into_event(self) -> Option<Event> {
        Some(match self {
            Self::Started(start) => Event::Started(start.into_started()?),
            Self::Ended { started, at, ending, message } => {
                let (started, outcome) = (started.into_started()?, Outcome::from_name(&ending)?);
                Event::Ended(AttemptEnded { started, at, outcome, message })
            }
            Self::Lost { run, item, instance, token, at } => Event::Lost(AttemptLost {
                run: run.parse().ok()?,
                item,
                instance: instance.parse().ok()?,
                token: FencingToken::new(token),
                at,
            }),
            Self::Status { run, task, state, message, at } => Event::Status(Status {
                run: run.parse().ok()?,
                task: task.parse().ok()?,
                state: STATES.into_iter().find(|known| known.as_str() == state)?,
                message,
                at,
            }),
            Self::Missed { job, first, last, count, why, at } => Event::Missed(FiresMissed {
                job: job.parse().ok()?,
                first,
                last,
                count,
                reason: MissedReason::ALL.into_iter().find(|it| it.as_str() == why)?,
                at,
            }),
            Self::Printed { id, run, item, part, lines } => {
                let lines = lines.into_iter().map(|(at, stream, text)| {
                    let stream = STREAMS.into_iter().find(|known| *known == stream)?;
                    Some(Line { at, stream, text })
                });
                Event::Printed(OutputPrinted {
                    id: id.parse().ok()?,
                    run: run.parse().ok()?,
                    item,
                    part,
                    lines: lines.collect::<Option<_>>()?,
                })
            }
            Self::Cut { id, run, item, from, to, bytes } => Event::Cut(OutputCut {
                id: id.parse().ok()?,
                run: run.parse().ok()?,
                item,
                from,
                to,
                bytes,
            }),
        })
    }
}

const STREAMS: [&str; 7] = ["stdout", "stderr", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

const STATES: [StatusState; 6] = [
    StatusState::Staging,
    StatusState::Running,
    StatusState::Finished,
    StatusState::Error,
    StatusState::Killed,
    StatusState::Lost,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::recorder::fixture;

    #[test]
    fn every_event_round_trips() {
        for event in fixture::one_of_each() {
            let line = encode(&event);

            assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line}");
            assert_eq!(decode(line.trim_end().as_bytes()), Some(event));
        }
    }

    #[test]
    fn torn_or_damaged_line_is_not_decoded() {
        let line = encode(&fixture::started(1));
        let whole = line.trim_end().as_bytes();

        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length]), None, "{length}");
        }
        for position in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[position] ^= 0x01;
            assert_eq!(decode(&damaged), None, "{position}");
        }
    }
}
