//! One attempt at one server: resolve, connect, TLS, the session's handshake, our credentials. Bounded as a whole.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::Bytes;
use rand::seq::SliceRandom;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

#[cfg(feature = "tls")]
use super::tls::{self, Tls};
use super::{
    config::Config,
    connection::{Connection, Stream},
    error::ConnectError,
};
use crate::wire::{
    Code, ConnectRequest, ConnectResponse, PASSWORD_LEN, Reader, ReplyHeader, Request,
    RequestHeader, frame, op, xid,
};

/// Which session an attempt is for.
#[derive(Debug, Clone)]
pub(super) struct Hello {
    /// Zero for a new session.
    pub(super) session: i64,
    pub(super) password: Bytes,
    pub(super) last_zxid: i64,
}

impl Hello {
    pub(super) fn new_session(last_zxid: i64) -> Self {
        Self { session: 0, password: Bytes::from_static(&[0; PASSWORD_LEN]), last_zxid }
    }
}

/// A connection that carries a session and has proved its credentials.
#[derive(Debug)]
pub(super) struct Established {
    pub(super) connection: Connection,
    pub(super) server: Server,
    pub(super) session: i64,
    pub(super) password: Bytes,
    pub(super) timeout: Duration,
    /// When the session was asked for, on the clock of the configuration.
    pub(super) asked_at: Duration,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error("cannot resolve {server}")]
    Resolve { server: String, source: io::Error },
    #[error("cannot connect to {server}")]
    Connect { server: String, source: io::Error },
    #[error("{server} did not answer within {within:?}")]
    TimedOut { server: String, within: Duration },
    #[error("cannot speak TLS with {server}")]
    #[cfg(feature = "tls")]
    Tls { server: String, source: io::Error },
    #[error("{server} closed the connection instead of giving us a session")]
    HungUp { server: String, source: io::Error },
    #[error("{server} does not speak ZooKeeper's protocol: {what}")]
    Nonsense { server: String, what: String },
    #[error("{server} refused our {scheme} credentials")]
    AuthRefused { server: String, scheme: String },
    #[error("{server} says that the session is gone")]
    Expired { server: String },
}

/// A server as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) text: Arc<str>,
    host: String,
    port: u16,
}

impl Server {
    fn parse(text: &str) -> Result<Self, ConnectError> {
        let bad = || ConnectError::BadServer { server: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').ok_or_else(bad)?,
            None if host.contains(':') => return Err(bad()),
            None => host,
        };
        if host.is_empty() {
            return Err(bad());
        }
        let port = port.parse().map_err(|_| bad())?;
        Ok(Self { text: text.into(), host: host.to_owned(), port })
    }
}

/// Knows the servers and how to talk to them first. Goes round them in an order shuffled once.
pub(super) struct Dialer {
    servers: Vec<Server>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    pub(super) config: Config,
}

impl Dialer {
    pub(super) fn new(config: Config) -> Result<Self, ConnectError> {
        let mut servers = config
            .servers
            .iter()
            .map(|server| Server::parse(server))
            .collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(ConnectError::NoServers);
        }
        servers.shuffle(&mut rand::rng());
        Ok(Self {
            servers,
            #[cfg(feature = "tls")]
            tls: config.tls.as_ref().map(Tls::new).transpose()?,
            config,
        })
    }

    pub(super) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Tries the server whose turn it is.
    pub(super) async fn establish(
        &self,
        turn: usize,
        hello: &Hello,
    ) -> Result<Established, AttemptError> {
        let server = &self.servers[turn % self.servers.len()];
        let share = self.config.session_timeout / u32::try_from(self.servers.len()).unwrap_or(1);
        let within = self.config.connect_timeout.min(share);
        match timeout(within, self.attempt(server, hello, within)).await {
            Ok(result) => result,
            Err(_) => Err(AttemptError::TimedOut { server: server.text.to_string(), within }),
        }
    }

    async fn attempt(
        &self,
        server: &Server,
        hello: &Hello,
        within: Duration,
    ) -> Result<Established, AttemptError> {
        let stream = self.open(server, within).await?;
        let mut dialogue = Dialogue {
            connection: Connection::new(stream, self.config.max_answer),
            arrived: VecDeque::new(),
            server,
        };
        // Before the bytes leave: the lease of a new session counts from here.
        let asked_at = (self.config.clock)();
        let response = dialogue.open_session(hello, self.config.session_timeout).await?;
        for credentials in &self.config.auth {
            dialogue.prove(&credentials.scheme, credentials.secret.clone()).await?;
        }
        if !dialogue.arrived.is_empty() {
            return Err(dialogue.nonsense("it speaks unasked"));
        }
        Ok(Established {
            connection: dialogue.connection,
            server: server.clone(),
            session: response.session_id,
            // Its own copy, so that it does not keep the read buffer.
            password: Bytes::copy_from_slice(&response.password),
            timeout: Duration::from_millis(response.timeout_ms as u64),
            asked_at,
        })
    }

    async fn open(&self, server: &Server, within: Duration) -> Result<Stream, AttemptError> {
        let name = || server.text.to_string();
        let mut addresses: Vec<_> = lookup_host((server.host.as_str(), server.port))
            .await
            .map_err(|source| AttemptError::Resolve { server: name(), source })?
            .collect();
        addresses.shuffle(&mut rand::rng());
        // One address that swallows packets must not use up the time of the others.
        let share = within / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failed = AttemptError::Resolve {
            server: name(),
            source: io::Error::other("the name has no address"),
        };
        for address in addresses {
            let socket = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => socket,
                Ok(Err(source)) => {
                    failed = AttemptError::Connect { server: name(), source };
                    continue;
                }
                Err(_) => {
                    failed = AttemptError::TimedOut { server: name(), within: share };
                    continue;
                }
            };
            // Small requests must not wait for each other; if the system will not have it, they wait.
            let _ = socket.set_nodelay(true);
            #[cfg(feature = "tls")]
            if let Some(tls) = &self.tls {
                return match tls.wrap(&server.host, socket).await {
                    Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
                    Err(source) => Err(AttemptError::Tls { server: name(), source }),
                };
            }
            return Ok(Stream::Plain(socket));
        }
        Err(failed)
    }
}

