//! Pagination: the next page begins after the last row of this one, even if new rows arrive meanwhile.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::{error::StoreError, statement::Statement};

/// The last microsecond of the year 9999.
const LAST: i64 = 253_402_300_799_999_999;

/// A page of a list, newest rows first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The `after` of the next page; `None` if this is the last page.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Makes a page from a query with a limit of one more than `limit`.
    pub(super) fn of(mut rows: Vec<(Cursor, T)>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = more.then(|| rows.last().map(|(cursor, _)| cursor.clone())).flatten();
        Self { rows: rows.into_iter().map(|(_, row)| row).collect(), next }
    }
}

/// A position in a list. Its text form is opaque and can be passed back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub(super) micros: i64,
    /// Whether the row has no run, because Java ElasticJob wrote it: such rows come after the others with the same time.
    pub(super) is_foreign: bool,
    pub(super) id: String,
}

impl Cursor {
    /// Restricts a list ordered by these two columns, newest first, to rows after this position; `timestamp` is the SQL for the first column's
    /// value.
    pub(super) fn filter(
        &self,
        statement: &mut Statement,
        (time, id): (&str, &str),
        timestamp: &str,
        value: i64,
    ) {
        let condition = format!("{time} <= {timestamp} AND ({time} < {timestamp} OR {id} < ?)");
        statement.filter(&condition, [value.into(), value.into(), self.id.as_str().into()]);
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.micros, if self.is_foreign { '~' } else { '.' }, self.id)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let invalid = || StoreError::Url {
            problem: format!("{text:?} is not a cursor"),
            hint: "pass the `next` of the previous page".to_owned(),
        };
        let (micros, id) = text.split_once(['.', '~']).ok_or_else(invalid)?;
        let is_foreign = text[micros.len()..].starts_with('~');
        let micros: i64 = micros.parse().map_err(|_| invalid())?;
        // Databases do not support later times.
        if !(0..=LAST).contains(&micros) {
            return Err(invalid());
        }
        Ok(Self { micros, is_foreign, id: id.to_owned() })
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A span of time; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// `None`: from the beginning.
    pub since: Option<Timestamp>,
    /// `None`: until now.
    pub until: Option<Timestamp>,
}

impl Span {
    /// Everything since this time.
    pub fn since(at: Timestamp) -> Self {
        Self { since: Some(at), until: None }
    }

    /// Restricts a column with milliseconds.
    pub(super) fn filter_millis(self, statement: &mut Statement, column: &str) {
        let millis = |at: Timestamp| at.as_millisecond().into();
        statement.filter_if(&format!("{column} >= ?"), self.since.map(millis));
        statement.filter_if(&format!("{column} < ?"), self.until.map(millis));
    }

    /// Restricts one of Java ElasticJob's timestamp columns.
    pub(super) fn filter_timestamps(
        self,
        statement: &mut Statement,
        column: &str,
        timestamp: &str,
    ) {
        // The range of MySQL's TIMESTAMP.
        let micros =
            |at: Timestamp| at.as_microsecond().clamp(1_000_000, 2_147_483_647_000_000).into();
        statement.filter_if(&format!("{column} >= {timestamp}"), self.since.map(micros));
        statement.filter_if(&format!("{column} < {timestamp}"), self.until.map(micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips() {
        for text in ["1774749600000000.settle/1774749600000", "7~0f8fad5b-d9cb", "0.a.b~c"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x.y", "7", "-1.x", "9223372036854775807.x"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
