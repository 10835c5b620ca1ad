//! A console that is bound to its address, and the connections it serves.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::ConnectInfo,
};
use elasticjob::runtime::{Clock, Monotonic, SystemClock};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    connections::{ConnectionSlot, Connections, Lane},
    detached_changes::DetachedChanges,
    tls::{TlsHandshake, TlsIdentity},
    write_timeout::WriteTimeout,
};
use crate::{auth::proxies::TrustedProxies, error::ConsoleError};

/// Limit for sending the head of a request, also of the next one on the same connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// The same for a connection of the reserve: a health probe sends it at once.
const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_secs(3);
/// What is buffered of a request. Its head has to fit: a URL may have 64 KiB.
const MAX_BUFFER_BYTES: usize = 128 * 1024;
/// Pause after the system refuses to accept a connection, for example because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Pause between warnings about too many connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

pub(super) struct Transport {
    listener: TcpListener,
    tls: Option<TlsHandshake>,
}

/// Address of the peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A console that is bound to its address, ready to serve.
pub struct ConsoleServer {
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) connections: Connections,
    /// Their connections count for the clients that they forward.
    pub(super) proxies: TrustedProxies,
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
        Ok(Self { listener, tls: tls.map(TlsHandshake::new).transpose()? })
    }
}

impl ConsoleServer {
    pub fn url(&self) -> String {
        let scheme = if self.transport.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Answers requests forever.
    pub async fn serve(self) {
        let (mut tasks, mut next_warning) = (JoinSet::new(), SystemClock.monotonic());
        loop {
            tokio::select! {
                accepted = self.transport.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let connection = self.connection(peer);
                        if connection.slot.lane == Lane::Reserve {
                            warn_of_too_many(peer, &mut next_warning);
                        }
                        tasks.spawn(connection.serve(stream, self.transport.tls.clone()));
                    }
                    Err(error) => pause_after(error).await,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    fn connection(&self, peer: SocketAddr) -> Connection {
        let is_proxy = self.proxies.trusts(peer.ip().to_canonical());
        let slot = self.connections.open((!is_proxy).then(|| peer.ip().into()));
        Connection { slot: Arc::new(slot), peer, router: self.router.clone() }
    }
}

fn warn_of_too_many(peer: SocketAddr, next_warning: &mut Monotonic) {
    let now = SystemClock.monotonic();
    if now >= *next_warning {
        *next_warning = now + WARNING_INTERVAL;
        tracing::warn!(
            %peer,
            hint = "if this is a proxy, name it in trustedProxies; docs/console.md explains [limits]",
            "too many connections; only health probes are answered on further ones"
        );
    }
}

/// A client that is gone already concerns no other. Everything else may last, and would fail again at once.
async fn pause_after(error: io::Error) {
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "cannot accept connections");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// A connection that is being served.
struct Connection {
    slot: Arc<ConnectionSlot>,
    peer: SocketAddr,
    router: Router,
}

impl Connection {
    /// Serves requests until the client leaves, is too slow, or gives way to another.
    async fn serve(self, stream: TcpStream, tls: Option<TlsHandshake>) {
        let (slot, peer) = (Arc::clone(&self.slot), self.peer);
        let serve = async {
            let Some(tls) = tls else { return self.serve_http(stream).await };
            match tls.accept(stream).await {
                Ok(stream) => self.serve_http(stream).await,
                Err(error) => tracing::debug!(%error, %peer, "TLS handshake failed"),
            }
        };
        tokio::select! {
            () = serve => {}
            () = slot.gives_way() => tracing::debug!(%peer, "connection gave way to another"),
        }
    }

    async fn serve_http<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { slot, peer, router } = self;
        let stream = WriteTimeout::new(stream, Arc::clone(&slot));
        let is_regular = slot.lane == Lane::Regular;
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(Peer(peer)));
            request.extensions_mut().insert(Arc::clone(&slot));
            let (response, slot) = (router.call(request), Arc::clone(&slot));
            async move {
                let response = response.await?;
                Ok::<_, Infallible>(response.map(|body| ResponseBody { body, slot }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(if is_regular { HEADER_TIMEOUT } else { RESERVE_HEADER_TIMEOUT })
            .max_buf_size(MAX_BUFFER_BYTES)
            .keep_alive(is_regular)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            tracing::debug!(%error, %peer, "connection failed");
        }
    }
}

/// A body that tells its connection when it is sent.
struct ResponseBody {
    body: Body,
    slot: Arc<ConnectionSlot>,
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.slot.end_work();
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
