//! Every route of the console, with a harmless request for each: from the OpenAPI document, and from the sources for routes that it does not describe.

use std::{fs, io::Read, path::Path};

use serde_json::{Value, json};

use crate::{
    console::Console,
    http::{Request, Response, request},
};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];
/// The console's sources: routes that the document does not describe are found there.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../elasticjob-console/src");
/// Ways to add routes that [`undocumented`] would not find.
const OTHER_WAYS: [&str; 4] =
    [".route_service(", ".nest_service(", ".fallback_service(", ".nest(\"/api/v1/"];
/// The middleware's table of GETs that change something.
const LIFECYCLE: &str = include_str!("../../../elasticjob-console/src/http/lifecycle.rs");

/// A route, with what the document says about its body.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) needs_body: bool,
}

impl Route {
    /// As the tables of the tests name it.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn is_safe(&self) -> bool {
        self.method == "GET"
    }

    /// A request that passes every check of rights and then fails, or changes nothing that another request relies on.
    pub(crate) fn request(&self) -> Request {
        let path = self.concrete_path();
        match self.body() {
            Some(body) => request(&self.method, &path).json(&body),
            None => request(&self.method, &path),
        }
    }

    pub(crate) fn concrete_path(&self) -> String {
        let segments = self.path.split('/').map(|segment| match segment {
            "{registry}" => "shop",
            "{item}" => "0",
            "{port}" => "9888",
            segment if segment.starts_with('{') => "missing",
            segment => segment,
        });
        let path = segments.collect::<Vec<_>>().join("/");
        match &*self.path {
            "/api/v1/cron/check" | "/api/v1/cron/next" => {
                format!("{path}?expression=0+0+2+*+*+%3F")
            }
            "/api/v1/r/{registry}/figures" => format!("{path}?job=missing"),
            _ => path,
        }
    }

    /// Where the role is checked after the body was read, the body has to be valid.
    pub(crate) fn body(&self) -> Option<Value> {
        if self.is_safe() {
            return None;
        }
        let jdbc = "jdbc:postgresql://127.0.0.1:1/jobs";
        Some(match &*self.path {
            "/api/v1/password" => json!({ "oldPassword": "x", "newPassword": "correct horse" }),
            "/api/v1/tokens" => json!({ "name": "", "role": "viewer" }),
            "/api/v1/registries" => json!({ "name": "new", "url": "zookeeper://127.0.0.1:1/new" }),
            "/api/v1/registries/test" => json!({ "url": "zookeeper://127.0.0.1:1/new" }),
            "/api/v1/histories" => json!({ "registry": "shop", "url": "postgres://127.0.0.1:1/h" }),
            "/api/v1/histories/test" => json!({ "url": "postgres://127.0.0.1:1/h" }),
            "/api/registry-center/add" => {
                json!({ "name": "new", "zkAddressList": "127.0.0.1:1", "namespace": "new" })
            }
            "/api/data-source/add" | "/api/data-source/connectTest" => {
                json!({ "name": "shop", "url": jdbc })
            }
            path if path.starts_with("/api/registry-center")
                || path.starts_with("/api/data-source") =>
            {
                json!({ "name": "shop" })
            }
            _ => json!({}),
        })
    }
}

/// Every operation of the OpenAPI document.
pub(crate) fn documented(console: &Console) -> Vec<Route> {
    let api = console.send(&request("GET", "/api/v1/openapi.json")).json();
    let paths = api["paths"].as_object().unwrap();
    let routes = paths.iter().flat_map(|(path, item)| {
        METHODS.iter().filter(|method| item[**method].is_object()).map(|method| Route {
            method: method.to_uppercase(),
            path: path.clone(),
            needs_body: item[*method]["requestBody"]["required"] == true,
        })
    });
    routes.collect()
}

/// Every route that is added by its path, read from the sources.
pub(crate) fn undocumented() -> Vec<Route> {
    let mut routes = Vec::new();
    for (file, text) in sources(Path::new(SOURCES)) {
        for way in OTHER_WAYS {
            assert!(!text.contains(way), "{file}: no test would see a route added by {way}");
        }
        for definition in text.split(".route(").skip(1) {
            let path = definition.split('"').nth(1).unwrap();
            assert!(path.starts_with('/'), "{file}: the path is not written here: {definition}");
            let methods = definition.split_once(&format!("\"{path}\",")).unwrap().1;
            for method in calls(methods) {
                let is_known = METHODS.contains(&&*method);
                assert!(is_known, "{file}: {path} is added by {method:?}, which no test would see");
                let (method, path) = (method.to_uppercase(), path.to_owned());
                routes.push(Route { method, path, needs_body: false });
            }
        }
    }
    assert!(routes.len() >= 50, "routes are written in another way: {routes:?}");
    routes
}

