//! The way out to the web, for HTTP jobs and for alerts.

use std::{
    collections::HashMap,
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

use super::failure::{Failure, with_causes};

/// As many as the JDK follows.
const REDIRECTS: usize = 20;

/// How much of an answer is looked at.
const ANSWER: usize = 64 * 1024;

/// The way out to the web: whom to trust, where one may go, and the connections that are open. One for a process is enough.
///
/// It trusts what the system trusts, and goes through a proxy if the environment names one (`HTTPS_PROXY`, `NO_PROXY`).
#[derive(Debug, Default)]
pub struct Web {
    roots: Vec<CertificateDer<'static>>,
    only_to: Option<Arc<[String]>>,
    direct: bool,
    // By how long connecting and waiting may take, which are settings of a client and not of a request.
    clients: Mutex<HashMap<Limits, Client>>,
}

/// How long connecting may take, and how long to wait for something to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) read: Duration,
}

impl Web {
    /// To everywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these certificates (PEM), too.
    pub fn trusting(mut self, pem: &[u8]) -> Result<Self, Failure> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        self.roots.extend(
            certificates
                .map_err(|error| Failure::new(format_args!("not a certificate: {error}")))?,
        );
        Ok(self)
    }

    /// Only to these hosts, also when it is sent elsewhere from there: `example.org`, or `example.org:8080` for one port only.
    #[must_use]
    pub fn only_to(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only_to =
            Some(hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect());
        self
    }

    /// Without a proxy, whatever the environment says.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    /// A client with these limits, and whether it may go to this address.
    pub(super) fn client(&self, url: &Url, limits: Limits) -> Result<Client, Failure> {
        if !may_go(self.only_to.as_deref(), url) {
            return Err(Failure::new(format_args!(
                "{} is not among the hosts allowed here",
                shown(url)
            ))
            .lasting());
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&limits) {
            return Ok(client.clone());
        }
        let client = self.build(limits)?;
        clients.insert(limits, client.clone());
        Ok(client)
    }

    fn build(&self, limits: Limits) -> Result<Client, Failure> {
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            .redirect(redirects(self.only_to.clone()))
            .connect_timeout(limits.connect)
            .read_timeout(limits.read);
        if self.direct {
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

fn redirects(only_to: Option<Arc<[String]>>) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS {
            attempt.error("sent elsewhere too often")
        } else if may_go(only_to.as_deref(), attempt.url()) {
            attempt.follow()
        } else {
            let problem = format!(
                "sent to {}, which is not among the hosts allowed here",
                shown(attempt.url())
            );
            attempt.error(problem)
        }
    })
}

fn may_go(only_to: Option<&[String]>, url: &Url) -> bool {
    let Some(allowed) = only_to else { return true };
    let (Some(host), port) = (url.host_str(), url.port_or_known_default()) else { return false };
    let with_port = port.map(|port| format!("{host}:{port}"));
    allowed.iter().any(|allowed| allowed == host || Some(allowed) == with_port.as_ref())
}

/// An address for people: without who we are there, and without its query, which often holds a key.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.into()
}

/// An error without its address, which is not for everybody. That sending failed goes without saying; why is what counts.
pub(super) fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    match error.source() {
        Some(cause) if error.is_request() => with_causes(cause),
        _ => with_causes(&error),
    }
}

/// The beginning of an answer's text.
pub(super) async fn text(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= ANSWER {
            bytes.truncate(ANSWER);
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
    fn an_address_is_shown_without_its_secrets() {
        let url = url("https://user:hunter2@example.org:8443/send?key=hunter2#hunter2");

        assert_eq!(shown(&url), "https://example.org:8443/send");
    }

    #[test]
    fn an_allowed_host_is_allowed_on_every_port_unless_one_is_named() {
        let allowed = ["example.org".to_owned(), "localhost:8080".to_owned()];
        let may = |text| may_go(Some(&allowed), &url(text));

        assert!(
            may("https://EXAMPLE.org/x")
                && may("http://example.org:81")
                && may("http://localhost:8080")
        );
        assert!(
            !may("http://localhost")
                && !may("http://example.org.evil")
                && !may("http://evil/example.org")
        );
        assert!(may_go(None, &url("http://evil")));
    }
}
