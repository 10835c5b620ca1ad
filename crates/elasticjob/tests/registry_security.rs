//! Authentication and TLS against a real ZooKeeper.

use std::time::Duration;

use elasticjob::registry::{self, Create, Error, RegistryUrl};
use testbed::{Certificates, ZooKeeper};
use tinykeeper::{
    client::{Client, Config, Credentials},
    wire::{AuthId, Perms},
};

fn url(text: &str) -> RegistryUrl {
    text.parse().unwrap()
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn nodes_belong_to_the_user_or_to_everyone_without_one() {
    let server = ZooKeeper::start();
    let address = server.address();
    let closed =
        registry::connect(&url(&format!("zookeeper://jane:se%3Acret@{address}/closed/deep"))).await;
    let open = registry::connect(&url(&format!("zookeeper://{address}/open"))).await.unwrap();
    let closed = closed.unwrap();
    let job = closed.namespace().path().join("job").unwrap();
    closed.create(Create::persistent(&job, "")).await.unwrap();

    let mut config = Config::new([address.to_string()]);
    config.auth.push(Credentials::digest("jane", "se:cret"));
    let client = Client::connect(config).await.unwrap();

    for path in ["/closed", "/closed/deep", "/closed/deep/job"] {
        let (acl, _) = client.acl(path).await.unwrap();
        assert_eq!(acl.len(), 1, "{path}");
        assert_eq!(
            (acl[0].perms, &acl[0].id),
            (Perms::ALL, &AuthId::digest("jane:se:cret")),
            "{path}"
        );
    }
    let (acl, _) = client.acl("/open").await.unwrap();
    assert_eq!((acl[0].perms, &*acl[0].id.scheme), (Perms::ALL, "world"));
    assert!(matches!(open.get(&job).await, Err(Error::NotAuthorised { .. })));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn tls_works_from_the_url_and_unknown_ca_is_refused() {
    let certificates = Certificates::issue();
    let server = ZooKeeper::builder().tls(&certificates).start();
    let address = server.secure_address();
    let [ca, cert, key] =
        [certificates.ca_pem(), certificates.client_cert_pem(), certificates.client_key_pem()]
            .map(|file| file.display().to_string());
    let other_ca = Certificates::issue().ca_pem().display().to_string();

    let good = format!("zookeepers://{address}/tls?tls.ca={ca}&tls.cert={cert}&tls.key={key}");
    let registry = registry::connect(&url(&good)).await.unwrap();
    assert!(registry.exists(registry.namespace().path()).await.unwrap().is_some());

    let timeout = Duration::from_secs(10);
    for (bad, expected) in [
        (
            format!("zookeepers://{address}/tls?tls.ca={other_ca}&tls.cert={cert}&tls.key={key}"),
            "tls",
        ),
        (format!("zookeepers://{address}/tls?tls.ca=/missing.pem"), "/missing.pem"),
    ] {
        let refused = tokio::time::timeout(timeout, registry::connect(&url(&bad))).await;
        let error = refused.expect("a certificate error is not retried").expect_err(&bad);
        let message = full_message(&error).to_lowercase();
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn unreachable_registry_is_named_after_the_retries() {
    let port = testbed::free_port();
    let address = format!("127.0.0.1:{port}");
    let missing =
        format!("zookeeper://{address}/x?baseSleepTime=1ms&maxSleepTime=1ms&maxRetries=2");

    let refused =
        tokio::time::timeout(Duration::from_secs(20), registry::connect(&url(&missing))).await;

    let error = refused.expect("retries end").expect_err("no server listens");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(full_message(&error).contains(&address), "{}", full_message(&error));
}

fn full_message(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
