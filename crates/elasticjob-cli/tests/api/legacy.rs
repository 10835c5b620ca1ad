//! The API of ElasticJob's own consoles, generations 2.x and 3.x.

use serde_json::{Value, json};

use crate::{
    console::Console,
    http::{Request, Response, request},
    scene::{ADDRESS, Scene, settle},
};

#[tokio::test(flavor = "multi_thread")]
async fn version_3_clients_log_in_and_get_envelopes() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().cron("0 0 2 * * ?").unwrap()).await;
    let console = Console::start(&[
        &format!("shop={}", scene.url),
        &format!("other={}", scene.url.replace("/shop?", "/other?")),
    ]);
    let login = |password: &str| {
        let body = json!({ "username": "admin", "password": password });
        console.send(&request("POST", "/api/login").json(&body))
    };
    let wrong = login("wrong");
    assert_eq!(
        (wrong.status, &wrong.json()["success"], &wrong.json()["errorCode"]),
        (200, &json!(false), &json!(403))
    );
    let token =
        login(&console.password).json()["model"]["accessToken"].as_str().unwrap().to_owned();
    let send = |method: &str, path: &str, body: Option<Value>| -> Response {
        let request = request(method, path).header("access-token", &token);
        console.send(&body.iter().fold(request, Request::json))
    };
    let model = |method: &str, path: &str| {
        let response = send(method, path, None);
        let envelope = response.json();
        assert_eq!(
            (response.status, &envelope["success"]),
            (200, &json!(true)),
            "{path}: {envelope}"
        );
        envelope["model"].clone()
    };

    assert_eq!(send("GET", "/api/jobs/count", None).text, "1");
    assert_eq!(send("GET", "/api/servers/count", None).text, "1");
    assert_eq!(
        model("GET", "/api/jobs/getAllJobsBriefInfo"),
        json!([{ "jobName": "settle", "status": "OK", "description": "settles orders", "cron": "0 0 2 * * ?", "instanceCount": 1, "shardingTotalCount": 3 }])
    );
    let shards = model("GET", "/api/jobs/settle/sharding");
    assert_eq!(
        (&shards[0]["serverIp"], &shards[0]["status"], &shards[0]["failover"]),
        (&json!(ADDRESS), &json!("PENDING"), &json!(false))
    );
    assert!(!shards[0]["instanceId"].as_str().unwrap().contains('@'), "only the process");
    for path in ["trigger", "disable", "enable", "sharding/1/disable", "sharding/1/enable"] {
        assert_eq!(model("POST", &format!("/api/jobs/settle/{path}")), true, "{path}");
    }
    let mut config = model("GET", "/api/jobs/config/settle");
    assert_eq!((&config["timeZone"], &config["jobListenerTypes"]), (&Value::Null, &json!([])));
    config["description"] = "edited".into();
    assert_eq!(send("PUT", "/api/jobs/config", Some(config)).json()["model"], true);
    assert!(scene.get("settle/config").await.unwrap().contains("description: edited"));
    let servers = model("GET", "/api/servers/getAllServersBriefInfo");
    assert_eq!(
        (&servers[0]["instancesNum"], &servers[0]["jobsNum"], &servers[0]["disabledJobsNum"]),
        (&json!(1), &json!(1), &json!(0))
    );
    for path in ["disable", "enable", "jobs/settle/disable", "jobs/settle/enable"] {
        assert_eq!(model("POST", &format!("/api/servers/{ADDRESS}/{path}")), true, "{path}");
    }
    assert_eq!(
        model("GET", &format!("/api/servers/{ADDRESS}/jobs")),
        json!([{ "jobName": "settle", "status": "OK", "instanceCount": 1 }])
    );
    assert!(
        model("POST", &format!("/api/servers/{ADDRESS}/9888/jobs/settle/dump"))
            .as_str()
            .unwrap()
            .contains("/settle/config")
    );
    let refused = send("DELETE", "/api/jobs/config/settle", None);
    assert_eq!(
        (refused.status, &refused.json()["errorCode"]),
        (200, &json!(400)),
        "it has an instance"
    );

    let centers = model("GET", "/api/registry-center/load");
    assert_eq!(
        (&centers[1]["name"], &centers[1]["activated"], &centers[0]["activated"]),
        (&json!("shop"), &json!(true), &json!(false))
    );
    assert_eq!(
        send("POST", "/api/registry-center/connect", Some(json!({ "name": "other" }))).json()["model"],
        true
    );
    assert_eq!(send("GET", "/api/jobs/count", None).text, "0");
    let viewer = console.add_user("victor", &json!({ "*": "viewer" }));
    assert_eq!(viewer.get("/api/jobs/count").text, "1", "each user has their own selection");

    let connect = request("POST", "/api/registry-center/connect").json(&json!({ "name": "other" }));
    assert_eq!(viewer.send(connect).status, 200);
    assert_eq!(viewer.data("/api/registry-center/activated")["name"], "other");
    let roles = json!({ "roles": { "shop": "viewer" } });
    assert_eq!(console.admin().put("/api/v1/accounts/victor", &roles).status, 204);
    assert_eq!(
        viewer.data("/api/registry-center/activated")["name"],
        "shop",
        "a selection without role is ignored"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn version_3_client_that_is_refused_early_gets_an_envelope() {
    let scene = Scene::with("").await;
    let file =
        "trustedProxies = ['127.0.0.1']\n[limits]\nconnections = 8\nconnectionsPerAddress = 1\n";
    let console = Console::with(&[&format!("shop={}", scene.url)], file);
    let body = json!({ "username": "admin", "password": console.password });
    let login = console.send(&request("POST", "/api/login").json(&body)).json();
    let token = login["model"]["accessToken"].as_str().unwrap();
    let from = |request: Request| request.header("x-forwarded-for", "203.0.113.9");
    let events = request("GET", "/api/v1/r/shop/events").header("cookie", &console.admin().cookie);
    let mut stream = from(events).open(&console.address);
    std::io::Read::read_exact(&mut stream, &mut [0; 12]).unwrap();

    let count = from(request("GET", "/api/jobs/count"));
    for sent in [
        count.clone().header("access-token", token),
        from(request("POST", "/api/login").json(&body)),
    ] {
        let response = console.send(&sent);
        let envelope = response.json();
        assert_eq!((response.status, &envelope["errorCode"]), (200, &json!(400)), "{response:?}");
        assert!(envelope["errorMsg"].as_str().unwrap().contains("too many"), "{response:?}");
    }
    let bare = console.send(&count);
    assert_eq!(bare.problem(), (429, "tooManyRequests".to_owned()), "2.x");
    assert!(bare.header("retry-after").is_some(), "{bare:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2_clients_get_bare_values() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    assert_eq!(admin.data("/api/jobs/count"), 1);
    assert_eq!(admin.data("/api/jobs")[0]["status"], "OK");
    assert_eq!(admin.data("/api/servers")[0]["serverIp"], ADDRESS);
    assert_eq!(
        admin.data(&format!(
            "/api/servers/{ADDRESS}/jobs?order=asc&offset=0&limit=10&_=1568597724872"
        ))[0]["jobName"],
        "settle"
    );
    let status = || admin.data("/api/jobs")[0]["status"].clone();
    assert_eq!((admin.post("/api/jobs/settle/disable").status, status()), (204, json!("DISABLED")));
    assert_eq!(
        (admin.send(request("DELETE", "/api/jobs/settle/disable")).status, status()),
        (204, json!("OK"))
    );
    assert_eq!(admin.get("/api/jobs/missing/sharding").problem(), (404, "notFound".to_owned()));
    let disable = format!("/api/servers/{ADDRESS}/disable");
    assert_eq!(admin.post(&disable).status, 204);
    assert_eq!(scene.get(&format!("settle/servers/{ADDRESS}")).await.as_deref(), Some("DISABLED"));
    assert_eq!(admin.send(request("DELETE", &disable)).status, 204);
    assert_eq!(scene.get(&format!("settle/servers/{ADDRESS}")).await.as_deref(), Some("ENABLED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_get_is_refused_by_cookie() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    assert_eq!(admin.get("/api/jobs/settle/trigger").problem(), (403, "csrf".to_owned()));
    let created = admin
        .send(request("POST", "/api/v1/tokens").json(&json!({ "name": "ci", "role": "operator" })))
        .json();
    let token = format!("Bearer {}", created["token"].as_str().unwrap());
    let sent = request("GET", "/api/jobs/settle/trigger").header("authorization", &token);
    assert_eq!(console.send(&sent).status, 204);
    assert_eq!(admin.data("/api/v1/audit?action=job.trigger")["items"][0]["via"], "token ci");
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_authentication_works_until_the_password_changes() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    // "admin:correct horse"
    let basic = "Basic YWRtaW46Y29ycmVjdCBob3JzZQ==";
    let send = |method: &str, path: &str| {
        console.send(&request(method, path).header("authorization", basic))
    };
    assert_eq!(send("GET", "/api/jobs/count").status, 401);
    console.admin().put("/api/v1/accounts/admin", &json!({ "password": "correct horse" }));

    for _ in 0..20 {
        assert_eq!(send("GET", "/api/jobs/count").text, "1");
    }
    assert_eq!(send("GET", "/api/jobs/settle/trigger").status, 204);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.example.com"),
        ("referer", "http://evil.example.com/page"),
    ] {
        let trigger = request("GET", "/api/jobs/settle/trigger").header("authorization", basic);
        let response = console.send(&trigger.header(name, value));
        assert_eq!(response.problem(), (403, "csrf".to_owned()), "{name}: {value}");
    }

    let admin = console.login("admin", "correct horse");
    admin.put("/api/v1/accounts/admin", &json!({ "password": "another horse" }));
    assert_eq!(send("GET", "/api/jobs/count").status, 401, "the old password is rejected at once");
}
