//! Cross-site requests: every changing route against everything that a foreign page can make a browser send.

use crate::{
    access_matrix::is_refused_by_cookie,
    console::{BrowserSession, Console},
    http::{Request, request},
    routes::{Route, Verdict, changing_gets, documented, judge, undocumented},
    scene::{Scene, settle},
};

/// Routes that need no login: a foreign page could log a browser in as another user.
const LOGINS: [&str; 2] = ["POST /api/v1/login", "POST /api/login"];

/// Headers that a browser adds to a request of another site. A page cannot choose them.
fn foreign(address: &str) -> Vec<(&'static str, String)> {
    let (host, _) = address.rsplit_once(':').unwrap();
    vec![
        ("origin", "http://evil.example.com".to_owned()),
        ("origin", "null".to_owned()),
        ("origin", format!("http://{host}:1")),
        ("origin", format!("http://{address}.evil.example.com")),
        ("sec-fetch-site", "cross-site".to_owned()),
        ("sec-fetch-site", "same-site".to_owned()),
    ]
}

/// What a browser, or a client of another kind, proves itself with.
struct Proofs {
    cookie: String,
    csrf: String,
    /// Of another session of the same user.
    other_csrf: String,
    /// `authorization` by password and by API token, and `access-token`.
    headers: Vec<(&'static str, String)>,
}

impl Proofs {
    fn new(console: &Console) -> Self {
        let (admin, other) = (console.admin(), console.admin());
        let BrowserSession { cookie, csrf, .. } = &admin;
        let token = serde_json::json!({ "name": "ci", "role": "admin" });
        let token = admin.send(request("POST", "/api/v1/tokens").json(&token)).json();
        let login = serde_json::json!({ "username": "admin", "password": console.password });
        let login = console.send(&request("POST", "/api/login").json(&login)).json();
        let basic = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            format!("admin:{}", console.password),
        );
        Self {
            cookie: cookie.clone(),
            csrf: csrf.clone(),
            other_csrf: other.csrf.clone(),
            headers: vec![
                ("authorization", format!("Basic {basic}")),
                ("authorization", format!("Bearer {}", token["token"].as_str().unwrap())),
                ("access-token", login["model"]["accessToken"].as_str().unwrap().to_owned()),
            ],
        }
    }
}

/// One request that has to be refused, with a name for the report.
struct Attack {
    name: String,
    request: Request,
}

fn attack(name: impl Into<String>, request: Request) -> Attack {
    Attack { name: name.into(), request }
}

/// Requests with a valid proof and the headers of another site.
fn foreign_attacks(route: &Route, address: &str, proofs: &Proofs) -> Vec<Attack> {
    let mut attacks = Vec::new();
    for (header, value) in foreign(address) {
        let by_cookie =
            route.request().header("cookie", &proofs.cookie).header("x-csrf-token", &proofs.csrf);
        attacks
            .push(attack(format!("cookie, {header}: {value}"), by_cookie.header(header, &value)));
        for (proof, secret) in &proofs.headers {
            let kind = secret.split(' ').next().unwrap_or_default();
            let kind = if *proof == "access-token" { "access token" } else { kind };
            let request = route.request().header(proof, secret).header(header, &value);
            attacks.push(attack(format!("{kind}, {header}: {value}"), request));
        }
    }
    attacks
}

/// Requests by cookie without the session's token: what a form or a script of a foreign page can send.
fn tokenless_attacks(route: &Route, proofs: &Proofs) -> Vec<Attack> {
    let by_cookie = || route.request().header("cookie", &proofs.cookie);
    let with_token = |token: &str| by_cookie().header("x-csrf-token", token);
    let separator = if route.concrete_path().contains('?') { '&' } else { '?' };
    let token_in_query = format!("{}{separator}csrfToken={}", route.concrete_path(), proofs.csrf);
    let mut attacks = vec![
        attack("no token", by_cookie()),
        attack("empty token", with_token("")),
        attack("guessed token", with_token("guess")),
        attack("token of another session", with_token(&proofs.other_csrf)),
        attack("prefix of the token", with_token(&proofs.csrf[..8])),
        attack(
            "token in the query",
            request(&route.method, &token_in_query).header("cookie", &proofs.cookie),
        ),
        attack(
            "token in a cookie",
            route
                .request()
                .header("cookie", &format!("{}; x-csrf-token={}", proofs.cookie, proofs.csrf)),
        ),
    ];
    for (kind, body) in [
        ("application/x-www-form-urlencoded", format!("csrfToken={}", proofs.csrf)),
        ("multipart/form-data; boundary=x", "--x--\r\n".to_owned()),
        ("text/plain", route.body().unwrap_or_default().to_string()),
        ("text/plain; x=application/json", "{}".to_owned()),
    ] {
        let request = request(&route.method, &route.concrete_path());
        let request = request.raw(body).header("content-type", kind);
        attacks.push(attack(format!("form of {kind}"), request.header("cookie", &proofs.cookie)));
    }
    attacks
}

/// A login proves itself by its body, which is read before the origin is checked.
fn login_attacks(route: &Route, address: &str) -> Vec<Attack> {
    let login = serde_json::json!({ "username": "admin", "password": "guess" });
    let login = request(&route.method, &route.path).json(&login);
    let attacks = foreign(address).into_iter().map(|(header, value)| {
        attack(format!("{header}: {value}"), login.clone().header(header, &value))
    });
    attacks.collect()
}

