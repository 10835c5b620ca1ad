//! The complete router of the console.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::Uri,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
};

use super::{
    body::MAX_BODY_BYTES,
    guard::{AllowedHosts, guard},
    health,
    lifecycle::run_request,
    openapi,
    pages::{no_such_path, pages},
    problem::{Code, Problem},
    state::AppState,
};
use crate::legacy;

pub(super) fn router(app: AppState, hosts: AllowedHosts) -> Router {
    Router::new()
        .merge(openapi::router())
        .merge(legacy::router())
        .merge(health::router())
        .fallback(pages)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(app.clone(), run_request))
        .layer(from_fn_with_state(hosts, guard))
        .with_state(app)
}

async fn method_not_allowed(uri: Uri) -> Response {
    let text = format!("{} does not support this method", uri.path());
    if uri.path().starts_with("/api") {
        return Problem::new(Code::MethodNotAllowed, text)
            .with_hint("GET /api/v1/openapi.json lists all paths")
            .into_response();
    }
    no_such_path(uri.path()).into_response()
}
