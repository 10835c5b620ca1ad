//! A row of a query result, independent of the database.

use sqlx::Row;
#[cfg(feature = "history-postgres")]
use sqlx::{Column, TypeInfo};

/// A row of a query result. Integers of any width are read as `i64`.
pub(super) trait ResultRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error>;

    /// An integer; zero if it is null.
    fn int_or_zero(&self, index: usize) -> Result<i64, sqlx::Error> {
        Ok(self.int(index)?.unwrap_or_default())
    }

    /// A text; empty if it is null.
    fn text_or_empty(&self, index: usize) -> Result<String, sqlx::Error> {
        Ok(self.text(index)?.unwrap_or_default())
    }
}

#[cfg(feature = "history-sqlite")]
impl ResultRow for sqlx::sqlite::SqliteRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        // Other programs may have written something else than a number into a column of times.
        self.try_get_unchecked(index)
    }

    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get(index)
    }
}

#[cfg(feature = "history-postgres")]
impl ResultRow for sqlx::postgres::PgRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        Ok(match self.column(index).type_info().name() {
            "INT2" => self.try_get::<Option<i16>, _>(index)?.map(i64::from),
            "INT4" => self.try_get::<Option<i32>, _>(index)?.map(i64::from),
            "BOOL" => self.try_get::<Option<bool>, _>(index)?.map(i64::from),
            _ => self.try_get(index)?,
        })
    }

    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get(index)
    }
}

#[cfg(feature = "history-mysql")]
impl ResultRow for sqlx::mysql::MySqlRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get_unchecked(index)
    }
}
