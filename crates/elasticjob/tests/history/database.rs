//! A separate database for each test, with direct access by SQL.

use std::sync::{
    LazyLock,
    atomic::{AtomicU32, Ordering},
};

use elasticjob::history::{HistoryUrl, Store};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use testbed::{MariaDb, Postgres};

static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);
static MARIADB: LazyLock<MariaDb> = LazyLock::new(MariaDb::start);
static NUMBER: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    MariaDb,
}

/// A connection that locks a table until it is dropped.
#[expect(dead_code, reason = "held until dropped")]
pub(crate) enum TableLock {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

/// A database for one test.
pub(crate) struct TestDatabase {
    pub(crate) kind: Kind,
    pub(crate) url: String,
    /// URL for a user with few rights; for SQLite, a read-only URL.
    pub(crate) restricted_url: String,
    _folder: Option<TempDir>,
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite:{}", folder.path().join("below/history.db").display());
        Self {
            kind: Kind::Sqlite,
            restricted_url: format!("{url}?mode=ro"),
            url,
            _folder: Some(folder),
        }
    }

    pub(crate) async fn postgres() -> Self {
        let server = server(|| POSTGRES.address()).await;
        let name = format!("history_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = |name: &str| Self {
            kind: Kind::Postgres,
            url: format!("postgres://test@{server}/{name}"),
            restricted_url: format!("postgres://guest_{name}:hunter2@{server}/{name}"),
            _folder: None,
        };
        database("postgres").execute(&format!("CREATE DATABASE {name}")).await;
        database("postgres").execute(&format!("CREATE ROLE guest_{name} LOGIN")).await;
        database(&name).execute("REVOKE ALL ON SCHEMA public FROM PUBLIC").await;
        database(&name).execute(&format!("GRANT USAGE ON SCHEMA public TO guest_{name}")).await;
        database(&name)
    }

    pub(crate) async fn mariadb() -> Self {
        let server = server(|| MARIADB.address()).await;
        let name = format!("history_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = |name: &str| Self {
            kind: Kind::MariaDb,
            url: format!("mysql://test@{server}/{name}"),
            restricted_url: format!("mysql://guest_{name}:hunter2@{server}/{name}"),
            _folder: None,
        };
        database("test").execute(&format!("CREATE DATABASE {name}")).await;
        database(&name)
            .execute(&format!("CREATE USER guest_{name}@'%' IDENTIFIED BY 'hunter2'"))
            .await;
        database(&name).execute(&format!("GRANT SELECT ON {name}.* TO guest_{name}@'%'")).await;
        database(&name)
    }

    /// Allows the restricted user to read all tables.
    pub(crate) async fn allow_reading(&self) {
        if self.kind == Kind::Postgres {
            let name = self.url.rsplit_once('/').unwrap().1;
            self.execute(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest_{name}"))
                .await;
        }
    }

    pub(crate) fn url(&self) -> HistoryUrl {
        self.url.parse().unwrap()
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url()).await.unwrap()
    }

    /// Executes SQL on a separate connection.
    pub(crate) async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match self.kind {
            Kind::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                connection.execute(sqlx::raw_sql(sql)).await.unwrap();
            }
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                connection.execute(sqlx::raw_sql(sql)).await.unwrap();
            }
            Kind::MariaDb => {
                let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
                connection.execute(sqlx::raw_sql(sql)).await.unwrap();
            }
        }
    }

    /// Whether a table or index with this name exists.
    pub(crate) async fn has(&self, name: &str) -> bool {
        let sources = match self.kind {
            Kind::Sqlite => vec!["sqlite_master WHERE UPPER(name)"],
            Kind::Postgres => vec!["pg_class WHERE UPPER(relname)"],
            Kind::MariaDb => vec![
                "information_schema.tables WHERE table_schema = DATABASE() AND table_name",
                "information_schema.statistics WHERE table_schema = DATABASE() AND index_name",
            ],
        };
        for source in sources {
            if self.scalar(&format!("SELECT COUNT(*) FROM {source} = '{name}'")).await > 0 {
                return true;
            }
        }
        false
    }

    pub(crate) async fn drop_index(&self, table: &str, index: &str) {
        let on = if self.kind == Kind::MariaDb { format!(" ON {table}") } else { String::new() };
        self.execute(&format!("DROP INDEX {index}{on}")).await;
    }

    /// Locks this table against changes; `None` where that is not possible.
    pub(crate) async fn lock_table(&self, table: &str) -> Option<TableLock> {
        match self.kind {
            Kind::Sqlite => None,
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                let sql = format!("BEGIN; LOCK TABLE {table} IN ROW EXCLUSIVE MODE");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
                Some(TableLock::Postgres(connection))
            }
            Kind::MariaDb => {
                let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
                let sql = format!("START TRANSACTION; SELECT COUNT(*) FROM {table}");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
                Some(TableLock::MariaDb(connection))
            }
        }
    }

    /// Number of connections that wait for a table lock.
    pub(crate) async fn waiting_for_lock(&self) -> i64 {
        let sql = match self.kind {
            Kind::Sqlite => "SELECT 0",
            Kind::Postgres => {
                "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                 WHERE NOT l.granted AND l.locktype = 'relation' AND d.datname = current_database()"
            }
            Kind::MariaDb => {
                "SELECT COUNT(*) FROM information_schema.processlist \
                 WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock%'"
            }
        };
        self.scalar(sql).await
    }

    /// Runs a query with one number as its result.
    pub(crate) async fn scalar(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match self.kind {
            Kind::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            Kind::MariaDb => {
                let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
        }
    }
}

/// Starts a server on a blocking thread, because that takes a while.
async fn server<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(start).await.unwrap()
}
