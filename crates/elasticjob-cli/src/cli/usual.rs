//! The file that history is kept in if nobody says anything.
//!
//! A history knows jobs by their names alone: two namespaces that share one would share the runs of jobs that are called the same, and each would take the
//! other's shards for lost. So every registry and namespace has a file of its own.

use std::path::PathBuf;

use elasticjob::{history::default_path, registry::RegistryUrl};
use ring::digest::{SHA256, digest};

use super::DEFAULT_REGISTRY;

/// The file of this registry; that of the usual one if none was said. Nothing for somebody who has no home.
pub(super) fn file(registry: Option<&str>) -> Option<PathBuf> {
    let path = default_path()?;
    let place = |url: &str| match url.parse() {
        Ok(RegistryUrl::ZooKeeper(settings)) => {
            let namespace = settings.namespace.to_string();
            let mut servers: Vec<String> =
                settings.servers.iter().map(ToString::to_string).collect();
            servers.sort();
            Some((namespace.trim_matches('/').to_owned(), servers.join(",")))
        }
        // A tree of one process: there is nothing to share.
        _ => None,
    };
    let Some((namespace, servers)) = registry.and_then(place) else { return Some(path) };
    if Some(&(namespace.clone(), servers.clone())) == place(DEFAULT_REGISTRY).as_ref() {
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

    fn named(registry: Option<&str>) -> String {
        let file = file(registry).map(|file| file.file_name().unwrap().to_owned());
        file.unwrap_or_default().into_string().unwrap()
    }

    #[test]
    fn every_registry_and_namespace_has_a_file_of_its_own_and_the_usual_one_the_usual() {
        if default_path().is_none() {
            // Not with `eprintln!`: the output of a test that passes is not shown.
            let why = "this user has no folder for a history";
            return writeln!(io::stderr(), "NOT RUN: cli::usual: {why}").unwrap();
        }
        let [shop, bank, other] =
            ["zookeeper://zk1,zk2/shop", "zookeeper://zk1,zk2/bank", "zookeeper://zk3/shop"]
                .map(|url| named(Some(url)));

        assert_eq!(named(None), "history.db");
        assert_eq!(named(Some(DEFAULT_REGISTRY)), "history.db");
        assert_eq!(named(Some("zookeeper://127.0.0.1/elasticjob?sessionTimeout=9s")), "history.db");
        assert!(shop.starts_with("history-shop-") && bank.starts_with("history-bank-"));
        assert!(shop != bank && shop != other);
        assert_eq!(named(Some("zookeeper://jane:x@zk2:2181,zk1:2181/shop")), shop);
    }
}
