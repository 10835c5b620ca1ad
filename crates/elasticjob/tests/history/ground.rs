//! A database of one's own, and a way to say anything to it.

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

/// Who keeps a table.
#[expect(dead_code, reason = "it is there to be dropped")]
pub(crate) enum Held {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

/// A database that nobody else uses.
pub(crate) struct Ground {
    pub(crate) kind: Kind,
    pub(crate) url: String,
    /// The same database as somebody who may do what [`Ground::allow`] allows; for SQLite one who may only read.
    pub(crate) guest: String,
    _folder: Option<TempDir>,
}

impl Ground {
    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite:{}", folder.path().join("below/history.db").display());
        Self { kind: Kind::Sqlite, guest: format!("{url}?mode=ro"), url, _folder: Some(folder) }
    }

    pub(crate) async fn postgres() -> Self {
        let server = server(|| POSTGRES.address()).await;
        let name = format!("history_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let ground = |name: &str| Self {
            kind: Kind::Postgres,
            url: format!("postgres://test@{server}/{name}"),
            guest: format!("postgres://guest_{name}:hunter2@{server}/{name}"),
            _folder: None,
        };
        ground("postgres").say(&format!("CREATE DATABASE {name}")).await;
        ground("postgres").say(&format!("CREATE ROLE guest_{name} LOGIN")).await;
        ground(&name).say("REVOKE ALL ON SCHEMA public FROM PUBLIC").await;
        ground(&name).say(&format!("GRANT USAGE ON SCHEMA public TO guest_{name}")).await;
        ground(&name)
    }

    pub(crate) async fn mariadb() -> Self {
        let server = server(|| MARIADB.address()).await;
        let name = format!("history_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let ground = |name: &str| Self {
            kind: Kind::MariaDb,
            url: format!("mysql://test@{server}/{name}"),
            guest: format!("mysql://guest_{name}:hunter2@{server}/{name}"),
            _folder: None,
        };
        ground("test").say(&format!("CREATE DATABASE {name}")).await;
        ground(&name).say(&format!("CREATE USER guest_{name}@'%' IDENTIFIED BY 'hunter2'")).await;
        ground(&name).say(&format!("GRANT SELECT ON {name}.* TO guest_{name}@'%'")).await;
        ground(&name)
    }

    /// Lets the guest read what is there.
    pub(crate) async fn allow_reading(&self) {
        if self.kind == Kind::Postgres {
            let name = self.url.rsplit_once('/').unwrap().1;
            self.say(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest_{name}")).await;
        }
    }

    pub(crate) fn url(&self) -> HistoryUrl {
        self.url.parse().unwrap()
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url()).await.unwrap()
    }

    /// Says something, as anybody could.
    pub(crate) async fn say(&self, sql: &str) {
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

    /// Whether there is a table, or an index, of this name.
    pub(crate) async fn has(&self, name: &str) -> bool {
        let places = match self.kind {
            Kind::Sqlite => vec!["sqlite_master WHERE UPPER(name)"],
            Kind::Postgres => vec!["pg_class WHERE UPPER(relname)"],
            Kind::MariaDb => vec![
                "information_schema.tables WHERE table_schema = DATABASE() AND table_name",
                "information_schema.statistics WHERE table_schema = DATABASE() AND index_name",
            ],
        };
        for place in places {
            if self.number(&format!("SELECT COUNT(*) FROM {place} = '{name}'")).await > 0 {
                return true;
            }
        }
        false
    }

    pub(crate) async fn drop_index(&self, table: &str, index: &str) {
        let on = if self.kind == Kind::MariaDb { format!(" ON {table}") } else { String::new() };
        self.say(&format!("DROP INDEX {index}{on}")).await;
    }

    /// Keeps others from changing this table, until it is dropped; nothing where that cannot be.
    pub(crate) async fn hold(&self, table: &str) -> Option<Held> {
        match self.kind {
            Kind::Sqlite => None,
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                let sql = format!("BEGIN; LOCK TABLE {table} IN ROW EXCLUSIVE MODE");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
                Some(Held::Postgres(connection))
            }
            Kind::MariaDb => {
                let mut connection = MySqlConnection::connect(&self.url).await.unwrap();
                let sql = format!("START TRANSACTION; SELECT COUNT(*) FROM {table}");
                connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
                Some(Held::MariaDb(connection))
            }
        }
    }

    /// How many wait for a table that is held.
    pub(crate) async fn waiting(&self) -> i64 {
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
        self.number(sql).await
    }

    /// Asks for one number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
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

/// A server takes a while to start, and a test waits for it on a thread that may wait.
async fn server<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(start).await.unwrap()
}
