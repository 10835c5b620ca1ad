//! Logging in at a provider: a small real one, which can be told to lie.

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
    http::{Answer, request},
};

const REGISTRY: &str = "shop=zookeeper://127.0.0.1:1/shop";

/// A provider.
struct Provider {
    issuer: String,
    book: Arc<Mutex<Book>>,
    _server: JoinSet<()>,
}

/// What it knows.
struct Book {
    issuer: String,
    key: EcdsaKeyPair,
    key_id: String,
    /// Logins that it let through, by code: what was asked for, and the token it gives for it.
    codes: HashMap<String, (HashMap<String, String>, String)>,
    /// Whether what it says about itself is what it is.
    calls_itself: Option<String>,
}

fn key() -> EcdsaKeyPair {
    let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap()
}

fn sign(key: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
    let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
    let seal = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", BASE64.encode(seal.as_ref()))
}

fn now() -> i64 {
    SystemClock.now().as_second()
}

/// Names and values behind a question mark, or of a form.
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
        let book = Arc::new(Mutex::new(Book {
            issuer: issuer.clone(),
            key: key(),
            key_id: "one".to_owned(),
            codes: HashMap::new(),
            calls_itself: None,
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&book));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { issuer, book, _server: server }
    }

    fn file(&self) -> String {
        format!(
            "[oidc]\nissuer = '{}'\nclientId = 'console'\nclientSecret = 's&cret'\nlabel = 'Acme'\n[oidc.roles]\nops = {{ shop = 'operator' }}\n",
            self.issuer
        )
    }

    fn claims(&self, asked: &HashMap<String, String>) -> Value {
        json!({
            "iss": self.issuer, "aud": "console", "sub": "7", "exp": now() + 300, "iat": now(),
            "nonce": asked["nonce"], "preferred_username": "ann", "groups": ["ops"],
        })
    }

    /// Lets somebody through who was sent here: the code for a token that is made of what they asked.
    fn lets_in(&self, door: &str, token: impl FnOnce(&Book, Value) -> String) -> String {
        assert!(door.starts_with(&format!("{}/authorize?", self.issuer)), "{door}");
        let asked = pairs(door.split_once('?').unwrap().1);
        assert_eq!((&*asked["response_type"], &*asked["code_challenge_method"]), ("code", "S256"));
        assert_eq!(asked["scope"], "openid profile email");
        let mut book = self.book.lock().unwrap();
        let token = token(&book, self.claims(&asked));
        let code = format!("code+{}/=", book.codes.len());
        book.codes.insert(code.clone(), (asked, token));
        code
    }
}

impl Book {
    fn header(&self) -> Value {
        json!({ "alg": "ES256", "kid": self.key_id })
    }

    fn sign(&self, claims: &Value) -> String {
        sign(&self.key, &self.header(), claims)
    }
}

async fn configuration(State(book): State<Arc<Mutex<Book>>>) -> Json<Value> {
    let book = book.lock().unwrap();
    let at = |path: &str| format!("{}/{path}", book.issuer);
    Json(json!({
        "issuer": book.calls_itself.as_ref().unwrap_or(&book.issuer),
        "authorization_endpoint": at("authorize"), "token_endpoint": at("token"), "jwks_uri": at("keys"),
    }))
}

async fn keys(State(book): State<Arc<Mutex<Book>>>) -> Json<Value> {
    let book = book.lock().unwrap();
    let point = book.key.public_key().as_ref();
    let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": book.key_id, "x": x, "y": y });
    Json(json!({ "keys": [key] }))
}

/// A token for a code, once, for whoever asked for the code.
async fn token(
    State(book): State<Arc<Mutex<Book>>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, (StatusCode, Json<Value>)> {
    let sent = pairs(&body);
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error })));
    let who = format!("Basic {}", STANDARD.encode("console:s%26cret"));
    if headers.get("authorization").is_none_or(|given| given != who.as_str()) {
        return Err(refused("invalid_client"));
    }
    let (asked, token) =
        book.lock().unwrap().codes.remove(&sent["code"]).ok_or_else(|| refused("invalid_grant"))?;
    let challenge = BASE64.encode(digest(&SHA256, sent["code_verifier"].as_bytes()));
    if asked["code_challenge"] != challenge || asked["redirect_uri"] != sent["redirect_uri"] {
        return Err(refused("invalid_grant"));
    }
    Ok(Json(json!({ "id_token": token, "access_token": "x", "token_type": "Bearer" })))
}

