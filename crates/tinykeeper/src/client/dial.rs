//! One attempt to connect to one server: name resolution, TCP, TLS, session handshake and authentication, with one time limit.

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

/// The session to open or resume.
#[derive(Debug, Clone)]
pub(super) struct SessionRequest {
    /// Zero for a new session.
    pub(super) session: i64,
    pub(super) password: Bytes,
    pub(super) last_zxid: i64,
}

impl SessionRequest {
    pub(super) fn new_session(last_zxid: i64) -> Self {
        Self { session: 0, password: Bytes::from_static(&[0; PASSWORD_LEN]), last_zxid }
    }
}

/// A connection with an open session and accepted credentials.
#[derive(Debug)]
pub(super) struct EstablishedConnection {
    pub(super) connection: Connection,
    pub(super) server: ServerAddress,
    pub(super) session: i64,
    pub(super) password: Bytes,
    pub(super) timeout: Duration,
    /// Time when the session was requested, on the configured clock.
    pub(super) requested_at: Duration,
}

/// Why an attempt to connect failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("cannot resolve {server}")]
    Resolve { server: String, source: io::Error },
    #[error("cannot connect to {server}")]
    Connect { server: String, source: io::Error },
    #[error("{server} did not respond within {within:?}")]
    TimedOut { server: String, within: Duration },
    #[error("cannot establish TLS with {server}")]
    #[cfg(feature = "tls")]
    Tls { server: String, source: io::Error },
    #[error("{server} closed the connection during the handshake")]
    ConnectionClosed { server: String, source: io::Error },
    #[error("{server} violates ZooKeeper's protocol: {violation}")]
    ProtocolViolation { server: String, violation: String },
    #[error("{server} refused the {scheme} credentials")]
    AuthRefused { server: String, scheme: String },
    #[error("{server} reports that the session has expired")]
    Expired { server: String },
}

/// A configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) text: Arc<str>,
    host: String,
    port: u16,
}

impl ServerAddress {
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

/// Connects to the configured servers in turn, in an order shuffled once.
pub(super) struct Dialer {
    servers: Vec<ServerAddress>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    pub(super) config: Config,
}

impl Dialer {
    pub(super) fn new(config: Config) -> Result<Self, ConnectError> {
        let mut servers = config
            .servers
            .iter()
            .map(|server| ServerAddress::parse(server))
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

    pub(super) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Tries server number `index`, modulo the number of servers.
    pub(super) async fn dial(
        &self,
        index: usize,
        request: &SessionRequest,
    ) -> Result<EstablishedConnection, DialError> {
        let server = &self.servers[index % self.servers.len()];
        let share = self.config.session_timeout / u32::try_from(self.servers.len()).unwrap_or(1);
        let within = self.config.connect_timeout.min(share);
        match timeout(within, self.connect(server, request, within)).await {
            Ok(result) => result,
            Err(_) => Err(DialError::TimedOut { server: server.text.to_string(), within }),
        }
    }

    async fn connect(
        &self,
        server: &ServerAddress,
        request: &SessionRequest,
        within: Duration,
    ) -> Result<EstablishedConnection, DialError> {
        let stream = self.open(server, within).await?;
        let mut handshake = Handshake {
            connection: Connection::new(stream, self.config.max_response),
            frames: VecDeque::new(),
            server,
        };
        // Read before the request is sent: the lease of a new session counts from here.
        let requested_at = (self.config.clock)();
        let response = handshake.open_session(request, self.config.session_timeout).await?;
        for credentials in &self.config.auth {
            handshake.authenticate(&credentials.scheme, credentials.secret.clone()).await?;
        }
        if !handshake.frames.is_empty() {
            return Err(handshake.violation("unexpected frame during the handshake"));
        }
        Ok(EstablishedConnection {
            connection: handshake.connection,
            server: server.clone(),
            session: response.session_id,
            // A copy, so that it does not keep the read buffer alive.
            password: Bytes::copy_from_slice(&response.password),
            timeout: Duration::from_millis(response.timeout_ms as u64),
            requested_at,
        })
    }

    async fn open(&self, server: &ServerAddress, within: Duration) -> Result<Stream, DialError> {
        let name = || server.text.to_string();
        let mut addresses: Vec<_> = lookup_host((server.host.as_str(), server.port))
            .await
            .map_err(|source| DialError::Resolve { server: name(), source })?
            .collect();
        addresses.shuffle(&mut rand::rng());
        // An address that drops packets must not use up the time of the others.
        let share = within / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut last_error = DialError::Resolve {
            server: name(),
            source: io::Error::other("the name has no address"),
        };
        for address in addresses {
            let socket = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => socket,
                Ok(Err(source)) => {
                    last_error = DialError::Connect { server: name(), source };
                    continue;
                }
                Err(_) => {
                    last_error = DialError::TimedOut { server: name(), within: share };
                    continue;
                }
            };
            // Small requests must not wait for each other. If the system refuses the option, they are only slower.
            let _ = socket.set_nodelay(true);
            #[cfg(feature = "tls")]
            if let Some(tls) = &self.tls {
                return match tls.wrap(&server.host, socket).await {
                    Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
                    Err(source) => Err(DialError::Tls { server: name(), source }),
                };
            }
            return Ok(Stream::Plain(socket));
        }
        Err(last_error)
    }
}

/// The handshake on a new connection: one request, one response at a time.
struct Handshake<'a> {
    connection: Connection,
    /// Received frames that were not processed yet.
    frames: VecDeque<Bytes>,
    server: &'a ServerAddress,
}

