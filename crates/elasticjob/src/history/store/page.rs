//! Long lists, a page at a time: the next page begins after the last row of this one, wherever new rows came meanwhile.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::Serialize;

use super::{error::StoreError, select::Select};

/// The last moment of the year 9999, in microseconds.
const LAST: i64 = 253_402_300_799_999_999;

/// A part of a long list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// What to give as `after` for the next page; nothing if this was the last.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// What was found when one more than asked for was looked for.
    pub(super) fn of(mut rows: Vec<(Cursor, T)>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = more.then(|| rows.last().map(|(cursor, _)| cursor.clone())).flatten();
        Self { rows: rows.into_iter().map(|(_, row)| row).collect(), next }
    }
}

/// A place in a list. Its text means nothing to anybody else, and can be given back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub(super) micros: i64,
    /// Whether the row was written without a run: those come after the others of the same moment.
    pub(super) is_foreign: bool,
    pub(super) id: String,
}

impl Cursor {
    /// Only what comes after this place, in a list ordered by these two columns, newest first; `moment` is how the first is written.
    pub(super) fn filter(
        &self,
        select: &mut Select,
        (time, id): (&str, &str),
        moment: &str,
        value: i64,
    ) {
        let condition = format!("{time} <= {moment} AND ({time} < {moment} OR {id} < ?)");
        select.filter(&condition, [value.into(), value.into(), self.id.as_str().into()]);
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
        let wrong = || StoreError::Url {
            problem: format!("{text:?} is no place in a list"),
            hint: "give back what the page before named as the next".to_owned(),
        };
        let (micros, id) = text.split_once(['.', '~']).ok_or_else(wrong)?;
        let is_foreign = text[micros.len()..].starts_with('~');
        let micros: i64 = micros.parse().map_err(|_| wrong())?;
        // Beyond that a database has no moments.
        if !(0..=LAST).contains(&micros) {
            return Err(wrong());
        }
        Ok(Self { micros, is_foreign, id: id.to_owned() })
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From when until when, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// From when; nothing is from the beginning.
    pub since: Option<Timestamp>,
    /// Until when; nothing is until now.
    pub until: Option<Timestamp>,
}

impl Span {
    /// From then on.
    pub fn since(at: Timestamp) -> Self {
        Self { since: Some(at), until: None }
    }

    /// On a column of ours: milliseconds.
    pub(super) fn of_millis(self, select: &mut Select, column: &str) {
        let millis = |at: Timestamp| at.as_millisecond().into();
        select.filter_if(&format!("{column} >= ?"), self.since.map(millis));
        select.filter_if(&format!("{column} < ?"), self.until.map(millis));
    }

    /// On a column of the ancestor's.
    pub(super) fn of_moments(self, select: &mut Select, column: &str, moment: &str) {
        // Within what MySQL has a timestamp for.
        let micros =
            |at: Timestamp| at.as_microsecond().clamp(1_000_000, 2_147_483_647_000_000).into();
        select.filter_if(&format!("{column} >= {moment}"), self.since.map(micros));
        select.filter_if(&format!("{column} < {moment}"), self.until.map(micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for text in ["1774749600000000.settle/1774749600000", "7~0f8fad5b-d9cb", "0.a.b~c"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x.y", "7", "-1.x", "9223372036854775807.x"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
