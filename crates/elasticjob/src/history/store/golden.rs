//! The names of tables and columns and the words in them, frozen: `tests/golden/README.md` says why.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Map, Value};
use testbed::{MariaDb, Postgres, golden};

use super::{HistoryUrl, Store, dialect::Dialect, statement::Statement};
use crate::history::{
    RunState, Sink,
    golden::{CANCELLED, FAILED, STATUS, TIMED_OUT, events},
};

/// What makes and changes tables, as it is sent to the database.
fn schema(dialect: Dialect) -> String {
    let mut text = String::new();
    for section in dialect.sections() {
        let kind = section.name.split(' ').next().unwrap_or_default();
        if ["table", "column", "index", "wide", "version"].contains(&kind) {
            let _ = writeln!(text, "-- {}\n{}\n", section.name, section.sql);
        }
    }
    let (lock, release) = dialect.lock();
    let _ = writeln!(text, "-- the lock that every version takes\n{}\n{release}", lock.join("\n"));
    text
}

#[test]
fn tables_are_made_in_the_same_words() {
    golden!("history-schema.sqlite.sql", schema(Dialect::Sqlite));
    golden!("history-schema.postgres.sql", schema(Dialect::Postgres));
    golden!("history-schema.mysql.sql", schema(Dialect::Mysql));
}

#[test]
fn history_urls_keep_their_schemes() {
    let urls = [
        "sqlite:/var/lib/elasticjob/history.db",
        "sqlite::memory:",
        "postgres://ann:x@db:5432/jobs?sslmode=require",
        "postgresql://ann:x@db:5432/jobs",
        "mysql://ann:x@db:3306/jobs?ssl-mode=REQUIRED",
        "mariadb://ann:x@db:3306/jobs",
    ];

    let shown = urls.map(|text| format!("{text} -> {}\n", text.parse::<HistoryUrl>().unwrap()));
    golden!("history-urls.txt", shown.concat());
}

/// A column of what a statement answers, as text.
async fn column(store: &Store, sql: &str) -> Vec<String> {
    let select = Statement::new(store.dialect(), sql);
    store.database.fetch(&select, |row| row.text_or_empty(0)).await.unwrap()
}

/// `table.column`, and `table index`, as the database itself lists them.
async fn names(store: &Store) -> BTreeSet<String> {
    let (columns, indexes) = match store.dialect() {
        Dialect::Sqlite => (
            "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'",
            "SELECT tbl_name || ' ' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        ),
        Dialect::Postgres => (
            "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'",
            "SELECT tablename || ' ' || indexname FROM pg_indexes WHERE schemaname = 'public'",
        ),
        Dialect::Mysql => (
            "SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = DATABASE()",
            "SELECT DISTINCT CONCAT(table_name, ' ', index_name) FROM information_schema.statistics WHERE table_schema = DATABASE()",
        ),
    };
    let mut names: BTreeSet<String> = column(store, columns).await.into_iter().collect();
    names.extend(column(store, indexes).await);
    names
}

/// Every row of every table as JSON, the same for each database: what they store differently is told apart by the schema.
async fn rows(store: &Store, columns: &BTreeSet<String>) -> BTreeSet<String> {
    let pairs = columns.iter().filter_map(|name| name.split_once('.'));
    // MySQL numbers the rows of Java's tables.
    let pairs: Vec<(&str, &str)> = pairs.filter(|(_, column)| *column != "auto_id").collect();
    let tables: BTreeSet<&str> = pairs.iter().map(|(table, _)| *table).collect();
    let text = if store.dialect() == Dialect::Mysql { "CHAR" } else { "TEXT" };
    let mut rows = BTreeSet::new();
    for table in tables {
        let columns: Vec<&str> =
            pairs.iter().filter(|(of, _)| *of == table).map(|(_, column)| *column).collect();
        let cast: Vec<String> =
            columns.iter().map(|column| format!("CAST({column} AS {text})")).collect();
        let select =
            Statement::new(store.dialect(), format!("SELECT {} FROM {table}", cast.join(", ")));
        let read = |row: &dyn super::result_row::ResultRow| {
            let mut cells = Map::new();
            for (index, column) in columns.iter().enumerate() {
                cells.insert((*column).to_owned(), cell(column, row.text(index)?));
            }
            Ok(Value::Object(cells))
        };
        for row in store.database.fetch(&select, read).await.unwrap() {
            rows.insert(format!("{} {row}\n", table.to_uppercase()));
        }
    }
    rows
}

fn cell(column: &str, text: Option<String>) -> Value {
    let Some(text) = text else { return Value::Null };
    match column {
        "start_time" | "complete_time" | "creation_time" => "a time".into(),
        "is_success" => (text == "true" || text == "1").into(),
        // Sentences of the library's own may change.
        "failure_cause" | "failure_group" | "failure" => {
            let group = super::rows::failure_group;
            let ours = [FAILED, TIMED_OUT, CANCELLED, STATUS];
            let is_ours = ours.into_iter().any(|ours| text == ours || text == group(ours));
            if is_ours { text.into() } else { "a sentence".into() }
        }
        _ => text.into(),
    }
}

async fn store_keeps_its_words(url: &str, dialect: &str) {
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    store.store(&events()).await.unwrap();

    let names = names(&store).await;
    let listed: Vec<String> = names.iter().map(|name| format!("{name}\n")).collect();
    golden!(&format!("history-tables.{dialect}.txt"), listed.concat());
    let rows = rows(&store, &names).await;
    golden!("history-rows.txt", rows.into_iter().collect::<String>());
    store.close().await;
}

#[test]
fn run_states_keep_their_spelling() {
    let states = std::iter::successors(Some(RunState::Running), |state| match state {
        RunState::Running => Some(RunState::Done),
        RunState::Done => Some(RunState::Incomplete),
        RunState::Incomplete => Some(RunState::Failed),
        RunState::Failed => Some(RunState::Cancelled),
        RunState::Cancelled => None,
    });

    let words: Vec<String> = states.clone().map(|state| format!("{}\n", state.as_str())).collect();
    let golden = golden!("history-run-states.txt", words.concat());

    let read = golden.lines().map(|word| word.parse::<RunState>().unwrap());
    assert!(read.eq(states));
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("history.db").display());
    store_keeps_its_words(&url, "sqlite").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real PostgreSQL: make test"]
async fn postgres_keeps_its_words() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    store_keeps_its_words(&format!("postgres://test@{}/postgres", server.address()), "postgres")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real MariaDB: make test"]
async fn mariadb_keeps_its_words() {
    let server = tokio::task::spawn_blocking(MariaDb::start).await.unwrap();
    store_keeps_its_words(&format!("mysql://test@{}/test", server.address()), "mysql").await;
}
