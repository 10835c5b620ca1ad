//! Errors of history databases, by what a caller does about them.

use std::borrow::Cow;

use super::super::sink::SinkError;
use crate::problem::{Hint, Problem};

/// Why history could not be stored or queried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL, or another argument, is invalid.
    #[error("history URL: {problem}")]
    Url { problem: String, hint: String },
    /// The database is down, slow or busy: a retry may succeed.
    #[error("history in {database}: {problem}")]
    Unreachable { database: String, problem: String, hint: String },
    /// The credentials are invalid, or do not allow the operation.
    #[error("history in {database}: {problem}")]
    NotAuthorised { database: String, problem: String, hint: String },
    /// Needs an operator: a table has other columns, the disk is full.
    #[error("history in {database}: {problem}")]
    Refused { database: String, problem: String, hint: String },
}

impl Hint for StoreError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let (Self::Url { hint, .. }
        | Self::Unreachable { hint, .. }
        | Self::NotAuthorised { hint, .. }
        | Self::Refused { hint, .. }) = self;
        Some(Cow::Borrowed(hint))
    }
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> Self {
        let text = Problem::of(&error).to_string();
        match error {
            StoreError::Unreachable { .. } => Self::Unavailable(text),
            _ => Self::Refused(text),
        }
    }
}

/// What a caller does about an error of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorClass {
    /// Two transactions conflicted: retry at once.
    Conflict,
    Unavailable(&'static str),
    NotAuthorised(&'static str),
    Refused(&'static str),
    /// The data cannot be stored: it is too large, or does not fit its column.
    InvalidData(&'static str),
    /// The data has a character that the database does not support.
    UnsupportedCharacter,
    /// There is no auto-increment number: two transactions conflicted, or the numbers are exhausted.
    AutoIncrement,
}

const DOWN: &str = "is the server running, and does a network path lead to it?";
const BUSY: &str = "it may work again in a moment";
const RIGHTS: &str = "the user needs SELECT, INSERT, UPDATE and DELETE, and for the first start CREATE, ALTER and INDEX";
const SCHEMA: &str =
    "the user needs USAGE and CREATE on a schema that its search_path names, usually public";
const CREDENTIALS: &str = "are user and password right, and may the user use this database?";
const FULL: &str = "free disk space, or delete old history with `elasticjob history prune`";
const DATABASE: &str = "create the database first; its tables are created automatically";
const TABLES: &str =
    "were tables or columns changed by hand? rename them, or use a separate database for history";
const READ_ONLY: &str = "may the process write there? a standby is read-only";
const FILE: &str = "is it an SQLite file, and may the process write to it and its folder?";
const DISK: &str = "is there space on its disk, and is the disk healthy?";
const LARGE: &str = "raise the database's limit: max_allowed_packet (MySQL)";
const VALUE: &str = "it does not fit its column; were columns changed by hand? ElasticJob creates them as wide as it needs";
const COUNTER: &str = "if auto_id is exhausted, widen it: ALTER TABLE JOB_EXECUTION_LOG MODIFY auto_id BIGINT NOT NULL AUTO_INCREMENT, and the same for JOB_STATUS_TRACE_LOG";
const CHARACTERS: &str = "use the character set utf8mb4 (MySQL) or UTF8 (PostgreSQL)";

/// The error for callers, with a hint.
pub(super) fn store_error(database: &str, error: &sqlx::Error) -> StoreError {
    let (database, problem) = (database.to_owned(), message(error));
    match classify(error) {
        ErrorClass::Conflict => {
            StoreError::Unreachable { database, problem, hint: BUSY.to_owned() }
        }
        ErrorClass::Unavailable(hint) => {
            StoreError::Unreachable { database, problem, hint: hint.to_owned() }
        }
        ErrorClass::NotAuthorised(hint) => {
            StoreError::NotAuthorised { database, problem, hint: hint.to_owned() }
        }
        ErrorClass::Refused(hint) | ErrorClass::InvalidData(hint) => {
            StoreError::Refused { database, problem, hint: hint.to_owned() }
        }
        ErrorClass::AutoIncrement => {
            StoreError::Refused { database, problem, hint: COUNTER.to_owned() }
        }
        ErrorClass::UnsupportedCharacter => {
            StoreError::Refused { database, problem, hint: CHARACTERS.to_owned() }
        }
    }
}

/// Whether the transaction should be retried at once.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    matches!(classify(error), ErrorClass::Conflict | ErrorClass::AutoIncrement)
}

/// Whether another connection has locked the SQLite file.
#[cfg(feature = "history-sqlite")]
pub(super) fn is_sqlite_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    // The lower byte is the primary result code: SQLITE_BUSY or SQLITE_LOCKED.
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Whether the data itself cannot be stored, so that other data could be.
pub(super) fn is_invalid_data(error: &sqlx::Error) -> bool {
    matches!(classify(error), ErrorClass::InvalidData(_) | ErrorClass::UnsupportedCharacter)
}

/// The error while another process changes the tables.
pub(super) fn tables_being_changed(database: &str) -> StoreError {
    StoreError::Unreachable {
        database: database.to_owned(),
        problem: "another process is changing its tables".to_owned(),
        hint: "that takes a while for large tables; it works again after that".to_owned(),
    }
}

/// The error for a statement that exceeds the database's limit. Checked before sending, because a server may just close the connection.
pub(super) fn too_large(database: &str, bytes: usize, most: usize) -> StoreError {
    StoreError::Refused {
        database: database.to_owned(),
        problem: format!("its limit for a statement is {most} bytes, and this one has {bytes}"),
        hint: LARGE.to_owned(),
    }
}

/// Whether the data has a character that the database does not support.
pub(super) fn is_unsupported_character(error: &sqlx::Error) -> bool {
    classify(error) == ErrorClass::UnsupportedCharacter
}

/// The message of the database in one line, without the driver's additions.
fn message(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => "no connection within the time limit".to_owned(),
        error => error.to_string(),
    };
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn classify(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(error) => {
            #[cfg(feature = "history-postgres")]
            if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
                return postgres(error.code());
            }
            #[cfg(feature = "history-mysql")]
            if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
                return mysql(error.number());
            }
            sqlite(error.code().and_then(|code| code.parse().ok()).unwrap_or(1))
        }
        sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) => ErrorClass::Refused(
            "check the parameters of the URL: sslmode, sslrootcert, ssl-mode, ssl-ca",
        ),
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => ErrorClass::Unavailable(DOWN),
        _ => ErrorClass::Refused(TABLES),
    }
}

