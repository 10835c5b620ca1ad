//! Event traces and data sources of the legacy API: the history of the selected registry.
//!
//! A data source has the name of the registry whose history it is. Java ElasticJob connected to any URL; here the host must be allowed.

use axum::response::Response;
use elasticjob::history::{ExecutionFilter, NameKind, Span, TraceFilter, from_jdbc};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    envelope::LegacyRequest,
    registry_center::{NameBody, is_added, selected_registry},
};
use crate::{
    auth::{
        accounts::Role,
        caller::{Authorized, Viewer},
    },
    history::{
        check_text,
        store_routes::{add as add_history, remove as remove_history, test_connection},
        stores::HistoryConnection,
    },
    http::{
        extract::{Body, OptionalBody, Path, parse_timestamp},
        problem::Problem,
    },
};

/// Last row that can be paged to: every page is read from the first row.
const MAX_ROW: usize = 10_000;

/// A page in the legacy format.
#[derive(Serialize)]
struct LegacyPage<T> {
    total: i64,
    rows: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExecutionsBody {
    page_size: Option<usize>,
    page_number: Option<usize>,
    job_name: Option<String>,
    ip: Option<String>,
    is_success: Option<bool>,
    start_time_from: Option<Value>,
    start_time_to: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TracesBody {
    page_size: Option<usize>,
    page_number: Option<usize>,
    job_name: Option<String>,
    state: Option<String>,
    source: Option<String>,
    execution_type: Option<String>,
    creation_time_from: Option<Value>,
    creation_time_to: Option<Value>,
}

/// Index of the first row of a page, and of the row after its last.
fn row_range(size: Option<usize>, number: Option<usize>) -> Result<(usize, usize), Problem> {
    let (size, number) = (size.unwrap_or(10), number.unwrap_or(1));
    let end = size.saturating_mul(number);
    if size == 0 || number == 0 || end > MAX_ROW {
        let text = format!("pages start at 1 and end at row {MAX_ROW}");
        return Err(
            Problem::invalid("pageNumber", text).with_hint("limit the time span, or use /api/v1")
        );
    }
    Ok((end - size, end))
}

/// Parses a time: text, or milliseconds.
fn parse_time(field: &str, given: Option<&Value>) -> Result<Option<Timestamp>, Problem> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => parse_timestamp(field, text).map(Some),
        Some(other) => {
            let at = other.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok());
            let invalid =
                || Problem::invalid(field, "not a timestamp").with_hint("2026-11-15T06:36:07Z");
            at.ok_or_else(invalid).map(Some)
        }
    }
}

/// `None` if empty.
fn optional_text(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    check_text(field, text.filter(|text| !text.is_empty()))
}

/// An execution in the legacy format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LegacyExecution {
    id: String,
    hostname: String,
    ip: String,
    task_id: String,
    job_name: String,
    source: String,
    sharding_item: i64,
    start_time: Option<Timestamp>,
    complete_time: Option<Timestamp>,
    success: bool,
    failure_cause: Option<String>,
}

/// A trace in the legacy format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LegacyTrace {
    id: String,
    job_name: String,
    original_task_id: String,
    task_id: String,
    slave_id: String,
    execution_type: String,
    sharding_items: String,
    state: String,
    message: String,
    creation_time: Option<Timestamp>,
}

pub(super) async fn executions(
    request: LegacyRequest,
    body: Result<OptionalBody<ExecutionsBody>, Problem>,
) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let OptionalBody(sent) = body?;
            let (skip, end) = row_range(sent.page_size, sent.page_number)?;
            let filter = ExecutionFilter {
                job: optional_text("jobName", sent.job_name)?,
                ip: optional_text("ip", sent.ip)?,
                success: sent.is_success,
                span: Span {
                    since: parse_time("startTimeFrom", sent.start_time_from.as_ref())?,
                    until: parse_time("startTimeTo", sent.start_time_to.as_ref())?,
                },
                limit: Some(end),
                ..ExecutionFilter::default()
            };
            let store = access.history().await?;
            let total = store.execution_count(&filter).await?;
            let found = store.executions(&filter).await?.rows.into_iter().skip(skip);
            let rows = found.map(|row| LegacyExecution {
                id: row.id,
                hostname: row.hostname,
                ip: row.ip,
                task_id: row.task_id,
                job_name: row.job_name,
                source: row.execution_source,
                sharding_item: row.sharding_item,
                start_time: row.start_time,
                complete_time: row.complete_time,
                success: row.success,
                failure_cause: row.failure_cause,
            });
            Ok(LegacyPage { total, rows: rows.collect() })
        })
        .await
}

