//! The words of registry URLs, frozen: `tests/golden/README.md` says why.
//!
//! Settings are written out field by field, so that an addition does not compile until it is frozen, too.

use std::time::Duration;

use testbed::golden;

use super::{Digest, Endpoint, RegistryUrl, Retry, Tls, ZooKeeperSettings};

#[test]
fn registry_urls_keep_their_keys() {
    let mut settings = ZooKeeperSettings {
        servers: vec![Endpoint::new("zk1", 2181), Endpoint::new("::1", 2182)],
        namespace: "team/shop".parse().unwrap(),
        // A URL that is shown has no password; this is the one that is read back.
        digest: Some(Digest { user: "ann".to_owned(), password: "***".to_owned() }),
        session_timeout: Duration::from_millis(1500),
        connection_timeout: Duration::from_secs(2),
        retry: Retry {
            base_sleep: Duration::from_millis(5),
            max_sleep: Duration::from_mins(1),
            max_retries: 7,
        },
        tls: None,
        fence_floor: 42,
    };
    let plain = RegistryUrl::ZooKeeper(Box::new(settings.clone()));
    settings.tls = Some(Tls {
        ca: "/tls/ca.pem".into(),
        identity: Some(("/tls/cert.pem".into(), "/tls/key.pem".into())),
    });
    let secure = RegistryUrl::ZooKeeper(Box::new(settings));
    let urls = [plain, secure, RegistryUrl::Memory];

    let shown: Vec<String> = urls.iter().map(|url| format!("{url}\n")).collect();
    let golden = golden!("registry-urls.txt", shown.concat());

    #[cfg(feature = "tls")]
    {
        let read: Vec<RegistryUrl> = golden.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(read, urls);
    }
    #[cfg(not(feature = "tls"))]
    drop(golden);
}
