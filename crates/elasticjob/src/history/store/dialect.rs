//! What the databases say differently.

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// A part of a dialect's file: what `-- :` calls it, and the statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

impl Dialect {
    fn file(self) -> &'static str {
        match self {
            Self::Sqlite => include_str!("sql/sqlite.sql"),
            Self::Postgres => include_str!("sql/postgres.sql"),
            Self::Mysql => include_str!("sql/mysql.sql"),
        }
    }

    /// Everything in the dialect's file, in its order.
    pub(super) fn sections(self) -> impl Iterator<Item = Section> {
        self.file().split("\n-- :").skip(1).filter_map(|section| {
            let (name, sql) = section.split_once('\n')?;
            // What follows a blank line is a word about the next section.
            let sql = sql.split_once("\n\n").map_or(sql, |(sql, _)| sql);
            Some(Section { name: name.trim(), sql: sql.trim() })
        })
    }

    /// The statement of this name. All names are in all files, but for a few of MySQL's: a test looks.
    pub(super) fn statement(self, name: &str) -> &'static str {
        self.sections().find(|section| section.name == name).map_or("", |section| section.sql)
    }

    /// Keeps others from changing the tables, and lets them again. Whoever has it may take an hour: nobody waits that long for it.
    pub(super) fn lock(self) -> (&'static [&'static str], &'static str) {
        match self {
            // The transaction does.
            Self::Sqlite => (&["SELECT 1"], "SELECT 1"),
            // What changes the tables may take longer than this user's statements may otherwise.
            Self::Postgres => (
                &[
                    "SET LOCAL lock_timeout = '60s'",
                    "SET LOCAL statement_timeout = 0",
                    "SELECT pg_advisory_xact_lock(7306358022)",
                ],
                "SELECT 1",
            ),
            // Named after the database, as the server has others.
            Self::Mysql => (
                &["SELECT GET_LOCK(LEFT(CONCAT('elasticjob.history.', DATABASE()), 64), 60)"],
                "SELECT RELEASE_LOCK(LEFT(CONCAT('elasticjob.history.', DATABASE()), 64))",
            ),
        }
    }

    /// The how-manieth parameter of a statement, from one.
    pub(super) fn parameter(self, number: usize) -> String {
        match self {
            Self::Postgres => format!("${number}"),
            Self::Sqlite | Self::Mysql => "?".to_owned(),
        }
    }

    /// A moment, given as microseconds, as the ancestor's columns have it. Its tables say UTC, but for what Java wrote in another zone.
    pub(super) fn moment(self, micros: &str) -> String {
        match self {
            // As the JDBC driver of SQLite stores it: milliseconds.
            Self::Sqlite => format!("{micros} / 1000"),
            Self::Postgres => {
                format!("TIMESTAMP '1970-01-01' + {micros} * INTERVAL '1 microsecond'")
            }
            Self::Mysql => format!("FROM_UNIXTIME({micros} / 1000000)"),
        }
    }

    /// The microseconds of one of the ancestor's columns.
    pub(super) fn micros(self, column: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} * 1000"),
            Self::Postgres => format!("CAST(EXTRACT(EPOCH FROM {column}) * 1000000 AS BIGINT)"),
            Self::Mysql => format!("CAST(UNIX_TIMESTAMP({column}) * 1000000 AS SIGNED)"),
        }
    }

    /// Whether the ancestor's column says yes.
    pub(super) fn is_success(self, yes: bool) -> &'static str {
        match (self, yes) {
            (Self::Postgres, true) => "is_success",
            (Self::Postgres, false) => "NOT is_success",
            (_, true) => "is_success = 1",
            (_, false) => "is_success = 0",
        }
    }

    /// A whole number divided, without what is left.
    pub(super) fn divided(self, number: &str, by: &str) -> String {
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
    fn every_dialect_says_the_same_things() {
        let names = |dialect: Dialect| -> BTreeSet<&str> {
            dialect.sections().map(|section| section.name).collect()
        };
        let mut mysql = names(Dialect::Mysql);
        for only in [
            "index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_ID",
            "wide JOB_EXECUTION_LOG auto_id",
            "wide JOB_STATUS_TRACE_LOG auto_id",
            "settle runs as found",
        ] {
            assert!(mysql.remove(only), "{only}");
        }

        assert_eq!(names(Dialect::Sqlite), names(Dialect::Postgres));
        assert_eq!(names(Dialect::Sqlite), mysql);
        assert!(Dialect::Sqlite.sections().all(|section| !section.sql.contains("--")));
    }
}
