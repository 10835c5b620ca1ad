//! A connection pool for any of the supported databases.

use std::{borrow::Cow, fs, os::unix::fs::DirBuilderExt, time::Duration};

use futures_util::TryStreamExt;
#[cfg(feature = "history-mysql")]
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};
#[cfg(feature = "history-postgres")]
use sqlx::postgres::{PgPool, PgPoolOptions};
#[cfg(feature = "history-sqlite")]
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, SqlSafeStr};

use super::{
    batch_statement::BatchStatement,
    dialect::Dialect,
    error::{self, StoreError},
    private_file,
    result_row::ResultRow,
    schema,
    statement::{Statement, Value},
    url::{HistoryUrl, Options},
};

/// Maximum number of connections of a process: one writer and few queries.
const MAX_CONNECTIONS: u32 = 4;
/// Limit for getting a connection. Meanwhile events wait in memory, where they would be lost with the process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for opening an SQLite file; longer than SQLite itself waits for a lock.
#[cfg(feature = "history-sqlite")]
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two attempts to open an SQLite file that other processes are creating.
#[cfg(feature = "history-sqlite")]
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Limit for one transaction or query. Without it, a server that accepts and never answers would block forever.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Limit for changing the tables: columns and indexes for millions of rows.
const CHANGE_TIMEOUT: Duration = Duration::from_hours(1);