/// A login that was begun: where the browser was sent, and the cookie it got.
struct Begun {
    door: String,
    cookie: String,
    state: String,
}

fn begin(console: &Console) -> Begun {
    let answer = console.send(&request("GET", "/api/v1/login/oidc?to=/r/shop/jobs"));
    assert_eq!(answer.status, 303, "{answer:?}");
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.contains("; Path=/api/v1/login/oidc; HttpOnly; SameSite=Lax; Max-Age=600"),
        "{set}"
    );
    let door = answer.header("location").unwrap().to_owned();
    let state = pairs(door.split_once('?').unwrap().1)["state"].clone();
    Begun { cookie: set.split(';').next().unwrap().to_owned(), state, door }
}

fn back(console: &Console, query: &str, cookie: &str) -> Answer {
    let path = format!("/api/v1/login/oidc/callback?{query}");
    console.send(&request("GET", &path).header("cookie", cookie))
}

fn come_back(console: &Console, begun: &Begun, code: &str) -> Answer {
    let code = code.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    back(console, &format!("code={code}&state={}&session_state=x", begun.state), &begun.cookie)
}

/// Where it led, and that nobody is logged in.
fn refused(answer: &Answer) -> &str {
    assert_eq!((answer.status, answer.header("set-cookie")), (303, None), "{answer:?}");
    answer.header("location").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_the_provider_knows_has_the_roles_of_their_groups_and_no_account() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let methods = console.send(&request("GET", "/api/v1/login/methods")).json();
    assert_eq!(methods["oidc"]["label"], "Acme");

    let begun = begin(&console);
    let code = provider.lets_in(&begun.door, |book, claims| book.sign(&claims));
    let answer = come_back(&console, &begun, &code);

    assert_eq!((answer.status, answer.header("location")), (303, Some("/r/shop/jobs")));
    let set = answer.header("set-cookie").unwrap();
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
        let asked = request("POST", path).json(body).header("cookie", cookie);
        console.send(&asked.header("x-csrf-token", csrf))
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
    let theirs = json!({ "username": "oidc:ann", "count": 1, "isElsewhere": true });
    assert!(open.as_array().unwrap().contains(&theirs), "{open:#}");
    assert_eq!(admin.send(request("DELETE", "/api/v1/sessions/oidc:ann")).status, 204);
    assert_eq!(ask("/api/v1/session").status, 401, "an admin can end it");
}

