//! HTTPS without a proxy: rustls with ring. The crypto provider is passed explicitly and never installed process-wide.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::error::ConsoleError;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Paths of certificate chain and private key, as PEM files.
#[derive(Debug, Clone)]
pub struct TlsIdentity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Performs TLS handshakes. Each runs in the task of its connection and counts as one, so a slow client delays no other. Cheap to clone.
#[derive(Clone)]
pub(super) struct TlsHandshake(TlsAcceptor);

impl TlsHandshake {
    pub(super) fn new(identity: &TlsIdentity) -> Result<Self, ConsoleError> {
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
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Fails if the client does not complete the handshake in time.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        tokio::time::timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await?
    }
}

fn tls_error(path: &Path, error: &dyn std::error::Error) -> ConsoleError {
    ConsoleError::setting(format!("{}: {error}", path.display()))
        .with_hint("tls.cert and tls.key are PEM files that belong together")
}
