//! An HTTP server with scripted responses that records its requests.

use std::{collections::VecDeque, net::SocketAddr};

use elasticjob::runtime::Tasks;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::mpsc,
};

use crate::{certificate, fixture::PATIENCE};

pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Request>,
    _tasks: Tasks,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_slice())
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Response {
    /// Status line and body.
    Send(&'static str, String),
    Redirect(String),
    /// No response; the connection stays open.
    Hang,
}

impl HttpServer {
    /// Sends these responses in order; the last one repeats.
    pub(crate) async fn responding(responses: impl IntoIterator<Item = Response>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let mut responses: VecDeque<Response> = responses.into_iter().collect();
        let mut tasks = Tasks::new();
        tasks.spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else { continue };
                let _ = sender.send(request);
                let response = if responses.len() > 1 {
                    responses.pop_front()
                } else {
                    responses.front().cloned()
                };
                let Some(text) = text(response.unwrap()) else {
                    held.push(socket);
                    continue;
                };
                let _ = socket.write_all(text.as_bytes()).await;
                let _ = socket.shutdown().await;
            }
        });
        Self { address, requests, _tasks: tasks }
    }

    /// Responds with 200 over TLS; also returns its certificate.
    pub(crate) async fn over_tls() -> (Self, String) {
        let (acceptor, certificate) = certificate::acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let mut tasks = Tasks::new();
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let Ok(mut socket) = acceptor.accept(socket).await else { continue };
                let Some(request) = request(&mut socket).await else { continue };
                let _ = sender.send(request);
                let response = text(Response::Send("200 OK", String::new())).unwrap();
                let _ = socket.write_all(response.as_bytes()).await;
                let _ = socket.shutdown().await;
            }
        });
        (Self { address, requests, _tasks: tasks }, certificate)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn request(&mut self) -> Request {
        let request = tokio::time::timeout(PATIENCE, self.requests.recv());
        request.await.expect("a request arrives").unwrap()
    }

    pub(crate) fn has_no_request(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn text(response: Response) -> Option<String> {
    let (status, header, body) = match response {
        Response::Send(status, body) => (status, String::new(), body),
        Response::Redirect(to) => ("302 Found", format!("location: {to}\r\n"), String::new()),
        Response::Hang => return None,
    };
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{header}\r\n{body}"
    ))
}

async fn request(socket: impl AsyncRead + Unpin) -> Option<Request> {
    let mut reader = BufReader::new(socket);
    let mut request = Request::default();
    reader.read_line(&mut request.line).await.ok().filter(|read| *read > 0)?;
    request.line.truncate(request.line.trim_end().len());
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).await.ok()?;
        let line = line.strip_suffix(b"\r\n")?;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8(line[..colon].to_vec()).ok()?;
        request.headers.push((name, line[colon + 2..].to_vec()));
    }
    let length = request
        .header("content-length")
        .map_or(0, |length| std::str::from_utf8(length).unwrap().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}
