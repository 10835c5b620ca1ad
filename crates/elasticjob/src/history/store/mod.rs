//! History in a database: SQLite, PostgreSQL, MySQL and MariaDB.
//!
//! ```text
//!   JOB_EXECUTION_LOG       an attempt of a shard         the ancestor's, with columns of ours that may be null
//!   JOB_STATUS_TRACE_LOG    an instance's part of a run   the ancestor's, too
//!   ELASTICJOB_RUN          a run, worked out of its attempts whenever one of them is told
//!   ELASTICJOB_OUTPUT       what attempts printed, in parts; _CUT what of it is not kept
//!   ELASTICJOB_MISSED       fires that did not run
//!   ELASTICJOB_SCHEMA       which of our versions made this
//! ```
//!
//! A batch is one transaction with one statement for each kind of event. Every row has a name that is made of what it tells, so
//! that telling it again changes nothing; an end is never taken back by a beginning that comes late. The row of a run is locked before its
//! attempts are written, so that of two processes that tell of the same run the second sees what the first wrote.
//!
//! What the dialects do differently stands in `sql/`, one file for each, and in `dialect.rs`.

mod ask;
mod columns;
mod database;
mod dialect;
mod error;
mod executions;
mod figures;
mod glance;
#[cfg(all(test, feature = "history"))]
mod golden;
mod keep;
mod lost;
mod output;
mod page;
mod retention;
mod rows;
mod runs;
mod schema;
mod select;
mod traces;
mod url;
mod write;

use std::sync::Arc;

use self::{database::Database, dialect::Dialect};
pub use self::{
    error::StoreError,
    executions::{Execution, ExecutionFilter},
    figures::{Bucket, FailureGroup, JobFigures, MissedFires, Percentiles},
    glance::{Named, Tally},
    output::{Output, OutputLine, OutputPosition},
    page::{Cursor, Page, Span},
    retention::{Pruned, Retention},
    runs::{Run, RunDetails, RunFilter, RunState},
    traces::{Trace, TraceFilter},
    url::{HistoryUrl, default_path},
};

/// A database that history is kept in. Cheap to clone.
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
    /// Opens the database, and makes or changes what is missing there: tables, columns, indexes. Several may do so at once.
    pub async fn open(url: &HistoryUrl) -> Result<Self, StoreError> {
        let database = Database::connect(url).await?;
        schema::prepare(&database).await?;
        Ok(Self { database: Arc::new(database) })
    }

    /// Lets go of the database. Nothing can be kept or asked after that.
    pub async fn close(&self) {
        self.database.close().await;
    }

    fn dialect(&self) -> Dialect {
        self.database.dialect()
    }
}
