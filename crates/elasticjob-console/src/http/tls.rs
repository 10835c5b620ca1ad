//! HTTPS, without a proxy: rustls with ring. The provider is named here and never installed for the whole process.

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

/// How long somebody may take to say hello, and how many may be at it at once.
const PATIENCE: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 256;

/// Where the certificate is, and its key: PEM files.
#[derive(Debug, Clone)]
pub struct Identity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Listens, and speaks TLS. Whoever is slow to say hello keeps nobody else waiting.
pub(crate) struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    greeted: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl Tls {
    pub(crate) fn new(listener: TcpListener, identity: &Identity) -> Result<Self, ConsoleError> {
        let Identity { cert, key } = identity;
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| cannot(cert, &error))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| cannot(key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| cannot(cert, &error))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { listener, acceptor, greeted: JoinSet::new() })
    }

    fn greet(&mut self, stream: TcpStream, address: SocketAddr) {
        let hello = self.acceptor.accept(stream);
        self.greeted.spawn(async move {
            let greeted = tokio::time::timeout(PATIENCE, hello).await.ok()?;
            Some((greeted.ok()?, address))
        });
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(greeted) = self.greeted.join_next() => {
                    if let Ok(Some(greeted)) = greeted {
                        return greeted;
                    }
                }
                (stream, address) = Listener::accept(&mut self.listener), if self.greeted.len() < AT_ONCE => {
                    self.greet(stream, address);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn cannot(path: &Path, error: &dyn std::error::Error) -> ConsoleError {
    ConsoleError::setting(format!(
        "{}: {error}; hint: tls.cert and tls.key are PEM files that belong together",
        path.display()
    ))
}
