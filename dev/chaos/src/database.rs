//! What jobs write: a row for each shard that remembers the largest token, and a book of everything anybody tried to write.
//!
//! The statements that keep a stale write out are those of `docs/fencing.md`; a test compares them.

use elasticjob::execution::Failure;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls, types::Type};

use crate::{said::Key, task::Task};

/// The work of a job, here and in `docs/fencing.md`.
pub const TABLE: &str = "\
CREATE TABLE settlement (
    job    text   NOT NULL,
    item   int    NOT NULL,
    amount bigint NOT NULL DEFAULT 0,
    token  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, item)
)";

/// A write that only the newest claim of a shard can make.
pub const WRITE: &str = "\
UPDATE settlement SET amount = amount + $1, token = $2
WHERE job = $3 AND item = $4 AND token <= $2";

/// Everything anybody tried to write. What was taken is in the order of the amounts it made.
const BOOK: &str = "\
CREATE TABLE book (
    job      text    NOT NULL,
    item     int     NOT NULL,
    token    bigint  NOT NULL,
    run      bigint  NOT NULL,
    instance text    NOT NULL,
    what     text    NOT NULL,
    amount   bigint
)";

/// One statement, so that somebody who is frozen half way holds no lock.
fn tried() -> String {
    format!(
        "WITH written AS ({WRITE} RETURNING amount)
         INSERT INTO book (job, item, token, run, instance, what, amount)
         SELECT $3, $4, $2, $5, $6, $7, (SELECT amount FROM written) RETURNING amount IS NOT NULL"
    )
}

/// A way to the database.
pub struct Database {
    client: Client,
    _line: JoinSet<()>,
}

/// One line of the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The job.
    pub job: String,
    /// The shard.
    pub item: i32,
    /// With which token somebody tried.
    pub token: i64,
    /// `start`, `step`, `end`.
    pub what: String,
    /// What it made of the shard's amount, if the database took it.
    pub amount: Option<i64>,
}

impl Database {
    /// Connects.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut line = JoinSet::new();
        line.spawn(async move {
            // Whoever waits for an answer is told.
            let _ = connection.await;
        });
        Ok(Self { client, _line: line })
    }

    /// Makes the tables, with a row for each shard.
    pub async fn prepare(&self, tasks: &[Task]) -> Result<(), Error> {
        self.client.batch_execute(&format!("{TABLE}; {BOOK}")).await?;
        for task in tasks {
            for item in 0..task.shards.cast_signed() {
                let insert = "INSERT INTO settlement (job, item) VALUES ($1, $2)";
                self.client.execute(insert, &[&task.name, &item]).await?;
            }
        }
        Ok(())
    }

    /// Writes in the name of an execution; whether the database took it.
    pub async fn write(&self, key: &Key, what: &str) -> Result<bool, Failure> {
        let (amount, item) = (1_i64, key.item.cast_signed());
        let types = [
            (&amount as _, Type::INT8),
            (&key.token as _, Type::INT8),
            (&key.job as _, Type::TEXT),
            (&item as _, Type::INT4),
            (&key.run as _, Type::INT8),
            (&key.instance as _, Type::TEXT),
            (&what as _, Type::TEXT),
        ];
        let rows = self.client.query_typed(&tried(), &types).await.map_err(Failure::new)?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Everything anybody tried; what was taken in the order in which it was.
    pub async fn book(&self) -> Result<Vec<Line>, Error> {
        let rows = self
            .client
            .query(
                "SELECT job, item, token, what, amount FROM book ORDER BY job, item, amount",
                &[],
            )
            .await?;
        let lines = rows.iter().map(|row| Line {
            job: row.get(0),
            item: row.get(1),
            token: row.get(2),
            what: row.get(3),
            amount: row.get(4),
        });
        Ok(lines.collect())
    }

    /// What was settled for a shard, and by which token last.
    pub async fn settled(&self, job: &str, item: i32) -> Result<(i64, i64), Error> {
        let select = "SELECT amount, token FROM settlement WHERE job = $1 AND item = $2";
        let row = self.client.query_one(select, &[&job, &item]).await?;
        Ok((row.get(0), row.get(1)))
    }
}