type Forged = Box<dyn FnOnce(&Book, Value) -> String>;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_for_this_login_lets_nobody_in() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let with = |name: &'static str, value: Value| {
        move |book: &Book, mut claims: Value| {
            claims[name] = value;
            book.sign(&claims)
        }
    };
    let forged: Vec<(&str, Forged)> = vec![
        ("another nonce", Box::new(with("nonce", json!("guess")))),
        ("another audience", Box::new(with("aud", json!("other")))),
        ("several, and not asked by us", Box::new(with("aud", json!(["console", "other"])))),
        ("another issuer", Box::new(with("iss", json!("https://evil.example.com")))),
        ("expired", Box::new(with("exp", json!(now() - 3600)))),
        ("from the future", Box::new(with("iat", json!(now() + 3600)))),
        (
            "alg none",
            Box::new(|_: &Book, claims: Value| {
                let header = json!({ "alg": "none" });
                format!(
                    "{}.",
                    [header, claims].map(|part| BASE64.encode(part.to_string())).join(".")
                )
            }),
        ),
        (
            "somebody else's key under the same name",
            Box::new(|book: &Book, claims: Value| sign(&key(), &book.header(), &claims)),
        ),
        (
            "a key that is not shown",
            Box::new(|_: &Book, claims: Value| {
                sign(&key(), &json!({ "alg": "ES256", "kid": "two" }), &claims)
            }),
        ),
        (
            "HMAC with what everybody knows",
            Box::new(|book: &Book, claims: Value| {
                let header = json!({ "alg": "HS256", "kid": "one" });
                let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
                let key =
                    ring::hmac::Key::new(ring::hmac::HMAC_SHA256, book.key.public_key().as_ref());
                let seal = ring::hmac::sign(&key, text.as_bytes());
                format!("{text}.{}", BASE64.encode(seal.as_ref()))
            }),
        ),
    ];

    for (what, token) in forged {
        let begun = begin(&console);
        let code = provider.lets_in(&begun.door, token);
        let answer = come_back(&console, &begun, &code);
        assert_eq!(refused(&answer), "/r/shop/jobs?oidc=failed", "{what}");
    }
    let audit = console.admin().data("/api/v1/audit?action=login&username=oidc:");
    assert_eq!(audit["total"], 10, "{audit:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_taken_once_in_the_browser_that_asked() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());
    let sign = |book: &Book, claims: Value| book.sign(&claims);

    let (ours, theirs) = (begin(&console), begin(&console));
    let code = provider.lets_in(&theirs.door, sign);
    let mixed = Begun { state: theirs.state.clone(), ..ours };
    assert_eq!(refused(&come_back(&console, &mixed, &code)), "/?oidc=stale", "not our state");
    assert_eq!(refused(&back(&console, "code=x&state=guess", &theirs.cookie)), "/?oidc=stale");
    assert_eq!(refused(&come_back(&console, &theirs, &code)), "/?oidc=stale", "one try");
    assert_eq!(refused(&back(&console, "code=x&state=x", "")), "/?oidc=stale", "no cookie");

    let begun = begin(&console);
    let code = provider.lets_in(&begun.door, sign);
    assert!(come_back(&console, &begun, &code).header("set-cookie").is_some());
    assert_eq!(refused(&come_back(&console, &begun, &code)), "/?oidc=stale", "a callback replayed");
    let again = begin(&console);
    assert_eq!(
        refused(&come_back(&console, &again, &code)),
        "/r/shop/jobs?oidc=failed",
        "a code replayed"
    );

    let begun = begin(&console);
    let stolen = provider.lets_in(&begin(&console).door, sign);
    assert_eq!(refused(&come_back(&console, &begun, &stolen)), "/r/shop/jobs?oidc=failed", "PKCE");
    let begun = begin(&console);
    let denied = format!("error=access_denied&state={}", begun.state);
    assert_eq!(refused(&back(&console, &denied, &begun.cookie)), "/r/shop/jobs?oidc=denied");
    let begun = begin(&console);
    let other = format!("code=x&state={}&iss=https://evil.example.com", begun.state);
    assert_eq!(refused(&back(&console, &other, &begun.cookie)), "/r/shop/jobs?oidc=failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_role_is_told_so_and_keys_may_change() {
    let provider = Provider::start().await;
    let console = Console::with(&[REGISTRY], &provider.file());

    let begun = begin(&console);
    let code = provider.lets_in(&begun.door, |book, mut claims| {
        claims["groups"] = json!(["sales"]);
        book.sign(&claims)
    });
    assert_eq!(refused(&come_back(&console, &begun, &code)), "/r/shop/jobs?oidc=noRole");
    let audit = console.admin().data("/api/v1/audit?username=oidc:ann");
    assert!(audit["items"][0]["problem"].as_str().unwrap().contains("role"), "{audit:#}");

    {
        let mut book = provider.book.lock().unwrap();
        (book.key, book.key_id) = (key(), "two".to_owned());
    }
    let begun = begin(&console);
    let code = provider.lets_in(&begun.door, |book, claims| book.sign(&claims));
    assert!(come_back(&console, &begun, &code).header("set-cookie").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_keeps_nobody_out_who_has_a_password() {
    let down = "[oidc]\nissuer = 'http://127.0.0.1:1'\nclientId = 'console'\n[oidc.roles]\n'*' = { '*' = 'viewer' }\n";
    let console = Console::with(&[REGISTRY], down);

    console.admin();
    let answer = console.send(&request("GET", "/api/v1/login/oidc"));

    assert_eq!(refused(&answer), "/?oidc=unreachable");
    let methods = console.send(&request("GET", "/api/v1/login/methods")).json();
    let problem = methods["oidc"]["problem"].as_str().unwrap();
    assert!(problem.contains("http://127.0.0.1:1/.well-known"), "{problem}");

    let without = Console::start(&[REGISTRY]);
    assert_eq!(without.send(&request("GET", "/api/v1/login/methods")).json()["oidc"], Value::Null);
    assert_eq!(without.send(&request("GET", "/api/v1/login/oidc")).problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_calls_itself_otherwise_is_not_believed() {
    let provider = Provider::start().await;
    provider.book.lock().unwrap().calls_itself = Some("https://evil.example.com".to_owned());
    let console = Console::with(&[REGISTRY], &provider.file());

    let answer = console.send(&request("GET", "/api/v1/login/oidc"));

    assert_eq!(refused(&answer), "/?oidc=unreachable");
    let methods = console.send(&request("GET", "/api/v1/login/methods")).text;
    assert!(methods.contains("calls itself") && methods.contains("evil"), "{methods}");
}
