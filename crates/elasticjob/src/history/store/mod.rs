//! History in a database: SQLite, PostgreSQL, MySQL and MariaDB.
//!
//! ```text
//!   JOB_EXECUTION_LOG       an attempt of a shard         Java ElasticJob's table, with additional nullable columns
//!   JOB_STATUS_TRACE_LOG    an instance's part of a run   Java ElasticJob's table, likewise
//!   ELASTICJOB_RUN          a run, derived from its attempts whenever one of them is written
//!   ELASTICJOB_OUTPUT       output of attempts, in parts; _CUT names the parts that are not kept
//!   ELASTICJOB_MISSED       missed fires
//!   ELASTICJOB_SCHEMA       the version of the tables
//! ```
//!
//! A batch is one transaction with one statement for each kind of event. The id of every row is derived from its content, so that writing it again
//! changes nothing; a start that arrives late never removes an end. The row of a run is locked before its attempts are written, so that of two
//! processes that write the same run the second sees what the first wrote.
//!
//! The differences between the databases are in `sql/` and in `dialect.rs`. Each database has its own file of SQL; what PostgreSQL and SQLite share
//! is in `sql/common.sql`.

mod attempt_state;
mod batch_statement;
mod database;
mod dialect;
mod error;
mod executions;
mod figures;
#[cfg(all(test, feature = "history"))]
mod golden;
mod lost_attempts;
mod output;
mod overview;
mod page;
mod private_file;
mod query;
mod result_row;
mod retention;
mod rows;
mod runs;
mod schema;
mod sink;
mod statement;
mod traces;
mod url;

use std::sync::Arc;

pub use self::{
    attempt_state::AttemptState,
    error::StoreError,
    executions::{Execution, ExecutionFilter},
    figures::{Bucket, FailureGroup, JobFigures, MissedFires, Percentiles},
    output::{Output, OutputLine, OutputPosition},
    overview::{NameKind, Totals},
    page::{Cursor, Page, Span},
    retention::{PruneSummary, Retention},
    runs::{Run, RunDetails, RunFilter, RunState},
    traces::{Trace, TraceFilter},
    url::{HistoryUrl, default_path},
};
use self::{database::Database, dialect::Dialect};

/// A database that stores history. Cheap to clone.
///
/// ```no_run
/// use elasticjob::history::{HistoryUrl, Store};
///
/// # async fn example() -> Result<(), elasticjob::history::StoreError> {
/// let url: HistoryUrl = "sqlite:/var/lib/elasticjob/history.db".parse()?;
/// let store = Store::open(&url).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    database: Arc<Database>,
}

impl Store {
    /// Opens the database and creates missing tables, columns and indexes. Several processes may do so at once.
    pub async fn open(url: &HistoryUrl) -> Result<Self, StoreError> {
        let database = Database::connect(url).await?;
        schema::prepare(&database).await?;
        Ok(Self { database: Arc::new(database) })
    }

    /// Closes all connections. The store cannot be used after that.
    pub async fn close(&self) {
        self.database.close().await;
    }

    fn dialect(&self) -> Dialect {
        self.database.dialect()
    }
}
