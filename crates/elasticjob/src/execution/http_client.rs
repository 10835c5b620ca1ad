//! The HTTP client of HTTP jobs and alerts.

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{
    failure::{BoxError, Failure},
    outbound::{Outbound, Refusal},
};
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
    outbound: Outbound,
    no_proxy: bool,
    // reqwest sets timeouts, redirects and name resolution for a client and not for a request. The most recently used is the first.
    clients: Mutex<VecDeque<(ClientKey, Client)>>,
}

/// What a client is built for.
#[derive(Debug, Clone)]
struct ClientKey {
    timeouts: Timeouts,
    outbound: Outbound,
    redirects: Redirects,
}

impl PartialEq for ClientKey {
    fn eq(&self, other: &Self) -> bool {
        self.timeouts == other.timeouts
            && self.redirects == other.redirects
            && self.outbound.identity() == other.outbound.identity()
    }
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        self.outbound = Outbound::only(hosts.into_iter().map(Into::into));
        self
    }

    /// Uses no proxy, whatever the environment says.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.no_proxy = true;
        self
    }

    /// The hosts of [`Self::allow_only`].
    pub(super) fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// A client with these timeouts that reaches only hosts of `outbound`, also after redirects; fails if this URL is none of them.
    pub(super) fn client(
        &self,
        url: &Url,
        timeouts: Timeouts,
        outbound: &Outbound,
    ) -> Result<Client, BoxError> {
        self.client_following(url, timeouts, outbound, Redirects::Allowed)
    }

    /// The same with a choice of redirects.
    pub(super) fn client_following(
        &self,
        url: &Url,
        timeouts: Timeouts,
        outbound: &Outbound,
        redirects: Redirects,
    ) -> Result<Client, BoxError> {
        check(outbound, url)?;
        let key = ClientKey { timeouts, outbound: outbound.clone(), redirects };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.iter().position(|(known, _)| *known == key);
        let client = match known.and_then(|index| clients.remove(index)) {
            Some((_, client)) => client,
            None => self.build(&key)?,
        };
        clients.truncate(MAX_CLIENTS - 1);
        clients.push_front((key, client.clone()));
        Ok(client)
    }

    fn build(&self, key: &ClientKey) -> Result<Client, BoxError> {
        let ClientKey { timeouts, outbound, redirects } = key;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect_policy(outbound.clone(), *redirects))
            // It would tell the target of a redirect the URL, with its query.
            .referer(false)
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST);
        if !outbound.is_any() {
            builder = builder.dns_resolver(CheckedResolver(outbound.clone()));
        }
        if self.no_proxy {
            builder = builder.no_proxy();
        }
        Ok(builder.build()?)
    }

    fn tls(&self) -> Result<ClientConfig, BoxError> {
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

fn redirect_policy(outbound: Outbound, redirects: Redirects) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        if redirects == Redirects::SameOrigin
            && attempt.previous().first().is_none_or(|sent| sent.origin() != attempt.url().origin())
        {
            let origin = attempt.url().origin().ascii_serialization();
            return attempt.error(format!("redirected to {origin}, and the request has secrets"));
        }
        match check(&outbound, attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(refusal) => attempt.error(refusal.at("redirected")),
        }
    })
}

/// Checks that the host and the port of a URL are allowed.
pub(super) fn check(outbound: &Outbound, url: &Url) -> Result<(), Refusal> {
    outbound.check(url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0))
}

/// Resolves names to the addresses that may be connected to. reqwest connects to exactly these, so that no name has another address when it is used
/// than when it was checked. A proxy resolves names itself.
struct CheckedResolver(Outbound);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let outbound = self.0.clone();
        Box::pin(async move {
            // reqwest puts the port of the URL into the addresses.
            let addresses = outbound.resolve(name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
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
    use futures_util::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn rebound_name_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url(&format!("http://localhost:{}/", listener.local_addr().unwrap().port()));
        let second = Duration::from_secs(1);
        let outbound = Outbound::only(["localhost"]);
        // As if the name had been found on the internet before.
        outbound.admit("localhost", &["93.184.216.34".parse().unwrap()]).unwrap();
        let timeouts = Timeouts { connect: second, read: second };
        let client = HttpClient::new().no_proxy().client(&url, timeouts, &outbound).unwrap();

        let error = client.get(url).send().await.unwrap_err();

        assert!(Refusal::in_chain(&error).is_some(), "{error:?}");
        assert!(listener.accept().now_or_never().is_none(), "there was a connection");
    }

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
            http_client.client(&url, timeouts(millis), &Outbound::any()).unwrap();
            http_client.client(&url, timeouts(1), &Outbound::any()).unwrap();
        }

        let kept = http_client.clients.lock().unwrap();
        let kept: Vec<_> = kept.iter().map(|(key, _)| key.timeouts).collect();
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
}
