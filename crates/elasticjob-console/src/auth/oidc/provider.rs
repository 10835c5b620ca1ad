//! What is asked of the provider: where things are, its keys, an id token for a code.
//!
//! What it said about itself is believed for an hour. A provider that does not answer is left alone for a moment. Its keys are looked at again when a
//! token is signed with one that is not among them: that is how they are changed.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use elasticjob::runtime::{Clock, Monotonic};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, RequestBuilder, Url, header, redirect::Policy};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

use super::{
    logins::Login,
    settings::{Settings, is_private},
    token::{self, Claims, Expected, Key, Refused},
};
use crate::{
    auth::imprint,
    http::problem::{Code, Problem},
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what it said about itself is believed.
const BELIEVED: Duration = Duration::from_hours(1);
/// How long it is left alone after it did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// How much of an answer is read.
const LARGEST: usize = 1024 * 1024;

/// The provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) settings: Settings,
    /// Where the provider sends browsers back to.
    redirect: String,
    client: Client,
    known: tokio::sync::Mutex<Option<Known>>,
    /// Why it could not be asked, and since when; apart, so that nobody has to wait to see it.
    problem: Mutex<Option<(Monotonic, String)>>,
}

/// What it said about itself.
#[derive(Debug, Clone)]
struct Known {
    since: Monotonic,
    places: Arc<Places>,
    keys: Arc<Vec<Key>>,
}

