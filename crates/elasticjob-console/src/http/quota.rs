//! Counts what is in use, in total and by key, up to a limit of each.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

/// Slots that are taken and given back.
#[derive(Debug)]
pub(crate) struct Quota<K> {
    max: usize,
    max_per_key: usize,
    taken: Arc<Mutex<Taken<K>>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

/// A slot that is given back on drop.
#[derive(Debug)]
pub(crate) struct QuotaSlot<K: Eq + Hash> {
    taken: Arc<Mutex<Taken<K>>>,
    key: Option<K>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaExcess {
    All,
    Key,
}

impl<K: Eq + Hash + Clone> Quota<K> {
    pub(crate) fn new(max: usize, max_per_key: usize) -> Self {
        let taken = Taken { all: 0, by_key: HashMap::new() };
        Self { max, max_per_key, taken: Arc::new(Mutex::new(taken)) }
    }

    /// Takes a slot. Without a key, only the total is limited.
    pub(crate) fn take(&self, key: Option<K>) -> Result<QuotaSlot<K>, QuotaExcess> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = key.as_ref().and_then(|key| taken.by_key.get(key)).copied();
        if of_key.is_some_and(|count| count >= self.max_per_key) {
            return Err(QuotaExcess::Key);
        }
        if taken.all >= self.max {
            return Err(QuotaExcess::All);
        }
        taken.all += 1;
        if let Some(key) = &key {
            *taken.by_key.entry(key.clone()).or_default() += 1;
        }
        Ok(QuotaSlot { taken: Arc::clone(&self.taken), key })
    }
}

impl<K: Eq + Hash> Drop for QuotaSlot<K> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        let Some(key) = &self.key else { return };
        if let Some(count) = taken.by_key.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                taken.by_key.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_refused_beyond_a_limit_and_free_again_after_use() {
        let quota = Quota::new(3, 2);
        let take = |key| quota.take(key);
        let ann = [take(Some("ann")).unwrap(), take(Some("ann")).unwrap()];

        assert_eq!(take(Some("ann")).unwrap_err(), QuotaExcess::Key);
        let bob = take(Some("bob")).unwrap();
        assert_eq!(take(Some("carol")).unwrap_err(), QuotaExcess::All);
        assert_eq!(take(None).unwrap_err(), QuotaExcess::All);

        drop((ann, bob));
        let unknown = [(); 3].map(|()| take(None).unwrap());
        assert_eq!(take(None).unwrap_err(), QuotaExcess::All);
        drop(unknown);
        drop(take(Some("carol")).unwrap());
        assert!(quota.taken.lock().unwrap().by_key.is_empty(), "unused keys take no memory");
    }
}
