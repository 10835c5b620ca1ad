//! The web pages built by `make web`, embedded in the binary. Without them, a page explains how to build them.

use axum::{
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::{
    guard::page_csp,
    problem::{Code, Problem},
};
use crate::auth::random_secret;

/// Placeholder for the nonce in `index.html`.
const NONCE_PLACEHOLDER: &str = "__CSP_NONCE__";
const NOT_BUILT_PAGE: &str = include_str!("docs/missing.html");

#[derive(RustEmbed)]
#[folder = "web/dist"]
#[allow_missing = true]
struct Dist;

/// Serves a file of the pages; every other path gets `index.html`, whose router handles it.
pub(crate) async fn pages(
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Problem::new(Code::MethodNotAllowed, "only GET and HEAD are allowed here"));
    }
    let path = uri.path().trim_start_matches('/');
    if path == "api" || path.starts_with("api/") {
        return Err(no_such_path(uri.path()));
    }
    if let Some(file) = Dist::get(path).filter(|_| !path.is_empty() && path != "index.html") {
        return Ok(asset(path, file, accepts_gzip(&headers)));
    }
    if path.starts_with("assets/") {
        return Err(no_such_path(uri.path()));
    }
    let Some(index) = Dist::get("index.html") else {
        return Ok((StatusCode::OK, html_headers("no-store"), NOT_BUILT_PAGE).into_response());
    };
    let nonce = random_secret(18)?;
    let page = String::from_utf8_lossy(&index.data).replace(NONCE_PLACEHOLDER, &nonce);
    let mut headers = html_headers("no-store");
    if let Ok(policy) = HeaderValue::try_from(page_csp(&nonce)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    Ok((headers, page).into_response())
}

pub(crate) fn no_such_path(path: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is nothing at {path}"))
        .with_hint("GET /api/v1/openapi.json lists all paths")
}

/// Whether the client accepts the gzip variants made at build time.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| {
        accepted.split(',').any(|each| {
            let (coding, weight) = each.split_once(';').unwrap_or((each, ""));
            coding.trim() == "gzip" && !matches!(weight.trim(), "q=0" | "q=0.0")
        })
    })
}

fn asset(path: &str, file: EmbeddedFile, accepts_gzip: bool) -> Response {
    // Asset file names contain a hash of their content.
    let cache_control = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let content_type = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, cache_control),
        (header::VARY, "accept-encoding"),
    ];
    match Dist::get(&format!("{path}.gz")).filter(|_| accepts_gzip) {
        Some(compressed) => {
            let coding = [(header::CONTENT_ENCODING, "gzip")];
            (headers, coding, compressed.data.into_owned()).into_response()
        }
        None => (headers, file.data.into_owned()).into_response(),
    }
}

fn html_headers(cache_control: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache_control)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_file_is_sent_only_to_clients_that_accept_gzip() {
        let accepts = |accepted: &'static str| {
            let accepted = HeaderValue::from_static(accepted);
            accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted)]))
        };

        assert!(accepts("gzip, deflate, br") && accepts("br;q=1.0, gzip;q=0.8"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("x-gzip-like"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
