//! Creates missing tables, columns and indexes.
//!
//! Java ElasticJob's two tables may exist already; then the additional columns are added to them. A table with such a name that is not Java
//! ElasticJob's is left unchanged and reported.

use super::{
    database::{Database, SchemaItem},
    dialect::{Dialect, Section},
    error::StoreError,
    statement::Statement,
};

/// The version of the tables that this program knows; the dialects' SQL files contain it, too.
pub(super) const VERSION: i64 = 2;

pub(super) const SELECT_VERSION: &str = "SELECT MAX(version) FROM ELASTICJOB_SCHEMA";

/// Maximum number of tries when a program that takes no lock, such as Java ElasticJob, creates the same tables at the same time.
const MAX_TRIES: u32 = 5;

/// The columns that identify Java ElasticJob's tables.
const JAVA_TABLES: [(&str, &[&str]); 2] = [
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

/// Creates what is missing. If nothing is, no right to create anything is needed. Tables of a later version are not changed.
pub(super) async fn prepare(database: &Database) -> Result<(), StoreError> {
    let (dialect, database_name) = (database.dialect(), database.display_name());
    let mut tries = 1;
    loop {
        let list_schema = Statement::new(dialect, dialect.statement("list schema"));
        let found = database.fetch(&list_schema, |row| SchemaItem::read(row)).await;
        let found = found.map_err(|error| database.store_error(&error))?;
        let mut version = None;
        if has_versions(&found) {
            let highest =
                database.fetch(&Statement::new(dialect, SELECT_VERSION), |row| row.int(0)).await;
            version =
                highest.map_err(|error| database.store_error(&error))?.into_iter().flatten().next();
        }
        let missing = missing(database_name, dialect, &found, version)?;
        if missing.is_empty() {
            return Ok(());
        }
        if found.iter().any(|found| JAVA_TABLES.iter().any(|(table, _)| found.table == *table)) {
            let changes = missing.len();
            tracing::warn!(
                database = database_name,
                changes,
                "changing history tables, large ones take a while"
            );
        }
        let plan = |found: &[SchemaItem], version: Option<i64>| {
            let missing = self::missing(database_name, dialect, found, version)?;
            Ok(missing.into_iter().map(|section| section.sql).collect())
        };
        match database.change_tables(plan).await {
            Ok(()) => return Ok(()),
            // A user with read access can still query; only slower.
            Err(StoreError::NotAuthorised { problem, hint, .. })
                if missing.iter().all(Section::is_optional) =>
            {
                tracing::info!(
                    database = database_name,
                    problem,
                    hint,
                    "history index missing, and the user may not create it"
                );
                return Ok(());
            }
            Err(error @ (StoreError::Refused { .. } | StoreError::Unreachable { .. }))
                if tries < MAX_TRIES =>
            {
                tracing::debug!(%error, "creating history tables failed, retrying");
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the table with the version exists.
pub(super) fn has_versions(found: &[SchemaItem]) -> bool {
    found.iter().any(|found| found.table == "ELASTICJOB_SCHEMA")
}

/// The sections of the SQL file that are missing, in the order in which they are created.
fn missing(
    database_name: &str,
    dialect: Dialect,
    found: &[SchemaItem],
    version: Option<i64>,
) -> Result<Vec<Section>, StoreError> {
    if let Some(version) = version.filter(|version| *version > VERSION) {
        return Err(StoreError::Refused {
            database: database_name.to_owned(),
            problem: format!(
                "its tables have version {version}, and this program knows version {VERSION}"
            ),
            hint: "upgrade this elasticjob to the newer version".to_owned(),
        });
    }
    let has = |kind: &str, table: &str, name: Option<&str>| {
        found.iter().any(|found| {
            found.kind == kind && found.table == table && name.is_none_or(|name| found.name == name)
        })
    };
    for (table, columns) in JAVA_TABLES {
        let lacks = |column: &&&str| !has("column", table, Some(column));
        if has("column", table, None)
            && let Some(column) = columns.iter().find(lacks)
        {
            return Err(StoreError::Refused {
                database: database_name.to_owned(),
                problem: format!(
                    "its table {table} has no column {column}, so it is not ElasticJob's"
                ),
                hint: "rename that table, or use a separate database for history".to_owned(),
            });
        }
    }
    let sections = dialect.sections().filter(|section| {
        let words: Vec<&str> = section.name.split(' ').collect();
        match words[..] {
            ["table", table] => !has("column", table, None),
            ["column", table, column] => !has("column", table, Some(column)),
            ["index", table, index] => !has("index", table, Some(index)),
            // Older versions of Java ElasticJob do not have the column.
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
    /// Whether queries work without it, only slower.
    fn is_optional(&self) -> bool {
        ["index ", "wide ", "version"].iter().any(|kind| self.name.starts_with(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Hint;

    fn column(table: &str, name: &str) -> SchemaItem {
        SchemaItem { kind: "column".to_owned(), table: table.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn java_table_gets_additional_columns() {
        let found: Vec<SchemaItem> =
            JAVA_TABLES[0].1.iter().map(|name| column("JOB_EXECUTION_LOG", name)).collect();

        let missing = missing("here", Dialect::Postgres, &found, None).unwrap();
        let names: Vec<&str> = missing.iter().map(|section| section.name).collect();

        assert!(names.contains(&"column JOB_EXECUTION_LOG run_id"));
        assert!(names.contains(&"table JOB_STATUS_TRACE_LOG"));
        assert!(!names.contains(&"table JOB_EXECUTION_LOG"));
    }

    #[test]
    fn foreign_table_is_reported_with_missing_column() {
        let found = [column("JOB_EXECUTION_LOG", "id")];

        let error = missing("here", Dialect::Sqlite, &found, None).unwrap_err().to_string();

        assert!(error.contains("JOB_EXECUTION_LOG has no column job_name"), "{error}");
    }

    #[test]
    fn older_tables_are_upgraded_and_newer_ones_refused() {
        let names = |version| -> Result<Vec<&str>, StoreError> {
            let missing = missing("here", Dialect::Mysql, &[], Some(version))?;
            Ok(missing.iter().map(|section| section.name).collect())
        };
        let upgraded = format!("version {VERSION}");

        assert!(names(VERSION - 1).unwrap().contains(&&*upgraded));
        assert!(!names(VERSION).unwrap().contains(&&*upgraded));
        let newer = names(VERSION + 1).unwrap_err();
        assert!(newer.hint().unwrap().contains("upgrade this elasticjob"), "{newer}");
    }
}
