//! Connects to the registry that a URL names.

use std::sync::Arc;

use super::{
    Registry,
    error::Error,
    memory::MemoryServer,
    operation::Create,
    path::{Namespace, Path},
    url::RegistryUrl,
    zookeeper::ZooKeeper,
};
use crate::runtime::SystemClock;

/// Connects to the registry at `url` and creates its namespace if it does not exist.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use elasticjob::registry::{self, Create, Registry};
///
/// let registry = registry::connect(&"memory:".parse()?).await?;
/// let path = registry.namespace().path().join("greeting")?;
/// registry.create(Create::persistent(&path, "hello")).await?;
/// assert_eq!(registry.get(&path).await?.unwrap().data, "hello");
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: &RegistryUrl) -> Result<Arc<dyn Registry>, Error> {
    match url {
        RegistryUrl::ZooKeeper(settings) => Ok(Arc::new(ZooKeeper::connect(settings).await?)),
        RegistryUrl::Memory => {
            let server = MemoryServer::new(Arc::new(SystemClock));
            let namespace: Namespace = "elasticjob".parse().expect("valid namespace");
            Ok(Arc::new(server.join(namespace).await?))
        }
    }
}

/// Connects to the registry at `url` without writing anything, even if the namespace does not exist. For tools that mostly read: a
/// typo in a URL must not create a namespace. Before the first write, create it with [`ensure_path`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use elasticjob::{admin::Admin, registry};
///
/// let admin = Admin::new(registry::connect_read_only(&"memory:".parse()?).await?);
/// assert!(admin.jobs().await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn connect_read_only(url: &RegistryUrl) -> Result<Arc<dyn Registry>, Error> {
    match url {
        RegistryUrl::ZooKeeper(settings) => {
            Ok(Arc::new(ZooKeeper::connect_read_only(settings).await?))
        }
        // A memory registry is private, so creating its namespace affects no other process.
        RegistryUrl::Memory => connect(url).await,
    }
}

/// Creates `path` and its missing parents as persistent nodes.
///
/// Curator creates its namespace as a container, which the server removes together with the last job, possibly while another process
/// is adding the next one. A persistent node means the same to every peer and stays.
pub async fn ensure_path(registry: &dyn Registry, path: &Path) -> Result<(), Error> {
    // Such a read may share its request with others, unlike the question whether a node exists.
    match registry.get(path).await {
        Ok(None) => {}
        Ok(Some(_)) | Err(Error::NotAuthorised { .. }) => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut missing: Vec<Path> = std::iter::successors(Some(path.clone()), Path::parent).collect();
    missing.pop(); // the root
    for path in missing.into_iter().rev() {
        match registry.create(Create::persistent(&path, "")).await {
            Ok(_) | Err(Error::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