/// The first words on a connection: one question, one answer.
struct Dialogue<'a> {
    connection: Connection,
    arrived: VecDeque<Bytes>,
    server: &'a Server,
}

impl Dialogue<'_> {
    async fn open_session(
        &mut self,
        hello: &Hello,
        session_timeout: Duration,
    ) -> Result<ConnectResponse, AttemptError> {
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: hello.last_zxid,
            timeout_ms: i32::try_from(session_timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: hello.session,
            password: hello.password.clone(),
            // A read-only server is cut off from the others: what it says may be old, and it takes no writes.
            read_only: Some(false),
        };
        frame::write(self.connection.output(), |out| request.encode(out));
        let mut reader = Reader::new(self.answer().await?);
        let response = ConnectResponse::decode(&mut reader)
            .map_err(|error| self.nonsense(&error.to_string()))?;
        if response.protocol_version != 0 || response.timeout_ms < 0 {
            return Err(self.nonsense("its answer makes no sense"));
        }
        if response.timeout_ms == 0 && hello.session != 0 {
            return Err(AttemptError::Expired { server: self.server.text.to_string() });
        }
        if response.timeout_ms == 0 || response.session_id == 0 {
            return Err(self.nonsense("asked for a session, it gave none"));
        }
        if hello.session != 0 && response.session_id != hello.session {
            return Err(self.nonsense("it answered for another session"));
        }
        if response.read_only == Some(true) {
            return Err(self.nonsense("it is read-only and we did not ask for that"));
        }
        Ok(response)
    }

    async fn prove(&mut self, scheme: &str, secret: Bytes) -> Result<(), AttemptError> {
        let request = Request::Auth { scheme: scheme.to_owned(), auth: secret };
        frame::write(self.connection.output(), |out| {
            RequestHeader { xid: xid::AUTH, op: op::AUTH }.encode(out);
            request.encode(out);
        });
        let header = ReplyHeader::decode(&mut Reader::new(self.answer().await?))
            .map_err(|error| self.nonsense(&error.to_string()))?;
        match header {
            ReplyHeader { xid: xid::AUTH, code: Code::OK, .. } => Ok(()),
            ReplyHeader { xid: xid::AUTH, code: Code::AUTH_FAILED, .. } => {
                Err(AttemptError::AuthRefused {
                    server: self.server.text.to_string(),
                    scheme: scheme.to_owned(),
                })
            }
            header => Err(self.nonsense(&format!("{header:?} for an answer to credentials"))),
        }
    }

    async fn answer(&mut self) -> Result<Bytes, AttemptError> {
        loop {
            if let Some(frame) = self.arrived.pop_front() {
                return Ok(frame);
            }
            self.connection.transfer().await.map_err(|source| self.broken(source))?;
            while let Some(frame) =
                self.connection.next_frame().map_err(|error| self.nonsense(&error.to_string()))?
            {
                self.arrived.push_back(frame);
            }
        }
    }

    fn broken(&self, source: io::Error) -> AttemptError {
        let server = self.server.text.to_string();
        // With TLS 1.3 a server judges our certificate after the handshake, so its verdict comes here.
        #[cfg(feature = "tls")]
        if tls::is_tls_problem(&source) {
            return AttemptError::Tls { server, source };
        }
        AttemptError::HungUp { server, source }
    }

    fn nonsense(&self, what: &str) -> AttemptError {
        AttemptError::Nonsense { server: self.server.text.to_string(), what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        for (text, host, port) in
            [("zk1:2181", "zk1", 2181), ("10.0.0.1:1", "10.0.0.1", 1), ("[::1]:2182", "::1", 2182)]
        {
            let server = Server::parse(text).unwrap();

            assert_eq!((server.host.as_str(), server.port), (host, port));
        }
    }

    #[test]
    fn anything_else_is_not_a_server() {
        for text in ["", "zk1", ":2181", "zk1:", "zk1:port", "zk1:65536", "::1:2181", "[::1:2181"] {
            assert!(matches!(Server::parse(text), Err(ConnectError::BadServer { .. })), "{text:?}");
        }
    }
}
