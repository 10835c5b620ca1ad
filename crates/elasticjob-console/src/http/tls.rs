//! HTTPS without a proxy: rustls with ring. The crypto provider is passed explicitly and never installed process-wide.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::serve::Listener;
use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::error::ConsoleError;

/// Limits of a TLS handshake: duration, and how many run concurrently.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HANDSHAKES: usize = 256;

/// Paths of certificate chain and private key, as PEM files.
#[derive(Debug, Clone)]
pub struct TlsIdentity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Accepts TLS connections. Handshakes run concurrently, so a slow client delays no other.
pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, identity: &TlsIdentity) -> Result<Self, ConsoleError> {
        let TlsIdentity { cert, key } = identity;
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| tls_error(cert, &error))?;
        let private_key =
            PrivateKeyDer::from_pem_file(key).map_err(|error| tls_error(key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private_key))
            .map_err(|error| tls_error(cert, &error))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { listener, acceptor, handshakes: JoinSet::new() })
    }

    fn start_handshake(&mut self, stream: TcpStream, address: SocketAddr) {
        let handshake = self.acceptor.accept(stream);
        self.handshakes.spawn(async move {
            let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.ok()?;
            Some((accepted.ok()?, address))
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(accepted) = self.handshakes.join_next() => {
                    if let Ok(Some(accepted)) = accepted {
                        return accepted;
                    }
                }
                (stream, address) = Listener::accept(&mut self.listener), if self.handshakes.len() < MAX_HANDSHAKES => {
                    self.start_handshake(stream, address);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn tls_error(path: &Path, error: &dyn std::error::Error) -> ConsoleError {
    ConsoleError::setting(format!("{}: {error}", path.display()))
        .with_hint("tls.cert and tls.key are PEM files that belong together")
}
