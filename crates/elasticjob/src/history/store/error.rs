//! What goes wrong with a database, by what a caller does about it.

use super::super::sink::SinkError;

/// Why history could not be kept or asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is wrong: correct it.
    #[error("history URL: {problem}; hint: {hint}")]
    Url {
        /// What is wrong.
        problem: String,
        /// What would be right.
        hint: String,
    },
    /// The database is down, slow or busy: it may work later.
    #[error("history in {database}: {problem}; hint: {hint}")]
    Unreachable {
        /// Which database.
        database: String,
        /// What it says.
        problem: String,
        /// What may be the reason.
        hint: String,
    },
    /// The credentials do not open it, or do not allow this.
    #[error("history in {database}: {problem}; hint: {hint}")]
    NotAuthorised {
        /// Which database.
        database: String,
        /// What it says.
        problem: String,
        /// What to do about it.
        hint: String,
    },
    /// It will not work until somebody does something: a table has other columns, the disk is full.
    #[error("history in {database}: {problem}; hint: {hint}")]
    Refused {
        /// Which database.
        database: String,
        /// What it says.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable { .. } => Self::Later(error.to_string()),
            error => Self::Refused(error.to_string()),
        }
    }
}

/// What a caller does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Two who wrote at once: the same again, now.
    Again,
    Later(&'static str),
    Rights(&'static str),
    Refused(&'static str),
    /// What was to be written cannot be: it is too large, or not what the column is for.
    Unfit(&'static str),
    /// A character that the database has no room for.
    Character,
    /// No number for another row: two that wrote at once, or there is none left.
    Counter,
}

const DOWN: &str = "is the server running, and does a network path lead to it?";
const BUSY: &str = "it may work again in a moment";
const RIGHTS: &str = "the user needs SELECT, INSERT, UPDATE and DELETE, and for the first start CREATE, ALTER and INDEX";
const SCHEMA: &str =
    "the user needs USAGE and CREATE on a schema that its search_path names, usually public";
const CREDENTIALS: &str = "are user and password right, and may the user use this database?";
const FULL: &str = "make room, or let `elasticjob history prune` keep less";
const DATABASE: &str = "create the database first; the tables in it are made for you";
const TABLES: &str =
    "were tables or columns changed by hand? rename them, or give history a database of its own";
const READ_ONLY: &str = "may the process write there? a standby cannot be written to";
const FILE: &str = "is it a file of SQLite's, and may the process write to it and its folder?";
const DISK: &str = "is there room on its disk, and is the disk in order?";
const LARGE: &str = "let the database take more at once: max_allowed_packet (MySQL)";
const VALUE: &str = "it does not fit its column; were columns changed by hand? ElasticJob makes them as wide as it needs";
const COUNTER: &str = "if auto_id is used up, let it be wider: ALTER TABLE JOB_EXECUTION_LOG MODIFY auto_id BIGINT NOT NULL AUTO_INCREMENT, and the same for JOB_STATUS_TRACE_LOG";
const CHARACTERS: &str = "let the database use utf8mb4 (MySQL) or UTF8 (PostgreSQL)";

/// What the database said, as something to do about it.
pub(super) fn told(database: &str, error: &sqlx::Error) -> StoreError {
    let (database, problem) = (database.to_owned(), words(error));
    match class(error) {
        Class::Again => StoreError::Unreachable { database, problem, hint: BUSY.to_owned() },
        Class::Later(hint) => StoreError::Unreachable { database, problem, hint: hint.to_owned() },
        Class::Rights(hint) => {
            StoreError::NotAuthorised { database, problem, hint: hint.to_owned() }
        }
        Class::Refused(hint) | Class::Unfit(hint) => {
            StoreError::Refused { database, problem, hint: hint.to_owned() }
        }
        Class::Counter => StoreError::Refused { database, problem, hint: COUNTER.to_owned() },
        Class::Character => StoreError::Refused { database, problem, hint: CHARACTERS.to_owned() },
    }
}

/// Whether it is worth doing the same again at once.
pub(super) fn is_collision(error: &sqlx::Error) -> bool {
    matches!(class(error), Class::Again | Class::Counter)
}

/// Whether it is what was to be written that cannot be written, and all else could.
pub(super) fn is_unfit(error: &sqlx::Error) -> bool {
    matches!(class(error), Class::Unfit(_) | Class::Character)
}

/// That somebody else changes the tables.
pub(super) fn being_changed(database: &str) -> StoreError {
    StoreError::Unreachable {
        database: database.to_owned(),
        problem: "somebody else is changing its tables, and is not done yet".to_owned(),
        hint: "where they are large that takes a while; it works again after that".to_owned(),
    }
}

/// That a statement is larger than the database takes, said before it is sent: a server that is sent too much may just hang up.
pub(super) fn too_large(database: &str, bytes: usize, most: usize) -> StoreError {
    StoreError::Refused {
        database: database.to_owned(),
        problem: format!("it takes {most} bytes at once, and this is {bytes}"),
        hint: LARGE.to_owned(),
    }
}

/// Whether there was a character that the database has no room for.
pub(super) fn is_character(error: &sqlx::Error) -> bool {
    class(error) == Class::Character
}

/// One line, without what the driver says around it.
fn words(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => "no connection within the time there is".to_owned(),
        error => error.to_string(),
    };
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn class(error: &sqlx::Error) -> Class {
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
        sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) => Class::Refused(
            "look at the parameters of the URL: sslmode, sslrootcert, ssl-mode, ssl-ca",
        ),
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => Class::Later(DOWN),
        _ => Class::Refused(TABLES),
    }
}

fn postgres(state: &str) -> Class {
    match state {
        "40001" | "40P01" => Class::Again,
        "53100" => Class::Refused(FULL),
        "3D000" => Class::Refused(DATABASE),
        "42501" => Class::Rights(RIGHTS),
        "3F000" => Class::Rights(SCHEMA),
        "22021" | "22P05" => Class::Character,
        "25006" => Class::Later(READ_ONLY),
        _ => match &state[..2.min(state.len())] {
            "08" | "57" | "58" => Class::Later(DOWN),
            "22" => Class::Unfit(VALUE),
            "54" => Class::Unfit(LARGE),
            "53" | "55" => Class::Later(BUSY),
            "28" => Class::Rights(CREDENTIALS),
            _ => Class::Refused(TABLES),
        },
    }
}

fn mysql(number: u16) -> Class {
    match number {
        1213 | 1020 => Class::Again,
        167 | 1467 => Class::Counter,
        1205 | 1040 | 1203 | 1226 => Class::Later(BUSY),
        1153 | 1162 | 1301 => Class::Unfit(LARGE),
        1264 | 1292 | 1406 => Class::Unfit(VALUE),
        1053 | 1077..=1080 | 1152..=1161 | 1927 | 2002..=2013 => Class::Later(DOWN),
        1290 | 1792 | 1836 => Class::Later(READ_ONLY),
        1044 | 1045 | 1698 => Class::Rights(CREDENTIALS),
        1142 | 1143 | 1227 | 1370 => Class::Rights(RIGHTS),
        1021 | 1030 | 1114 => Class::Refused(FULL),
        1049 => Class::Refused(DATABASE),
        1366 | 1267 | 1300 => Class::Character,
        _ => Class::Refused(TABLES),
    }
}

fn sqlite(code: u32) -> Class {
    // The lower byte is the kind, what is above it the details.
    match code & 0xff {
        5 | 6 => Class::Later(BUSY),
        3 | 23 => Class::Rights(FILE),
        8 => Class::Rights(READ_ONLY),
        13 => Class::Refused(FULL),
        18 => Class::Unfit(LARGE),
        10 => Class::Refused(DISK),
        11 | 14 | 26 => Class::Refused(FILE),
        _ => Class::Refused(TABLES),
    }
}