/// Names and texts of all source files, without their tests.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}

/// The functions that an argument calls, without those in their arguments: `post` and `get` of `post(f(x)).get(g))`.
fn calls(argument: &str) -> Vec<String> {
    let (mut depth, mut word, mut calls) = (0, String::new(), Vec::new());
    for letter in argument.chars() {
        match letter {
            '(' => {
                if depth == 0 {
                    calls.push(std::mem::take(&mut word));
                }
                depth += 1;
            }
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            letter if letter.is_alphanumeric() || letter == '_' => word.push(letter),
            _ => word.clear(),
        }
    }
    calls
}

/// Names of the GETs that change something.
pub(crate) fn changing_gets() -> Vec<String> {
    let table = LIFECYCLE.split_once("const CHANGING_GETS").unwrap().1;
    let table = table.split_once(';').unwrap().1.split_once(';').unwrap().0;
    let gets: Vec<_> =
        table.split('"').skip(1).step_by(2).map(|path| format!("GET {path}")).collect();
    assert!(gets.len() >= 2, "the table is written in another way: {gets:?}");
    gets
}

/// The names of routes and the names in a table are the same.
pub(crate) fn assert_complete<'t>(routes: &[Route], table: impl Iterator<Item = &'t str>) {
    let mut routes: Vec<String> = routes.iter().map(Route::name).collect();
    let mut table: Vec<String> = table.map(ToOwned::to_owned).collect();
    routes.sort();
    table.sort();
    let missing: Vec<_> = routes.iter().filter(|route| !table.contains(route)).collect();
    assert!(missing.is_empty(), "routes without an expectation: {missing:#?}");
    assert_eq!(routes, table, "expectations without a route, or twice");
}

/// How the console judged a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// 401.
    NotAuthenticated,
    /// 403: the role, or the kind of credentials, does not permit it.
    Forbidden,
    /// 403: from another site, or without the session's CSRF token.
    Csrf,
    /// 404: the registry does not exist for this caller.
    Invisible,
    /// The request reached its handler, whatever came of it.
    Allowed,
}

/// Sends a request and classifies the response; of an event stream only the head is read.
pub(crate) fn judge(console: &Console, sent: &Request) -> (Verdict, String) {
    let response = send_for_head(console, sent);
    if response.status == 200 && response.text.starts_with("{\"errorCode\":") {
        return (legacy_verdict(&response.json()), response.text);
    }
    let is_problem = response.header("content-type") == Some("application/problem+json");
    let code = if is_problem { response.problem().1 } else { String::new() };
    let verdict = match (response.status, &*code) {
        (401, _) => Verdict::NotAuthenticated,
        (403, "csrf") => Verdict::Csrf,
        (403, "forbidden") => Verdict::Forbidden,
        (404, "notFound") if response.text.contains("there is no registry shop\"") => {
            Verdict::Invisible
        }
        (status, _) => {
            assert!(status < 500 && status != 429, "{sent:?}: {response:?}");
            Verdict::Allowed
        }
    };
    (verdict, format!("{} {}", response.status, response.text))
}

/// The envelope has one number for every refusal.
fn legacy_verdict(envelope: &Value) -> Verdict {
    let text = envelope["errorMsg"].as_str().unwrap_or_default();
    match envelope["errorCode"].as_u64().unwrap() {
        403 if text.contains("another site") => Verdict::Csrf,
        403 if text.contains("not logged in") => Verdict::NotAuthenticated,
        403 => Verdict::Forbidden,
        _ => Verdict::Allowed,
    }
}

fn send_for_head(console: &Console, sent: &Request) -> Response {
    let mut stream = sent.open(&console.address);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let is_stream = text.contains("\r\ncontent-type: text/event-stream");
        if read == 0 || (is_stream && text.contains("\r\n\r\n")) {
            return Response::parse(&text);
        }
    }
}

#[test]
fn routes_are_read_from_sources_whatever_their_layout() {
    let called = |argument: &str| calls(argument);
    assert_eq!(called(" get(boxed(jobs::list)))\n.merge(x)"), ["get"]);
    assert_eq!(called("\n  post(boxed(a)).get(boxed(b)),\n)\n"), ["post", "get"]);
    assert_eq!(called(" get(|| async { f(1) }).on(filter, g))"), ["get", "on"]);
    assert_eq!(changing_gets().len(), 2);
}
