//! The three kinds of pools behind one face.

use std::{borrow::Cow, fs, os::unix::fs::DirBuilderExt, time::Duration};

use futures_util::TryStreamExt;
#[cfg(feature = "history-mysql")]
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};
#[cfg(feature = "history-postgres")]
use sqlx::postgres::{PgPool, PgPoolOptions};
#[cfg(feature = "history-sqlite")]
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, SqlSafeStr};

use super::{
    columns::Columns,
    dialect::Dialect,
    error::{self, StoreError},
    schema,
    select::{Select, Value},
    url::{HistoryUrl, Options},
    write::Write,
};

/// How many connections a process has: history is written by one and asked by few.
const CONNECTIONS: u32 = 4;
/// How long to wait for a connection. Meanwhile what is to be kept waits in memory, where it would be lost with the process.
const CONNECT: Duration = Duration::from_secs(5);
/// How long one piece of work may take. A server that accepts and then says nothing would be waited for without an end.
const WORK: Duration = Duration::from_mins(1);

/// How long changing the tables may take: columns and indexes for millions of rows.
const CHANGE: Duration = Duration::from_hours(1);

/// A database, connected when it is needed.
#[derive(Debug)]
pub(super) struct Database {
    pool: Pool,
    shown: String,
    most_at_once: Option<usize>,
}

#[derive(Debug)]
enum Pool {
    #[cfg(feature = "history-sqlite")]
    Sqlite(SqlitePool),
    #[cfg(feature = "history-postgres")]
    Postgres(PgPool),
    #[cfg(feature = "history-mysql")]
    Mysql(MySqlPool),
}

/// The same for each kind of pool.
macro_rules! each {
    ($pool:expr, $name:ident => $work:expr) => {
        match $pool {
            #[cfg(feature = "history-sqlite")]
            Pool::Sqlite($name) => $work,
            #[cfg(feature = "history-postgres")]
            Pool::Postgres($name) => $work,
            #[cfg(feature = "history-mysql")]
            Pool::Mysql($name) => $work,
        }
    };
}

