//! The HTTP client of HTTP jobs and alerts.

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, Response, Url, redirect};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::failure::Failure;
use crate::{job::mask_text, problem::with_causes};

/// The JDK's limit.
const MAX_REDIRECTS: usize = 20;

/// How many bytes of a response body are read.
const MAX_BODY: usize = 64 * 1024;

/// Clients that are kept, the most recently used ones. Timeouts come from the registry, where any number of them may be stored.
const MAX_CLIENTS: usize = 16;

/// Idle connections that a client keeps for each host.
const MAX_IDLE_PER_HOST: usize = 8;

/// HTTP client with trusted certificates, allowed hosts and open connections. One per process is enough.
///
/// It trusts the system's certificates and uses the proxy that the environment names (`HTTPS_PROXY`, `NO_PROXY`).
#[derive(Debug, Default)]
pub struct HttpClient {
    roots: Vec<CertificateDer<'static>>,
    allow_only: Option<Arc<[String]>>,
    no_proxy: bool,
    // reqwest sets timeouts and redirects for a client and not for a request. The most recently used is the first.
    clients: Mutex<VecDeque<((Timeouts, Redirects), Client)>>,
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Redirects {
    /// Those to allowed hosts.
    Allowed,
    /// Those to the same scheme, host and port: reqwest keeps most headers when it follows a redirect, and some of them are secrets.
    SameOrigin,
}

/// Limits for connecting and for waiting until something arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    pub(super) read: Duration,
}

impl HttpClient {
    /// A client that may connect to any host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also trusts these root certificates (PEM).
    pub fn trust_roots(mut self, pem: &[u8]) -> Result<Self, Failure> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        self.roots.extend(
            certificates
                .map_err(|error| Failure::new(format_args!("not a certificate: {error}")))?,
        );
        Ok(self)
    }

    /// Connects only to these hosts, also after redirects: `example.org`, or `example.org:8080` for one port only.
    #[must_use]
    pub fn allow_only(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allow_only =
            Some(hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect());
        self
    }

    /// Uses no proxy, whatever the environment says.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.no_proxy = true;
        self
    }

    /// A client with these timeouts; fails if it may not connect to this URL.
    pub(super) fn client(&self, url: &Url, timeouts: Timeouts) -> Result<Client, Failure> {
        self.client_following(url, timeouts, Redirects::Allowed)
    }

    /// The same with a choice of redirects.
    pub(super) fn client_following(
        &self,
        url: &Url,
        timeouts: Timeouts,
        redirects: Redirects,
    ) -> Result<Client, Failure> {
        if !is_allowed(self.allow_only.as_deref(), url) {
            return Err(Failure::new(format_args!(
                "{} is not among the allowed hosts",
                redacted(url)
            ))
            .permanent());
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (timeouts, redirects);
        let known = clients.iter().position(|(known, _)| *known == key);
        let client = match known.and_then(|index| clients.remove(index)) {
            Some((_, client)) => client,
            None => self.build(timeouts, redirects)?,
        };
        clients.truncate(MAX_CLIENTS - 1);
        clients.push_front((key, client.clone()));
        Ok(client)
    }

    fn build(&self, timeouts: Timeouts, redirects: Redirects) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect_policy(self.allow_only.clone(), redirects))
            // It would tell the target of a redirect the URL, with its query.
            .referer(false)
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST);
        if self.no_proxy {
            builder = builder.no_proxy();
        }
        Ok(builder.build()?)
    }

    fn tls(&self) -> Result<ClientConfig, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in &self.roots {
            roots.add(certificate.clone())?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

fn redirect_policy(allow_only: Option<Arc<[String]>>, redirects: Redirects) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if redirects == Redirects::SameOrigin
            && attempt.previous().first().is_none_or(|sent| sent.origin() != attempt.url().origin())
        {
            let origin = attempt.url().origin().ascii_serialization();
            attempt.error(format!("redirected to {origin}, and the request has secrets"))
        } else if is_allowed(allow_only.as_deref(), attempt.url()) {
            attempt.follow()
        } else {
            let problem = format!(
                "redirected to {}, which is not among the allowed hosts",
                redacted(attempt.url())
            );
            attempt.error(problem)
        }
    })
}

fn is_allowed(allow_only: Option<&[String]>, url: &Url) -> bool {
    let Some(allowed) = allow_only else { return true };
    let (Some(host), port) = (url.host_str(), url.port_or_known_default()) else { return false };
    let with_port = port.map(|port| format!("{host}:{port}"));
    allowed.iter().any(|allowed| allowed == host || Some(allowed) == with_port.as_ref())
}

/// A URL for messages: without user, password and query, which often holds a key, and with tokens in its path masked.
pub(super) fn redacted(url: &Url) -> String {
    let mut redacted = url.clone();
    redacted.set_query(None);
    redacted.set_fragment(None);
    let _ = redacted.set_username("");
    let _ = redacted.set_password(None);
    mask_text(redacted.as_str()).into_owned()
}

/// An error without its URL, which may hold secrets. If the request failed, only the cause is shown.
pub(super) fn error_text(error: reqwest::Error) -> String {
    let error = error.without_url();
    match error.source() {
        Some(cause) if error.is_request() => with_causes(cause),
        _ => with_causes(&error),
    }
}

/// The beginning of a response body, at most [`MAX_BODY`] bytes.
pub(super) async fn body_text(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= MAX_BODY {
            bytes.truncate(MAX_BODY);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn number_of_kept_clients_is_limited_whatever_timeouts_are_stored() {
        let (http_client, url) = (HttpClient::new(), url("http://127.0.0.1/"));
        let timeouts = |millis| {
            let read = Duration::from_millis(millis);
            Timeouts { connect: read, read }
        };
        for millis in 1..=100 {
            http_client.client(&url, timeouts(millis)).unwrap();
            http_client.client(&url, timeouts(1)).unwrap();
        }

        let kept = http_client.clients.lock().unwrap();
        let kept: Vec<_> = kept.iter().map(|(timeouts, _)| *timeouts).collect();
        assert_eq!(kept.len(), MAX_CLIENTS);
        assert_eq!(kept[..3], [timeouts(1), timeouts(100), timeouts(99)], "the ones in use stay");
    }

    #[test]
    fn redacted_url_has_no_secrets() {
        let url = url("https://user:hunter2@example.org:8443/send?key=hunter2#hunter2");

        assert_eq!(redacted(&url), "https://example.org:8443/send");
        let hook = self::url("https://open.example/hook/hunter2");
        assert_eq!(redacted(&hook), "https://open.example/hook/***");
    }

    #[test]
    fn allowed_host_without_port_allows_every_port() {
        let allowed = ["example.org".to_owned(), "localhost:8080".to_owned()];
        let allowed_url = |text| is_allowed(Some(&allowed), &url(text));

        assert!(
            allowed_url("https://EXAMPLE.org/x")
                && allowed_url("http://example.org:81")
                && allowed_url("http://localhost:8080")
        );
        assert!(
            !allowed_url("http://localhost")
                && !allowed_url("http://example.org.evil")
                && !allowed_url("http://evil/example.org")
        );
        assert!(is_allowed(None, &url("http://evil")));
    }
}
