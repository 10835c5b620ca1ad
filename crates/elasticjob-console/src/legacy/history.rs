//! Event traces and data sources as the ancestor's clients see them: the history of the registry they have chosen.
//!
//! A data source bears the name of the registry whose history it is. The ancestor connected to whatever a URL said; here it has to be on the list.

use axum::response::Response;
use elasticjob::history::{ExecutionFilter, Named as Names, Span, TraceFilter, from_jdbc};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    envelope::Asker,
    registry_center::{Named, chosen, is_added},
};
use crate::{
    auth::{
        accounts::Role,
        who::{Door, Looks},
    },
    history::{
        store_routes::{add as add_history, remove as remove_history, try_out},
        stores::Book,
    },
    http::{
        extract::{Body, MaybeBody, Path, instant},
        problem::Problem,
    },
};

/// How far into a list can be paged: it is walked from its beginning.
const DEEPEST: usize = 10_000;

/// A page of the ancestor's.
#[derive(Serialize)]
struct Page<T> {
    total: i64,
    rows: Vec<T>,
}

/// Which page; what is asked besides has its own names.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExecutionsAsked {
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
pub(super) struct TracesAsked {
    page_size: Option<usize>,
    page_number: Option<usize>,
    job_name: Option<String>,
    state: Option<String>,
    source: Option<String>,
    execution_type: Option<String>,
    creation_time_from: Option<Value>,
    creation_time_to: Option<Value>,
}

/// From which row on, and until which.
fn rows(size: Option<usize>, number: Option<usize>) -> Result<(usize, usize), Problem> {
    let (size, number) = (size.unwrap_or(10), number.unwrap_or(1));
    let end = size.saturating_mul(number);
    if size == 0 || number == 0 || end > DEEPEST {
        let text = format!(
            "pages begin at 1 and end at row {DEEPEST}; hint: say from when until when, or use /api/v1"
        );
        return Err(Problem::invalid("pageNumber", text));
    }
    Ok((end - size, end))
}

/// A time as the ancestor's clients send it: text, or milliseconds.
fn moment(field: &str, given: Option<&Value>) -> Result<Option<Timestamp>, Problem> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => instant(field, text).map(Some),
        Some(other) => {
            let at = other.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok());
            let wrong = || Problem::invalid(field, "that is no time; hint: 2026-11-15T06:36:07Z");
            at.ok_or_else(wrong).map(Some)
        }
    }
}

/// What was typed, if anything.
fn typed(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    let text = text.filter(|text| !text.is_empty());
    if text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Problem::invalid(field, "there is a NUL in it"));
    }
    Ok(text)
}

/// An execution in the ancestor's words.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Executed {
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

/// A trace in the ancestor's words.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Traced {
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
    asker: Asker,
    body: Result<MaybeBody<ExecutionsAsked>, Problem>,
) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door: Door<Looks>| {
            let MaybeBody(wanted) = body?;
            let (skipped, end) = rows(wanted.page_size, wanted.page_number)?;
            let filter = ExecutionFilter {
                job: typed("jobName", wanted.job_name)?,
                ip: typed("ip", wanted.ip)?,
                success: wanted.is_success,
                span: Span {
                    since: moment("startTimeFrom", wanted.start_time_from.as_ref())?,
                    until: moment("startTimeTo", wanted.start_time_to.as_ref())?,
                },
                limit: Some(end),
                ..ExecutionFilter::default()
            };
            let store = door.history().await?;
            let total = store.execution_count(&filter).await?;
            let found = store.executions(&filter).await?.rows.into_iter().skip(skipped);
            let rows = found.map(|row| Executed {
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
            Ok(Page { total, rows: rows.collect() })
        })
        .await
}

pub(super) async fn traces(
    asker: Asker,
    body: Result<MaybeBody<TracesAsked>, Problem>,
) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door: Door<Looks>| {
            let MaybeBody(wanted) = body?;
            let (skipped, end) = rows(wanted.page_size, wanted.page_number)?;
            let filter = TraceFilter {
                job: typed("jobName", wanted.job_name)?,
                state: typed("state", wanted.state)?,
                source: typed("source", wanted.source)?,
                execution_type: typed("executionType", wanted.execution_type)?,
                span: Span {
                    since: moment("creationTimeFrom", wanted.creation_time_from.as_ref())?,
                    until: moment("creationTimeTo", wanted.creation_time_to.as_ref())?,
                },
                limit: Some(end),
                ..TraceFilter::default()
            };
            let store = door.history().await?;
            let total = store.trace_count(&filter).await?;
            let found = store.traces(&filter).await?.rows.into_iter().skip(skipped);
            let rows = found.map(|row| Traced {
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
            Ok(Page { total, rows: rows.collect() })
        })
        .await
}