/// A database with a pool that connects on demand.
#[derive(Debug)]
pub(super) struct Database {
    pool: Pool,
    display_name: String,
    max_statement_bytes: Option<usize>,
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

/// Adds the parameters to a query. A macro, because each database has its own type of query.
macro_rules! bind {
    ($query:expr, $values:expr) => {
        $values.into_iter().fold($query, |query, value| match value {
            Value::Int(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Null => query.bind(None::<String>),
        })
    };
}

/// Evaluates the same expression for each kind of pool.
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
    /// Connects once, so that errors of the URL show at once.
    pub(super) async fn connect(url: &HistoryUrl) -> Result<Self, StoreError> {
        let display_name = url.to_string();
        if let Some(folder) = url.file().and_then(|file| file.parent()) {
            // Output of jobs may be confidential.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| StoreError::NotAuthorised {
                database: display_name.clone(),
                problem: format!("cannot create the folder {}: {error}", folder.display()),
                hint: "choose a folder that the process may write to".to_owned(),
            })?;
        }
        if let Some(file) = url.file() {
            private_file::make_private(file);
        }
        let refused = |error| error::store_error(&display_name, &error);
        let pool = match &url.options {
            #[cfg(feature = "history-sqlite")]
            Options::Sqlite(options) => {
                check_sqlite_connection(options).await.map_err(refused)?;
                // Every connection to an in-memory database has a database of its own.
                let connections = if url.file().is_some() { MAX_CONNECTIONS } else { 1 };
                let pool = SqlitePoolOptions::new().max_connections(connections);
                let pool =
                    pool.idle_timeout(None).max_lifetime(None).acquire_timeout(CONNECT_TIMEOUT);
                Pool::Sqlite(pool.connect_lazy_with((**options).clone()))
            }
            #[cfg(feature = "history-postgres")]
            Options::Postgres(options) => {
                check_connection(&**options).await.map_err(refused)?;
                let pool = PgPoolOptions::new().max_connections(MAX_CONNECTIONS);
                let pool = pool.acquire_timeout(CONNECT_TIMEOUT);
                Pool::Postgres(pool.connect_lazy_with((**options).clone()))
            }
            #[cfg(feature = "history-mysql")]
            Options::Mysql(options) => {
                check_connection(&**options).await.map_err(refused)?;
                let pool = MySqlPoolOptions::new().max_connections(MAX_CONNECTIONS);
                // A transaction has to see what others committed before it locked a row; and batches may be large.
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
                let pool = pool.acquire_timeout(CONNECT_TIMEOUT);
                Pool::Mysql(pool.connect_lazy_with((**options).clone()))
            }
        };
        if let Some(file) = url.file() {
            // Files of earlier versions, and those that SQLite had to create itself.
            private_file::make_private(file);
        }
        let mut database = Self { pool, display_name, max_statement_bytes: None };
        if database.dialect() == Dialect::Mysql {
            let asked = Statement::new(Dialect::Mysql, "SELECT @@max_allowed_packet");
            let most = database.fetch(&asked, |row| row.int_or_zero(0)).await;
            let most = most.map_err(|error| database.store_error(&error))?.pop();
            database.max_statement_bytes = most.and_then(|most| usize::try_from(most).ok());
        }
        Ok(database)
    }

    /// Maximum size of a statement, where the database has a limit that batches may reach.
    pub(super) fn max_statement_bytes(&self) -> Option<usize> {
        self.max_statement_bytes
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

    /// The database URL without its password.
    pub(super) fn display_name(&self) -> &str {
        &self.display_name
    }

    pub(super) fn store_error(&self, error: &sqlx::Error) -> StoreError {
        error::store_error(&self.display_name, error)
    }

    /// Executes these statements in one transaction; returns the number of rows that each changed.
    pub(super) async fn transaction(
        &self,
        writes: &[BatchStatement],
    ) -> Result<Vec<u64>, sqlx::Error> {
        with_timeout(Box::pin(async {
            let mut changed = Vec::with_capacity(writes.len());
            each!(&self.pool, pool => {
                let mut transaction = match self.dialect() {
                    // A transaction that reads first and writes later may be refused in between.
                    Dialect::Sqlite => pool.begin_with("BEGIN IMMEDIATE").await?,
                    Dialect::Postgres | Dialect::Mysql => pool.begin().await?,
                };
                for write in writes {
                    let mut rows = 0;
                    for (sql, values) in write.statements() {
                        // A text that differs with the number of rows is not worth caching.
                        let is_fixed = matches!(sql, Cow::Borrowed(_));
                        let sql = match sql {
                            Cow::Borrowed(sql) => sql.into_sql_str(),
                            Cow::Owned(sql) => AssertSqlSafe(sql).into_sql_str(),
                        };
                        let query = bind!(sqlx::query(sql).persistent(is_fixed), values);
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

    /// Executes a statement; returns the number of changed rows.
    pub(super) async fn execute(&self, statement: &Statement) -> Result<u64, sqlx::Error> {
        with_timeout(Box::pin(async {
            each!(&self.pool, pool => {
                let query = sqlx::query(AssertSqlSafe(statement.text()));
                let query = bind!(query, statement.values().iter().cloned());
                Ok(query.execute(pool).await?.rows_affected())
            })
        }))
        .await
    }

    /// Runs a query and reads its rows.
    pub(super) async fn fetch<T>(
        &self,
        statement: &Statement,
        read: impl Fn(&dyn ResultRow) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: Send,
    {
        let mut found = Vec::new();
        let mut add = |row: &dyn ResultRow| {
            found.push(read(row)?);
            Ok(())
        };
        self.for_each(statement, &mut add).await?;
        Ok(found)
    }

    /// Not generic over the row type, so that it is compiled once for each database rather than for each query.
    async fn for_each(
        &self,
        statement: &Statement,
        take: &mut (dyn FnMut(&dyn ResultRow) -> Result<(), sqlx::Error> + Send),
    ) -> Result<(), sqlx::Error> {
        with_timeout(Box::pin(async {
            each!(&self.pool, pool => {
                let query = sqlx::query(AssertSqlSafe(statement.text()));
                let query = bind!(query, statement.values().iter().cloned());
                let mut rows = query.fetch(pool);
                while let Some(row) = rows.try_next().await? {
                    take(&row)?;
                }
            });
            Ok(())
        }))
        .await
    }

    /// Locks the tables, lists what exists, and executes the statements that `plan` returns.
    ///
    /// Before the first change it can be dropped. After that it runs to its end even if the caller is gone: a change that takes longer than the
    /// caller waits would be started again and again, and never finish.
    pub(super) async fn change_tables(
        &self,
        plan: impl Fn(&[SchemaItem], Option<i64>) -> Result<Vec<&'static str>, StoreError>,
    ) -> Result<(), StoreError> {
        let (lock, unlock) = self.dialect().lock();
        let display_name = self.display_name.clone();
        let store_error = move |error: sqlx::Error| error::store_error(&display_name, &error);
        each!(&self.pool, pool => {
            let mut transaction = match self.dialect() {
                Dialect::Sqlite => pool.begin_with("BEGIN IMMEDIATE").await,
                Dialect::Postgres | Dialect::Mysql => pool.begin().await,
            }
            .map_err(&store_error)?;
            let planned = async {
                for statement in lock {
                    let answer = transaction.fetch_optional(*statement).await.map_err(&store_error)?;
                    let is_ours = self.dialect() != Dialect::Mysql
                        || answer.is_some_and(|row| ResultRow::int(&row, 0).ok().flatten() == Some(1));
                    if !is_ours {
                        return Err(error::tables_being_changed(&self.display_name));
                    }
                }
                let list = sqlx::query(self.dialect().statement("list schema"));
                let rows = list.fetch_all(&mut *transaction).await.map_err(&store_error)?;
                let found: Result<Vec<SchemaItem>, _> = rows.iter().map(|row| SchemaItem::read(row)).collect();
                let found = found.map_err(&store_error)?;
                let mut version = None;
                if schema::has_versions(&found) {
                    let row = transaction.fetch_one(schema::SELECT_VERSION).await.map_err(&store_error)?;
                    version = ResultRow::int(&row, 0).map_err(&store_error)?;
                }
                plan(&found, version)
            };
            let planned = planned.await;
            let change = async move {
                let done = async {
                    for statement in planned? {
                        transaction.execute(statement).await.map_err(&store_error)?;
                    }
                    Ok(())
                };
                let done = match tokio::time::timeout(CHANGE_TIMEOUT, done).await {
                    Ok(done) => done,
                    Err(_) => Err(store_error(timeout_error(CHANGE_TIMEOUT))),
                };
                // MySQL's lock outlives the transaction.
                let unlocked = transaction.execute(unlock).await;
                done?;
                unlocked.map_err(&store_error)?;
                transaction.commit().await.map_err(&store_error)
            };
            run_detached(change).await
        })
    }
}

/// Runs to the end even if the caller is dropped, as long as the process lives.
#[expect(
    clippy::disallowed_methods,
    reason = "it must not stop when the caller is dropped; it has its own time limit"
)]
async fn run_detached(
    work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> Result<(), StoreError> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
}

/// An existing column or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaItem {
    pub(super) kind: String,
    pub(super) table: String,
    pub(super) name: String,
}

impl SchemaItem {
    pub(super) fn read(row: &dyn ResultRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            kind: row.text_or_empty(0)?,
            table: row.text_or_empty(1)?,
            name: row.text_or_empty(2)?,
        })
    }
}

/// Connects once, because a pool would retry where no server listens.
async fn check_connection<O>(options: &O) -> Result<(), sqlx::Error>
where
    O: ConnectOptions<Connection: Sized>,
{
    with_timeout(options.connect()).await?.close().await
}

/// Connects once, and retries while other processes create the same file.
///
/// Switching a new file to WAL needs an exclusive lock. SQLite refuses it at once, without waiting for its busy timeout, while another connection
/// that is reading the file wants the same.
#[cfg(feature = "history-sqlite")]
async fn check_sqlite_connection(options: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    let mut last = None;
    let retry = async {
        loop {
            match check_connection(options).await {
                Err(error) if error::is_sqlite_busy(&error) => {
                    last = Some(error);
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                result => return result,
            }
        }
    };
    match tokio::time::timeout(OPEN_TIMEOUT, retry).await {
        Ok(result) => result,
        Err(_) => Err(last.unwrap_or_else(|| timeout_error(OPEN_TIMEOUT))),
    }
}

/// Limits an operation to [`OPERATION_TIMEOUT`].
async fn with_timeout<T>(
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(OPERATION_TIMEOUT, work).await {
        Ok(answer) => answer,
        Err(_) => Err(timeout_error(OPERATION_TIMEOUT)),
    }
}

fn timeout_error(after: Duration) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("no answer within {} s", after.as_secs()),
    ))
}
