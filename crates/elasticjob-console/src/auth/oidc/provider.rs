//! Requests to the provider: metadata, keys, and an id token for a code.
//!
//! Metadata is cached for an hour. After a failed request the provider is not contacted again for a few seconds. Keys are fetched again when a
//! token is signed with an unknown key: that is how providers rotate them.

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
    logins::PendingLogin,
    settings::{Settings, is_confidential},
    token::{self, Claims, Expected, Key, TokenError},
};
use crate::{
    auth::hash_secret,
    http::problem::{Code, Problem},
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long metadata is cached.
const METADATA_TTL: Duration = Duration::from_hours(1);
/// How long the provider is not contacted after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Provider {
    pub(super) settings: Settings,
    /// The redirect URI.
    redirect: String,
    client: Client,
    metadata: tokio::sync::Mutex<Option<Metadata>>,
    /// The last failure and its time; in a lock of its own, so that reading it never waits for a request.
    problem: Mutex<Option<(Monotonic, String)>>,
}

/// The provider's endpoints and keys.
#[derive(Debug, Clone)]
struct Metadata {
    fetched_at: Monotonic,
    endpoints: Arc<Endpoints>,
    keys: Arc<Vec<Key>>,
}

#[derive(Debug, Deserialize)]
struct Endpoints {
    issuer: String,
    #[serde(deserialize_with = "deserialize_url")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "deserialize_url")]
    token_endpoint: Url,
    #[serde(deserialize_with = "deserialize_url")]
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    /// No answer, or not that of an OIDC provider.
    #[error("{0}")]
    Unreachable(String),
    /// The provider rejected the code.
    #[error("the provider rejected the code: {0}")]
    Code(String),
    /// The id token is not valid.
    #[error(transparent)]
    Token(#[from] TokenError),
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorResponse {
    error: String,
    error_description: String,
}

impl Provider {
    pub(super) fn new(settings: Settings, console_url: &str) -> Result<Self, Problem> {
        let invalid = |text: String| Problem::new(Code::Invalid, format!("oidc: {text}"));
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls(settings.ca.as_deref()).map_err(invalid)?)
            .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
            // The endpoints are known from the metadata.
            .redirect(Policy::none())
            .timeout(REQUEST_TIMEOUT);
        if settings.issuer.starts_with("http:") {
            // http:// is allowed for loopback only, where a proxy makes no sense.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| invalid(error.to_string()))?;
        let base = settings.redirect_base.as_deref().unwrap_or(console_url).trim_end_matches('/');
        let redirect = format!("{base}/api/v1/login/oidc/callback");
        Ok(Self { settings, redirect, client, metadata: <_>::default(), problem: <_>::default() })
    }

    /// The last failure, if the last attempt failed.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.as_ref().map(|(_, problem)| problem.clone())
    }

    /// The URL to which the browser is redirected for login.
    pub(super) async fn authorization_url(
        &self,
        login: &PendingLogin,
        clock: &dyn Clock,
    ) -> Result<Url, LoginError> {
        let mut authorization_url =
            self.metadata(clock).await?.endpoints.authorization_endpoint.clone();
        authorization_url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", &self.redirect),
            ("scope", &self.settings.scopes.join(" ")),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &hash_secret(&login.verifier)),
            ("code_challenge_method", "S256"),
        ]);
        Ok(authorization_url)
    }

    /// Redeems a code and returns the claims of the verified id token.
    pub(super) async fn claims(
        &self,
        code: &str,
        login: &PendingLogin,
        clock: &dyn Clock,
    ) -> Result<Claims, LoginError> {
        let metadata = self.metadata(clock).await?;
        let token = self.token(&metadata.endpoints, code, login).await?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &login.nonce,
            now: clock.now(),
        };
        match token::verify(&token, &metadata.keys, &expected) {
            Err(TokenError::UnknownKey) => {
                let keys = self
                    .keys(&metadata.endpoints.jwks_uri)
                    .await
                    .map_err(LoginError::Unreachable)?;
                let claims = token::verify(&token, &keys, &expected)?;
                *self.metadata.lock().await = Some(Metadata { keys: Arc::new(keys), ..metadata });
                Ok(claims)
            }
            claims => Ok(claims?),
        }
    }

    async fn metadata(&self, clock: &dyn Clock) -> Result<Metadata, LoginError> {
        // Concurrent logins wait for the same request.
        let mut metadata = self.metadata.lock().await;
        let now = clock.monotonic();
        if let Some(metadata) =
            metadata.as_ref().filter(|it| now.saturating_since(it.fetched_at) < METADATA_TTL)
        {
            return Ok(metadata.clone());
        }
        let recent = self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, problem)) = recent.filter(|it| now.saturating_since(it.0) < RETRY_PAUSE) {
            return Err(LoginError::Unreachable(problem));
        }
        let fetched = self.fetch_metadata(now).await;
        let problem = fetched.as_ref().err().map(|problem| (clock.monotonic(), problem.clone()));
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        let found = fetched.map_err(LoginError::Unreachable)?;
        *metadata = Some(found.clone());
        Ok(found)
    }

    async fn fetch_metadata(&self, now: Monotonic) -> Result<Metadata, String> {
        let issuer = &self.settings.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let endpoints: Endpoints =
            parse_json(&url, &self.fetch(&url, self.client.get(&url)).await?.1)?;
        if endpoints.issuer != *issuer {
            return Err(format!(
                "the provider at {issuer} calls itself {:?}; oidc.issuer must be exactly that",
                endpoints.issuer
            ));
        }
        for endpoint in
            [&endpoints.authorization_endpoint, &endpoints.token_endpoint, &endpoints.jwks_uri]
        {
            if !is_confidential(endpoint) {
                return Err(format!(
                    "the endpoint {endpoint} of the provider at {issuer} is not encrypted"
                ));
            }
        }
        let keys = self.keys(&endpoints.jwks_uri).await?;
        Ok(Metadata { fetched_at: now, endpoints: Arc::new(endpoints), keys: Arc::new(keys) })
    }

    async fn keys(&self, url: &Url) -> Result<Vec<Key>, String> {
        let (_, bytes) = self.fetch(url.as_str(), self.client.get(url.clone())).await?;
        token::keys(&bytes).map_err(|error| format!("{url} did not return a key set: {error}"))
    }

    /// Redeems a code for an id token.
    async fn token(
        &self,
        endpoints: &Endpoints,
        code: &str,
        login: &PendingLogin,
    ) -> Result<String, LoginError> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &login.verifier),
        ];
        let settings = &self.settings;
        let url = &endpoints.token_endpoint;
        let mut request = self.client.post(url.clone());
        let form_only = |methods: &Vec<String>| {
            methods.iter().any(|method| method == "client_secret_post")
                && !methods.iter().any(|method| method == "client_secret_basic")
        };
        match &settings.client_secret {
            Some(secret)
                if !endpoints
                    .token_endpoint_auth_methods_supported
                    .as_ref()
                    .is_some_and(form_only) =>
            {
                let credentials = format!(
                    "{}:{}",
                    percent_encode(&settings.client_id),
                    percent_encode(&secret.0)
                );
                let credentials = format!("Basic {}", STANDARD.encode(credentials));
                request = request.header(header::AUTHORIZATION, credentials);
            }
            Some(secret) => form
                .extend([("client_id", settings.client_id.as_str()), ("client_secret", &secret.0)]),
            None => form.push(("client_id", &settings.client_id)),
        }
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let request = request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(body);
        let (is_success, bytes) =
            self.send(url.as_str(), request).await.map_err(LoginError::Unreachable)?;
        if !is_success {
            let ErrorResponse { error, error_description } =
                serde_json::from_slice(&bytes).unwrap_or_default();
            let text = format!("{error} {error_description}");
            return Err(LoginError::Code(text.chars().take(200).collect()));
        }
        let tokens: TokenResponse =
            parse_json(url.as_str(), &bytes).map_err(LoginError::Unreachable)?;
        Ok(tokens.id_token)
    }

    /// Like [`send`](Self::send), but fails unless the status is a success.
    async fn fetch(&self, url: &str, request: RequestBuilder) -> Result<(bool, Vec<u8>), String> {
        match self.send(url, request).await? {
            (true, bytes) => Ok((true, bytes)),
            (false, _) => {
                Err(format!("{url} did not answer like an OpenID provider; is oidc.issuer right?"))
            }
        }
    }

    /// Sends a request; returns whether the status is a success, and the body.
    async fn send(&self, url: &str, request: RequestBuilder) -> Result<(bool, Vec<u8>), String> {
        let unreachable = |error: reqwest::Error| {
            let error = error.without_url();
            let mut cause_text = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                cause_text = error.to_string();
                cause = error.source();
            }
            format!("cannot reach {url}: {cause_text}")
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_RESPONSE_BYTES {
                return Err(format!("the response of {url} is too large"));
            }
        }
        Ok((response.status().is_success(), bytes))
    }
}

fn parse_json<T: DeserializeOwned>(url: &str, bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| {
        format!("the response of {url} is not that of an OpenID provider: {error}")
    })
}

fn deserialize_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn percent_encode(text: &str) -> String {
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
