//! Which shards of a job a request is for.

use std::collections::BTreeSet;

use super::error::InvalidValue;

/// Which shards of a job a request is for.
///
/// ```
/// use elasticjob::job::ShardSelection;
///
/// let some = ShardSelection::only([0, 2])?;
/// assert!(some.contains(2) && !some.contains(1));
/// assert!(ShardSelection::All.contains(1));
/// assert!(ShardSelection::only([]).is_err());
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ShardSelection {
    #[default]
    All,
    Only(ShardItems),
}

/// Items of shards. Invariant: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardItems(BTreeSet<u32>);

impl ShardSelection {
    /// Selects these shards. Fails without any: an empty list is more likely a mistake than a request for all shards.
    pub fn only(items: impl IntoIterator<Item = u32>) -> Result<Self, InvalidValue> {
        let items: BTreeSet<u32> = items.into_iter().collect();
        if items.is_empty() {
            let invalid = InvalidValue::new("shards", "[]", "it selects no shard");
            return Err(invalid.with_hint("name at least one shard, or leave it out for all"));
        }
        Ok(Self::Only(ShardItems(items)))
    }

    /// Selects these shards; all of them if there are none, as stored triggers and command lines express it.
    pub fn all_if_empty(items: BTreeSet<u32>) -> Self {
        if items.is_empty() { Self::All } else { Self::Only(ShardItems(items)) }
    }

    pub fn contains(&self, item: u32) -> bool {
        self.items().is_none_or(|items| items.contains(&item))
    }

    /// The selected items; `None` for all.
    pub fn items(&self) -> Option<&BTreeSet<u32>> {
        match self {
            Self::All => None,
            Self::Only(ShardItems(items)) => Some(items),
        }
    }
}
