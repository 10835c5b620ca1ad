//! Login with OpenID Connect, against a small provider in the test that can misbehave on request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64},
};
use elasticjob::runtime::{Clock, SystemClock};
use percent_encoding::percent_decode_str;
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    console::Console,
    http::{Response, request},
};

const REGISTRY: &str = "shop=zookeeper://127.0.0.1:1/shop";

/// A provider that serves metadata, keys and tokens.
struct Provider {
    issuer: String,
    state: Arc<Mutex<ProviderState>>,
    _server: JoinSet<()>,
}

struct ProviderState {
    issuer: String,
    key: EcdsaKeyPair,
    key_id: String,
    /// Granted logins by code: the authorization request, and the token to return.
    codes: HashMap<String, (HashMap<String, String>, String)>,
    /// Issuer in the metadata, if not the real one.
    claimed_issuer: Option<String>,
    /// Requests for a token.
    redemptions: usize,
}

fn key() -> EcdsaKeyPair {
    let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let generated = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(kind, generated.as_ref(), &random).unwrap()
}

fn sign(key: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
    let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", BASE64.encode(signature.as_ref()))
}

fn now() -> i64 {
    SystemClock.now().as_second()
}

/// Parses a query string or form.
fn pairs(text: &str) -> HashMap<String, String> {
    let plain = |text: &str| {
        percent_decode_str(&text.replace('+', " ")).decode_utf8().unwrap().into_owned()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (plain(name), plain(value))).collect()
}

impl Provider {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(ProviderState {
            issuer: issuer.clone(),
            key: key(),
            key_id: "one".to_owned(),
            codes: HashMap::new(),
            claimed_issuer: None,
            redemptions: 0,
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&state));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { issuer, state, _server: server }
    }

    fn file(&self) -> String {
        format!(
            "[oidc]\nissuer = '{}'\nclientId = 'console'\nclientSecret = 's&cret'\nlabel = 'Acme'\n[oidc.roles]\nops = {{ shop = 'operator' }}\n",
            self.issuer
        )
    }

    fn claims(&self, requested: &HashMap<String, String>) -> Value {
        json!({
            "iss": self.issuer, "aud": "console", "sub": "7", "exp": now() + 300, "iat": now(),
            "nonce": requested["nonce"], "preferred_username": "ann", "groups": ["ops"],
        })
    }

    /// Grants an authorization request: returns the code for a token made from it.
    fn grant(
        &self,
        authorization_url: &str,
        token: impl FnOnce(&ProviderState, Value) -> String,
    ) -> String {
        assert!(
            authorization_url.starts_with(&format!("{}/authorize?", self.issuer)),
            "{authorization_url}"
        );
        let requested = pairs(authorization_url.split_once('?').unwrap().1);
        assert_eq!(
            (&*requested["response_type"], &*requested["code_challenge_method"]),
            ("code", "S256")
        );
        assert_eq!(requested["scope"], "openid profile email");
        let mut provider_state = self.state.lock().unwrap();
        let token = token(&provider_state, self.claims(&requested));
        let code = format!("code+{}/=", provider_state.codes.len());
        provider_state.codes.insert(code.clone(), (requested, token));
        code
    }
}

impl ProviderState {
    fn header(&self) -> Value {
        json!({ "alg": "ES256", "kid": self.key_id })
    }

    fn sign(&self, claims: &Value) -> String {
        sign(&self.key, &self.header(), claims)
    }
}

async fn configuration(State(provider_state): State<Arc<Mutex<ProviderState>>>) -> Json<Value> {
    let provider_state = provider_state.lock().unwrap();
    let at = |path: &str| format!("{}/{path}", provider_state.issuer);
    Json(json!({
        "issuer": provider_state.claimed_issuer.as_ref().unwrap_or(&provider_state.issuer),
        "authorization_endpoint": at("authorize"), "token_endpoint": at("token"), "jwks_uri": at("keys"),
    }))
}

async fn keys(State(provider_state): State<Arc<Mutex<ProviderState>>>) -> Json<Value> {
    let provider_state = provider_state.lock().unwrap();
    let point = provider_state.key.public_key().as_ref();
    let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": provider_state.key_id, "x": x, "y": y });
    Json(json!({ "keys": [key] }))
}