fn postgres(state: &str) -> ErrorClass {
    match state {
        "40001" | "40P01" => ErrorClass::Conflict,
        "53100" => ErrorClass::Refused(FULL),
        "3D000" => ErrorClass::Refused(DATABASE),
        "42501" => ErrorClass::NotAuthorised(RIGHTS),
        "3F000" => ErrorClass::NotAuthorised(SCHEMA),
        "22021" | "22P05" => ErrorClass::UnsupportedCharacter,
        "25006" => ErrorClass::Unavailable(READ_ONLY),
        _ => match &state[..2.min(state.len())] {
            "08" | "57" | "58" => ErrorClass::Unavailable(DOWN),
            "22" => ErrorClass::InvalidData(VALUE),
            "54" => ErrorClass::InvalidData(LARGE),
            "53" | "55" => ErrorClass::Unavailable(BUSY),
            "28" => ErrorClass::NotAuthorised(CREDENTIALS),
            _ => ErrorClass::Refused(TABLES),
        },
    }
}

fn mysql(number: u16) -> ErrorClass {
    match number {
        1213 | 1020 => ErrorClass::Conflict,
        167 | 1467 => ErrorClass::AutoIncrement,
        1205 | 1040 | 1203 | 1226 => ErrorClass::Unavailable(BUSY),
        1153 | 1162 | 1301 => ErrorClass::InvalidData(LARGE),
        1264 | 1292 | 1406 => ErrorClass::InvalidData(VALUE),
        1053 | 1077..=1080 | 1152..=1161 | 1927 | 2002..=2013 => ErrorClass::Unavailable(DOWN),
        1290 | 1792 | 1836 => ErrorClass::Unavailable(READ_ONLY),
        1044 | 1045 | 1698 => ErrorClass::NotAuthorised(CREDENTIALS),
        1142 | 1143 | 1227 | 1370 => ErrorClass::NotAuthorised(RIGHTS),
        1021 | 1030 | 1114 => ErrorClass::Refused(FULL),
        1049 => ErrorClass::Refused(DATABASE),
        1366 | 1267 | 1300 => ErrorClass::UnsupportedCharacter,
        _ => ErrorClass::Refused(TABLES),
    }
}

fn sqlite(code: u32) -> ErrorClass {
    // The lower byte is the primary result code.
    match code & 0xff {
        5 | 6 => ErrorClass::Unavailable(BUSY),
        3 | 23 => ErrorClass::NotAuthorised(FILE),
        8 => ErrorClass::NotAuthorised(READ_ONLY),
        13 => ErrorClass::Refused(FULL),
        18 => ErrorClass::InvalidData(LARGE),
        10 => ErrorClass::Refused(DISK),
        11 | 14 | 26 => ErrorClass::Refused(FILE),
        _ => ErrorClass::Refused(TABLES),
    }
}
