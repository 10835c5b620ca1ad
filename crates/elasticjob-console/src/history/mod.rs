//! What was: runs, what they printed, figures, and the ancestor's two views, each registry's from its own database.
//!
//! * [`books`] — which databases there are, and the line to each; [`places`] — those as clients see them.
//! * [`runs`] — runs, one of them, rounds by shards; [`output`] — what a run printed, also as it prints it.
//! * [`figures`] — how often, how long, how late, what went wrong; [`tables`] — executions and traces, also to take along.
//! * [`news`] — which runs are new or changed, for those who listen.

pub(crate) mod stores;
mod figures;
pub(crate) mod run_changes;
mod output;
pub(crate) mod store_routes;
mod runs;
mod tables;

use elasticjob::history::Span;
use jiff::{SignedDuration, Timestamp};
use utoipa_axum::router::OpenApiRouter;

use crate::http::{extract::parse_timestamp, problem::Problem, state::AppState};

/// How many rows a page may have.
const MAX_PAGE_SIZE: usize = 1_000;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(runs::router())
        .merge(output::router())
        .merge(figures::router())
        .merge(tables::router())
        .merge(store_routes::router())
}

/// From when until when, as a client says it.
fn parse_span(from: Option<&str>, to: Option<&str>) -> Result<Span, Problem> {
    let since = from.map(|from| parse_timestamp("from", from)).transpose()?;
    let until = to.map(|to| parse_timestamp("to", to)).transpose()?;
    if let (Some(since), Some(until)) = (since, until)
        && since >= until
    {
        return Err(Problem::invalid("to", "it ends before it begins; hint: from is the earlier"));
    }
    Ok(Span { since, until })
}

/// The same; so many hours up to its end, or until now, if its beginning is not said.
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

/// How many rows, if that is not too many.
fn check_limit(
    field: &str,
    requested: Option<usize>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    match requested.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(Problem::invalid(field, format!("1 to {max} can be asked for"))),
    }
}

/// A word to look for; databases do not take every character.
fn check_text(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    if text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Problem::invalid(field, "there is a NUL in it"));
    }
    Ok(text)
}