/// Exchanges a code for a token, once, if the PKCE verifier matches.
async fn token(
    State(provider_state): State<Arc<Mutex<ProviderState>>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let sent = pairs(&body);
    provider_state.lock().unwrap().redemptions += 1;
    let error_response = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error })));
    let expected_credentials = format!("Basic {}", STANDARD.encode("console:s%26cret"));
    if headers.get("authorization").is_none_or(|given| given != expected_credentials.as_str()) {
        return Err(error_response("invalid_client"));
    }
    let (requested, token) = provider_state
        .lock()
        .unwrap()
        .codes
        .remove(&sent["code"])
        .ok_or_else(|| error_response("invalid_grant"))?;
    let challenge = BASE64.encode(digest(&SHA256, sent["code_verifier"].as_bytes()));
    if requested["code_challenge"] != challenge || requested["redirect_uri"] != sent["redirect_uri"]
    {
        return Err(error_response("invalid_grant"));
    }
    Ok(Json(json!({ "id_token": token, "access_token": "x", "token_type": "Bearer" })))
}

/// A started login: where the browser was redirected, and its cookie.
struct PendingLogin {
    authorization_url: String,
    cookie: String,
    state: String,
}

fn begin(console: &Console) -> PendingLogin {
    begin_with(console, "")
}

/// The same in a browser that has these cookies.
fn begin_with(console: &Console, cookies: &str) -> PendingLogin {
    let begin = request("GET", "/api/v1/login/oidc?to=/r/shop/jobs").header("cookie", cookies);
    let response = console.send(&begin);
    assert_eq!(response.status, 303, "{response:?}");
    let set = response.header("set-cookie").unwrap();
    assert!(
        set.contains("; Path=/api/v1/login/oidc; HttpOnly; SameSite=Lax; Max-Age=600"),
        "{set}"
    );
    let authorization_url = response.header("location").unwrap().to_owned();
    let state = pairs(authorization_url.split_once('?').unwrap().1)["state"].clone();
    PendingLogin { cookie: set.split(';').next().unwrap().to_owned(), state, authorization_url }
}

fn callback(console: &Console, query: &str, cookie: &str) -> Response {
    let path = format!("/api/v1/login/oidc/callback?{query}");
    console.send(&request("GET", &path).header("cookie", cookie))
}

fn finish_login(console: &Console, login: &PendingLogin, code: &str) -> Response {
    let code = code.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    callback(console, &format!("code={code}&state={}&session_state=x", login.state), &login.cookie)
}

/// The redirect target. No session cookie may be set.
fn redirect_without_session(response: &Response) -> &str {
    let mut cookies = response.headers("set-cookie");
    let is_deleted = |cookie: &str| {
        cookie.starts_with("elasticjob_oidc_")
            && cookie.ends_with("=; Path=/api/v1/login/oidc; HttpOnly; SameSite=Lax; Max-Age=0")
    };
    assert!(response.status == 303 && cookies.all(is_deleted), "{response:?}");
    response.header("location").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_user_gets_the_roles_of_groups_and_no_account() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let methods = console.send(&request("GET", "/api/v1/login/methods")).json();
    assert_eq!(methods["oidc"]["label"], "Acme");

    let login = begin(&console);
    let code = provider
        .grant(&login.authorization_url, |provider_state, claims| provider_state.sign(&claims));
    let response = finish_login(&console, &login, &code);

    assert_eq!((response.status, response.header("location")), (303, Some("/r/shop/jobs")));
    let set = response.header("set-cookie").unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Strict"), "{set}");
    let cookie = set.split(';').next().unwrap();
    let ask = |path: &str| console.send(&request("GET", path).header("cookie", cookie));
    let session = ask("/api/v1/session").json();
    assert_eq!(session["username"], "oidc:ann");
    assert_eq!(session["roles"], json!({ "shop": "operator" }));
    assert_eq!(session["hasAccount"], false);
    assert_eq!(ask("/api/v1/accounts").problem().1, "forbidden");
    let post = |path: &str, body: &Value| {
        let csrf = session["csrfToken"].as_str().unwrap();
        let requested = request("POST", path).json(body).header("cookie", cookie);
        console.send(&requested.header("x-csrf-token", csrf))
    };
    let token = json!({ "name": "ci", "role": "viewer" });
    assert_eq!(post("/api/v1/tokens", &token).problem().1, "forbidden");
    let change = json!({ "oldPassword": "x", "newPassword": "correct horse" });
    assert_eq!(post("/api/v1/password", &change).problem().1, "forbidden");

    let admin = console.admin();
    let entry = &admin.data("/api/v1/audit?username=oidc:ann&action=login")["items"][0];
    assert_eq!((&entry["action"], &entry["via"]), (&json!("login"), &json!("oidc")), "{entry}");
    assert_eq!(entry["result"]["roles"], json!({ "shop": "operator" }));
    let open = admin.data("/api/v1/sessions");
    let their_login = json!({ "username": "oidc:ann", "count": 1, "isElsewhere": true });
    assert!(open.as_array().unwrap().contains(&their_login), "{open:#}");
    assert_eq!(admin.send(request("DELETE", "/api/v1/sessions/oidc:ann")).status, 204);
    assert_eq!(ask("/api/v1/session").status, 401, "an admin can end it");
}

