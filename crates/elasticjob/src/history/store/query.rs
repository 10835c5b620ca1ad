//! Runs queries; helpers that all of them share.

use jiff::Timestamp;

use super::{
    Store,
    error::StoreError,
    page::{Cursor, Page},
    result_row::ResultRow,
    statement::{Statement, Value},
};

/// Default number of rows of a page.
const DEFAULT_PAGE_SIZE: usize = 50;
/// Maximum number of rows of a page.
const MAX_PAGE_SIZE: usize = 10_000;

impl Store {
    /// Runs a query and reads its rows.
    pub(super) async fn query<T: Send>(
        &self,
        statement: &Statement,
        read: impl Fn(&dyn ResultRow) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        self.database
            .fetch(statement, read)
            .await
            .map_err(|error| self.database.store_error(&error))
    }

    /// A page of rows ordered by one of Java ElasticJob's timestamp columns, newest first. `read` also returns the row's time in microseconds and id.
    pub(super) async fn newest<T: Send>(
        &self,
        mut statement: Statement,
        column: &str,
        (after, limit): (Option<&Cursor>, Option<usize>),
        read: impl Fn(&dyn ResultRow) -> Result<(i64, String, T), sqlx::Error> + Send + Sync,
    ) -> Result<Page<T>, StoreError> {
        let limit = page_size(limit);
        if let Some(after) = after {
            let timestamp = self.dialect().to_timestamp("?");
            after.filter(&mut statement, (column, "id"), &timestamp, after.micros);
        }
        statement.with(&format!(" ORDER BY {column} DESC, id DESC LIMIT ?"), [bound(limit + 1)]);
        let rows = self.query(&statement, |row| {
            let (micros, id, read) = read(row)?;
            Ok((Cursor { micros, is_foreign: true, id }, read))
        });
        Ok(Page::of(rows.await?, limit))
    }
}

pub(super) fn page_size(requested: Option<usize>) -> usize {
    requested.unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE)
}

pub(super) fn bound(limit: usize) -> Value {
    i64::try_from(limit).unwrap_or(i64::MAX).into()
}

pub(super) fn millis(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(|millis| Timestamp::from_millisecond(millis).ok())
}
