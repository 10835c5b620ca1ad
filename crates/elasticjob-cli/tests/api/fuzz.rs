//! Sends random requests to every operation of the OpenAPI document: none may cause an internal error.

use elasticjob::history::{HistoryUrl, Store};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    console::Console,
    http::{Request, request},
    scene::{Scene, settle},
};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

#[tokio::test(flavor = "multi_thread")]
async fn openapi_describes_every_operation_and_its_responses() {
    let console = Console::start(&["shop=zookeeper://127.0.0.1:1/shop"]);

    let api = console.send(&request("GET", "/api/v1/openapi.json")).json();

    assert_eq!(api["openapi"], "3.1.0");
    let operations = operations(&api);
    assert!(operations.len() >= 45, "{}", operations.len());
    for (path, method, operation) in &operations {
        assert!(operation["summary"].is_string(), "{method} {path} has no summary");
        let answers = operation["responses"].as_object().unwrap();
        assert!(answers.keys().any(|status| status.starts_with(['2', '3'])), "{method} {path}");
        assert!(
            answers.keys().any(|status| status.starts_with('4')) || path.ends_with("/session"),
            "{method} {path}"
        );
    }
    for path in ["/api/v1/docs", "/api/v1/docs/docs.js", "/api/v1/docs/docs.css"] {
        let page = console.send(&request("GET", path));
        assert!(
            page.status == 200 && !page.text.contains("https://"),
            "{path} loads nothing from other hosts"
        );
    }
}

fn operations(api: &Value) -> Vec<(String, String, Value)> {
    let paths = api["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        METHODS
            .iter()
            .filter(|method| item[**method].is_object())
            .map(|method| (path.clone(), (*method).to_owned(), item[*method].clone()))
    });
    all.collect()
}

/// Texts that often cause trouble.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec![
            "shop", "settle", "0", "-1", "1", "99999999999999999999", "", ".", "..", "%2e%2e", "%2F", "%00", "a%20b", "%FF", "*", "null", "true", "NaN",
            "2026-11-15T06:36:07Z", "-009999-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "0/5 * * * * ?", "0 0 0 29 2 ? 2099", "%E4%BD%A0", "10.0.0.7", "%0d%0aX: y",
        ]).prop_map(ToOwned::to_owned),
        1 => "[a-zA-Z0-9._~:@,;+-]{0,40}",
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,20}".prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// A body with known and unknown field names.
fn body(names: Vec<String>) -> impl Strategy<Value = Value> {
    let names = if names.is_empty() { vec!["x".to_owned()] } else { names };
    let map = prop::collection::btree_map(prop::sample::select(names), json(), 0..5);
    prop_oneof![4 => map.prop_map(|map| json!(map)), 1 => json()]
}

fn names(api: &Value, operation: &Value) -> Vec<String> {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let name = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.rsplit('/').next())
        .unwrap_or_default();
    let properties = api["components"]["schemas"][name]["properties"].as_object();
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_never_cause_an_internal_error() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let history = HistoryUrl::sqlite(scene.folder.path().join("history.db"));
    Store::open(&history).await.unwrap();
    let file = format!("[histories]\nshop = \"{history}\"\n[addHistories]\nenabled = true\n");
    let console = Console::with(&[&format!("shop={}", scene.url)], &file);
    let (api, admin) =
        (console.send(&request("GET", "/api/v1/openapi.json")).json(), console.admin());
    // Excludes operations that would end the session or change accounts.
    let operations: Vec<_> = operations(&api)
        .into_iter()
        .filter(|(path, ..)| {
            !["/events", "/logout", "/login", "/password", "/accounts/{username}", "/doctor"]
                .iter()
                .any(|end| path.ends_with(end))
        })
        .collect();
    let legacy_paths = [
        "/api/jobs/{job}/sharding",
        "/api/jobs/{job}/disable",
        "/api/jobs/config/{job}",
        "/api/servers/{server}/jobs",
        "/api/servers/{server}/jobs/{job}/enable",
        "/api/jobs/config",
        "/api/event-trace/execution",
        "/api/event-trace/execution/jobNames/{prefix}",
        "/api/event-trace/status",
        "/api/data-source/add",
    ];

    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    });
    let which = (
        any::<prop::sample::Index>(),
        prop::collection::vec(text(), 4),
        prop::collection::vec((text(), text()), 0..3),
        any::<bool>(),
    );
    let whole = which.prop_flat_map(|(index, parts, query, is_v1)| {
        let (path, method, names) = if is_v1 {
            let (path, method, operation) = index.get(&operations);
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let queries = parameters
                .filter(|part| part["in"] == "query")
                .filter_map(|part| part["name"].as_str().map(ToOwned::to_owned));
            (path.clone(), method.clone(), (names(&api, operation), queries.collect::<Vec<_>>()))
        } else {
            (
                (*index.get(&legacy_paths)).to_owned(),
                (*index.get(&METHODS)).to_owned(),
                (
                    ["jobName", "cron", "pageSize", "url"].map(ToOwned::to_owned).to_vec(),
                    Vec::new(),
                ),
            )
        };
        (Just((path, method, parts, query, names.1)), body(names.0), any::<prop::sample::Index>())
    });
    runner
        .run(&whole, |((path, method, parts, query, queries), body, index)| {
            let sent =
                build_request(&path, &method, &parts, &query, &queries, &body, index.index(4));
            let response = admin.send(sent.clone());
            prop_assert!(response.status < 500, "{sent:?}: {response:?}");
            if response.status >= 400 {
                prop_assert_eq!(
                    response.header("content-type"),
                    Some("application/problem+json"),
                    "{:?}: {:?}",
                    sent,
                    response
                );
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(admin.get("/api/v1/session").status, 200, "the console still answers");
}

fn build_request(
    path: &str,
    method: &str,
    parts: &[String],
    query: &[(String, String)],
    queries: &[String],
    body: &Value,
    condition: usize,
) -> Request {
    let mut parts = parts.iter();
    let path: Vec<String> = path
        .split('/')
        .map(|segment| match segment {
            // Mostly existing names, so that the code behind the lookup is reached.
            "{registry}" => "shop".to_owned(),
            "{job}" if condition > 0 => "settle".to_owned(),
            segment if segment.starts_with('{') => {
                parts.next().map(|part| part.replace(['/', '?', '#', ' '], "")).unwrap_or_default()
            }
            segment => segment.to_owned(),
        })
        .collect();
    let escaped = |text: &str| text.replace(' ', "+").replace('#', "%23").replace('&', "%26");
    let pairs = query.iter().enumerate().map(|(index, (name, value))| {
        let name = queries.get(index).unwrap_or(name);
        format!("{}={}", escaped(name), escaped(value))
    });
    let pairs: Vec<String> = pairs.collect();
    let path = format!("{}?{}", path.join("/"), pairs.join("&"));
    let request = request(&method.to_uppercase(), &path).json(body);
    match condition {
        0 => request.header("if-match", "*"),
        1 => request.header("if-none-match", "*"),
        2 => request.header("if-match", "\"x\"").header("idempotency-key", "k"),
        _ => request,
    }
}
