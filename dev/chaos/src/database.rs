//! The database that the jobs write to: a row for each shard, with the largest token seen, and a log of every attempted write.
//!
//! The statements that refuse stale writes are those of `docs/fencing.md`; a test compares them.

use elasticjob::execution::Failure;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls, types::Type};

use crate::{event::ExecutionKey, step_job::StepJob};

/// The table that jobs write to, also in `docs/fencing.md`.
pub const TABLE: &str = "\
CREATE TABLE settlement (
    job    text   NOT NULL,
    item   int    NOT NULL,
    amount bigint NOT NULL DEFAULT 0,
    token  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, item)
)";

/// A write that succeeds only under the newest claim of a shard.
pub const WRITE: &str = "\
UPDATE settlement SET amount = amount + $1, token = $2
WHERE job = $3 AND item = $4 AND token <= $2";

/// Every attempted write. Accepted writes are in the order of their resulting amounts.
const WRITE_LOG: &str = "\
CREATE TABLE write_log (
    job      text    NOT NULL,
    item     int     NOT NULL,
    token    bigint  NOT NULL,
    run      bigint  NOT NULL,
    instance text    NOT NULL,
    phase    text    NOT NULL,
    amount   bigint
)";

/// Writes and logs in one statement, so that a worker frozen in between holds no lock.
fn logged_write() -> String {
    format!(
        "WITH written AS ({WRITE} RETURNING amount)
         INSERT INTO write_log (job, item, token, run, instance, phase, amount)
         SELECT $3, $4, $2, $5, $6, $7, (SELECT amount FROM written) RETURNING amount IS NOT NULL"
    )
}

/// A connection to the database.
pub struct Database {
    client: Client,
    _connection: JoinSet<()>,
}

/// One row of the write log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteAttempt {
    pub job: String,
    pub item: i32,
    pub token: i64,
    /// `start`, `step`, `end`.
    pub phase: String,
    /// The amount of the shard after the write, if the database accepted it.
    pub amount: Option<i64>,
}

impl Database {
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Pending requests fail with this error, so it needs no handling here.
            let _ = connection.await;
        });
        Ok(Self { client, _connection: task })
    }

    /// Creates the tables, with a row for each shard.
    pub async fn prepare(&self, jobs: &[StepJob]) -> Result<(), Error> {
        self.client.batch_execute(&format!("{TABLE}; {WRITE_LOG}")).await?;
        for job in jobs {
            for item in 0..job.shards.cast_signed() {
                let insert = "INSERT INTO settlement (job, item) VALUES ($1, $2)";
                self.client.execute(insert, &[&job.name, &item]).await?;
            }
        }
        Ok(())
    }

    /// Writes on behalf of an execution. Returns whether the database accepted it.
    pub async fn write(&self, key: &ExecutionKey, phase: &str) -> Result<bool, Failure> {
        let (amount, item) = (1_i64, key.item.cast_signed());
        let types = [
            (&amount as _, Type::INT8),
            (&key.token as _, Type::INT8),
            (&key.job as _, Type::TEXT),
            (&item as _, Type::INT4),
            (&key.run as _, Type::INT8),
            (&key.instance as _, Type::TEXT),
            (&phase as _, Type::TEXT),
        ];
        let rows = self.client.query_typed(&logged_write(), &types).await.map_err(Failure::new)?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Every attempted write; accepted ones in the order in which they were made.
    pub async fn write_log(&self) -> Result<Vec<WriteAttempt>, Error> {
        let rows = self
            .client
            .query(
                "SELECT job, item, token, phase, amount FROM write_log ORDER BY job, item, amount",
                &[],
            )
            .await?;
        let attempts = rows.iter().map(|row| WriteAttempt {
            job: row.get(0),
            item: row.get(1),
            token: row.get(2),
            phase: row.get(3),
            amount: row.get(4),
        });
        Ok(attempts.collect())
    }

    /// The amount of a shard and the token of its last write.
    pub async fn settlement(&self, job: &str, item: i32) -> Result<(i64, i64), Error> {
        let select = "SELECT amount, token FROM settlement WHERE job = $1 AND item = $2";
        let row = self.client.query_one(select, &[&job, &item]).await?;
        Ok((row.get(0), row.get(1)))
    }
}
