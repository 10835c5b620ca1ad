//! Limits the warnings that clients cause: a client that is refused tries again at once, and would fill the log.
//!
//! The first warning about an address and a reason is logged. Its repetitions are counted, and reported in one line for each interval.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::addresses::network;

/// Time between two reports.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_mins(1);
/// Addresses and reasons that have a line of their own in one interval. Further ones share a line.
const MAX_SOURCES: usize = 1024;

/// Whom a warning is about, and why it is given.
type Source = (IpAddr, &'static str);

/// Counts repeated warnings. Its clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientWarnings(Arc<Mutex<Repetitions>>);

#[derive(Debug, Default)]
struct Repetitions {
    by_source: HashMap<Source, u64>,
    of_other_sources: u64,
}

impl ClientWarnings {
    /// Whether this warning is logged. If not, it is part of the next report.
    pub(super) fn is_first(&self, address: IpAddr, reason: &'static str) -> bool {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let repetitions = &mut *guard;
        let has_room = repetitions.by_source.len() < MAX_SOURCES;
        match repetitions.by_source.entry((network(address), reason)) {
            Entry::Occupied(mut entry) => *entry.get_mut() += 1,
            Entry::Vacant(entry) if has_room => {
                entry.insert(0);
                return true;
            }
            Entry::Vacant(_) => repetitions.of_other_sources += 1,
        }
        false
    }

    /// Logs how often warnings were repeated since the last report. Sources without a repetition are forgotten.
    pub(super) fn report(&self) {
        let (repeated, of_other_sources) = self.take_repeated();
        for ((address, reason), count) in repeated {
            tracing::warn!(%address, reason, count, "warning repeated");
        }
        if of_other_sources > 0 {
            tracing::warn!(count = of_other_sources, "warnings about further addresses");
        }
    }

    fn take_repeated(&self) -> (Vec<(Source, u64)>, u64) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let repetitions = &mut *guard;
        repetitions.by_source.retain(|_, count| *count > 0);
        let by_source = repetitions.by_source.iter_mut();
        let repeated = by_source.map(|(source, count)| (*source, mem::take(count))).collect();
        (repeated, mem::take(&mut repetitions.of_other_sources))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into()
    }

    #[test]
    fn repeated_warning_is_counted_until_it_stops_for_an_interval() {
        let warnings = ClientWarnings::default();
        let source = (address(1), "too many");

        assert!(warnings.is_first(source.0, source.1));
        assert!(!warnings.is_first(source.0, source.1) && !warnings.is_first(source.0, source.1));
        assert!(warnings.is_first(address(2), "too many") && warnings.is_first(address(1), "late"));

        assert_eq!(warnings.take_repeated(), (vec![(source, 2)], 0));
        assert!(!warnings.is_first(source.0, source.1), "it goes on");
        assert_eq!(warnings.take_repeated(), (vec![(source, 1)], 0));
        assert_eq!(warnings.take_repeated(), (Vec::new(), 0));
        assert!(warnings.is_first(source.0, source.1), "it begins again");
    }

    #[test]
    fn warnings_about_very_many_addresses_share_a_line() {
        let warnings = ClientWarnings::default();

        let logged = (0..MAX_SOURCES + 5).filter(|number| warnings.is_first(address(*number), "x"));

        assert_eq!(logged.count(), MAX_SOURCES);
        assert_eq!(warnings.take_repeated(), (Vec::new(), 5));
        assert!(
            warnings.is_first(address(MAX_SOURCES), "x"),
            "sources without repetition are gone"
        );
    }
}