impl Handshake<'_> {
    async fn open_session(
        &mut self,
        request: &SessionRequest,
        session_timeout: Duration,
    ) -> Result<ConnectResponse, DialError> {
        let connect = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: request.last_zxid,
            timeout_ms: i32::try_from(session_timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: request.session,
            password: request.password.clone(),
            // A read-only server is partitioned from the ensemble: its data may be old, and it accepts no writes.
            read_only: Some(false),
        };
        frame::write(self.connection.output(), |out| connect.encode(out));
        let mut reader = Reader::new(self.next_frame().await?);
        let response = ConnectResponse::decode(&mut reader)
            .map_err(|error| self.violation(&error.to_string()))?;
        if response.protocol_version != 0 || response.timeout_ms < 0 {
            return Err(self.violation("invalid response to the connect request"));
        }
        if response.timeout_ms == 0 && request.session != 0 {
            return Err(DialError::Expired { server: self.server.text.to_string() });
        }
        if response.timeout_ms == 0 || response.session_id == 0 {
            return Err(self.violation("a new session was requested, none was granted"));
        }
        if request.session != 0 && response.session_id != request.session {
            return Err(self.violation("response for another session"));
        }
        if response.read_only == Some(true) {
            return Err(self.violation("the server is read-only, which was not requested"));
        }
        Ok(response)
    }

    async fn authenticate(&mut self, scheme: &str, secret: Bytes) -> Result<(), DialError> {
        let request = Request::Auth { scheme: scheme.to_owned(), auth: secret };
        frame::write(self.connection.output(), |out| {
            RequestHeader { xid: xid::AUTH, op: op::AUTH }.encode(out);
            request.encode(out);
        });
        let header = ReplyHeader::decode(&mut Reader::new(self.next_frame().await?))
            .map_err(|error| self.violation(&error.to_string()))?;
        match header {
            ReplyHeader { xid: xid::AUTH, code: Code::OK, .. } => Ok(()),
            ReplyHeader { xid: xid::AUTH, code: Code::AUTH_FAILED, .. } => {
                Err(DialError::AuthRefused {
                    server: self.server.text.to_string(),
                    scheme: scheme.to_owned(),
                })
            }
            header => Err(self.violation(&format!("{header:?} in reply to credentials"))),
        }
    }

    async fn next_frame(&mut self) -> Result<Bytes, DialError> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(frame);
            }
            self.connection.transfer().await.map_err(|source| self.io_error(source))?;
            while let Some(frame) =
                self.connection.next_frame().map_err(|error| self.violation(&error.to_string()))?
            {
                self.frames.push_back(frame);
            }
        }
    }

    fn io_error(&self, source: io::Error) -> DialError {
        let server = self.server.text.to_string();
        // With TLS 1.3 a server verifies the client certificate after the handshake, so its refusal arrives here.
        #[cfg(feature = "tls")]
        if tls::is_tls_problem(&source) {
            return DialError::Tls { server, source };
        }
        DialError::ConnectionClosed { server, source }
    }

    fn violation(&self, violation: &str) -> DialError {
        DialError::ProtocolViolation {
            server: self.server.text.to_string(),
            violation: violation.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_address_is_host_and_port() {
        for (text, host, port) in
            [("zk1:2181", "zk1", 2181), ("10.0.0.1:1", "10.0.0.1", 1), ("[::1]:2182", "::1", 2182)]
        {
            let server = ServerAddress::parse(text).unwrap();

            assert_eq!((server.host.as_str(), server.port), (host, port));
        }
    }

    #[test]
    fn invalid_server_address_is_refused() {
        for text in ["", "zk1", ":2181", "zk1:", "zk1:port", "zk1:65536", "::1:2181", "[::1:2181"] {
            let result = ServerAddress::parse(text);
            assert!(matches!(result, Err(ConnectError::BadServer { .. })), "{text:?}");
        }
    }
}
