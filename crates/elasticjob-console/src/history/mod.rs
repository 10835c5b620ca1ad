//! Run history: runs, their output, figures, and Java ElasticJob's two tables; each registry has its own history store.
//!
//! * [`stores`] — connections to the history stores; [`store_routes`] — list, test, add and remove them.
//! * [`runs`] — list of runs, one run, recent runs by shard; [`output`] — the output of a run, also live.
//! * [`figures`] — counts, durations, delays, failures; [`tables`] — executions and traces, also as CSV or JSON export.
//! * [`run_changes`] — detects new and changed runs for event streams.

mod figures;
mod output;
pub(crate) mod run_changes;
mod runs;
pub(crate) mod store_routes;
pub(crate) mod stores;
mod tables;

use elasticjob::history::Span;
use jiff::{SignedDuration, Timestamp};
use utoipa_axum::router::OpenApiRouter;

use crate::http::{extract::parse_timestamp, problem::Problem, state::AppState};

const MAX_PAGE_SIZE: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(runs::router())
        .merge(output::router())
        .merge(figures::router())
        .merge(tables::router())
        .merge(store_routes::router())
}

/// Parses the time span of a query.
fn parse_span(from: Option<&str>, to: Option<&str>) -> Result<Span, Problem> {
    let since = from.map(|from| parse_timestamp("from", from)).transpose()?;
    let until = to.map(|to| parse_timestamp("to", to)).transpose()?;
    if let (Some(since), Some(until)) = (since, until)
        && since >= until
    {
        return Err(Problem::invalid("to", "the span ends before it begins")
            .with_hint("from must be earlier than to"));
    }
    Ok(Span { since, until })
}

/// Like [`parse_span`]; without `from`, the span covers this many hours before its end.
fn span_or_last_hours(
    from: Option<&str>,
    to: Option<&str>,
    hours: i64,
    now: Timestamp,
) -> Result<Span, Problem> {
    let mut span = parse_span(from, to)?;
    if span.since.is_none() {
        let end = span.until.unwrap_or(now);
        let since = end.checked_sub(SignedDuration::from_hours(hours));
        span.since = Some(since.unwrap_or(Timestamp::MIN));
    }
    Ok(span)
}

/// Checks a requested number of rows.
fn check_limit(
    field: &str,
    requested: Option<usize>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    match requested.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(Problem::invalid(field, format!("must be 1 to {max}"))),
    }
}

/// Rejects NUL, which databases do not accept in text.
pub(crate) fn check_text(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    if text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Problem::invalid(field, "the text contains a NUL character"));
    }
    Ok(text)
}
