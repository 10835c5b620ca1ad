//! How a question is asked, and what all of them have in common.

use jiff::Timestamp;

use super::{
    Store,
    database::Columns,
    error::StoreError,
    select::{Select, Value},
};

/// How many rows a page has if nobody says anything.
const LIMIT: usize = 50;
/// How many rows a page has at most.
const MOST: usize = 10_000;

impl Store {
    /// What the database answers.
    pub(super) async fn ask<T>(
        &self,
        select: &Select,
        read: impl Fn(&dyn Columns) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StoreError> {
        self.database.fetch(select, read).await.map_err(|error| self.database.told(&error))
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
