//! A console that is bound to its address, and the connections it serves.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, serve::Listener};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};

use super::{
    detached_changes::DetachedChanges,
    tls::{TlsIdentity, TlsListener},
};
use crate::error::ConsoleError;

/// Limit for sending the head of a request, also of the next one on the same connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Further connections wait to be accepted.
const MAX_CONNECTIONS: usize = 4_096;

pub(super) enum Transport {
    Plain(TcpListener),
    Tls(Box<TlsListener>),
}

/// Address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A console that is bound to its address, ready to serve.
pub struct ConsoleServer {
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub address: SocketAddr,
    /// The generated password of the first account, to be printed once.
    pub password: Option<String>,
    /// Running changes; a shutdown should wait for them.
    pub detached_changes: DetachedChanges,
}

impl Transport {
    pub(super) fn new(
        listener: TcpListener,
        tls: Option<&TlsIdentity>,
    ) -> Result<Self, ConsoleError> {
        Ok(match tls {
            Some(tls) => Self::Tls(Box::new(TlsListener::new(listener, tls)?)),
            None => Self::Plain(listener),
        })
    }
}

impl ConsoleServer {
    pub fn url(&self) -> String {
        let scheme = match self.transport {
            Transport::Plain(_) => "http",
            Transport::Tls(_) => "https",
        };
        format!("{scheme}://{}/", self.address)
    }

    /// Answers requests forever.
    pub async fn serve(self) {
        match self.transport {
            Transport::Plain(listener) => serve_connections(listener, self.router).await,
            Transport::Tls(tls) => serve_connections(*tls, self.router).await,
        }
    }
}

/// Accepts connections forever. A client that does not send the head of a request in time is disconnected.
async fn serve_connections<L: Listener<Addr = SocketAddr>>(mut listener: L, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, address) = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(serve_connection(stream, address, router.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection<S>(stream: S, address: SocketAddr, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(Peer(address)));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, peer = %address, "connection failed");
    }
}
