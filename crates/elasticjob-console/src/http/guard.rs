//! Checks the Host header of every request and adds security and caching headers to every response.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::problem::{Code, Problem};

/// Only own resources, nothing inline.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
    manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// The content security policy of a page whose components add styles with this nonce.
pub(crate) fn page_csp(nonce: &str) -> String {
    CSP.replace("style-src 'self'", &format!("style-src 'self' 'nonce-{nonce}'"))
}

/// Host names under which this console may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct AllowedHosts {
    listen: IpAddr,
    names: Vec<String>,
    /// The console is reached by HTTPS; browsers are told to use nothing else (HSTS).
    is_https: bool,
}

impl AllowedHosts {
    /// `names` are accepted in addition to the address the console listens on.
    pub(crate) fn new(listen: SocketAddr, names: Vec<String>, is_https: bool) -> Self {
        Self { listen: listen.ip(), names, is_https }
    }

    /// Protects against DNS rebinding: a foreign page can point its own name at this console, but the browser then sends that name as the host.
    fn allows(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        if self.names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return true;
        }
        match name.parse::<IpAddr>() {
            // An IP address cannot be re-pointed by an attacker.
            Ok(address) => !self.listen.is_loopback() || address.is_loopback(),
            Err(_) => self.listen.is_loopback() && name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// Middleware: rejects foreign host names and adds the headers.
pub(crate) async fn guard(
    State(hosts): State<AllowedHosts>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = request.uri().path().starts_with("/api");
    let host = request_host(request.uri(), request.headers()).unwrap_or_default();
    let mut response = if hosts.allows(host) {
        next.run(request).await
    } else {
        Problem::new(
            Code::Misdirected,
            format!("this console is not reachable under the host name {host:?}"),
        )
        .with_hint("add it to hosts in the configuration file")
        .into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(CSP));
    if hosts.is_https {
        let value = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    if is_api {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}

fn request_host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let header_host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    header_host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_host_name_is_rejected() {
        let local = AllowedHosts::new(
            "127.0.0.1:8899".parse().unwrap(),
            vec!["console.example.com".to_owned()],
            false,
        );
        for host in
            ["127.0.0.1:8899", "localhost:8899", "LOCALHOST", "[::1]:8899", "console.example.com"]
        {
            assert!(local.allows(host), "{host}");
        }
        for host in ["", "evil.example.com:8899", "10.0.0.7:8899", "localhost.evil.com", "[::2"] {
            assert!(!local.allows(host), "{host}");
        }
        let everywhere = AllowedHosts::new("0.0.0.0:8899".parse().unwrap(), Vec::new(), false);
        assert!(everywhere.allows("10.0.0.7:8899") && !everywhere.allows("localhost:8899"));
        assert!(!everywhere.allows("evil.example.com"));
    }
}