type Forged = Box<dyn FnOnce(&ProviderState, Value) -> String>;

#[tokio::test(flavor = "multi_thread")]
async fn token_for_another_login_is_rejected() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let with = |name: &'static str, value: Value| {
        move |provider_state: &ProviderState, mut claims: Value| {
            claims[name] = value;
            provider_state.sign(&claims)
        }
    };
    let forged: Vec<(&str, Forged)> = vec![
        ("another nonce", Box::new(with("nonce", json!("guess")))),
        ("another audience", Box::new(with("aud", json!("other")))),
        ("several audiences without azp", Box::new(with("aud", json!(["console", "other"])))),
        ("another issuer", Box::new(with("iss", json!("https://evil.example.com")))),
        ("expired", Box::new(with("exp", json!(now() - 3600)))),
        ("from the future", Box::new(with("iat", json!(now() + 3600)))),
        (
            "alg none",
            Box::new(|_: &ProviderState, claims: Value| {
                let header = json!({ "alg": "none" });
                format!(
                    "{}.",
                    [header, claims].map(|part| BASE64.encode(part.to_string())).join(".")
                )
            }),
        ),
        (
            "another key under the same name",
            Box::new(|provider_state: &ProviderState, claims: Value| {
                sign(&key(), &provider_state.header(), &claims)
            }),
        ),
        (
            "a key that is not shown",
            Box::new(|_: &ProviderState, claims: Value| {
                sign(&key(), &json!({ "alg": "ES256", "kid": "two" }), &claims)
            }),
        ),
        (
            "HMAC with what everybody knows",
            Box::new(|provider_state: &ProviderState, claims: Value| {
                let header = json!({ "alg": "HS256", "kid": "one" });
                let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
                let key = ring::hmac::Key::new(
                    ring::hmac::HMAC_SHA256,
                    provider_state.key.public_key().as_ref(),
                );
                let signature = ring::hmac::sign(&key, text.as_bytes());
                format!("{text}.{}", BASE64.encode(signature.as_ref()))
            }),
        ),
    ];

    for (what, token) in forged {
        let login = begin(&console);
        let code = provider.grant(&login.authorization_url, token);
        let response = finish_login(&console, &login, &code);
        assert_eq!(redirect_without_session(&response), "/r/shop/jobs?oidc=failed", "{what}");
    }
    let audit = console.admin().data("/api/v1/audit?action=login&username=oidc:");
    assert_eq!(audit["total"], 10, "{audit:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn callback_is_accepted_in_the_browser_that_began_and_its_code_once() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let sign = |provider_state: &ProviderState, claims: Value| provider_state.sign(&claims);

    let (our_login, their_login) = (begin(&console), begin(&console));
    let code = provider.grant(&their_login.authorization_url, sign);
    let mixed = PendingLogin { state: their_login.state.clone(), ..our_login };
    assert_eq!(
        redirect_without_session(&finish_login(&console, &mixed, &code)),
        "/?oidc=stale",
        "not our state"
    );
    assert_eq!(
        redirect_without_session(&callback(&console, "code=x&state=guess", &their_login.cookie)),
        "/?oidc=stale"
    );
    let forged = callback(&console, "code=x&state=x", "elasticjob_oidc_0=guess");
    assert_eq!(redirect_without_session(&forged), "/?oidc=stale", "not sealed here");
    assert_eq!(
        redirect_without_session(&callback(&console, "code=x&state=x", "")),
        "/?oidc=stale",
        "no cookie"
    );

    let login = begin(&console);
    let code = provider.grant(&login.authorization_url, sign);
    let response = finish_login(&console, &login, &code);
    let cookies: Vec<_> = response.headers("set-cookie").collect();
    assert!(cookies[0].starts_with("elasticjob_session="), "{cookies:?}");
    assert!(cookies[1].starts_with("elasticjob_oidc_0=;"), "the browser deletes the login");
    assert_eq!(
        redirect_without_session(&finish_login(&console, &login, &code)),
        "/r/shop/jobs?oidc=failed",
        "a callback replayed with a saved cookie: the provider accepts a code once"
    );
    let again = begin(&console);
    assert_eq!(
        redirect_without_session(&finish_login(&console, &again, &code)),
        "/r/shop/jobs?oidc=failed",
        "a code replayed"
    );

    let login = begin(&console);
    let stolen = provider.grant(&begin(&console).authorization_url, sign);
    assert_eq!(
        redirect_without_session(&finish_login(&console, &login, &stolen)),
        "/r/shop/jobs?oidc=failed",
        "PKCE"
    );
    let login = begin(&console);
    let denied = format!("error=access_denied&state={}", login.state);
    assert_eq!(
        redirect_without_session(&callback(&console, &denied, &login.cookie)),
        "/r/shop/jobs?oidc=denied"
    );
    let login = begin(&console);
    let other = format!("code=x&state={}&iss=https://evil.example.com", login.state);
    assert_eq!(
        redirect_without_session(&callback(&console, &other, &login.cookie)),
        "/r/shop/jobs?oidc=failed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn user_without_role_is_rejected_and_keys_may_rotate() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());

    let login = begin(&console);
    let code = provider.grant(&login.authorization_url, |provider_state, mut claims| {
        claims["groups"] = json!(["sales"]);
        provider_state.sign(&claims)
    });
    assert_eq!(
        redirect_without_session(&finish_login(&console, &login, &code)),
        "/r/shop/jobs?oidc=noRole"
    );
    let audit = console.admin().data("/api/v1/audit?username=oidc:ann");
    assert!(audit["items"][0]["problem"].as_str().unwrap().contains("role"), "{audit:#}");

    {
        let mut provider_state = provider.state.lock().unwrap();
        (provider_state.key, provider_state.key_id) = (key(), "two".to_owned());
    }
    let login = begin(&console);
    let code = provider
        .grant(&login.authorization_url, |provider_state, claims| provider_state.sign(&claims));
    let response = finish_login(&console, &login, &code);
    assert!(response.header("set-cookie").unwrap().starts_with("elasticjob_session="));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_provider_does_not_block_password_login() {
    let down = "[oidc]\nissuer = 'http://127.0.0.1:1'\nclientId = 'console'\n[oidc.roles]\n'*' = { '*' = 'viewer' }\n";
    let console = Console::with(&[REGISTRY], down);

    console.admin();
    let response = console.send(&request("GET", "/api/v1/login/oidc"));

    assert_eq!(redirect_without_session(&response), "/?oidc=unreachable");
    let methods = console.send(&request("GET", "/api/v1/login/methods")).json();
    let problem = methods["oidc"]["problem"].as_str().unwrap();
    assert!(problem.contains("http://127.0.0.1:1/.well-known"), "{problem}");

    let without = Console::start(&[REGISTRY]);
    assert_eq!(without.send(&request("GET", "/api/v1/login/methods")).json()["oidc"], Value::Null);
    assert_eq!(without.send(&request("GET", "/api/v1/login/oidc")).problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_with_another_issuer_is_rejected() {
    let provider = Provider::start().await;
    provider.state.lock().unwrap().claimed_issuer = Some("https://evil.example.com".to_owned());
    let console = Console::with(&[REGISTRY], &provider.file());

    let response = console.send(&request("GET", "/api/v1/login/oidc"));

    assert_eq!(redirect_without_session(&response), "/?oidc=unreachable");
    let methods = console.send(&request("GET", "/api/v1/login/methods")).text;
    assert!(methods.contains("calls itself") && methods.contains("evil"), "{methods}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_survives_thousands_of_anonymous_starts() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let login = begin(&console);
    let code = provider
        .grant(&login.authorization_url, |provider_state, claims| provider_state.sign(&claims));

    for _ in 0..2_000 {
        begin(&console);
    }

    let response = finish_login(&console, &login, &code);
    assert_eq!((response.status, response.header("location")), (303, Some("/r/shop/jobs")));
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_of_two_tabs_of_a_browser_both_complete() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let sign = |provider_state: &ProviderState, claims: Value| provider_state.sign(&claims);
    let mut browser: HashMap<String, String> = HashMap::new();
    let store = |browser: &mut HashMap<String, String>, cookie: &str| {
        let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        browser.insert(name.to_owned(), value.to_owned());
    };
    let sent = |browser: &HashMap<String, String>| {
        let pairs = browser.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    };
    let mut tabs = Vec::new();
    for _ in 0..2 {
        let login = begin_with(&console, &sent(&browser));
        store(&mut browser, &login.cookie);
        tabs.push(login);
    }

    let guess = callback(&console, "code=x&state=guess", &sent(&browser));
    assert_eq!(redirect_without_session(&guess), "/?oidc=stale");
    guess.headers("set-cookie").for_each(|cookie| store(&mut browser, cookie));
    for tab in tabs {
        let code = provider.grant(&tab.authorization_url, sign);
        let tab = PendingLogin { cookie: sent(&browser), ..tab };
        let response = finish_login(&console, &tab, &code);
        assert_eq!(response.header("location"), Some("/r/shop/jobs"), "{response:?}");
        response.headers("set-cookie").for_each(|cookie| store(&mut browser, cookie));
    }

    for _ in 0..20 {
        let login = begin_with(&console, &sent(&browser));
        store(&mut browser, &login.cookie);
    }
    assert!(sent(&browser).len() < 4_096, "abandoned logins do not pile up: {browser:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessed_codes_reach_neither_the_provider_nor_the_audit_without_limit() {
    let provider = Provider::start().await;
    let file = format!("trustedProxies = ['127.0.0.0/8']\n{}", provider.file());
    let console = Console::with(&[REGISTRY], &file);
    let login = begin(&console);
    for _ in 0..100 {
        let path = format!("/api/v1/login/oidc/callback?code=guess&state={}", login.state);
        let guess = request("GET", &path).header("cookie", &login.cookie);
        let response = console.send(&guess.header("x-forwarded-for", "203.0.113.9"));
        assert!(redirect_without_session(&response).starts_with("/r/shop/jobs?oidc="));
    }

    let redemptions = provider.state.lock().unwrap().redemptions;
    assert!((1..=15).contains(&redemptions), "{redemptions} of 100 reached the provider");
    let audit = console.admin().data("/api/v1/audit?action=login&username=oidc:");
    assert!(audit["total"].as_u64() <= Some(15), "{audit:#}");

    let login = begin(&console);
    let code = provider
        .grant(&login.authorization_url, |provider_state, claims| provider_state.sign(&claims));
    let response = finish_login(&console, &login, &code);
    assert_eq!(response.header("location"), Some("/r/shop/jobs"), "others log in: {response:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_cookie_of_a_secure_console_has_the_host_prefix() {
    let provider = Provider::start().await;
    let file = format!("behindHttps = true\n{}", provider.file());
    let console = Console::with(&[REGISTRY], &file);
    let response = console.send(&request("GET", "/api/v1/login/oidc?to=/r/shop/jobs"));

    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-elasticjob_oidc_0="), "{cookie}");
    // Without these a browser refuses the prefix.
    assert!(cookie.contains("; Path=/;") && cookie.contains("; Secure"), "{cookie}");
    let authorization_url = response.header("location").unwrap().to_owned();
    let state = pairs(authorization_url.split_once('?').unwrap().1)["state"].clone();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let code =
        provider.grant(&authorization_url, |provider_state, claims| provider_state.sign(&claims));
    let login = PendingLogin { authorization_url, cookie, state };
    let response = finish_login(&console, &login, &code);
    let session = response.header("set-cookie").unwrap();
    assert!(session.starts_with("__Host-elasticjob_session="), "{session}");
}
