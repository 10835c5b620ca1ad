//! Limits how much of the server one address may take, so that others find room.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

/// Counts what each address has: connections, or sessions.
#[derive(Debug, Clone)]
pub(super) struct AddressLimit {
    max: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of the places of an address. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct AddressSlot {
    network: IpAddr,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl AddressLimit {
    pub(super) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    /// A place for one more connection or session of this address; `None` if it has as many as it may have.
    pub(super) fn try_take(&self, address: IpAddr) -> Option<AddressSlot> {
        let network = network(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.get(&network).copied().unwrap_or(0);
        if count >= self.max {
            return None;
        }
        taken.insert(network, count + 1);
        Some(AddressSlot { network, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.network);
            }
        }
    }
}

/// The network that counts as one client: a machine has a whole IPv6 network of 64 bits.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn address_has_a_place_again_once_one_is_dropped() {
        let limit = AddressLimit::new(2);
        let first = limit.try_take(address("10.0.0.1")).expect("room");
        let _second = limit.try_take(address("10.0.0.1")).expect("room");

        assert!(limit.try_take(address("10.0.0.1")).is_none());
        assert!(limit.try_take(address("10.0.0.2")).is_some(), "another address");
        drop(first);
        assert!(limit.try_take(address("::ffff:10.0.0.1")).is_some(), "the same address, mapped");
        assert_eq!(limit.taken.lock().unwrap().len(), 1, "addresses without a place are forgotten");
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_their_places() {
        let limit = AddressLimit::new(1);
        let _taken = limit.try_take(address("2001:db8::1")).expect("room");

        assert!(limit.try_take(address("2001:db8::ffff:1")).is_none());
        assert!(limit.try_take(address("2001:db8:0:1::1")).is_some());
    }
}
