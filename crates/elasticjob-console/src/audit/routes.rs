//! The audit trail over HTTP.

use crate::http::handler::routes;
use axum::{Json, extract::State};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::trail::Entry;
use crate::{
    auth::{accounts::Role, caller::Caller},
    http::{
        extract::{Query, parse_timestamp},
        paging::{Order, PageRequest, paged_query},
        problem::Problem,
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(audit))
}

paged_query! {
    struct AuditQuery {
        registry: Option<String> = None,
        username: Option<String> = None,
        /// Prefix of the action: `job.`, `job.trigger`, `refused`.
        action: Option<String> = None,
        target: Option<String> = None,
        /// Earliest time, inclusive.
        #[param(format = DateTime)]
        from: Option<String> = None,
        /// Latest time, exclusive.
        #[param(format = DateTime)]
        to: Option<String> = None,
        /// desc: newest first; asc: oldest first.
        #[param(inline)]
        order: Order = Order::Desc,
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditPage {
    total: usize,
    page: usize,
    page_size: usize,
    items: Vec<Entry>,
    /// Why entries are not on disk; they would be lost if the console stopped.
    problem: Option<String>,
}

/// Lists changes, refusals and logins, newest first.
///
/// An admin of a registry sees its entries; entries about the console itself require an admin of `*`.
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditQuery), responses((status = 200, body = AuditPage), (status = 403, body = Problem)))]
async fn audit(
    State(app): State<AppState>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditPage>, Problem> {
    if caller.roles().values().all(|role| *role < Role::Admin) {
        caller.require_everywhere(Role::Admin)?;
    }
    let requested = query.requested_page()?;
    let since = query.from.as_deref().map(|from| parse_timestamp("from", from)).transpose()?;
    let until = query.to.as_deref().map(|to| parse_timestamp("to", to)).transpose()?;
    let is_in_span = |at: Timestamp| {
        since.is_none_or(|since| since <= at) && until.is_none_or(|until| at < until)
    };
    let matches = |wanted: &Option<String>, given: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| given == Some(wanted))
    };
    let PageRequest { page, page_size } = requested;
    let (total, items) = app.audit.page(query.order, requested.skip(), page_size, |entry| {
        let is_allowed = match &entry.registry {
            Some(registry) => caller.role(registry) == Some(Role::Admin),
            None => caller.require_everywhere(Role::Admin).is_ok(),
        };
        is_allowed
            && is_in_span(entry.at)
            && matches(&query.registry, entry.registry.as_deref())
            && matches(&query.username, Some(&entry.username))
            && matches(&query.target, entry.target.as_deref())
            && query.action.as_deref().is_none_or(|action| entry.action.starts_with(action))
    });
    let problem = app.audit.problem();
    Ok(Json(AuditPage { total, page, page_size, items, problem }))
}
