//! Somebody who is logged in, on one line that stays open.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::json;

use crate::{BoxError, stopwatch::Stopwatch};

const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Visitor {
    address: String,
    line: BufReader<TcpStream>,
    cookie: String,
}

impl Visitor {
    pub(super) fn login(address: &str, password: &str) -> Result<Self, BoxError> {
        let line = TcpStream::connect(address)?;
        line.set_read_timeout(Some(PATIENCE))?;
        line.set_nodelay(true)?;
        let mut visitor =
            Self { address: address.to_owned(), line: BufReader::new(line), cookie: String::new() };
        let body = json!({ "username": "admin", "password": password }).to_string();
        let (_, head) = visitor.exchange("POST", "/api/v1/login", &body)?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        cookie.ok_or("nobody is logged in")?.clone_into(&mut visitor.cookie);
        Ok(visitor)
    }

    /// Asks, and says how long the first byte took. The whole answer is read.
    pub(super) fn ask(&mut self, path: &str) -> Result<Duration, BoxError> {
        Ok(self.exchange("GET", path, "")?.0)
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(Duration, String), BoxError> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.cookie,
            body.len()
        );
        let stopwatch = Stopwatch::start();
        self.line.get_mut().write_all(request.as_bytes())?;
        self.line.fill_buf()?;
        let first = stopwatch.elapsed();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.line.read_line(&mut head)? == 0 {
                return Err("the console closed the line".into());
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.ok_or("an answer without a length")?.trim().parse()?];
        self.line.read_exact(&mut body)?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("{path}: {head}{}", String::from_utf8_lossy(&body)).into());
        }
        Ok((first, head))
    }
}
