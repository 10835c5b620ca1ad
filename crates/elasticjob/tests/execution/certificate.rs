//! A self-signed certificate for this machine that only the tests trust.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A TLS acceptor and its certificate (PEM).
pub(crate) fn acceptor() -> (TlsAcceptor, String) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), cert.pem())
}