pub(super) async fn traces(
    request: LegacyRequest,
    body: Result<OptionalBody<TracesBody>, Problem>,
) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let OptionalBody(sent) = body?;
            let (skip, end) = row_range(sent.page_size, sent.page_number)?;
            let filter = TraceFilter {
                job: optional_text("jobName", sent.job_name)?,
                state: optional_text("state", sent.state)?,
                source: optional_text("source", sent.source)?,
                execution_type: optional_text("executionType", sent.execution_type)?,
                span: Span {
                    since: parse_time("creationTimeFrom", sent.creation_time_from.as_ref())?,
                    until: parse_time("creationTimeTo", sent.creation_time_to.as_ref())?,
                },
                limit: Some(end),
                ..TraceFilter::default()
            };
            let store = access.history().await?;
            let total = store.trace_count(&filter).await?;
            let found = store.traces(&filter).await?.rows.into_iter().skip(skip);
            let rows = found.map(|row| LegacyTrace {
                id: row.id,
                job_name: row.job_name,
                original_task_id: row.original_task_id,
                task_id: row.task_id,
                slave_id: row.slave_id,
                execution_type: row.execution_type,
                sharding_items: row.sharding_items,
                state: row.state,
                message: row.message,
                creation_time: row.creation_time,
            });
            Ok(LegacyPage { total, rows: rows.collect() })
        })
        .await
}

async fn names(request: LegacyRequest, kind: NameKind, prefix: String) -> Response {
    request
        .respond(async |access: Authorized<Viewer>| {
            let prefix = optional_text("prefix", Some(prefix))?.unwrap_or_default();
            Ok(access.history().await?.names(kind, &prefix).await?)
        })
        .await
}

pub(super) async fn executed_jobs(request: LegacyRequest, Path(prefix): Path<String>) -> Response {
    names(request, NameKind::ExecutedJob, prefix).await
}

pub(super) async fn addresses(request: LegacyRequest, Path(prefix): Path<String>) -> Response {
    names(request, NameKind::Ip, prefix).await
}

pub(super) async fn traced_jobs(request: LegacyRequest, Path(prefix): Path<String>) -> Response {
    names(request, NameKind::TracedJob, prefix).await
}

/// A data source in the legacy format. Secrets are never sent back.
#[derive(Serialize)]
struct DataSource {
    name: String,
    driver: &'static str,
    url: String,
    username: String,
    password: &'static str,
    activated: bool,
}

const DRIVERS: [&str; 2] = ["com.mysql.cj.jdbc.Driver", "org.postgresql.Driver"];

impl DataSource {
    fn new(history: &HistoryConnection, activated: bool) -> Self {
        let url = history.url.to_string();
        let driver = match url.split(':').next().unwrap_or_default() {
            "sqlite" => "org.sqlite.JDBC",
            "mysql" | "mariadb" => DRIVERS[0],
            _ => DRIVERS[1],
        };
        let credentials = url.rsplit_once('@').and_then(|(credentials, _)| {
            credentials.split_once("://").map(|(_, credentials)| credentials)
        });
        let username = credentials.unwrap_or_default().split(':').next().unwrap_or_default();
        let password =
            if credentials.is_some_and(|non_empty| non_empty.contains(':')) { "***" } else { "" };
        let username = username.to_owned();
        Self { name: history.name.clone(), driver, url, username, password, activated }
    }
}

pub(super) async fn drivers(request: LegacyRequest) -> Response {
    request.respond_globally(async |_, _| Ok(DRIVERS)).await
}

pub(super) async fn load(request: LegacyRequest) -> Response {
    request
        .respond_globally(async |caller, app| {
            let selected = selected_registry(&caller, &app);
            let visible = app.histories.visible_to(&caller);
            let sources = visible.iter().map(|history| {
                DataSource::new(history, selected.as_deref() == Some(&*history.name))
            });
            Ok(sources.collect::<Vec<_>>())
        })
        .await
}

pub(super) async fn activated(request: LegacyRequest) -> Response {
    request
        .bare()
        .respond_globally(async |caller, app| {
            Ok(selected_registry(&caller, &app)
                .is_some_and(|name| app.histories.get(&name).is_some()))
        })
        .await
}

#[derive(Deserialize)]
pub(super) struct DataSourceBody {
    name: String,
    url: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
}

impl DataSourceBody {
    /// Converts to one of our URLs, which is then checked like every other.
    fn url(&self) -> Result<String, Problem> {
        let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (username, password) = (non_empty(&self.username), non_empty(&self.password));
        from_jdbc(&self.url, username.as_deref(), password.as_deref()).map_err(|kind| {
            let text = format!("{kind} is not supported");
            Problem::invalid("url", text).with_hint("jdbc:mysql://… or jdbc:postgresql://…")
        })
    }
}

pub(super) async fn add(
    request: LegacyRequest,
    body: Result<Body<DataSourceBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            caller.require_everywhere(Role::Admin)?;
            let Body(sent) = body?;
            is_added(add_history(&app, &caller, &sent.name, &sent.url()?))
        })
        .await
}

pub(super) async fn test(
    request: LegacyRequest,
    body: Result<Body<DataSourceBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            caller.require_everywhere(Role::Admin)?;
            let Body(sent) = body?;
            Ok(test_connection(&app, &caller, &sent.url()?).await?.is_reachable)
        })
        .await
}

/// A history belongs to its registry: connecting only checks that it can be opened.
pub(super) async fn connect(
    request: LegacyRequest,
    body: Result<Body<NameBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            let Body(NameBody { name }) = body?;
            caller.authorize(&app, &name, Role::Viewer)?;
            app.histories.store(&name).await?;
            Ok(true)
        })
        .await
}

pub(super) async fn remove(
    request: LegacyRequest,
    body: Result<Body<NameBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            let Body(NameBody { name }) = body?;
            remove_history(&app, &caller, &name)?;
            Ok(true)
        })
        .await
}
