//! Requests of an administrator to the console: path, query, conditions and body. Whatever is sent, the answer is no internal error, and a refusal is a
//! problem document. The input is a request as text: method and path, header lines, an empty line, the body.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{LazyLock, Mutex},
    thread,
    time::Duration,
};

use elasticjob::job::ShardLimit;
use elasticjob_console::{AdditionPolicy, Console, FirstAccount, TrustedProxies};
use libfuzzer_sys::Corpus;
use serde_json::Value;

use crate::limits::Limits;

/// A list of the console holds all jobs, and checking a password takes 19 MiB.
const LIMITS: Limits = Limits { fixed: 64 << 20, per_byte: 4 << 10 };
const TIMEOUT: Duration = Duration::from_secs(90);
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "PATCH", "DELETE"];
const HEADERS: [&str; 3] = ["if-match", "if-none-match", "idempotency-key"];
/// Requests that end the session, change its account, never end, or wait for clocks.
const EXCLUDED: [&str; 6] = ["logout", "password", "accounts/root", "events", "doctor", "login"];

static CONSOLE: LazyLock<Mutex<Client>> = LazyLock::new(|| Mutex::new(Client::new(start())));

pub fn check(bytes: &[u8]) -> Corpus {
    let Some(request) = Request::read(bytes) else { return Corpus::Reject };
    let mut client = CONSOLE.lock().expect("one thread");
    let answer = LIMITS.check(bytes.len(), || client.send(&request));
    let Answer { status, content_type, body, .. } = &answer;
    let shown = String::from_utf8_lossy(body);
    assert!(
        *status < 500 || matches!(status, 503 | 504),
        "{} {}: {status} {shown}",
        request.method,
        request.path
    );
    if *status >= 400 && request.path.starts_with("/api/v1/") {
        assert_eq!(content_type, "application/problem+json", "{}: {shown}", request.path);
        let problem: Value = serde_json::from_slice(body).expect("a problem is JSON");
        assert_eq!(problem["status"], *status, "{shown}");
    }
    Corpus::Keep
}

/// A console in memory, on a registry in memory.
fn start() -> SocketAddr {
    let (sender, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let console = Console {
                registries: vec![("shop".to_owned(), "memory:".to_owned())],
                histories: Vec::new(),
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                data_dir: None,
                hosts: Vec::new(),
                proxies: TrustedProxies::default(),
                is_https: false,
                tls: None,
                session_idle: Duration::from_secs(86_400),
                limits: elasticjob_console::Limits::default(),
                registry_additions: AdditionPolicy::default(),
                history_additions: AdditionPolicy::default(),
                oidc: None,
                first_account: FirstAccount::Root,
                max_shards: ShardLimit::default(),
            };
            let server = console.listen().await.expect("the console starts");
            sender.send(server.address).expect("the address is awaited");
            server.serve().await;
        });
    });
    address.recv().expect("the console starts")
}

struct Request {
    method: String,
    path: String,
    headers: String,
    body: Vec<u8>,
}

impl Request {
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
        let body = bytes.get(end + 2..).unwrap_or_default().to_vec();
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.lines();
        let (method, path) = lines.next()?.split_once(' ')?;
        let method = METHODS.contains(&method).then(|| method.to_owned())?;
        let path = safe_path(path);
        if !path.starts_with("/api") || EXCLUDED.iter().any(|word| path.contains(word)) {
            return None;
        }
        let mut headers = String::new();
        for line in lines {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if HEADERS.contains(&name) && value.bytes().all(|byte| byte.is_ascii_graphic()) {
                headers.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        Some(Self { method, path, headers, body })
    }
}

/// The path with everything encoded that cannot stand in a request line, and with few names of jobs, so that the registry stays small.
fn safe_path(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~' if !b"\"<>\\^`{|}#".contains(&byte) => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    let mut segments: Vec<&str> = encoded.split('/').collect();
    for index in 1..segments.len().saturating_sub(1) {
        if segments[index - 1] == "jobs" && segments[index].len() > 1 {
            segments[index] = "settle";
        }
    }
    segments.join("/")
}

struct Answer {
    status: u16,
    content_type: String,
    cookie: Option<String>,
    is_last: bool,
    body: Vec<u8>,
}

struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    session: String,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let mut client = Self { address, connection: None, session: String::new() };
        let body = br#"{"username":"root","password":"root"}"#.to_vec();
        let login = Request {
            method: "POST".into(),
            path: "/api/v1/login".into(),
            headers: String::new(),
            body,
        };
        let answer = client.send(&login);
        let session: Value = serde_json::from_slice(&answer.body).expect("the session");
        let csrf = session["csrfToken"].as_str().expect("a CSRF token");
        let cookie = answer.cookie.expect("a cookie");
        client.session = format!("cookie: {cookie}\r\nx-csrf-token: {csrf}\r\n");
        client
    }

    fn send(&mut self, request: &Request) -> Answer {
        let Request { method, path, headers, body } = request;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{}{headers}\r\n",
            body.len(),
            self.session
        );
        let whole = [head.as_bytes(), body].concat();
        let mut connection = self.connection.take().unwrap_or_else(|| connect(self.address));
        connection.get_mut().write_all(&whole).expect("the console reads requests");
        let answer = read_answer(&mut connection);
        if !answer.is_last {
            self.connection = Some(connection);
        }
        answer
    }
}

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(address).expect("the console accepts connections");
    socket.set_nodelay(true).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    BufReader::new(socket)
}

fn read_answer(connection: &mut BufReader<TcpStream>) -> Answer {
    let mut line = String::new();
    let mut next = |connection: &mut BufReader<TcpStream>| {
        line.clear();
        connection.read_line(&mut line).expect("the console answers");
        line.trim_end().to_owned()
    };
    let status = next(connection);
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.expect("a status");
    let mut answer = Answer {
        status,
        content_type: String::new(),
        cookie: None,
        is_last: false,
        body: Vec::new(),
    };
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let header = next(connection);
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "transfer-encoding" => is_chunked = true,
            "connection" => answer.is_last = value == "close",
            "content-type" => answer.content_type = value.to_owned(),
            "set-cookie" => answer.cookie = value.split(';').next().map(ToOwned::to_owned),
            _ => {}
        }
    }
    if is_chunked {
        loop {
            let size = usize::from_str_radix(&next(connection), 16).expect("the size of a chunk");
            let mut chunk = vec![0; size];
            connection.read_exact(&mut chunk).expect("a chunk");
            answer.body.extend(chunk);
            next(connection);
            if size == 0 {
                break;
            }
        }
    } else if status != 204 && status != 304 {
        answer.body = vec![0; length];
        connection.read_exact(&mut answer.body).expect("the body");
    }
    answer
}
