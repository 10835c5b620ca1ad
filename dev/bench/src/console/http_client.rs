//! A logged-in HTTP client on one connection that stays open.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{BoxError, stopwatch::Stopwatch};

const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct HttpClient {
    address: String,
    connection: BufReader<TcpStream>,
    cookie: String,
    csrf: String,
}

impl HttpClient {
    pub(crate) fn login(address: &str, password: &str) -> Result<Self, BoxError> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let mut client = Self {
            address: address.to_owned(),
            connection: BufReader::new(stream),
            cookie: String::new(),
            csrf: String::new(),
        };
        let body = json!({ "username": "admin", "password": password }).to_string();
        let (_, head, session) = client.exchange("POST", "/api/v1/login", &body)?;
        let session: Value = serde_json::from_slice(&session)?;
        session["csrfToken"].as_str().unwrap_or_default().clone_into(&mut client.csrf);
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        cookie.ok_or("the login sets no cookie")?.clone_into(&mut client.cookie);
        Ok(client)
    }

    /// Reads the whole answer and returns the time to its first byte.
    pub(crate) fn get(&mut self, path: &str) -> Result<Duration, BoxError> {
        Ok(self.exchange("GET", path, "")?.0)
    }

    /// Sends a change without a body.
    pub(crate) fn post(&mut self, path: &str) -> Result<(), BoxError> {
        self.exchange("POST", path, "").map(drop)
    }

    /// Opens an event stream on a connection of its own and reads its first line.
    pub(crate) fn open_stream(&self, path: &str) -> Result<TcpStream, BoxError> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let (address, cookie) = (&self.address, &self.cookie);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\n\r\n")?;
        let mut status = String::new();
        BufReader::new(&stream).read_line(&mut status)?;
        if !status.starts_with("HTTP/1.1 200 ") {
            return Err(format!("{path}: {status}").into());
        }
        Ok(stream)
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(Duration, String, Vec<u8>), BoxError> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\nx-csrf-token: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.cookie,
            self.csrf,
            body.len()
        );
        let stopwatch = Stopwatch::start();
        self.connection.get_mut().write_all(request.as_bytes())?;
        self.connection.fill_buf()?;
        let first = stopwatch.elapsed();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.connection.read_line(&mut head)? == 0 {
                return Err("the console closed the connection".into());
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let is_empty = head.starts_with("HTTP/1.1 204 ");
        let length =
            if is_empty { "0" } else { length.ok_or("the answer has no content-length")? };
        let mut body = vec![0; length.trim().parse()?];
        self.connection.read_exact(&mut body)?;
        if !head.starts_with("HTTP/1.1 200 ") && !is_empty {
            return Err(format!("{path}: {head}{}", String::from_utf8_lossy(&body)).into());
        }
        Ok((first, head, body))
    }
}
