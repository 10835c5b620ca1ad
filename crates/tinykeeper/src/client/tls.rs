//! TLS with rustls and ring. The crypto provider is passed explicitly and never installed for the whole process.

use std::{fmt, io, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::error::{BoxError, ConnectError};

/// TLS settings. A server's certificate must be valid for the host name in the configuration.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// The trusted certificate authorities.
    pub ca: Pem,
    /// The client certificate, for servers that require one.
    pub identity: Option<Identity>,
}

/// A client certificate and its private key.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate, followed by the intermediate certificates.
    pub cert: Pem,
    pub key: Pem,
}

/// PEM data, in memory or in a file.
#[derive(Clone)]
pub enum Pem {
    /// A file that is read once, when the client connects.
    File(PathBuf),
    Bytes(Vec<u8>),
}

// Without the bytes: they may be a private key.
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

/// Establishes TLS on a socket.
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

/// Whether TLS itself failed, and not the network.
pub(super) fn is_tls_problem(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
}

fn unusable(text: String) -> ConnectError {
    ConnectError::TlsSettings { source: BoxError::from(text) }
}