async fn names(asker: Asker, kind: Names, prefix: String) -> Response {
    asker
        .ask::<Looks, _>(Role::Viewer, async |door: Door<Looks>| {
            let prefix = typed("prefix", Some(prefix))?.unwrap_or_default();
            Ok(door.history().await?.names(kind, &prefix).await?)
        })
        .await
}

pub(super) async fn executed_jobs(asker: Asker, Path(prefix): Path<String>) -> Response {
    names(asker, Names::ExecutedJob, prefix).await
}

pub(super) async fn addresses(asker: Asker, Path(prefix): Path<String>) -> Response {
    names(asker, Names::Ip, prefix).await
}

pub(super) async fn traced_jobs(asker: Asker, Path(prefix): Path<String>) -> Response {
    names(asker, Names::TracedJob, prefix).await
}

/// A data source in the ancestor's words. What was a secret is never sent back.
#[derive(Serialize)]
struct Source {
    name: String,
    driver: &'static str,
    url: String,
    username: String,
    password: &'static str,
    activated: bool,
}

const DRIVERS: [&str; 2] = ["com.mysql.cj.jdbc.Driver", "org.postgresql.Driver"];

impl Source {
    fn new(book: &Book, activated: bool) -> Self {
        let url = book.url.to_string();
        let driver = match url.split(':').next().unwrap_or_default() {
            "sqlite" => "org.sqlite.JDBC",
            "mysql" | "mariadb" => DRIVERS[0],
            _ => DRIVERS[1],
        };
        let credentials = url.rsplit_once('@').and_then(|(credentials, _)| {
            credentials.split_once("://").map(|(_, credentials)| credentials)
        });
        let username = credentials.unwrap_or_default().split(':').next().unwrap_or_default();
        let password = if credentials.is_some_and(|said| said.contains(':')) { "***" } else { "" };
        let username = username.to_owned();
        Self { name: book.name.clone(), driver, url, username, password, activated }
    }
}

pub(super) async fn drivers(asker: Asker) -> Response {
    asker.about(async |_, _| Ok(DRIVERS)).await
}

pub(super) async fn load(asker: Asker) -> Response {
    asker
        .about(async |who, shared| {
            let chosen = chosen(&who, &shared);
            let all = shared.books.all();
            let seen = all.iter().filter(|book| who.role(&book.name).is_some());
            let sources =
                seen.map(|book| Source::new(book, chosen.as_deref() == Some(&*book.name)));
            Ok(sources.collect::<Vec<_>>())
        })
        .await
}

pub(super) async fn activated(asker: Asker) -> Response {
    asker
        .bare()
        .about(async |who, shared| {
            Ok(chosen(&who, &shared).is_some_and(|name| shared.books.get(&name).is_some()))
        })
        .await
}

#[derive(Deserialize)]
pub(super) struct SourceSent {
    name: String,
    url: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
}

impl SourceSent {
    /// The same as one of our URLs, which is then checked as every other.
    fn url(&self) -> Result<String, Problem> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (username, password) = (said(&self.username), said(&self.password));
        from_jdbc(&self.url, username.as_deref(), password.as_deref()).map_err(|kind| {
            let text =
                format!("{kind} cannot be used here; hint: jdbc:mysql://… or jdbc:postgresql://…");
            Problem::invalid("url", text)
        })
    }
}

pub(super) async fn add(asker: Asker, body: Result<Body<SourceSent>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            who.needs(Role::Admin)?;
            let Body(sent) = body?;
            is_added(add_history(&shared, &who, &sent.name, &sent.url()?))
        })
        .await
}

pub(super) async fn test(asker: Asker, body: Result<Body<SourceSent>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            who.needs(Role::Admin)?;
            let Body(sent) = body?;
            Ok(try_out(&shared, &who, &sent.url()?).await?.is_reachable)
        })
        .await
}

/// A history goes with its registry: it is there, or it is not.
pub(super) async fn connect(asker: Asker, body: Result<Body<Named>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            let Body(Named { name }) = body?;
            who.at(&shared, &name, Role::Viewer)?;
            shared.books.of(&name).await?;
            Ok(true)
        })
        .await
}

pub(super) async fn remove(asker: Asker, body: Result<Body<Named>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            let Body(Named { name }) = body?;
            remove_history(&shared, &who, &name)?;
            Ok(true)
        })
        .await
}
