//! TLS with a real ZooKeeper.

use std::sync::LazyLock;

use testbed::{Certificates, ZooKeeper};
use tinykeeper::client::{Client, Config, ConnectError, Identity, Pem, TlsOptions};

use super::config;

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(Certificates::issue);
static SERVER: LazyLock<ZooKeeper> =
    LazyLock::new(|| ZooKeeper::builder().tls(&CERTIFICATES).start());

fn secure(ca: Pem, identity: Option<Identity>) -> Config {
    let mut config = config(&[format!("localhost:{}", SERVER.secure_address().port())]);
    config.tls = Some(TlsOptions { ca, identity });
    config
}

fn identity() -> Identity {
    Identity {
        cert: Pem::File(CERTIFICATES.client_cert_pem()),
        key: Pem::Bytes(std::fs::read(CERTIFICATES.client_key_pem()).unwrap()),
    }
}

fn with_causes(error: &ConnectError) -> String {
    let cause = std::error::Error::source(error).expect("there is a cause");
    let below = cause.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}: {below}")
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn client_connects_with_certificates_of_the_same_authority() {
    let config = secure(Pem::File(CERTIFICATES.ca_pem()), Some(identity()));

    let client = Client::connect(config).await.unwrap();

    assert!(client.exists("/zookeeper").await.unwrap().is_some());
    client.close().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn server_of_another_authority_is_not_trusted() {
    let other = Certificates::issue();

    let error =
        Client::connect(secure(Pem::File(other.ca_pem()), Some(identity()))).await.unwrap_err();

    assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
    assert!(with_causes(&error).contains("invalid peer certificate"), "{}", with_causes(&error));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn client_without_a_certificate_gets_a_tls_error() {
    let error = Client::connect(secure(Pem::File(CERTIFICATES.ca_pem()), None)).await.unwrap_err();

    assert!(matches!(error, ConnectError::Tls { .. }), "{}", with_causes(&error));
}

#[tokio::test]
async fn missing_ca_file_is_named() {
    let mut config = config(&["localhost:1"]);
    config.tls = Some(TlsOptions { ca: Pem::File("/nowhere/ca.pem".into()), identity: None });

    let error = Client::connect(config).await.unwrap_err();

    assert!(matches!(error, ConnectError::TlsSettings { .. }), "{error:?}");
    assert!(with_causes(&error).contains("cannot read the CA certificate in /nowhere/ca.pem"));
}

#[tokio::test]
async fn pem_without_a_certificate_is_refused() {
    let mut config = config(&["localhost:1"]);
    config.tls = Some(TlsOptions { ca: Pem::Bytes(b"hello".to_vec()), identity: None });

    let error = Client::connect(config).await.unwrap_err();

    assert!(with_causes(&error).contains("holds no certificate"), "{}", with_causes(&error));
}
