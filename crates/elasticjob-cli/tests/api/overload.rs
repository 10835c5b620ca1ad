//! Clients that stall, flood, or open more than their share: other clients and health probes are still served.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use elasticjob::runtime::{Clock, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::net::TcpSocket;

use crate::{
    console::{BrowserSession, Console},
    http::{Request, Response, request},
    process::PATIENCE,
    scene::Scene,
};

/// A client that is not delayed by others is served much sooner.
const PROMPT: Duration = Duration::from_secs(5);

/// A test that opens thousands of sockets needs as many files, and so does the console, which inherits the limit.
pub(crate) fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Runs `work` and fails if it took too long: for tests in a module `alone`.
#[track_caller]
pub(crate) fn promptly<T>(work: impl FnOnce() -> T) -> T {
    let began = SystemClock.monotonic();
    let result = work();
    let took = SystemClock.monotonic().saturating_since(began);
    assert!(took < PROMPT, "it took {took:?}");
    result
}

/// The head of a login, and half of its body.
fn send_half_a_login(mut stream: &TcpStream, more_headers: &str) {
    let head = format!(
        "POST /api/v1/login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{more_headers}content-length: 60\r\n\r\n"
    );
    // The console may have closed the connection already.
    let _ = stream.write_all(format!("{head}{{\"username\":\"admin\",").as_bytes());
}

/// Connects from another address of this machine.
async fn connect_from(source: [u8; 4], address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::from(source), 0))).unwrap();
    let stream = socket.connect(address.parse().unwrap()).await.unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request from another address of this machine.
async fn send_from(source: [u8; 4], console: &Console, request: &Request) -> Response {
    let stream = connect_from(source, &console.address).await;
    request.receive(request.open_on(stream, &console.address))
}

/// Status of the response on a connection that stays open.
fn read_status(mut stream: &TcpStream) -> Option<u16> {
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}

fn login(console: &Console) -> Response {
    let body = json!({ "username": "admin", "password": console.password });
    console.send(&request("POST", "/api/v1/login").json(&body))
}

