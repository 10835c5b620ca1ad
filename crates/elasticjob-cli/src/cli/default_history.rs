//! The default history file.
//!
//! A history store identifies jobs by name only. Two namespaces that shared a store would mix the runs of jobs with the same name, and each would
//! consider the other's shards lost. So every registry and namespace has its own default file.

use std::path::PathBuf;

use elasticjob::{history::default_path, registry::RegistryUrl};
use ring::digest::{SHA256, digest};

use super::DEFAULT_REGISTRY;

/// The default file of this registry, or of the default registry if `None`. `None` if the user has no home directory.
pub(super) fn file(registry: Option<&str>) -> Option<PathBuf> {
    let path = default_path()?;
    let identity = |url: &str| match url.parse() {
        Ok(RegistryUrl::ZooKeeper(settings)) => {
            let namespace = settings.namespace.to_string();
            let mut servers: Vec<String> =
                settings.servers.iter().map(ToString::to_string).collect();
            servers.sort();
            Some((namespace.trim_matches('/').to_owned(), servers.join(",")))
        }
        // An in-memory registry cannot be shared.
        _ => None,
    };
    let Some((namespace, servers)) = registry.and_then(identity) else { return Some(path) };
    if Some(&(namespace.clone(), servers.clone())) == identity(DEFAULT_REGISTRY).as_ref() {
        return Some(path);
    }
    let plain: String = namespace
        .chars()
        .map(|each| if each.is_ascii_alphanumeric() || "-_.".contains(each) { each } else { '_' })
        .take(60)
        .collect();
    let hash = digest(&SHA256, format!("{servers}/{namespace}").as_bytes());
    let mut start = [0; 4];
    start.copy_from_slice(&hash.as_ref()[..4]);
    Some(path.with_file_name(format!("history-{plain}-{:08x}.db", u32::from_be_bytes(start))))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;

    fn file_name(registry: Option<&str>) -> String {
        let file = file(registry).map(|file| file.file_name().unwrap().to_owned());
        file.unwrap_or_default().into_string().unwrap()
    }

    #[test]
    fn every_registry_and_namespace_has_its_own_file() {
        if default_path().is_none() {
            // Not with `eprintln!`: the output of a test that passes is not shown.
            let why = "this user has no folder for a history";
            return writeln!(io::stderr(), "NOT RUN: cli::usual: {why}").unwrap();
        }
        let [shop, bank, other] =
            ["zookeeper://zk1,zk2/shop", "zookeeper://zk1,zk2/bank", "zookeeper://zk3/shop"]
                .map(|url| file_name(Some(url)));

        assert_eq!(file_name(None), "history.db");
        assert_eq!(file_name(Some(DEFAULT_REGISTRY)), "history.db");
        assert_eq!(
            file_name(Some("zookeeper://127.0.0.1/elasticjob?sessionTimeout=9s")),
            "history.db"
        );
        assert!(shop.starts_with("history-shop-") && bank.starts_with("history-bank-"));
        assert!(shop != bank && shop != other);
        assert_eq!(file_name(Some("zookeeper://jane:x@zk2:2181,zk1:2181/shop")), shop);
    }
}
