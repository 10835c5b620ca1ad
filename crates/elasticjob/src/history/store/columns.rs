//! A row of an answer, whichever database gave it.

use sqlx::Row;
#[cfg(feature = "history-postgres")]
use sqlx::{Column, TypeInfo};

/// A row of an answer. Numbers are numbers however wide the column is.
pub(super) trait Columns {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error>;
    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error>;

    /// A number that is there.
    fn number(&self, index: usize) -> Result<i64, sqlx::Error> {
        Ok(self.int(index)?.unwrap_or_default())
    }

    /// A text that is there.
    fn word(&self, index: usize) -> Result<String, sqlx::Error> {
        Ok(self.text(index)?.unwrap_or_default())
    }
}

#[cfg(feature = "history-sqlite")]
impl Columns for sqlx::sqlite::SqliteRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        // What a program with other habits wrote into a column of times need not be a number.
        self.try_get_unchecked(index)
    }

    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get(index)
    }
}

#[cfg(feature = "history-postgres")]
impl Columns for sqlx::postgres::PgRow {
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
impl Columns for sqlx::mysql::MySqlRow {
    fn int(&self, index: usize) -> Result<Option<i64>, sqlx::Error> {
        self.try_get_unchecked(index)
    }

    fn text(&self, index: usize) -> Result<Option<String>, sqlx::Error> {
        self.try_get_unchecked(index)
    }
}