#[derive(Debug, Deserialize)]
struct Places {
    issuer: String,
    #[serde(deserialize_with = "place")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "place")]
    token_endpoint: Url,
    #[serde(deserialize_with = "place")]
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Why nobody could be logged in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The provider does not answer, or not as a provider does.
    #[error("{0}")]
    Unreachable(String),
    /// It does not know the code.
    #[error("the provider does not take the code back: {0}")]
    Code(String),
    /// The token is not good.
    #[error(transparent)]
    Token(#[from] Refused),
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Denied {
    error: String,
    error_description: String,
}

impl Provider {
    pub(super) fn new(settings: Settings, home: &str) -> Result<Self, Problem> {
        let wrong = |text: String| Problem::new(Code::Invalid, format!("oidc: {text}"));
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls(settings.ca.as_deref()).map_err(wrong)?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            // Where things are it has said.
            .redirect(Policy::none())
            .timeout(PATIENCE);
        if settings.issuer.starts_with("http:") {
            // On this machine there is nobody in between.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| wrong(error.to_string()))?;
        let base = settings.redirect_base.as_deref().unwrap_or(home).trim_end_matches('/');
        let redirect = format!("{base}/api/v1/login/oidc/callback");
        Ok(Self { settings, redirect, client, known: <_>::default(), problem: <_>::default() })
    }

    /// Why it could not be asked when somebody last tried.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.as_ref().map(|(_, problem)| problem.clone())
    }

    /// Where a browser is sent to log in.
    pub(super) async fn door(&self, login: &Login, clock: &dyn Clock) -> Result<Url, Failed> {
        let mut door = self.known(clock).await?.places.authorization_endpoint.clone();
        door.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", &self.redirect),
            ("scope", &self.settings.scopes.join(" ")),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &imprint(&login.verifier)),
            ("code_challenge_method", "S256"),
        ]);
        Ok(door)
    }

    /// What the provider says about whoever brought this code.
    pub(super) async fn claims(
        &self,
        code: &str,
        login: &Login,
        clock: &dyn Clock,
    ) -> Result<Claims, Failed> {
        let known = self.known(clock).await?;
        let token = self.token(&known.places, code, login).await?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &login.nonce,
            now: clock.now(),
        };
        match token::verify(&token, &known.keys, &expected) {
            Err(Refused::UnknownKey) => {
                let keys = self.keys(&known.places.jwks_uri).await.map_err(Failed::Unreachable)?;
                let claims = token::verify(&token, &keys, &expected)?;
                *self.known.lock().await = Some(Known { keys: Arc::new(keys), ..known });
                Ok(claims)
            }
            claims => Ok(claims?),
        }
    }

    async fn known(&self, clock: &dyn Clock) -> Result<Known, Failed> {
        // Those who come meanwhile wait for the same answer.
        let mut known = self.known.lock().await;
        let now = clock.monotonic();
        if let Some(known) = known.as_ref().filter(|it| now.saturating_since(it.since) < BELIEVED) {
            return Ok(known.clone());
        }
        let lately = self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, problem)) = lately.filter(|it| now.saturating_since(it.0) < PAUSE) {
            return Err(Failed::Unreachable(problem));
        }
        let looked = self.look(now).await;
        let problem = looked.as_ref().err().map(|problem| (clock.monotonic(), problem.clone()));
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        let found = looked.map_err(Failed::Unreachable)?;
        *known = Some(found.clone());
        Ok(found)
    }

    async fn look(&self, now: Monotonic) -> Result<Known, String> {
        let issuer = &self.settings.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let places: Places = parsed(&url, &self.fetch(&url, self.client.get(&url)).await?.1)?;
        if places.issuer != *issuer {
            return Err(format!(
                "the provider at {issuer} calls itself {:?}; hint: oidc.issuer is what it calls itself, to the letter",
                places.issuer
            ));
        }
        for place in [&places.authorization_endpoint, &places.token_endpoint, &places.jwks_uri] {
            if !is_private(place) {
                return Err(format!(
                    "the provider at {issuer} names {place}, which is not encrypted"
                ));
            }
        }
        let keys = self.keys(&places.jwks_uri).await?;
        Ok(Known { since: now, places: Arc::new(places), keys: Arc::new(keys) })
    }

    async fn keys(&self, url: &Url) -> Result<Vec<Key>, String> {
        let (_, bytes) = self.fetch(url.as_str(), self.client.get(url.clone())).await?;
        token::keys(&bytes).map_err(|error| format!("what {url} answers are no keys: {error}"))
    }

    /// The id token for a code.
    async fn token(&self, places: &Places, code: &str, login: &Login) -> Result<String, Failed> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &login.verifier),
        ];
        let settings = &self.settings;
        let url = &places.token_endpoint;
        let mut request = self.client.post(url.clone());
        let takes_form = |methods: &Vec<String>| {
            methods.iter().any(|method| method == "client_secret_post")
                && !methods.iter().any(|method| method == "client_secret_basic")
        };
        match &settings.client_secret {
            Some(secret)
                if !places
                    .token_endpoint_auth_methods_supported
                    .as_ref()
                    .is_some_and(takes_form) =>
            {
                let who = format!("{}:{}", escaped(&settings.client_id), escaped(&secret.0));
                let who = format!("Basic {}", STANDARD.encode(who));
                request = request.header(header::AUTHORIZATION, who);
            }
            Some(secret) => form
                .extend([("client_id", settings.client_id.as_str()), ("client_secret", &secret.0)]),
            None => form.push(("client_id", &settings.client_id)),
        }
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let request = request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(body);
        let (is_good, bytes) =
            self.answer(url.as_str(), request).await.map_err(Failed::Unreachable)?;
        if !is_good {
            let Denied { error, error_description } =
                serde_json::from_slice(&bytes).unwrap_or_default();
            let text = format!("{error} {error_description}");
            return Err(Failed::Code(text.chars().take(200).collect()));
        }
        let tokens: Tokens = parsed(url.as_str(), &bytes).map_err(Failed::Unreachable)?;
        Ok(tokens.id_token)
    }

    /// An answer that is as it should be.
    async fn fetch(&self, url: &str, request: RequestBuilder) -> Result<(bool, Vec<u8>), String> {
        match self.answer(url, request).await? {
            (true, bytes) => Ok((true, bytes)),
            (false, _) => Err(format!(
                "{url} does not answer as a provider does; hint: is oidc.issuer right?"
            )),
        }
    }

    /// Whether an answer is a good one, and what it says.
    async fn answer(&self, url: &str, request: RequestBuilder) -> Result<(bool, Vec<u8>), String> {
        let cannot = |error: reqwest::Error| {
            let error = error.without_url();
            let mut told = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                told = error.to_string();
                cause = error.source();
            }
            format!("{url} cannot be reached: {told}")
        };
        let mut response = request.send().await.map_err(cannot)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(cannot)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LARGEST {
                return Err(format!("{url} answers without end"));
            }
        }
        Ok((response.status().is_success(), bytes))
    }
}

fn parsed<T: DeserializeOwned>(url: &str, bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes)
        .map_err(|error| format!("what {url} answers is not what a provider says: {error}"))
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn tls(ca: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(ca.unwrap_or_default()) {
        let certificate = certificate.map_err(|error| format!("ca: {error}"))?;
        roots.add(certificate).map_err(|error| format!("ca: {error}"))?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
