//! The differences between the databases.

use std::sync::LazyLock;

/// The statements of SQLite.
static SQLITE: LazyLock<String> =
    LazyLock::new(|| Dialect::Sqlite.with_common(include_str!("sql/sqlite.sql")));
/// The statements of PostgreSQL.
static POSTGRES: LazyLock<String> =
    LazyLock::new(|| Dialect::Postgres.with_common(include_str!("sql/postgres.sql")));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// A section of a dialect's SQL: the name after `-- :`, and the statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

impl Dialect {
    fn sql(self) -> &'static str {
        match self {
            Self::Sqlite => &SQLITE,
            Self::Postgres => &POSTGRES,
            Self::Mysql => include_str!("sql/mysql.sql"),
        }
    }

    /// The SQL that PostgreSQL and SQLite share, in this dialect, followed by the dialect's own.
    fn with_common(self, own: &str) -> String {
        let is_postgres = self == Self::Postgres;
        let word = |postgres, sqlite| if is_postgres { postgres } else { sqlite };
        let common = include_str!("sql/common.sql")
            .replace("{integer}", word("INT", "INTEGER"))
            .replace("{boolean}", word("BOOLEAN", "INTEGER"))
            .replace("{failed}", self.success_condition(false))
            .replace("{greatest}", word("GREATEST", "MAX"))
            .replace(
                "{ids}",
                word("SELECT json_array_elements_text($1::json)", "SELECT value FROM json_each(?)"),
            );
        format!("{common}\n{own}")
    }

    /// All sections of the dialect's SQL, in their order.
    pub(super) fn sections(self) -> impl Iterator<Item = Section> {
        self.sql().split("\n-- :").skip(1).filter_map(|section| {
            let (name, sql) = section.split_once('\n')?;
            // The text after a blank line is a comment on the next section.
            let sql = sql.split_once("\n\n").map_or(sql, |(sql, _)| sql);
            Some(Section { name: name.trim(), sql: sql.trim() })
        })
    }

    /// The statement with this name. A test checks that every dialect has all names, except a few that only MySQL needs.
    pub(super) fn statement(self, name: &str) -> &'static str {
        self.sections().find(|section| section.name == name).map_or("", |section| section.sql)
    }

    /// Statements that lock the tables against changes by other processes, and the one that unlocks. A change may take an hour, so waiting for the
    /// lock is limited.
    pub(super) fn lock(self) -> (&'static [&'static str], &'static str) {
        match self {
            // The transaction itself is the lock.
            Self::Sqlite => (&["SELECT 1"], "SELECT 1"),
            // Changing the tables may take longer than this user's statements may take otherwise.
            Self::Postgres => (
                &[
                    "SET LOCAL lock_timeout = '60s'",
                    "SET LOCAL statement_timeout = 0",
                    "SELECT pg_advisory_xact_lock(7306358022)",
                ],
                "SELECT 1",
            ),
            // Named after the database, because the lock is shared by the whole server.
            Self::Mysql => (
                &["SELECT GET_LOCK(LEFT(CONCAT('elasticjob.history.', DATABASE()), 64), 60)"],
                "SELECT RELEASE_LOCK(LEFT(CONCAT('elasticjob.history.', DATABASE()), 64))",
            ),
        }
    }

    /// The placeholder of a parameter, counted from one.
    pub(super) fn parameter(self, number: usize) -> String {
        match self {
            Self::Postgres => format!("${number}"),
            Self::Sqlite | Self::Mysql => "?".to_owned(),
        }
    }

    /// Converts microseconds to a timestamp of Java ElasticJob's columns. They are in UTC, except for rows that Java wrote in another time zone.
    pub(super) fn to_timestamp(self, micros: &str) -> String {
        match self {
            // SQLite's JDBC driver stores milliseconds.
            Self::Sqlite => format!("{micros} / 1000"),
            Self::Postgres => {
                format!("TIMESTAMP '1970-01-01' + {micros} * INTERVAL '1 microsecond'")
            }
            Self::Mysql => format!("FROM_UNIXTIME({micros} / 1000000)"),
        }
    }

    /// Converts one of Java ElasticJob's timestamp columns to microseconds.
    pub(super) fn micros(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} * 1000"),
            Self::Postgres => format!("CAST(EXTRACT(EPOCH FROM {column}) * 1000000 AS BIGINT)"),
            Self::Mysql => format!("CAST(UNIX_TIMESTAMP({column}) * 1000000 AS SIGNED)"),
        }
    }

    /// The condition that Java ElasticJob's column `is_success` has this value.
    pub(super) fn success_condition(self, yes: bool) -> &'static str {
        match (self, yes) {
            (Self::Postgres, true) => "is_success",
            (Self::Postgres, false) => "NOT is_success",
            (_, true) => "is_success = 1",
            (_, false) => "is_success = 0",
        }
    }

    /// Integer division, rounded toward zero.
    pub(super) fn integer_division(self, number: &str, by: &str) -> String {
        match self {
            Self::Mysql => format!("({number}) DIV {by}"),
            Self::Sqlite | Self::Postgres => format!("({number}) / {by}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_dialect_has_the_same_statements() {
        let names = |dialect: Dialect| -> BTreeSet<&str> {
            dialect.sections().map(|section| section.name).collect()
        };
        let mut mysql = names(Dialect::Mysql);
        for only in [
            "index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_ID",
            "wide JOB_EXECUTION_LOG auto_id",
            "wide JOB_STATUS_TRACE_LOG auto_id",
            "apply run updates",
        ] {
            assert!(mysql.remove(only), "{only}");
        }

        assert_eq!(names(Dialect::Sqlite), names(Dialect::Postgres));
        assert_eq!(names(Dialect::Sqlite), mysql);
        assert!(Dialect::Sqlite.sections().all(|section| !section.sql.contains("--")));
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            assert!(dialect.sections().all(|section| !section.sql.contains(['{', '}'])));
        }
    }
}
