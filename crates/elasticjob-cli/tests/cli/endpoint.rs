//! An HTTP endpoint on this machine that gives one answer and records the requests.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use crate::process::PATIENCE;

pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl Endpoint {
    /// Answers every request with this status, header lines and body.
    pub(crate) fn answering(status: &str, headers: &str, body: &str) -> Self {
        let answer = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = answer_request(stream, &answer) else { continue };
                if sender.send(request).is_err() {
                    break;
                }
            }
        });
        Self { address, requests }
    }

    pub(crate) fn ok() -> Self {
        Self::answering("200 OK", "", "")
    }

    /// Waits for the next request: its first line and headers.
    pub(crate) fn request(&self) -> String {
        self.requests.recv_timeout(PATIENCE).expect("a request arrives")
    }

    /// Whether no request has arrived that was not waited for.
    pub(crate) fn is_untouched(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn answer_request(mut stream: TcpStream, answer: &str) -> Option<String> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        request.push(byte[0]);
    }
    stream.write_all(answer.as_bytes()).ok()?;
    Some(String::from_utf8_lossy(&request).into_owned())
}
