//! The ancestor's two views: executions of shards, and traces of state. A page at a time, or all of it to take along, as CSV or JSON.

use crate::http::handler::routes;
use axum::{
    Json,
    body::Body,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use elasticjob::history::{
    Cursor, Execution, ExecutionFilter, Page, Store, StoreError, Trace, TraceFilter,
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{LARGEST_PAGE, limit, runs::after, span, word};
use crate::{
    auth::who::{Door, Looks, text},
    http::{extract::Query, problem::Problem, state::Shared},
};

/// How many rows can be taken along at once.
const MOST_EXPORTED: usize = 1_000_000;

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(executions))
        .routes(routes!(executions_csv))
        .routes(routes!(executions_json))
        .routes(routes!(traces))
        .routes(routes!(traces_csv))
        .routes(routes!(traces_json))
}

/// Which executions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExecutionsAsked {
    job: Option<String>,
    /// The address of a server.
    ip: Option<String>,
    /// Whether it did what it had to do.
    success: Option<bool>,
    /// That began from then on.
    #[param(format = DateTime)]
    from: Option<String>,
    /// That began before.
    #[param(format = DateTime)]
    to: Option<String>,
    /// What the page before named as `next`.
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl ExecutionsAsked {
    fn filter(self) -> Result<ExecutionFilter, Problem> {
        Ok(ExecutionFilter {
            job: word("job", self.job)?,
            ip: word("ip", self.ip)?,
            success: self.success,
            span: span(self.from.as_deref(), self.to.as_deref())?,
            after: after(self.after.as_deref())?,
            limit: Some(limit("limit", self.limit, 50, LARGEST_PAGE)?),
        })
    }
}

/// Which traces.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TracesAsked {
    job: Option<String>,
    /// `TASK_STAGING`, `TASK_RUNNING`, `TASK_FINISHED`, `TASK_FAILED`, `TASK_ERROR` or `TASK_KILLED`.
    state: Option<String>,
    /// Who told it: `LITE_EXECUTOR` and so on.
    source: Option<String>,
    /// `READY`, `FAILOVER` and so on.
    execution_type: Option<String>,
    /// From then on.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Before.
    #[param(format = DateTime)]
    to: Option<String>,
    /// What the page before named as `next`.
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl TracesAsked {
    fn filter(self) -> Result<TraceFilter, Problem> {
        Ok(TraceFilter {
            job: word("job", self.job)?,
            state: word("state", self.state)?,
            source: word("source", self.source)?,
            execution_type: word("executionType", self.execution_type)?,
            span: span(self.from.as_deref(), self.to.as_deref())?,
            after: after(self.after.as_deref())?,
            limit: Some(limit("limit", self.limit, 50, LARGEST_PAGE)?),
        })
    }
}

/// A page of executions.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutionPage {
    items: Vec<Execution>,
    /// What to give as `after` for the next page; nothing if this was the last.
    next: Option<String>,
}

/// A page of traces.
#[derive(Debug, Serialize, ToSchema)]
struct TracePage {
    items: Vec<Trace>,
    /// What to give as `after` for the next page; nothing if this was the last.
    next: Option<String>,
}

