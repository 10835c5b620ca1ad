//! What a run printed, from any place on: what was printed since can be asked for again and again.

use std::{collections::BTreeMap, fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Store,
    ask::{bound, millis},
    error::StoreError,
    rows::named,
    select::Select,
};

/// How many parts are read at a time.
const PARTS: usize = 500;
/// How many attempts a position may name.
const ATTEMPTS: usize = 10_000;

/// How far the output of a run has been read. A new one is at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputPosition {
    /// For each attempt, the next of its parts.
    next: BTreeMap<String, i64>,
}

/// Its text means nothing to anybody else, and can be given back.
impl fmt::Display for OutputPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (attempt, next)) in self.next.iter().enumerate() {
            let separator = if index == 0 { "" } else { "~" };
            write!(f, "{separator}{attempt}.{next}")?;
        }
        Ok(())
    }
}

impl FromStr for OutputPosition {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let wrong = || StoreError::Url {
            problem: "that is no place in what a run printed".to_owned(),
            hint: "give back the position that was told before".to_owned(),
        };
        let mut next = BTreeMap::new();
        for part in text.split('~').filter(|part| !part.is_empty()) {
            let (attempt, number) = part.rsplit_once('.').ok_or_else(wrong)?;
            if attempt.len() > 40 || next.len() >= ATTEMPTS {
                return Err(wrong());
            }
            next.insert(attempt.to_owned(), number.parse().map_err(|_| wrong())?);
        }
        Ok(Self { next })
    }
}

/// What was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Lines, by their time.
    pub lines: Vec<OutputLine>,
    /// Where to go on.
    pub position: OutputPosition,
    /// Whether there is more already.
    pub more: bool,
}

/// A line that was printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputLine {
    /// Which shard.
    pub sharding_item: i64,
    /// Which attempt of it.
    pub attempt_id: String,
    /// When.
    pub at: Option<Timestamp>,
    /// `stdout`, `stderr`, a level, or `note` where something is left out.
    pub stream: String,
    /// What.
    pub text: String,
}

struct Part {
    attempt: String,
    number: i64,
    item: i64,
    content: String,
}

struct Left {
    from: i64,
    to: i64,
    bytes: i64,
    item: i64,
}

impl Store {
    /// What a run printed after this position, of one shard or of all.
    pub async fn output(
        &self,
        run: &str,
        item: Option<u32>,
        position: &OutputPosition,
    ) -> Result<Output, StoreError> {
        let run = named(run, 150);
        let cuts = self.cuts(&run, item).await?;
        let mut select = Select::new(
            self.dialect(),
            "SELECT attempt_id, part, sharding_item, content FROM ELASTICJOB_OUTPUT",
        );
        select.filter("run_id = ?", [run.as_str().into()]);
        select.filter_if("sharding_item = ?", item.map(|item| i64::from(item).into()));
        for (attempt, next) in &position.next {
            let read = [attempt.as_str().into(), (*next).into()];
            select.filter("NOT (attempt_id = ? AND part < ?)", read);
        }
        select.with(" ORDER BY run_id, sharding_item, attempt_id, part LIMIT ?", [bound(PARTS)]);
        let parts = self.ask(&select, |row| {
            Ok(Part {
                attempt: row.word(0)?,
                number: row.number(1)?,
                item: row.number(2)?,
                content: row.word(3)?,
            })
        });
        let parts = parts.await?;

        let mut output =
            Output { lines: Vec::new(), position: position.clone(), more: parts.len() == PARTS };
        for part in &parts {
            let next = output.position.next.entry(part.attempt.clone()).or_default();
            let left = cuts.get(&part.attempt);
            if let Some(left) = left.filter(|left| *next < left.to && part.number >= left.to) {
                output.lines.push(left.note(&part.attempt, first_time(&part.content)));
            }
            let is_left_out = left.is_some_and(|left| (left.from..left.to).contains(&part.number));
            if !is_left_out {
                output.lines.extend(part.lines());
            }
            *next = part.number + 1;
        }
        output.lines.sort_by_key(|line| line.at);
        Ok(output)
    }

    async fn cuts(
        &self,
        run: &str,
        item: Option<u32>,
    ) -> Result<BTreeMap<String, Left>, StoreError> {
        let mut select = Select::new(
            self.dialect(),
            "SELECT attempt_id, from_part, to_part, bytes, sharding_item FROM ELASTICJOB_OUTPUT_CUT",
        );
        select.filter("run_id = ?", [run.into()]);
        select.filter_if("sharding_item = ?", item.map(|item| i64::from(item).into()));
        let cuts = self.ask(&select, |row| {
            let left = Left {
                from: row.number(1)?,
                to: row.number(2)?,
                bytes: row.number(3)?,
                item: row.number(4)?,
            };
            Ok((row.word(0)?, left))
        });
        Ok(cuts.await?.into_iter().collect())
    }
}

impl Left {
    fn note(&self, attempt: &str, at: Option<Timestamp>) -> OutputLine {
        OutputLine {
            sharding_item: self.item,
            attempt_id: attempt.to_owned(),
            at,
            stream: "note".to_owned(),
            text: format!("… {} bytes are left out here …", self.bytes),
        }
    }
}

impl Part {
    fn lines(&self) -> Vec<OutputLine> {
        let lines: Vec<(i64, String, String)> =
            serde_json::from_str(&self.content).unwrap_or_default();
        let line = |(at, stream, text)| OutputLine {
            sharding_item: self.item,
            attempt_id: self.attempt.clone(),
            at: millis(Some(at)),
            stream,
            text,
        };
        lines.into_iter().map(line).collect()
    }
}

fn first_time(content: &str) -> Option<Timestamp> {
    let lines: Vec<(i64, String, String)> = serde_json::from_str(content).unwrap_or_default();
    millis(lines.first().map(|(at, ..)| *at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        for text in ["", "0f8fad5b-d9cb-469f-a165-70867728950e.7", "a.0~b.12"] {
            assert_eq!(text.parse::<OutputPosition>().unwrap().to_string(), text);
        }
        for text in ["a", "a.x", "a.99999999999999999999"] {
            assert!(text.parse::<OutputPosition>().is_err(), "{text}");
        }
    }
}
