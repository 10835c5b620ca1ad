//! Reads the output of runs, also while they run.

use std::{collections::BTreeMap, fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Store,
    error::StoreError,
    query::{bound, millis},
    rows::truncate_distinct,
    statement::Statement,
};

/// Number of parts that are read at a time.
const MAX_PARTS: usize = 500;
/// Maximum number of attempts in a position.
const MAX_ATTEMPTS: usize = 10_000;

/// How far the output of a run has been read. A new position is at the beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputPosition {
    /// Number of the next part, by attempt.
    next: BTreeMap<String, i64>,
}

/// The text form is opaque and can be passed back.
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
        let invalid = || StoreError::Url {
            problem: "invalid position in the output of a run".to_owned(),
            hint: "pass the `position` of the previous response".to_owned(),
        };
        let mut next = BTreeMap::new();
        for part in text.split('~').filter(|part| !part.is_empty()) {
            let (attempt, number) = part.rsplit_once('.').ok_or_else(invalid)?;
            if attempt.len() > 40 || next.len() >= MAX_ATTEMPTS {
                return Err(invalid());
            }
            next.insert(attempt.to_owned(), number.parse().map_err(|_| invalid())?);
        }
        Ok(Self { next })
    }
}

/// A part of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Ordered by time.
    pub lines: Vec<OutputLine>,
    /// The position after these lines.
    pub position: OutputPosition,
    /// Whether more output is already available.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputLine {
    pub sharding_item: i64,
    pub attempt_id: String,
    pub at: Option<Timestamp>,
    /// `stdout`, `stderr`, a log level, or `note` where output was cut.
    pub stream: String,
    pub text: String,
}

struct Part {
    attempt: String,
    number: i64,
    item: i64,
    content: String,
}

struct CutParts {
    from: i64,
    to: i64,
    bytes: i64,
    item: i64,
}

impl Store {
    /// The output of a run after this position, of one shard or of all.
    pub async fn output(
        &self,
        run: &str,
        item: Option<u32>,
        position: &OutputPosition,
    ) -> Result<Output, StoreError> {
        let run = truncate_distinct(run, 150);
        let cuts = self.cuts(&run, item).await?;
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT attempt_id, part, sharding_item, content FROM ELASTICJOB_OUTPUT",
        );
        statement.filter("run_id = ?", [run.as_str().into()]);
        statement.filter_if("sharding_item = ?", item.map(|item| i64::from(item).into()));
        for (attempt, next) in &position.next {
            let read = [attempt.as_str().into(), (*next).into()];
            statement.filter("NOT (attempt_id = ? AND part < ?)", read);
        }
        statement
            .with(" ORDER BY run_id, sharding_item, attempt_id, part LIMIT ?", [bound(MAX_PARTS)]);
        let parts = self.query(&statement, |row| {
            Ok(Part {
                attempt: row.text_or_empty(0)?,
                number: row.int_or_zero(1)?,
                item: row.int_or_zero(2)?,
                content: row.text_or_empty(3)?,
            })
        });
        let parts = parts.await?;

        let mut output = Output {
            lines: Vec::new(),
            position: position.clone(),
            more: parts.len() == MAX_PARTS,
        };
        for part in &parts {
            let next = output.position.next.entry(part.attempt.clone()).or_default();
            let cut = cuts.get(&part.attempt);
            if let Some(cut) = cut.filter(|cut| *next < cut.to && part.number >= cut.to) {
                output.lines.push(cut.note(&part.attempt, first_time(&part.content)));
            }
            let is_cut = cut.is_some_and(|cut| (cut.from..cut.to).contains(&part.number));
            if !is_cut {
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
    ) -> Result<BTreeMap<String, CutParts>, StoreError> {
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT attempt_id, from_part, to_part, bytes, sharding_item FROM ELASTICJOB_OUTPUT_CUT",
        );
        statement.filter("run_id = ?", [run.into()]);
        statement.filter_if("sharding_item = ?", item.map(|item| i64::from(item).into()));
        let cuts = self.query(&statement, |row| {
            let cut = CutParts {
                from: row.int_or_zero(1)?,
                to: row.int_or_zero(2)?,
                bytes: row.int_or_zero(3)?,
                item: row.int_or_zero(4)?,
            };
            Ok((row.text_or_empty(0)?, cut))
        });
        Ok(cuts.await?.into_iter().collect())
    }
}

impl CutParts {
    fn note(&self, attempt: &str, at: Option<Timestamp>) -> OutputLine {
        OutputLine {
            sharding_item: self.item,
            attempt_id: attempt.to_owned(),
            at,
            stream: "note".to_owned(),
            text: format!("… {} bytes omitted …", self.bytes),
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
    fn position_round_trips() {
        for text in ["", "0f8fad5b-d9cb-469f-a165-70867728950e.7", "a.0~b.12"] {
            assert_eq!(text.parse::<OutputPosition>().unwrap().to_string(), text);
        }
        for text in ["a", "a.x", "a.99999999999999999999"] {
            assert!(text.parse::<OutputPosition>().is_err(), "{text}");
        }
    }
}
