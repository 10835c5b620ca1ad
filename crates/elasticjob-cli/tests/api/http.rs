//! A minimal HTTP client that sends exactly what a test asks for.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::Value;

use crate::process::PATIENCE;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
}

pub(crate) fn request(method: &str, path: &str) -> Request {
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    }
}

impl Request {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.raw(body.to_string()).header("content-type", "application/json")
    }

    pub(crate) fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request without waiting for a response.
    pub(crate) fn open(&self, address: &str) -> TcpStream {
        self.open_on(TcpStream::connect(address).unwrap(), address)
    }

    /// The same on a connection that is open already.
    pub(crate) fn open_on(&self, mut stream: TcpStream, address: &str) -> TcpStream {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let has_host = self.headers.iter().any(|(name, _)| name == "host");
        let host = if has_host { String::new() } else { format!("host: {address}\r\n") };
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "{} {} HTTP/1.1\r\nconnection: close\r\n{host}{}content-length: {}\r\n\r\n",
            self.method,
            self.path,
            headers.collect::<String>(),
            self.body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The server may refuse a body before it is sent completely.
        let _ = stream.write_all(&self.body);
        stream
    }

    pub(crate) fn send(&self, address: &str) -> Response {
        self.receive(self.open(address))
    }

    /// Reads the response to this request.
    pub(crate) fn receive(&self, mut stream: TcpStream) -> Response {
        let mut bytes = Vec::new();
        let result = stream.read_to_end(&mut bytes);
        assert!(bytes.windows(4).any(|part| part == b"\r\n\r\n"), "{self:?}: {result:?}");
        Response::parse(&String::from_utf8_lossy(&bytes))
    }
}

impl Response {
    /// Parses the head and the body as far as it was received.
    pub(crate) fn parse(text: &str) -> Self {
        let (head, text) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no complete head: {text:?}"));
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            text: text.to_owned(),
        }
    }

    /// Every value of a header.
    pub(crate) fn headers<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r str> {
        let values = self.headers.iter().filter(move |(known, _)| known == name);
        values.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Status and code of a problem response.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        (self.status, self.json()["code"].as_str().unwrap().to_owned())
    }
}
