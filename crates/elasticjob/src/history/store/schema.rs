//! What has to be there before anything can be kept, and what is done about what is not.
//!
//! The two tables of the ancestor may be there already. What is ours is added to them then; a table of that name which is not the ancestor's
//! is left alone and told.

use super::{
    database::{Database, Found},
    dialect::{Dialect, Section},
    error::StoreError,
    select::Select,
};

/// The form of the tables that this version of us knows; the dialects' files say it, too.
pub(super) const VERSION: i64 = 2;

/// Which version made this.
pub(super) const HIGHEST: &str = "SELECT MAX(version) FROM ELASTICJOB_SCHEMA";

/// How often to look again when somebody else, who takes no lock, made the same at the same time.
const TRIES: u32 = 5;

/// What makes a table the ancestor's.
const ANCESTORS: [(&str, &[&str]); 2] = [
    (
        "JOB_EXECUTION_LOG",
        &[
            "id",
            "job_name",
            "task_id",
            "hostname",
            "ip",
            "sharding_item",
            "execution_source",
            "failure_cause",
            "is_success",
            "start_time",
            "complete_time",
        ],
    ),
    (
        "JOB_STATUS_TRACE_LOG",
        &[
            "id",
            "job_name",
            "original_task_id",
            "task_id",
            "slave_id",
            "execution_type",
            "sharding_item",
            "state",
            "message",
            "creation_time",
        ],
    ),
];

/// Makes what is missing, and nothing if nothing is: then no right to make anything is needed. Of a later version's tables nothing is touched.
pub(super) async fn prepare(database: &Database) -> Result<(), StoreError> {
    let (dialect, shown) = (database.dialect(), database.shown());
    let mut tries = 1;
    loop {
        let look = Select::new(dialect, dialect.statement("look"));
        let found = database.fetch(&look, |row| Found::read(row)).await;
        let found = found.map_err(|error| database.told(&error))?;
        let mut version = None;
        if has_versions(&found) {
            let asked = database.fetch(&Select::new(dialect, HIGHEST), |row| row.int(0)).await;
            version = asked.map_err(|error| database.told(&error))?.into_iter().flatten().next();
        }
        let missing = missing(shown, dialect, &found, version)?;
        if missing.is_empty() {
            return Ok(());
        }
        if found.iter().any(|found| ANCESTORS.iter().any(|(table, _)| found.table == *table)) {
            let changes = missing.len();
            tracing::warn!(
                database = shown,
                changes,
                "history's tables are being changed; where they are large that takes a while"
            );
        }
        let plan = |found: &[Found], version: Option<i64>| {
            let missing = self::missing(shown, dialect, found, version)?;
            Ok(missing.into_iter().map(|section| section.sql).collect())
        };
        match database.complete(plan).await {
            Ok(()) => return Ok(()),
            // Whoever may only look is told what there is; it just takes longer.
            Err(StoreError::NotAuthorised { problem, hint, .. })
                if missing.iter().all(Section::is_for_speed) =>
            {
                tracing::info!(
                    database = shown,
                    problem,
                    hint,
                    "an index of history's is missing, and this user may not make it"
                );
                return Ok(());
            }
            Err(error @ (StoreError::Refused { .. } | StoreError::Unreachable { .. }))
                if tries < TRIES =>
            {
                tracing::debug!(%error, "tables of history could not be made, looking again");
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether somebody has said which version made this.
pub(super) fn has_versions(found: &[Found]) -> bool {
    found.iter().any(|found| found.table == "ELASTICJOB_SCHEMA")
}

/// What is not there, in the order in which it is made.
fn missing(
    shown: &str,
    dialect: Dialect,
    found: &[Found],
    version: Option<i64>,
) -> Result<Vec<Section>, StoreError> {
    if let Some(version) = version.filter(|version| *version > VERSION) {
        return Err(StoreError::Refused {
            database: shown.to_owned(),
            problem: format!(
                "its tables are of version {version}, and this program knows {VERSION}"
            ),
            hint: "use the newer elasticjob here as well".to_owned(),
        });
    }
    let has = |kind: &str, table: &str, name: Option<&str>| {
        found.iter().any(|found| {
            found.kind == kind && found.table == table && name.is_none_or(|name| found.name == name)
        })
    };
    for (table, columns) in ANCESTORS {
        let lacks = |column: &&&str| !has("column", table, Some(column));
        if has("column", table, None)
            && let Some(column) = columns.iter().find(lacks)
        {
            return Err(StoreError::Refused {
                database: shown.to_owned(),
                problem: format!(
                    "there is a table {table} without the column {column}: it is not ElasticJob's"
                ),
                hint: "rename that table, or give history a database of its own".to_owned(),
            });
        }
    }
    let sections = dialect.sections().filter(|section| {
        let words: Vec<&str> = section.name.split(' ').collect();
        match words[..] {
            ["table", table] => !has("column", table, None),
            ["column", table, column] => !has("column", table, Some(column)),
            ["index", table, index] => !has("index", table, Some(index)),
            // A column that older versions of the ancestor do not have need not be wide.
            ["wide", table, column] => {
                has("column", table, Some(column)) && !has("wide", table, Some(column))
            }
            ["version", number] => version.is_none_or(|version| number.parse() != Ok(version)),
            _ => false,
        }
    });
    Ok(sections.collect())
}

impl Section {
    /// Whether everything can be read without it.
    fn is_for_speed(&self) -> bool {
        ["index ", "wide ", "version"].iter().any(|kind| self.name.starts_with(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(table: &str, name: &str) -> Found {
        Found { kind: "column".to_owned(), table: table.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_table_of_the_ancestors_gets_our_columns_and_is_not_made_again() {
        let found: Vec<Found> =
            ANCESTORS[0].1.iter().map(|name| column("JOB_EXECUTION_LOG", name)).collect();

        let missing = missing("here", Dialect::Postgres, &found, None).unwrap();
        let names: Vec<&str> = missing.iter().map(|section| section.name).collect();

        assert!(names.contains(&"column JOB_EXECUTION_LOG run_id"));
        assert!(names.contains(&"table JOB_STATUS_TRACE_LOG"));
        assert!(!names.contains(&"table JOB_EXECUTION_LOG"));
    }

    #[test]
    fn somebody_elses_table_is_named_with_what_it_lacks() {
        let found = [column("JOB_EXECUTION_LOG", "id")];

        let error = missing("here", Dialect::Sqlite, &found, None).unwrap_err().to_string();

        assert!(error.contains("JOB_EXECUTION_LOG without the column job_name"), "{error}");
    }

    #[test]
    fn tables_of_an_older_version_are_raised_and_of_a_newer_one_left_alone() {
        let names = |version| -> Result<Vec<&str>, StoreError> {
            let missing = missing("here", Dialect::Mysql, &[], Some(version))?;
            Ok(missing.iter().map(|section| section.name).collect())
        };
        let raised = format!("version {VERSION}");

        assert!(names(VERSION - 1).unwrap().contains(&&*raised));
        assert!(!names(VERSION).unwrap().contains(&&*raised));
        assert!(names(VERSION + 1).unwrap_err().to_string().contains("use the newer elasticjob"));
    }
}
