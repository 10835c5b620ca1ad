//! Java ElasticJob's two tables: executions of shards, and status traces. Paged, or exported as CSV or JSON.

use crate::http::handler::routes;
use axum::{
    BoxError, Json,
    body::Body,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use elasticjob::{
    history::{Cursor, Execution, ExecutionFilter, Page, Store, StoreError, Trace, TraceFilter},
    job::{Outcome, RunReason},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{MAX_PAGE_SIZE, check_limit, check_text, parse_span, runs::parse_cursor};
use crate::{
    auth::caller::{Authorized, Viewer, header_text},
    http::{extract::Query, problem::Problem, state::AppState, streams::StreamSlot},
    registries::live::may_listen,
};

const MAX_EXPORTED_ROWS: usize = 1_000_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(executions))
        .routes(routes!(executions_csv))
        .routes(routes!(executions_json))
        .routes(routes!(traces))
        .routes(routes!(traces_csv))
        .routes(routes!(traces_json))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExecutionsQuery {
    job: Option<String>,
    /// Address of the server.
    ip: Option<String>,
    /// Whether the execution succeeded.
    success: Option<bool>,
    /// Earliest start, inclusive.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Latest start, exclusive.
    #[param(format = DateTime)]
    to: Option<String>,
    /// The `next` of the previous page.
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl ExecutionsQuery {
    fn filter(self) -> Result<ExecutionFilter, Problem> {
        Ok(ExecutionFilter {
            job: check_text("job", self.job)?,
            ip: check_text("ip", self.ip)?,
            success: self.success,
            span: parse_span(self.from.as_deref(), self.to.as_deref())?,
            after: parse_cursor(self.after.as_deref())?,
            limit: Some(check_limit("limit", self.limit, 50, MAX_PAGE_SIZE)?),
        })
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TracesQuery {
    job: Option<String>,
    /// `TASK_STAGING`, `TASK_RUNNING`, `TASK_FINISHED`, `TASK_FAILED`, `TASK_ERROR` or `TASK_KILLED`.
    state: Option<String>,
    /// Source of the trace: `LITE_EXECUTOR` and so on.
    source: Option<String>,
    /// `READY`, `FAILOVER` and so on.
    execution_type: Option<String>,
    /// Earliest time, inclusive.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Latest time, exclusive.
    #[param(format = DateTime)]
    to: Option<String>,
    /// The `next` of the previous page.
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl TracesQuery {
    fn filter(self) -> Result<TraceFilter, Problem> {
        Ok(TraceFilter {
            job: check_text("job", self.job)?,
            state: check_text("state", self.state)?,
            source: check_text("source", self.source)?,
            execution_type: check_text("executionType", self.execution_type)?,
            span: parse_span(self.from.as_deref(), self.to.as_deref())?,
            after: parse_cursor(self.after.as_deref())?,
            limit: Some(check_limit("limit", self.limit, 50, MAX_PAGE_SIZE)?),
        })
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct ExecutionPage {
    items: Vec<Execution>,
    /// The value of `after` for the next page; null if this is the last.
    next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct TracePage {
    items: Vec<Trace>,
    /// The value of `after` for the next page; null if this is the last.
    next: Option<String>,
}

/// Lists executions of shards, newest first, recorded by Rust or Java. With `Accept: text/csv` exports all of them as CSV.
#[utoipa::path(get, path = "/r/{registry}/executions", tag = "history", params(("registry" = String, Path), ExecutionsQuery),
    responses((status = 200, body = ExecutionPage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions(
    access: Authorized<Viewer>,
    headers: HeaderMap,
    Query(query): Query<ExecutionsQuery>,
) -> Result<Response, Problem> {
    let filter = query.filter()?;
    page_or_csv(access, &headers, filter, |items, next| ExecutionPage { items, next }).await
}

/// Exports the matching executions as CSV, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/executions.csv", tag = "history", params(("registry" = String, Path), ExecutionsQuery),
    responses((status = 200, body = String, content_type = "text/csv"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions_csv(
    access: Authorized<Viewer>,
    Query(query): Query<ExecutionsQuery>,
) -> Result<Response, Problem> {
    export(access, query.filter()?, ExportFormat::Csv).await
}

/// Exports the matching executions as a JSON array, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/executions.json", tag = "history", params(("registry" = String, Path), ExecutionsQuery),
    responses((status = 200, body = [Execution]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions_json(
    access: Authorized<Viewer>,
    Query(query): Query<ExecutionsQuery>,
) -> Result<Response, Problem> {
    export(access, query.filter()?, ExportFormat::Json).await
}

/// Lists status traces of instances, newest first, recorded by Rust or Java. With `Accept: text/csv` exports all of them as CSV.
#[utoipa::path(get, path = "/r/{registry}/traces", tag = "history", params(("registry" = String, Path), TracesQuery),
    responses((status = 200, body = TracePage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces(
    access: Authorized<Viewer>,
    headers: HeaderMap,
    Query(query): Query<TracesQuery>,
) -> Result<Response, Problem> {
    let filter = query.filter()?;
    page_or_csv(access, &headers, filter, |items, next| TracePage { items, next }).await
}

/// Exports the matching traces as CSV, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/traces.csv", tag = "history", params(("registry" = String, Path), TracesQuery),
    responses((status = 200, body = String, content_type = "text/csv"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces_csv(
    access: Authorized<Viewer>,
    Query(query): Query<TracesQuery>,
) -> Result<Response, Problem> {
    export(access, query.filter()?, ExportFormat::Csv).await
}

/// Exports the matching traces as a JSON array, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/traces.json", tag = "history", params(("registry" = String, Path), TracesQuery),
    responses((status = 200, body = [Trace]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces_json(
    access: Authorized<Viewer>,
    Query(query): Query<TracesQuery>,
) -> Result<Response, Problem> {
    export(access, query.filter()?, ExportFormat::Json).await
}

/// A page of the table; if the client prefers it, all rows as CSV.
async fn page_or_csv<T: HistoryTable, P: Serialize>(
    access: Authorized<Viewer>,
    headers: &HeaderMap,
    table: T,
    response: fn(Vec<T::Row>, Option<String>) -> P,
) -> Result<Response, Problem> {
    if wants_csv(headers) {
        return export(access, table, ExportFormat::Csv).await;
    }
    let page = table.page(&access.history().await?).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(response(page.rows, next)).into_response())
}

fn wants_csv(headers: &HeaderMap) -> bool {
    let accepted = header_text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    accepted.split([',', ';']).any(|media_type| media_type.trim().eq_ignore_ascii_case("text/csv"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Csv,
    Json,
}

/// Rows of one of the two tables, selected by a filter.
trait HistoryTable: Send + 'static {
    type Row: Serialize + Send;
    const NAME: &'static str;
    const COLUMNS: &'static str;

    /// Selects the page to read next.
    fn set_page(&mut self, after: Option<Cursor>, limit: usize);
    fn page(
        &self,
        store: &Store,
    ) -> impl Future<Output = Result<Page<Self::Row>, StoreError>> + Send;
    fn cells(row: &Self::Row) -> Vec<String>;
}

impl HistoryTable for ExecutionFilter {
    type Row = Execution;
    const NAME: &'static str = "executions";
    const COLUMNS: &'static str = "id,jobName,runId,taskId,hostname,ip,shardingItem,executionSource,success,outcome,failureCause,startTime,completeTime,durationMs,latenessMs,attempt,reason,instance\r\n";

    fn set_page(&mut self, after: Option<Cursor>, limit: usize) {
        (self.after, self.limit) = (after, Some(limit));
    }

    async fn page(&self, store: &Store) -> Result<Page<Execution>, StoreError> {
        store.executions(self).await
    }

    fn cells(row: &Execution) -> Vec<String> {
        vec![
            row.id.clone(),
            row.job_name.clone(),
            text_or_empty(row.run_id.as_ref()),
            row.task_id.clone(),
            row.hostname.clone(),
            row.ip.clone(),
            row.sharding_item.to_string(),
            row.execution_source.clone(),
            row.success.to_string(),
            row.outcome.map_or("", Outcome::as_str).to_owned(),
            text_or_empty(row.failure_cause.as_ref()),
            text_or_empty(row.start_time),
            text_or_empty(row.complete_time),
            text_or_empty(row.duration_ms),
            text_or_empty(row.lateness_ms),
            text_or_empty(row.attempt),
            row.reason.map_or("", RunReason::as_str).to_owned(),
            text_or_empty(row.instance.as_ref()),
        ]
    }
}

impl HistoryTable for TraceFilter {
    type Row = Trace;
    const NAME: &'static str = "traces";
    const COLUMNS: &'static str = "id,jobName,runId,originalTaskId,taskId,slaveId,executionType,shardingItems,state,message,creationTime\r\n";

    fn set_page(&mut self, after: Option<Cursor>, limit: usize) {
        (self.after, self.limit) = (after, Some(limit));
    }

    async fn page(&self, store: &Store) -> Result<Page<Trace>, StoreError> {
        store.traces(self).await
    }

    fn cells(row: &Trace) -> Vec<String> {
        vec![
            row.id.clone(),
            row.job_name.clone(),
            text_or_empty(row.run_id.as_ref()),
            row.original_task_id.clone(),
            row.task_id.clone(),
            row.slave_id.clone(),
            row.execution_type.clone(),
            row.sharding_items.clone(),
            row.state.clone(),
            row.message.clone(),
            text_or_empty(row.creation_time),
        ]
    }
}

/// Streams all rows, reading a page whenever the client has taken the previous one.
async fn export<T: HistoryTable>(
    access: Authorized<Viewer>,
    mut table: T,
    format: ExportFormat,
) -> Result<Response, Problem> {
    let slot = access.app.open_stream(&access.caller)?;
    let store = access.history().await?;
    table.set_page(None, MAX_PAGE_SIZE);
    let prefix = match format {
        ExportFormat::Csv => T::COLUMNS,
        ExportFormat::Json => "[",
    };
    let export = Export {
        _slot: slot,
        access,
        store,
        table,
        format,
        prefix: Some(prefix),
        rows: 0,
        is_done: false,
    };
    let chunks = stream::unfold(export, |mut export| async move {
        let chunk = export.next().await?;
        Some((chunk, export))
    });
    let (media_type, extension) = match format {
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
        ExportFormat::Json => ("application/json", "json"),
    };
    let name = format!("attachment; filename=\"{}.{extension}\"", T::NAME);
    let headers =
        [(header::CONTENT_TYPE, media_type.to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

/// State of a running export.
struct Export<T> {
    _slot: StreamSlot,
    access: Authorized<Viewer>,
    store: Store,
    table: T,
    format: ExportFormat,
    /// Header line or opening bracket, until it is sent.
    prefix: Option<&'static str>,
    rows: usize,
    is_done: bool,
}

impl<T: HistoryTable> Export<T> {
    /// The next chunk. An error aborts the response, so that a truncated export cannot be mistaken for a complete one.
    async fn next(&mut self) -> Option<Result<String, BoxError>> {
        if let Some(prefix) = self.prefix.take() {
            return Some(Ok(prefix.to_owned()));
        }
        if self.is_done {
            return None;
        }
        let page = match self.page().await {
            Ok(page) => page,
            Err(error) => {
                self.is_done = true;
                return Some(Err(error));
            }
        };
        let mut chunk = String::new();
        for row in &page.rows {
            match self.format {
                ExportFormat::Csv => chunk.push_str(&csv_line(&T::cells(row))),
                ExportFormat::Json => {
                    chunk.push_str(if self.rows == 0 { "" } else { ",\n" });
                    chunk.push_str(&serde_json::to_string(row).unwrap_or_default());
                }
            }
            self.rows += 1;
        }
        self.is_done = page.next.is_none() || self.rows >= MAX_EXPORTED_ROWS;
        if self.is_done && self.format == ExportFormat::Json {
            chunk.push(']');
        }
        self.table.set_page(page.next, MAX_PAGE_SIZE);
        Some(Ok(chunk))
    }

    /// The next page, as long as the caller may read it.
    async fn page(&mut self) -> Result<Page<T::Row>, BoxError> {
        let page = self.table.page(&self.store).await?;
        let Authorized { app, caller, registry, .. } = &self.access;
        if !may_listen(app, caller, registry) {
            return Err("the right to read this history has ended".into());
        }
        Ok(page)
    }
}

fn csv_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| csv_cell(cell)).collect();
    cells.join(",") + "\r\n"
}

/// A CSV cell. Text that a spreadsheet would treat as a formula gets an apostrophe: messages of jobs may contain foreign input.
fn csv_cell(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let guard =
        if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number { "'" } else { "" };
    if guard.is_empty() && !cell.contains([',', '"', '\r', '\n']) {
        return cell.to_owned();
    }
    format!("\"{guard}{}\"", cell.replace('"', "\"\""))
}

fn text_or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_is_quoted_and_never_a_formula() {
        for (cell, expected) in [
            ("plain", "plain"),
            ("-7", "-7"),
            ("a,b", "\"a,b\""),
            ("say \"no\"\nagain", "\"say \"\"no\"\"\nagain\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
        ] {
            assert_eq!(csv_cell(cell), expected);
        }
    }
}
