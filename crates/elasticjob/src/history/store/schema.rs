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

/// The form of the tables that this version of us knows.
const VERSION: i64 = 1;

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

/// Makes what is missing, and nothing if nothing is: then no right to make anything is needed.
pub(super) async fn prepare(database: &Database) -> Result<(), StoreError> {
    let dialect = database.dialect();
    let mut tries = 1;
    loop {
        let look = Select::new(dialect, dialect.statement("look"));
        let found = database.fetch(&look, |row| Found::read(row)).await;
        let found = found.map_err(|error| database.told(&error))?;
        let missing = missing(database.shown(), dialect, &found)?;
        if missing.is_empty() {
            break;
        }
        let plan = |found: &[Found]| {
            let missing = self::missing(database.shown(), dialect, found)?;
            Ok(missing.into_iter().map(|section| section.sql).collect())
        };
        match database.complete(plan).await {
            Ok(()) => break,
            Err(error @ (StoreError::Refused { .. } | StoreError::Unreachable { .. }))
                if tries < TRIES =>
            {
                tracing::debug!(%error, "tables of history could not be made, looking again");
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
    version(database).await
}

/// What is not there, in the order in which it is made.
fn missing(shown: &str, dialect: Dialect, found: &[Found]) -> Result<Vec<Section>, StoreError> {
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
            _ => false,
        }
    });
    Ok(sections.collect())
}

/// Says which version made this, or that a later one did.
async fn version(database: &Database) -> Result<(), StoreError> {
    let dialect = database.dialect();
    let told = |error: sqlx::Error| database.told(&error);
    let select = Select::new(dialect, "SELECT MAX(version) FROM ELASTICJOB_SCHEMA");
    let version = database.fetch(&select, |row| row.int(0)).await.map_err(told)?;
    match version.into_iter().flatten().next() {
        None => {
            let mut insert = Select::new(dialect, "INSERT INTO ELASTICJOB_SCHEMA (version)");
            insert.with(" SELECT ?", [VERSION.into()]);
            match database.execute(&insert).await {
                // Somebody else said it first.
                Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(()),
                answer => answer.map(|_| ()).map_err(told),
            }
        }
        Some(version) if version > VERSION => Err(StoreError::Refused {
            database: database.shown().to_owned(),
            problem: format!(
                "its tables are of version {version}, and this program knows {VERSION}"
            ),
            hint: "use the newer elasticjob here as well".to_owned(),
        }),
        Some(_) => Ok(()),
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

        let missing = missing("here", Dialect::Postgres, &found).unwrap();
        let names: Vec<&str> = missing.iter().map(|section| section.name).collect();

        assert!(names.contains(&"column JOB_EXECUTION_LOG run_id"));
        assert!(names.contains(&"table JOB_STATUS_TRACE_LOG"));
        assert!(!names.contains(&"table JOB_EXECUTION_LOG"));
    }

    #[test]
    fn somebody_elses_table_is_named_with_what_it_lacks() {
        let found = [column("JOB_EXECUTION_LOG", "id")];

        let error = missing("here", Dialect::Sqlite, &found).unwrap_err().to_string();

        assert!(error.contains("JOB_EXECUTION_LOG without the column job_name"), "{error}");
    }
}