/// Executions of shards, newest first, whoever wrote them. With `Accept: text/csv` all of them, as CSV.
#[utoipa::path(get, path = "/r/{registry}/executions", tag = "history", params(("registry" = String, Path), ExecutionsAsked),
    responses((status = 200, body = ExecutionPage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions(
    door: Door<Looks>,
    headers: HeaderMap,
    Query(asked): Query<ExecutionsAsked>,
) -> Result<Response, Problem> {
    let filter = asked.filter()?;
    let store = door.history().await?;
    if wants_csv(&headers) {
        return Ok(exported(store, filter, Form::Csv));
    }
    let page = store.executions(&filter).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(ExecutionPage { items: page.rows, next }).into_response())
}

/// All executions of this kind as CSV, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/executions.csv", tag = "history", params(("registry" = String, Path), ExecutionsAsked),
    responses((status = 200, body = String, content_type = "text/csv"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions_csv(
    door: Door<Looks>,
    Query(asked): Query<ExecutionsAsked>,
) -> Result<Response, Problem> {
    Ok(exported(door.history().await?, asked.filter()?, Form::Csv))
}

/// All executions of this kind as a JSON array, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/executions.json", tag = "history", params(("registry" = String, Path), ExecutionsAsked),
    responses((status = 200, body = [Execution]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn executions_json(
    door: Door<Looks>,
    Query(asked): Query<ExecutionsAsked>,
) -> Result<Response, Problem> {
    Ok(exported(door.history().await?, asked.filter()?, Form::Json))
}

/// Changes of state of an instance's part of a run, newest first, whoever wrote them. With `Accept: text/csv` all of them, as CSV.
#[utoipa::path(get, path = "/r/{registry}/traces", tag = "history", params(("registry" = String, Path), TracesAsked),
    responses((status = 200, body = TracePage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces(
    door: Door<Looks>,
    headers: HeaderMap,
    Query(asked): Query<TracesAsked>,
) -> Result<Response, Problem> {
    let filter = asked.filter()?;
    let store = door.history().await?;
    if wants_csv(&headers) {
        return Ok(exported(store, filter, Form::Csv));
    }
    let page = store.traces(&filter).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(Json(TracePage { items: page.rows, next }).into_response())
}

/// All traces of this kind as CSV, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/traces.csv", tag = "history", params(("registry" = String, Path), TracesAsked),
    responses((status = 200, body = String, content_type = "text/csv"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces_csv(
    door: Door<Looks>,
    Query(asked): Query<TracesAsked>,
) -> Result<Response, Problem> {
    Ok(exported(door.history().await?, asked.filter()?, Form::Csv))
}

/// All traces of this kind as a JSON array, newest first: at most a million.
#[utoipa::path(get, path = "/r/{registry}/traces.json", tag = "history", params(("registry" = String, Path), TracesAsked),
    responses((status = 200, body = [Trace]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn traces_json(
    door: Door<Looks>,
    Query(asked): Query<TracesAsked>,
) -> Result<Response, Problem> {
    Ok(exported(door.history().await?, asked.filter()?, Form::Json))
}

fn wants_csv(headers: &HeaderMap) -> bool {
    let accepted = text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    accepted.split([',', ';']).any(|kind| kind.trim().eq_ignore_ascii_case("text/csv"))
}

/// As what a table is taken along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Json,
}

/// A table that can be taken along.
trait Table: Send + 'static {
    type Row: Serialize + Send;
    const NAME: &'static str;
    const COLUMNS: &'static str;

    /// From here on, so many rows.
    fn go_on(&mut self, after: Option<Cursor>, limit: usize);
    fn page(
        &self,
        store: &Store,
    ) -> impl Future<Output = Result<Page<Self::Row>, StoreError>> + Send;
    fn cells(row: &Self::Row) -> Vec<String>;
}

impl Table for ExecutionFilter {
    type Row = Execution;
    const NAME: &'static str = "executions";
    const COLUMNS: &'static str = "id,jobName,runId,taskId,hostname,ip,shardingItem,executionSource,success,outcome,failureCause,startTime,completeTime,durationMs,latenessMs,attempt,reason,instance\r\n";

    fn go_on(&mut self, after: Option<Cursor>, limit: usize) {
        (self.after, self.limit) = (after, Some(limit));
    }

    async fn page(&self, store: &Store) -> Result<Page<Execution>, StoreError> {
        store.executions(self).await
    }

    fn cells(row: &Execution) -> Vec<String> {
        vec![
            row.id.clone(),
            row.job_name.clone(),
            said(row.run_id.as_ref()),
            row.task_id.clone(),
            row.hostname.clone(),
            row.ip.clone(),
            row.sharding_item.to_string(),
            row.execution_source.clone(),
            row.success.to_string(),
            said(row.outcome.as_ref()),
            said(row.failure_cause.as_ref()),
            said(row.start_time),
            said(row.complete_time),
            said(row.duration_ms),
            said(row.lateness_ms),
            said(row.attempt),
            said(row.reason.as_ref()),
            said(row.instance.as_ref()),
        ]
    }
}

impl Table for TraceFilter {
    type Row = Trace;
    const NAME: &'static str = "traces";
    const COLUMNS: &'static str = "id,jobName,runId,originalTaskId,taskId,slaveId,executionType,shardingItems,state,message,creationTime\r\n";

    fn go_on(&mut self, after: Option<Cursor>, limit: usize) {
        (self.after, self.limit) = (after, Some(limit));
    }

    async fn page(&self, store: &Store) -> Result<Page<Trace>, StoreError> {
        store.traces(self).await
    }

    fn cells(row: &Trace) -> Vec<String> {
        vec![
            row.id.clone(),
            row.job_name.clone(),
            said(row.run_id.as_ref()),
            row.original_task_id.clone(),
            row.task_id.clone(),
            row.slave_id.clone(),
            row.execution_type.clone(),
            row.sharding_items.clone(),
            row.state.clone(),
            row.message.clone(),
            said(row.creation_time),
        ]
    }
}

/// Everything, a page at a time, as fast as it is taken.
fn exported<T: Table>(store: Store, mut table: T, form: Form) -> Response {
    table.go_on(None, LARGEST_PAGE);
    let begin = match form {
        Form::Csv => T::COLUMNS,
        Form::Json => "[",
    };
    let export = Export { store, table, form, begin: Some(begin), rows: 0, is_over: false };
    let pieces = stream::unfold(export, |mut export| async move {
        let piece = export.next().await?;
        Some((piece, export))
    });
    let (kind, extension) = match form {
        Form::Csv => ("text/csv; charset=utf-8", "csv"),
        Form::Json => ("application/json", "json"),
    };
    let name = format!("attachment; filename=\"{}.{extension}\"", T::NAME);
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, name)];
    (headers, Body::from_stream(pieces)).into_response()
}

/// A table that is being taken along.
struct Export<T> {
    store: Store,
    table: T,
    form: Form,
    /// What comes first, before it came.
    begin: Option<&'static str>,
    rows: usize,
    is_over: bool,
}

impl<T: Table> Export<T> {
    /// The next piece. An error cuts the answer off, so that nobody takes a part for the whole.
    async fn next(&mut self) -> Option<Result<String, StoreError>> {
        if let Some(begin) = self.begin.take() {
            return Some(Ok(begin.to_owned()));
        }
        if self.is_over {
            return None;
        }
        let page = match self.table.page(&self.store).await {
            Ok(page) => page,
            Err(error) => {
                self.is_over = true;
                return Some(Err(error));
            }
        };
        let mut piece = String::new();
        for row in &page.rows {
            match self.form {
                Form::Csv => piece.push_str(&line(&T::cells(row))),
                Form::Json => {
                    piece.push_str(if self.rows == 0 { "" } else { ",\n" });
                    piece.push_str(&serde_json::to_string(row).unwrap_or_default());
                }
            }
            self.rows += 1;
        }
        self.is_over = page.next.is_none() || self.rows >= MOST_EXPORTED;
        if self.is_over && self.form == Form::Json {
            piece.push(']');
        }
        self.table.go_on(page.next, LARGEST_PAGE);
        Some(Ok(piece))
    }
}

/// A line of CSV.
fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    cells.join(",") + "\r\n"
}

/// A cell of CSV. What a spreadsheet would take for a formula gets an apostrophe: jobs print what others send them.
fn quoted(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let guard =
        if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number { "'" } else { "" };
    if guard.is_empty() && !cell.contains([',', '"', '\r', '\n']) {
        return cell.to_owned();
    }
    format!("\"{guard}{}\"", cell.replace('"', "\"\""))
}

fn said(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_a_cell_and_is_never_a_formula() {
        for (cell, told) in [
            ("plain", "plain"),
            ("-7", "-7"),
            ("a,b", "\"a,b\""),
            ("say \"no\"\nagain", "\"say \"\"no\"\"\nagain\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
        ] {
            assert_eq!(quoted(cell), told);
        }
    }
}
