//! How a question is asked, and what all of them have in common.

use jiff::Timestamp;

use super::{
    Store,
    columns::Columns,
    error::StoreError,
    page::{Cursor, Page},
    select::{Select, Value},
};

/// How many rows a page has if nobody says anything.
const LIMIT: usize = 50;
/// How many rows a page has at most.
const MOST: usize = 10_000;

impl Store {
    /// What the database answers.
    pub(super) async fn ask<T: Send>(
        &self,
        select: &Select,
        read: impl Fn(&dyn Columns) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        self.database.fetch(select, read).await.map_err(|error| self.database.told(&error))
    }

    /// A page of rows by a moment of the ancestor's, the newest first; `read` says of a row also when it was, in microseconds, and its id.
    pub(super) async fn newest<T: Send>(
        &self,
        mut select: Select,
        column: &str,
        (after, limit): (Option<&Cursor>, Option<usize>),
        read: impl Fn(&dyn Columns) -> Result<(i64, String, T), sqlx::Error> + Send + Sync,
    ) -> Result<Page<T>, StoreError> {
        let limit = page_size(limit);
        if let Some(after) = after {
            let moment = self.dialect().moment("?");
            after.filter(&mut select, (column, "id"), &moment, after.micros);
        }
        select.with(&format!(" ORDER BY {column} DESC, id DESC LIMIT ?"), [bound(limit + 1)]);
        let rows = self.ask(&select, |row| {
            let (micros, id, read) = read(row)?;
            Ok((Cursor { micros, is_foreign: true, id }, read))
        });
        Ok(Page::of(rows.await?, limit))
    }
}

/// How many rows a page has of which so many were asked for.
pub(super) fn page_size(asked: Option<usize>) -> usize {
    asked.unwrap_or(LIMIT).min(MOST)
}

pub(super) fn bound(limit: usize) -> Value {
    i64::try_from(limit).unwrap_or(i64::MAX).into()
}

pub(super) fn millis(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(|millis| Timestamp::from_millisecond(millis).ok())
}