impl Database {
    /// Connects, so that what is wrong with the URL is said now.
    pub(super) async fn connect(url: &HistoryUrl) -> Result<Self, StoreError> {
        let shown = url.to_string();
        if let Some(folder) = url.file().and_then(|file| file.parent()) {
            // What jobs print may be nobody else's business.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| StoreError::NotAuthorised {
                database: shown.clone(),
                problem: format!("the folder {} cannot be made: {error}", folder.display()),
                hint: "name a file in a folder that the process may write to".to_owned(),
            })?;
        }
        let pool = match &url.options {
            #[cfg(feature = "history-sqlite")]
            Options::Sqlite(options) => {
                reached(&shown, &**options).await?;
                // A database in memory is its connection's own.
                let connections = if url.file().is_some() { CONNECTIONS } else { 1 };
                let pool = SqlitePoolOptions::new().max_connections(connections);
                let pool = pool.idle_timeout(None).max_lifetime(None).acquire_timeout(CONNECT);
                Pool::Sqlite(pool.connect_lazy_with((**options).clone()))
            }
            #[cfg(feature = "history-postgres")]
            Options::Postgres(options) => {
                reached(&shown, &**options).await?;
                let pool = PgPoolOptions::new().max_connections(CONNECTIONS);
                let pool = pool.acquire_timeout(CONNECT);
                Pool::Postgres(pool.connect_lazy_with((**options).clone()))
            }
            #[cfg(feature = "history-mysql")]
            Options::Mysql(options) => {
                reached(&shown, &**options).await?;
                let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS);
                // What others have committed since we began is to be seen once a row is ours; and a batch may be large.
                let pool = pool.after_connect(|connection, _| {
                    Box::pin(async move {
                        for setting in [
                            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                            "SET SESSION group_concat_max_len = 67108864",
                        ] {
                            connection.execute(setting).await?;
                        }
                        Ok(())
                    })
                });
                let pool = pool.acquire_timeout(CONNECT);
                Pool::Mysql(pool.connect_lazy_with((**options).clone()))
            }
        };
        let mut database = Self { pool, shown, most_at_once: None };
        if database.dialect() == Dialect::Mysql {
            let asked = Select::new(Dialect::Mysql, "SELECT @@max_allowed_packet");
            let most = database.fetch(&asked, |row| row.number(0)).await;
            let most = most.map_err(|error| database.told(&error))?.pop();
            database.most_at_once = most.and_then(|most| usize::try_from(most).ok());
        }
        Ok(database)
    }

    /// How many bytes a statement may have, where there is a limit that one comes near.
    pub(super) fn most_at_once(&self) -> Option<usize> {
        self.most_at_once
    }

    pub(super) async fn close(&self) {
        each!(&self.pool, pool => pool.close().await);
    }

    pub(super) fn dialect(&self) -> Dialect {
        match &self.pool {
            #[cfg(feature = "history-sqlite")]
            Pool::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "history-postgres")]
            Pool::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "history-mysql")]
            Pool::Mysql(_) => Dialect::Mysql,
        }
    }

    /// What the database is called, without its password.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn told(&self, error: &sqlx::Error) -> StoreError {
        error::told(&self.shown, error)
    }

    /// All of these in one transaction; how many rows each changed.
    pub(super) async fn transaction(&self, writes: &[Write]) -> Result<Vec<u64>, sqlx::Error> {
        bounded(Box::pin(async {
            let mut changed = Vec::with_capacity(writes.len());
            each!(&self.pool, pool => {
                let mut transaction = match self.dialect() {
                    // Whoever asks first and writes then may be refused in the middle.
                    Dialect::Sqlite => pool.begin_with("BEGIN IMMEDIATE").await?,
                    Dialect::Postgres | Dialect::Mysql => pool.begin().await?,
                };
                for write in writes {
                    let mut rows = 0;
                    for (sql, values) in write.statements() {
                        // A text that is another one for every number of rows is not worth remembering.
                        let is_fixed = matches!(sql, Cow::Borrowed(_));
                        let sql = match sql {
                            Cow::Borrowed(sql) => sql.into_sql_str(),
                            Cow::Owned(sql) => AssertSqlSafe(sql).into_sql_str(),
                        };
                        let mut query = sqlx::query(sql).persistent(is_fixed);
                        for value in values {
                            query = match value {
                                Value::Int(number) => query.bind(number),
                                Value::Text(text) => query.bind(text),
                                Value::Null => query.bind(None::<String>),
                            };
                        }
                        rows += query.execute(&mut *transaction).await?.rows_affected();
                    }
                    changed.push(rows);
                }
                transaction.commit().await?;
            });
            Ok(changed)
        }))
        .await
    }

    /// Does it, and says how many rows were changed.
    pub(super) async fn execute(&self, select: &Select) -> Result<u64, sqlx::Error> {
        bounded(Box::pin(async {
            each!(&self.pool, pool => {
                let mut query = sqlx::query(AssertSqlSafe(select.text()));
                for value in select.values() {
                    query = match value {
                        Value::Int(number) => query.bind(*number),
                        Value::Text(text) => query.bind(text.as_str()),
                        Value::Null => query.bind(None::<String>),
                    };
                }
                Ok(query.execute(pool).await?.rows_affected())
            })
        }))
        .await
    }

    /// What the database answers, row by row.
    pub(super) async fn fetch<T>(
        &self,
        select: &Select,
        read: impl Fn(&dyn Columns) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: Send,
    {
        let mut found = Vec::new();
        let mut add = |row: &dyn Columns| {
            found.push(read(row)?);
            Ok(())
        };
        self.for_each(select, &mut add).await?;
        Ok(found)
    }

    /// Built once for each database, not once for each question.
    async fn for_each(
        &self,
        select: &Select,
        take: &mut (dyn FnMut(&dyn Columns) -> Result<(), sqlx::Error> + Send),
    ) -> Result<(), sqlx::Error> {
        bounded(Box::pin(async {
            each!(&self.pool, pool => {
                let mut query = sqlx::query(AssertSqlSafe(select.text()));
                for value in select.values() {
                    query = match value {
                        Value::Int(number) => query.bind(*number),
                        Value::Text(text) => query.bind(text.as_str()),
                        Value::Null => query.bind(None::<String>),
                    };
                }
                let mut rows = query.fetch(pool);
                while let Some(row) = rows.try_next().await? {
                    take(&row)?;
                }
            });
            Ok(())
        }))
        .await
    }

    /// Looks at what there is while nobody else of us changes it, and does what `plan` says is missing.
    ///
    /// Until something is changed it can be dropped. After that it goes on to its end, whoever waits for that or not: what takes longer than
    /// anybody's patience would be begun again and again, and never be done.
    pub(super) async fn complete(
        &self,
        plan: impl Fn(&[Found], Option<i64>) -> Result<Vec<&'static str>, StoreError>,
    ) -> Result<(), StoreError> {
        let (lock, unlock) = self.dialect().lock();
        let shown = self.shown.clone();
        let told = move |error: sqlx::Error| error::told(&shown, &error);
        each!(&self.pool, pool => {
            let mut transaction = match self.dialect() {
                Dialect::Sqlite => pool.begin_with("BEGIN IMMEDIATE").await,
                Dialect::Postgres | Dialect::Mysql => pool.begin().await,
            }
            .map_err(&told)?;
            let planned = async {
                for statement in lock {
                    let answer = transaction.fetch_optional(*statement).await.map_err(&told)?;
                    let is_ours = self.dialect() != Dialect::Mysql
                        || answer.is_some_and(|row| Columns::int(&row, 0).ok().flatten() == Some(1));
                    if !is_ours {
                        return Err(error::being_changed(&self.shown));
                    }
                }
                let question = sqlx::query(self.dialect().statement("look"));
                let rows = question.fetch_all(&mut *transaction).await.map_err(&told)?;
                let found: Result<Vec<Found>, _> = rows.iter().map(|row| Found::read(row)).collect();
                let found = found.map_err(&told)?;
                let mut version = None;
                if schema::has_versions(&found) {
                    let row = transaction.fetch_one(schema::HIGHEST).await.map_err(&told)?;
                    version = Columns::int(&row, 0).map_err(&told)?;
                }
                plan(&found, version)
            };
            let planned = planned.await;
            let change = async move {
                let done = async {
                    for statement in planned? {
                        transaction.execute(statement).await.map_err(&told)?;
                    }
                    Ok(())
                };
                let done = match tokio::time::timeout(CHANGE, done).await {
                    Ok(done) => done,
                    Err(_) => Err(told(too_late(CHANGE))),
                };
                // A lock of MySQL's outlives the transaction.
                let unlocked = transaction.execute(unlock).await;
                done?;
                unlocked.map_err(&told)?;
                transaction.commit().await.map_err(&told)
            };
            to_the_end(change).await
        })
    }
}

/// Goes on whether anybody waits for it or not, as long as the process does.
#[expect(
    clippy::disallowed_methods,
    reason = "dropping whoever waits is not to end it; it has a time limit of its own"
)]
async fn to_the_end(
    work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> Result<(), StoreError> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
}

/// A column or an index that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: String,
    pub(super) table: String,
    pub(super) name: String,
}

impl Found {
    pub(super) fn read(row: &dyn Columns) -> Result<Self, sqlx::Error> {
        Ok(Self { kind: row.word(0)?, table: row.word(1)?, name: row.word(2)? })
    }
}

/// Connects, once: a pool would try again and again where nobody listens.
async fn reached<O>(shown: &str, options: &O) -> Result<(), StoreError>
where
    O: ConnectOptions<Connection: Sized>,
{
    let connection = bounded(options.connect()).await;
    let closed = match connection {
        Ok(connection) => connection.close().await,
        Err(error) => Err(error),
    };
    closed.map_err(|error| error::told(shown, &error))
}

/// Ends what takes longer than anything should.
async fn bounded<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(WORK, work).await {
        Ok(answer) => answer,
        Err(_) => Err(too_late(WORK)),
    }
}

fn too_late(after: Duration) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("no answer within {} s", after.as_secs()),
    ))
}
