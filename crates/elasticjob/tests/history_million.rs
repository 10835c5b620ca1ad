//! Every query on a million executions in SQLite uses an index and is fast.
//!
//! `HISTORY_ROWS=10000000` sets another number of executions.

use std::{
    env,
    fmt::Debug,
    sync::Mutex,
    time::{Duration, Instant},
};

use elasticjob::history::{
    ExecutionFilter, HistoryUrl, NameKind, OutputPosition, Retention, RunFilter, RunState, Span,
    Store, TraceFilter,
};
use jiff::{SignedDuration, Timestamp};
use sqlx::{AssertSqlSafe, Connection, Executor, Row, SqliteConnection};
use tempfile::TempDir;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// What a person at a page waits for without losing patience.
const QUERY_LIMIT: Duration = Duration::from_secs(5);

/// The executed statements. The driver logs on threads of its own, so there is one list for the process.
static STATEMENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct StatementLogger;

impl<S: Subscriber> Layer<S> for StatementLogger {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::query" {
            event.record(&mut StatementVisitor);
        }
    }
}

/// Reads the statement of a log record: the driver puts a short one into `summary` and a long one into `db.statement`.
struct StatementVisitor;

impl Visit for StatementVisitor {
    fn record_str(&mut self, field: &Field, text: &str) {
        let is_cut = field.name() == "summary" && text.contains('…');
        if ["summary", "db.statement"].contains(&field.name()) && !text.is_empty() && !is_cut {
            STATEMENTS.lock().unwrap().push(text.trim().to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Twenty jobs with four shards; one run starts every second, and one run of fifty fails.
const INSERTS: [&str; 4] = [
    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) \
     INSERT INTO ELASTICJOB_RUN (run_id, job_name, due_ms, source, total, state, started_ms, ended_ms, duration_ms, lateness_ms, \
     shards, done, failed, attempts, changes) \
     SELECT 'job-' || (i % 20) || '/' || i, 'job-' || (i % 20), 1700000000000 + i * 1000, \
     CASE WHEN i % 100 = 7 THEN 'trigger' ELSE 'schedule' END, 4, CASE WHEN i % 50 = 3 THEN 'failed' ELSE 'done' END, \
     1700000000000 + i * 1000, 1700000000100 + i * 1000, i % 997, i % 13, 4, 4, 0, 4, 1 FROM n",
    "INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, failure_cause, is_success, \
     start_time, complete_time, run_id, due_ms, attempt, reason, token, source, outcome, started_ms, ended_ms, duration_ms, \
     lateness_ms, total, instance, failure_group) \
     SELECT r.run_id || '#' || item, r.job_name, r.job_name || '@-@' || item || '@-@READY@-@10.0.0.7@-@1', 'machine', '10.0.0.' || item, \
     item, 'NORMAL_TRIGGER', CASE r.state WHEN 'failed' THEN 'order ' || r.due_ms || ' not found' END, r.state = 'done', r.started_ms, \
     r.ended_ms, r.run_id, r.due_ms, 1, 'due', r.due_ms, r.source, r.state, r.started_ms, r.ended_ms, r.duration_ms, r.lateness_ms, 4, \
     '10.0.0.' || item || '@-@' || (r.due_ms / 100000000), CASE r.state WHEN 'failed' THEN 'order <n> not found' END \
     FROM ELASTICJOB_RUN r, (SELECT 0 AS item UNION SELECT 1 UNION SELECT 2 UNION SELECT 3)",
    "INSERT INTO JOB_STATUS_TRACE_LOG (id, job_name, original_task_id, task_id, slave_id, source, execution_type, sharding_item, state, \
     message, creation_time, run_id) \
     SELECT run_id, job_name, '', job_name, '10.0.0.7', 'LITE_EXECUTOR', 'READY', '[0]', 'TASK_FINISHED', '', ended_ms, run_id \
     FROM ELASTICJOB_RUN",
    // Java ElasticJob's earlier rows: as many as there are runs, all successful.
    "INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, is_success, start_time, complete_time) \
     SELECT 'legacy-' || run_id, job_name, 't', 'java', '10.0.0.9', 0, 'NORMAL_TRIGGER', 1, started_ms - 100000000000, started_ms - 99999999000 \
     FROM ELASTICJOB_RUN",
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_on_a_million_executions_use_indexes() {
    let executions = env::var("HISTORY_ROWS").ok().and_then(|rows| rows.parse().ok());
    let executions: i64 = executions.unwrap_or(1_000_000);
    tracing_subscriber::registry().with(StatementLogger).init();
    let folder = TempDir::new().unwrap();
    let url = HistoryUrl::sqlite(folder.path().join("history.db"));
    let started = now();
    insert_rows(&url, executions / 4).await;
    // Opening creates the missing indexes.
    let store = Store::open(&url).await.unwrap();
    let megabytes = url.file().unwrap().metadata().unwrap().len() / 1_000_000;
    eprintln!("{executions} executions inserted after {:?}: {megabytes} MB", started.elapsed());
    STATEMENTS.lock().unwrap().clear();

    run_every_query(&store, executions / 4).await;

    let mut connection = SqliteConnection::connect(&url.to_string()).await.unwrap();
    let logged: Vec<String> = STATEMENTS.lock().unwrap().drain(..).collect();
    let statements: Vec<&String> = logged.iter().filter(|sql| !sql.starts_with("PRAGMA")).collect();
    assert!(statements.len() > 25, "{logged:#?}");
    for sql in statements.into_iter().filter(|sql| !sql.starts_with("BEGIN") && *sql != "COMMIT") {
        let plan = plan(&mut connection, sql).await;
        assert_eq!(plan_problem(sql, &plan), None, "{sql}\n{plan:#?}");
    }
    // plan_problem itself finds bad plans.
    for (sql, expected) in [
        ("SELECT a.id FROM JOB_EXECUTION_LOG a WHERE a.hostname = 'x'", PlanProblem::FullTableScan),
        (
            "SELECT r.changes FROM ELASTICJOB_RUN AS r WHERE r.total > 3 LIMIT 1",
            PlanProblem::FullTableScan,
        ),
        ("SELECT COUNT(*) FROM JOB_EXECUTION_LOG", PlanProblem::FullIndexScan),
        (
            "SELECT instance FROM JOB_EXECUTION_LOG WHERE start_time > 7 ORDER BY start_time DESC, hostname DESC LIMIT 9",
            PlanProblem::Sort,
        ),
        (
            "SELECT id FROM JOB_EXECUTION_LOG INDEXED BY ELASTICJOB_LOG_FOREIGN WHERE run_id IS NULL AND is_success = 0 AND start_time > 7",
            PlanProblem::AllJavaRows,
        ),
    ] {
        let plan = plan(&mut connection, sql).await;
        assert_eq!(plan_problem(sql, &plan), Some(expected), "{sql}\n{plan:#?}");
    }
}

async fn plan(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let plan = sqlx::query(explain).fetch_all(connection).await.unwrap();
    plan.iter().map(|row| row.get("detail")).collect()
}

/// Why a plan takes longer the more rows there are.
#[derive(Debug, PartialEq, Eq)]
enum PlanProblem {
    FullTableScan,
    FullIndexScan,
    /// The rows of a page come out of a sort instead of an index.
    Sort,
    /// All rows of Java ElasticJob are read to find its failures.
    AllJavaRows,
}

fn plan_problem(sql: &str, plan: &[String]) -> Option<PlanProblem> {
    let tables = tables_and_aliases(sql);
    let is_sorted =
        plan.iter().any(|step| step.contains("TEMP B-TREE FOR") && step.contains("ORDER BY"));
    for step in plan {
        let Some(scanned) = step.strip_prefix("SCAN ") else { continue };
        let (name, how) = scanned.split_once(' ').unwrap_or((scanned, ""));
        if !tables.contains(&name) {
            // An intermediate result of the statement: a few rows.
            continue;
        }
        if !how.contains("INDEX") {
            return Some(PlanProblem::FullTableScan);
        }
        // In the order of the index, and only to the end of the page.
        if !sql.contains("LIMIT") || is_sorted || sql.contains("COUNT(") {
            return Some(PlanProblem::FullIndexScan);
        }
    }
    let is_page = sql.contains("_ms DESC, ") || sql.contains("_time DESC, ");
    // The runs of one instance are limited by its lifetime.
    if is_page && is_sorted && !sql.contains("WHERE instance = ?") {
        return Some(PlanProblem::Sort);
    }
    let selects_java_failures = sql.contains("run_id IS NULL") && sql.contains("is_success = 0");
    // The index of failures, the rows of one job, or one row: few.
    let narrow = ["_FOREIGN_FAILED", "(job_name=?", "(id=?"];
    let is_narrow = plan.iter().any(|step| narrow.iter().any(|part| step.contains(part)));
    (selects_java_failures && !is_narrow).then_some(PlanProblem::AllJavaRows)
}

/// The tables of a statement and their aliases.
fn tables_and_aliases(sql: &str) -> Vec<&str> {
    let words: Vec<&str> = sql
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let mut names = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if !word.starts_with("ELASTICJOB_") && !word.starts_with("JOB_") {
            continue;
        }
        names.push(*word);
        let mut after = words[index + 1..].iter().filter(|word| **word != "AS");
        names.extend(
            after.next().filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase())),
        );
    }
    names
}

/// Inserts the rows without indexes, which is faster; the next opening of the store creates them.
async fn insert_rows(url: &HistoryUrl, runs: i64) {
    Store::open(url).await.unwrap().close().await;
    let mut connection = SqliteConnection::connect(&url.to_string()).await.unwrap();
    let indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL";
    let indexes: Vec<String> =
        sqlx::query_scalar(indexes).fetch_all(&mut connection).await.unwrap();
    for index in indexes {
        connection.execute(AssertSqlSafe(format!("DROP INDEX {index}"))).await.unwrap();
    }
    connection.execute("PRAGMA synchronous = OFF").await.unwrap();
    for sql in INSERTS {
        sqlx::query(sql).bind(runs).execute(&mut connection).await.unwrap();
    }
}

/// Runs every query with every filter.
async fn run_every_query(store: &Store, runs: i64) {
    let at = |second: i64| Timestamp::from_millisecond(1_700_000_000_000 + second * 1000).unwrap();
    let day = Span { since: Some(at(runs - 86_400)), until: Some(at(runs)) };
    let job = || Some("job-3".to_owned());
    let any = RunFilter::default;
    let page = store.runs(&any()).await.unwrap();
    for filter in [
        RunFilter { after: page.next, ..any() },
        RunFilter { job: job(), ..any() },
        RunFilter { state: Some(RunState::Failed), ..any() },
        RunFilter { state: Some(RunState::Running), ..any() },
        RunFilter { job: job(), state: Some(RunState::Failed), ..any() },
        RunFilter { state: Some(RunState::Done), ..any() },
        RunFilter { source: Some("trigger".to_owned()), ..any() },
        RunFilter { instance: Some("10.0.0.1@-@17000".to_owned()), ..any() },
        RunFilter { span: day, ..any() },
        RunFilter { job: job(), span: day, ..any() },
    ] {
        let name = format!("{filter:?}");
        within_limit(&name, store.runs(&filter)).await;
    }
    within_limit("run", store.run("job-3/3")).await;
    let any = ExecutionFilter::default;
    let page = store.executions(&any()).await.unwrap();
    for filter in [
        ExecutionFilter { after: page.next, ..any() },
        ExecutionFilter { job: job(), ..any() },
        ExecutionFilter { success: Some(false), ..any() },
        ExecutionFilter { ip: Some("10.0.0.2".to_owned()), span: day, ..any() },
    ] {
        let name = format!("{filter:?}");
        within_limit(&name, store.executions(&filter)).await;
    }
    let any = TraceFilter::default;
    for filter in [any(), TraceFilter { job: job(), span: day, ..any() }] {
        within_limit("traces", store.traces(&filter)).await;
    }
    within_limit("output", store.output("job-3/3", Some(1), &OutputPosition::default())).await;
    let last_runs =
        within_limit("last runs", store.last_runs(&["job-3", "job-7", "nothing"], 10)).await;
    assert_eq!(last_runs.len(), 20);
    let attempts = within_limit("attempts", store.attempts(&last_runs)).await;
    assert_eq!(attempts.len(), 80);
    within_limit("run in brief", store.brief("job-3/3")).await;
    within_limit("tally", store.tally(day, SignedDuration::from_secs(1))).await;
    for (job, span) in [(job(), day), (job(), Span::default()), (None, day)] {
        let filter = ExecutionFilter { job: job.clone(), span, ..ExecutionFilter::default() };
        within_limit("execution count", store.execution_count(&filter)).await;
        let filter = TraceFilter { job, span, ..TraceFilter::default() };
        within_limit("trace count", store.trace_count(&filter)).await;
    }
    for named in [NameKind::ExecutedJob, NameKind::Ip, NameKind::TracedJob] {
        within_limit("names", store.names(named, "job-1")).await;
        within_limit("names without a match", store.names(named, "xyz")).await;
    }
    within_limit("jobs", store.jobs()).await;
    within_limit("figures of a job", store.figures(&["job-3"], day)).await;
    within_limit("figures", store.figures(&[], day)).await;
    within_limit("buckets", store.buckets(None, day, SignedDuration::from_mins(15))).await;
    within_limit(
        "buckets of a job",
        store.buckets(Some("job-3"), day, SignedDuration::from_mins(15)),
    )
    .await;
    within_limit("failures", store.failures(None, day, 20)).await;
    within_limit("failures of a job", store.failures(Some("job-3"), day, 20)).await;
    within_limit("missed fires of a job", store.missed(Some("job-3"), day, 20)).await;
    within_limit("missed fires of all jobs", store.missed(None, day, 20)).await;
    within_limit("mark lost", store.mark_lost(at(runs))).await;
    // Nothing is old enough to be deleted; finding that out has to be fast.
    let mut retention = Retention::default();
    retention.runs_per_job = u32::MAX.try_into().unwrap();
    within_limit("prune", store.prune(&retention, at(0))).await;
}

/// Prints how long a query takes; fails if it exceeds [`QUERY_LIMIT`].
async fn within_limit<T: Debug, E: Debug>(
    name: &str,
    query: impl Future<Output = Result<T, E>>,
) -> T {
    let started = now();
    let result = query.await.unwrap();
    let took = started.elapsed();
    eprintln!("{:>7.1} ms  {name}", took.as_secs_f64() * 1000.0);
    assert!(took < QUERY_LIMIT, "{name} took {took:?}");
    result
}

#[expect(clippy::disallowed_methods, reason = "how long a real database takes is real time")]
fn now() -> Instant {
    Instant::now()
}
