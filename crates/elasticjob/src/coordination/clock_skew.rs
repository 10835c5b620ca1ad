//! The difference between this machine's clock and the registry's.

use jiff::{SignedDuration, Timestamp};

use super::tree::JobTree;
use crate::{
    registry::{Create, Error, ExpectedVersion, Op, Registry, ensure_path},
    runtime::Clock,
};

/// Measures how far this machine's clock is ahead of the registry's. As in Java ElasticJob, the registry's time is the modification time of a node
/// that is written for this purpose. Half the duration of the write is subtracted, as the time from the registry's write to its answer.
pub async fn measure(
    registry: &dyn Registry,
    clock: &dyn Clock,
    tree: &JobTree,
) -> Result<SignedDuration, Error> {
    let path = tree.system_time();
    let config = Op::Check { path: tree.config(), expected: ExpectedVersion::Any };
    let set = Op::Set { path: path.clone(), data: "".into(), expected: ExpectedVersion::Any };
    let before = clock.monotonic();
    match registry.multi(vec![config.clone(), set]).await {
        Ok(_) => {}
        Err(Error::Operation { index: 1, .. }) => {
            if let Some(parent) = path.parent() {
                ensure_path(registry, &parent).await?;
            }
            let create = Op::Create(Create::persistent(&path, ""));
            match registry.multi(vec![config, create]).await {
                Ok(_) | Err(Error::Operation { index: 1, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    }
    let (now, elapsed) = (clock.now(), clock.monotonic().saturating_since(before));
    let stat = registry.exists(&path).await?.ok_or(Error::NotFound { path })?;
    let written_at = Timestamp::from_millisecond(stat.changed_at_ms).unwrap_or(now);
    let half = SignedDuration::try_from(elapsed / 2).unwrap_or(SignedDuration::ZERO);
    Ok(now.duration_since(written_at) - half)
}