fn events(session: &BrowserSession<'_>) -> Request {
    request("GET", "/api/v1/r/shop/events").header("cookie", &session.cookie)
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_beyond_the_limit_of_a_user_is_refused_with_a_way_out() {
    let scene = Scene::with("").await;
    let file = "[limits]\nstreamsPerUser = 2\nstreamsPerAddress = 3\n";
    let console = Console::with(&[&format!("shop={}", scene.url)], file);
    let [ann, bob] = ["ann", "bob"].map(|name| console.add_user(name, &json!({ "*": "viewer" })));
    let streams = [(); 2].map(|()| events(&ann).open(&console.address));
    assert_eq!(streams.each_ref().map(read_status), [Some(200); 2]);

    let refused = console.send(&events(&ann));

    assert_eq!(refused.problem(), (429, "tooManyRequests".to_owned()));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let hint = |response: &Response| response.json()["hint"].as_str().unwrap().to_owned();
    assert!(hint(&refused).contains("limits.streamsPerUser"), "{refused:?}");
    let third = events(&bob).open(&console.address);
    assert_eq!(read_status(&third), Some(200), "another user of the same address");
    let refused = console.send(&events(&bob));
    assert!(hint(&refused).contains("limits.streamsPerAddress"), "{refused:?}");

    drop((streams, third));
    let again = || read_status(&events(&ann).open(&console.address)) == Some(200);
    let deadline = SystemClock.monotonic() + PATIENCE;
    while !again() {
        assert!(SystemClock.monotonic() < deadline, "closed streams still count");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn address_that_keeps_its_connections_busy_leaves_the_rest_to_others() {
    const BUSY: [u8; 4] = [127, 0, 0, 2];
    let scene = Scene::with("").await;
    let file = "[limits]\nconnections = 32\nconnectionsPerAddress = 4\n";
    let console = Console::with(&[&format!("shop={}", scene.url)], file);
    let admin = console.admin();
    let mut streams = Vec::new();
    for _ in 0..4 {
        let stream = connect_from(BUSY, &console.address).await;
        streams.push(events(&admin).open_on(stream, &console.address));
        assert_eq!(streams.last().and_then(read_status), Some(200));
    }

    let list = request("GET", "/api/v1/registries").header("cookie", &admin.cookie);
    let refused = send_from(BUSY, &console, &list).await;
    assert_eq!(refused.problem(), (429, "tooManyRequests".to_owned()));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(send_from(BUSY, &console, &request("GET", path)).await.status, 200, "{path}");
    }
    assert_eq!(console.send(&list).status, 200, "another address");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_behind_a_trusted_proxy_are_limited_one_by_one() {
    let scene = Scene::with("").await;
    let file =
        "trustedProxies = ['127.0.0.1']\n[limits]\nconnections = 32\nconnectionsPerAddress = 4\n";
    let console = Console::with(&[&format!("shop={}", scene.url)], file);
    let admin = console.admin();
    let stalled: Vec<_> = (0..8).map(|_| TcpStream::connect(&console.address).unwrap()).collect();
    for stream in &stalled {
        send_half_a_login(stream, "x-forwarded-for: 203.0.113.9\r\n");
    }
    let session = |from: Option<&str>| {
        let session = request("GET", "/api/v1/session").header("cookie", &admin.cookie);
        from.into_iter().fold(session, |session, from| session.header("x-forwarded-for", from))
    };
    assert_eq!(console.send(&session(Some("203.0.113.9"))).status, 200, "stalled ones give way");

    let forwarded = events(&admin).header("x-forwarded-for", "203.0.113.9");
    let streams = [(); 4].map(|()| forwarded.open(&console.address));
    assert_eq!(streams.each_ref().map(read_status), [Some(200); 4]);

    let refused = console.send(&session(Some("203.0.113.9")));
    assert_eq!(refused.problem(), (429, "tooManyRequests".to_owned()));
    for other in [Some("203.0.113.10"), Some("2001:db8::1"), None] {
        assert_eq!(console.send(&session(other)).status, 200, "{other:?}");
    }
}

/// The head of a login, and the beginning of a body that is too large for one.
fn send_part_of_a_large_body(mut stream: &TcpStream) {
    let head = "POST /api/v1/login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n";
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&vec![b' '; 20_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_of_strangers_leave_room_for_authorised_requests() {
    let console = Console::start(&["shop=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();
    let mut stalled = Vec::new();
    for address in 0..9 {
        for _ in 0..32 {
            let stream = connect_from([127, 0, 1, 1 + address], &console.address).await;
            send_part_of_a_large_body(&stream);
            stalled.push(stream);
        }
    }
    let login = json!({ "username": "x".repeat(20_000), "password": "guess" });
    let login = request("POST", "/api/v1/login").json(&login);
    let deadline = SystemClock.monotonic() + PATIENCE;
    while send_from([127, 0, 2, 1], &console, &login).await.status != 429 {
        assert!(SystemClock.monotonic() < deadline, "large bodies of strangers are not limited");
    }

    let plan = json!({ "jobName": "x", "shardingTotalCount": 1, "instances": ["10.0.0.7@-@1"] });
    let plan = request("POST", "/api/v1/plan").raw(format!("{plan}{}", " ".repeat(20_000)));
    let response = admin.send(plan.header("content-type", "application/json"));

    assert_eq!(response.status, 200, "{response:?}");
}

/// They measure time.
mod alone {
    use super::*;

    #[test]
    fn login_succeeds_while_1100_bodies_stall() {
        raise_file_limit();
        let console = Console::start(&["shop=zookeeper://127.0.0.1:1/shop"]);
        let stalled: Vec<_> =
            (0..1_100).map(|_| TcpStream::connect(&console.address).unwrap()).collect();
        for stream in &stalled {
            send_half_a_login(stream, "");
        }

        let response = promptly(|| login(&console));

        assert_eq!(response.status, 200, "{response:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn health_answers_while_one_viewer_opens_4096_streams() {
        raise_file_limit();
        let scene = Scene::with("").await;
        let console = Console::start(&[&format!("shop={}", scene.url)]);
        let viewer = console.add_user("viewer", &json!({ "shop": "viewer" }));
        let events = request("GET", "/api/v1/r/shop/events").header("cookie", &viewer.cookie);
        let streams: Vec<_> = (0..4_096).map(|_| events.open(&console.address)).collect();

        for path in ["/healthz", "/readyz"] {
            let response = promptly(|| console.send(&request("GET", path)));
            assert_eq!(response.status, 200, "{path}: {response:?}");
        }
        let response = promptly(|| login(&console));
        assert_eq!(response.status, 200, "{response:?}");

        let opened = streams.iter().filter(|stream| read_status(stream) == Some(200)).count();
        assert_eq!(opened, 64, "streams of one user");
    }
}
