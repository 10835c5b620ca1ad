//! The OpenAPI 3.1 document, generated from the code, and a page to browse it.

use axum::{Router, body::Bytes, http::header, routing::get};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use super::{openapi_common, openapi_responses, state::AppState};
use crate::{audit, auth, history, jobs, registries};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "ElasticJob console",
        description = "Everything the command line can do, over HTTP. Errors are RFC 9457 problem details. A change by cookie carries the session's CSRF token in X-CSRF-Token."
    ),
    security(("cookie" = []), ("token" = [])),
    modifiers(&SecuritySchemes),
    tags(
        (name = "session", description = "Logging in and out"), (name = "jobs"), (name = "config", description = "A job's configuration"), (name = "shards"),
        (name = "servers", description = "Servers and instances"), (name = "history", description = "Runs, their output and figures"), (name = "live", description = "Events as they happen"),
        (name = "registries"), (name = "accounts", description = "Accounts and API tokens"), (name = "audit"), (name = "tools", description = "Tools that need no registry"),
    )
)]
struct ApiInfo;

struct SecuritySchemes;

impl Modify for SecuritySchemes {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let description = "With HTTPS the name of the cookie has the prefix __Host-.";
        let cookie = ApiKeyValue::with_description(auth::caller::COOKIE, description);
        let cookie = ApiKey::Cookie(cookie);
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(token));
    }
}

/// Everything at `/api/v1`, including the document that describes it.
pub(crate) fn router() -> Router<AppState> {
    let (router, document) = api();
    // A generated document always serializes.
    let document = Bytes::from(serde_json::to_vec(&document).unwrap_or_default());
    router
        .route(
            "/api/v1/openapi.json",
            get(async move || ([(header::CONTENT_TYPE, "application/json")], document)),
        )
        .route(
            "/api/v1/docs",
            get(async || {
                (
                    [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
                    include_str!("docs/index.html"),
                )
            }),
        )
        .route(
            "/api/v1/docs/docs.css",
            get(async || {
                ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("docs/docs.css"))
            }),
        )
        .route(
            "/api/v1/docs/docs.js",
            get(async || {
                (
                    [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")],
                    include_str!("docs/docs.js"),
                )
            }),
        )
}

fn api() -> (Router<AppState>, Document) {
    let (router, mut document) = OpenApiRouter::with_openapi(ApiInfo::openapi())
        .nest("/api/v1", api_routes())
        .split_for_parts();
    openapi_common::complete(&mut document);
    openapi_responses::require_properties(&mut document);
    (router, document)
}

fn api_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(auth::routes::router())
        .merge(auth::oidc::routes::router())
        .merge(jobs::router())
        .merge(history::router())
        .merge(registries::router())
        .merge(audit::routes::router())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use testbed::golden;

    use super::*;

    /// Sentences may be improved at any time; the rest is what clients rely on.
    fn without_sentences(value: &mut Value) {
        match value {
            Value::Object(entries) => {
                for key in ["description", "summary"] {
                    if entries.get(key).is_some_and(Value::is_string) {
                        entries.remove(key);
                    }
                }
                entries.values_mut().for_each(without_sentences);
            }
            Value::Array(items) => items.iter_mut().for_each(without_sentences),
            _ => {}
        }
    }

    #[test]
    fn api_is_as_frozen() {
        let mut document = serde_json::to_value(api().1).unwrap();
        document.sort_all_objects();
        without_sentences(&mut document);

        golden!("openapi.json", format!("{document:#}\n"));
    }
}