fn all_attacks(route: &Route, address: &str, proofs: &Proofs) -> Vec<Attack> {
    let mut attacks = foreign_attacks(route, address, proofs);
    let name = route.name();
    if LOGINS.contains(&&*name) {
        return login_attacks(route, address);
    }
    if changing_gets().contains(&name) {
        // Browsers omit Sec-Fetch-Site for plain HTTP, and Origin for a GET.
        let referer = "http://evil.example.com/page";
        for (proof, secret) in &proofs.headers {
            let request = route.request().header(proof, secret).header("referer", referer);
            attacks.push(attack(format!("{proof}, foreign referer"), request));
        }
        attacks.extend(unreferred_attacks(route, proofs));
        if !is_refused_by_cookie(route) {
            return attacks;
        }
    }
    attacks.extend(tokenless_attacks(route, proofs));
    attacks
}

/// What a browser sends that has a password stored for the console, from a page that withholds the referrer: nothing tells the site.
fn unreferred_attacks(route: &Route, proofs: &Proofs) -> Vec<Attack> {
    let (proof, secret) = &proofs.headers[0];
    let browser = [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"),
        ("accept-language", "en"),
        ("upgrade-insecure-requests", "1"),
        ("cookie", "theme=dark"),
    ];
    let attacks = browser.into_iter().map(|(header, value)| {
        let request = route.request().header(proof, secret).header(header, value);
        attack(format!("password, no referrer, {header}: {value}"), request)
    });
    // A link in a mail or a chat: the user follows it, but another one wrote it.
    let link = [browser[0], ("sec-fetch-site", "none")];
    let link = link.iter().fold(route.request(), |it, (name, value)| it.header(name, value));
    let link = attack("password, link of a mail".to_owned(), link.header(proof, secret));
    attacks.chain([link]).collect()
}

/// The same request from the console's own page, and from a program: both are admitted.
fn controls(route: &Route, address: &str, proofs: &Proofs) -> Vec<Request> {
    if LOGINS.contains(&&*route.name()) {
        return vec![route.request(), route.request().header("sec-fetch-site", "same-origin")];
    }
    let own_page =
        [("origin", format!("http://{address}")), ("sec-fetch-site", "same-origin".into())];
    let by_cookie =
        route.request().header("cookie", &proofs.cookie).header("x-csrf-token", &proofs.csrf);
    let by_cookie =
        own_page.iter().fold(by_cookie, |request, (name, value)| request.header(name, value));
    // A token may not change accounts: only the password proves the same rights everywhere.
    let (proof, secret) = &proofs.headers[0];
    let mut controls = vec![route.request().header(proof, secret)];
    if changing_gets().contains(&route.name()) {
        let curl = route.request().header(proof, secret).header("user-agent", "curl/8.5.0");
        let own_page = [("user-agent", "Mozilla/5.0"), ("sec-fetch-site", "same-origin")];
        let own_page =
            own_page.iter().fold(route.request(), |it, (name, value)| it.header(name, value));
        let by_token = route.request().header(proofs.headers[1].0, &proofs.headers[1].1);
        controls.extend([curl.header("accept", "*/*"), own_page.header(proof, secret)]);
        controls
            .push(by_token.header("user-agent", "Mozilla/5.0 (Windows NT) WindowsPowerShell/5.1"));
    }
    if !is_refused_by_cookie(route) {
        controls.push(by_cookie);
    }
    controls
}

#[tokio::test(flavor = "multi_thread")]
async fn every_changing_route_refuses_requests_of_other_sites() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    console.wait_until_loaded("shop");
    let routes = documented(&console).into_iter().chain(undocumented());
    let changing_gets = changing_gets();
    let is_change = |route: &Route| !route.is_safe() || changing_gets.contains(&route.name());
    let mut routes: Vec<_> = routes.filter(is_change).collect();
    // These end the session, or count wrong passwords.
    routes.sort_by_key(|route| {
        ["/password", "/logout"].iter().position(|end| route.path.ends_with(end))
    });
    let proofs = Proofs::new(&console);

    let (mut wrong, mut count) = (Vec::new(), 0);
    for route in &routes {
        for Attack { name, request } in all_attacks(route, &console.address, &proofs) {
            let (verdict, response) = judge(&console, &request);
            count += 1;
            if verdict != Verdict::Csrf {
                wrong.push(format!("{} {name}: {verdict:?}: {response}", route.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_500, "{count}");

    for route in routes.iter().filter(|route| !route.path.ends_with("/logout")) {
        for request in controls(route, &console.address, &proofs) {
            let (verdict, response) = judge(&console, &request);
            assert_ne!(verdict, Verdict::Csrf, "{}: {response}", route.name());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn body_that_a_form_can_send_is_never_read_as_json() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let routes: Vec<_> =
        documented(&console).into_iter().filter(|route| route.needs_body).collect();
    assert!(routes.len() >= 10, "{routes:?}");

    for route in routes {
        for kind in ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""] {
            let request = request(&route.method, &route.concrete_path())
                .raw(route.body().unwrap_or_default().to_string());
            let response = admin.send(request.header("content-type", kind));
            assert_eq!(response.status, 415, "{} {kind:?}: {response:?}", route.name());
        }
    }
}
