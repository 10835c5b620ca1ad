//! TLS: rustls with ring. The provider is named here and never installed for the whole process.

use std::{fmt, io, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::error::{BoxError, ConnectError};

/// Whom to trust and who we are. A server must have a certificate for the host it is configured by.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// The authorities whose certificates we accept.
    pub ca: Pem,
    /// What we show to servers that want to know who we are.
    pub identity: Option<Identity>,
}

/// A certificate and the key that goes with it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate, followed by those between it and the authority.
    pub cert: Pem,
    /// Its private key.
    pub key: Pem,
}

/// PEM, here or in a file.
#[derive(Clone)]
pub enum Pem {
    /// In this file, read once when the client connects.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

// It may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::File(path) => write!(f, "{}", path.display()),
            Pem::Bytes(_) => f.write_str("…"),
        }
    }
}

impl Pem {
    fn read(&self, what: &str) -> Result<Vec<u8>, ConnectError> {
        match self {
            Pem::File(path) => std::fs::read(path).map_err(|error| {
                unusable(format!("cannot read the {what} in {}: {error}", path.display()))
            }),
            Pem::Bytes(bytes) => Ok(bytes.clone()),
        }
    }

    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
        let certificates = CertificateDer::pem_slice_iter(&self.read(what)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(format!("the {what} ({self:?}) is not PEM: {error}")))?;
        if certificates.is_empty() {
            return Err(unusable(format!("the {what} ({self:?}) holds no certificate")));
        }
        Ok(certificates)
    }
}

/// Turns sockets into TLS streams.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(options: &TlsOptions) -> Result<Self, ConnectError> {
        let mut roots = RootCertStore::empty();
        for certificate in options.ca.certificates("CA certificate")? {
            roots
                .add(certificate)
                .map_err(|error| unusable(format!("cannot use the CA certificate: {error}")))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::Tls { source: error.into() })?
            .with_root_certificates(roots);
        let config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = identity.cert.certificates("client certificate")?;
                let key = PrivateKeyDer::from_pem_slice(&identity.key.read("client key")?)
                    .map_err(|error| unusable(format!("cannot use the client key: {error}")))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    unusable(format!("cannot use the client certificate: {error}"))
                })?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn wrap(
        &self,
        host: &str,
        socket: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.0.connect(name, socket).await
    }
}

/// Whether TLS itself failed, not the network below it.
pub(super) fn is_tls_problem(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
}

fn unusable(text: String) -> ConnectError {
    ConnectError::Tls { source: BoxError::from(text) }
}
