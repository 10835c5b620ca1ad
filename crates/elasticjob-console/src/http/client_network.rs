//! What a limit by client address counts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address, or the first 64 bits of an IPv6 address: one client usually has all addresses below them. An IPv4 client that NAT64 translates
/// counts as its IPv4 address: all of them share the first 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(IpAddr);

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => match translated(address) {
                Some(address) => address.into(),
                None => prefix(address, 64).into(),
            },
        })
    }
}

/// The IPv4 address in an address of NAT64's well-known prefix, `64:ff9b::/96` (RFC 6052).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else { return None };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

fn prefix(address: Ipv6Addr, bits: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits)))
}

impl ClientNetwork {
    /// The first 48 bits of an IPv6 address: a customer of a provider may have all networks below them.
    pub(crate) fn site(self) -> Self {
        match self.0 {
            IpAddr::V4(_) => self,
            IpAddr::V6(address) => Self(prefix(address, 48).into()),
        }
    }

    /// The addresses around it that usually have the same owner: an IPv4 network of 24 bits, or an IPv6 network of 48.
    pub(crate) fn neighbourhood(self) -> Self {
        match self.0 {
            IpAddr::V4(address) => Self(Ipv4Addr::from_bits(address.to_bits() & !0xff).into()),
            IpAddr::V6(_) => self.site(),
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self.0 {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_of_one_network_count_as_one_client() {
        let network = |text: &str| ClientNetwork::from(text.parse::<IpAddr>().unwrap());

        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1:2:3"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.7"), network("10.0.0.7"));
        assert_ne!(network("10.0.0.7"), network("10.0.0.8"));
        let site = |text: &str| network(text).site();
        assert_eq!(site("2001:db8:1:2::1"), site("2001:db8:1:ff::1"));
        assert_ne!(site("2001:db8:1::1"), site("2001:db8:2::1"));
        assert_eq!(site("10.0.0.7"), network("10.0.0.7"));
        let neighbourhood = |text: &str| network(text).neighbourhood();
        assert_eq!(neighbourhood("10.0.0.7"), neighbourhood("10.0.0.255"));
        assert_ne!(neighbourhood("10.0.0.7"), neighbourhood("10.0.1.7"));
        assert_eq!(neighbourhood("2001:db8:1:2::1"), neighbourhood("2001:db8:1:ff::1"));
    }

    #[test]
    fn client_behind_nat64_counts_as_its_ipv4_address() {
        let network = |text: &str| ClientNetwork::from(text.parse::<IpAddr>().unwrap());

        assert_eq!(network("64:ff9b::203.0.113.9"), network("203.0.113.9"));
        assert_ne!(network("64:ff9b::203.0.113.9"), network("64:ff9b::203.0.113.10"));
        assert_ne!(network("64:ff9b:1::203.0.113.9"), network("203.0.113.9"), "not well-known");
    }
}
