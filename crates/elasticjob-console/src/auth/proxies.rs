//! Trusted proxies: determines from `X-Forwarded-For` where a request comes from.
//!
//! A proxy appends the address of its client to `X-Forwarded-For`; everything before that may be forged by the client. So the header is read
//! from its end, past the addresses of trusted proxies, up to the first address that is not one.

use std::{net::IpAddr, str::FromStr};

use axum::http::HeaderMap;
use elasticjob::problem::Problem;

use crate::http::client_network::ClientNetwork;

const FORWARDED: &str = "x-forwarded-for";

/// Addresses of proxies whose `X-Forwarded-For` is trusted.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<Network>);

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSource {
    pub(crate) address: IpAddr,
    /// The client for which the request counts; `None` for a trusted proxy that does not tell whom it forwards: it may stand for all clients.
    pub(crate) client: Option<ClientNetwork>,
}

/// An address, or a network in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl TrustedProxies {
    /// Parses addresses and networks (`10.0.0.0/8`).
    pub fn new(texts: &[String]) -> Result<Self, Problem> {
        let network = |text: &String| {
            text.parse().map_err(|()| {
                Problem::new(format!("{text:?} is neither an address nor a network"))
                    .with_hint("for example 10.0.0.7 or 10.0.0.0/8")
            })
        };
        texts.iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    /// Where a request comes from, given the peer of the connection.
    pub(crate) fn source(&self, peer: IpAddr, headers: &HeaderMap) -> RequestSource {
        let mut address = peer.to_canonical();
        let mut is_client = !self.trusts(address);
        let values = headers.get_all(FORWARDED).iter().filter_map(|value| value.to_str().ok());
        let mut hops: Vec<&str> =
            values.flat_map(|value| value.split(',')).map(str::trim).collect();
        while self.trusts(address)
            && let Some(hop) = hops.pop().and_then(parse_hop)
        {
            // Even within a trusted network, whose clients may be in the same one as the proxy.
            (address, is_client) = (hop, true);
        }
        RequestSource { address, client: is_client.then(|| address.into()) }
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Parses an address with or without a port.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    let plain = hop.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let address = plain.unwrap_or(hop).parse().ok();
    let address = address.or_else(|| hop.parse::<std::net::SocketAddr>().ok().map(|it| it.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| ())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(max_bits);
        if bits > max_bits { Err(()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        // Compares the leading bits.
        let same_prefix = |one: u128, other: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            one.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                same_prefix(u32::from(one).into(), u32::from(other).into(), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => same_prefix(one.into(), other.into(), 128),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(trusted: &[&str], peer: &str, forwarded: &[&str]) -> RequestSource {
        let trusted: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        let headers = forwarded
            .iter()
            .map(|value| (axum::http::HeaderName::from_static(FORWARDED), value.parse().unwrap()));
        let proxies = TrustedProxies::new(&trusted).unwrap();
        proxies.source(peer.parse().unwrap(), &headers.collect())
    }

    fn client_address(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        source(trusted, peer, forwarded).address.to_string()
    }

    #[test]
    fn only_a_proxy_that_names_no_client_counts_for_none() {
        let trusted = ["10.0.0.0/8"];
        for (peer, forwarded, client) in [
            ("192.0.2.1", &[][..], Some("192.0.2.1")),
            ("10.0.0.7", &["203.0.113.9"], Some("203.0.113.9")),
            // A client in the network of the proxies.
            ("10.0.0.7", &["10.1.2.3"], Some("10.1.2.3")),
            ("10.0.0.7", &["10.1.2.3, 10.9.9.9"], Some("10.1.2.3")),
            ("10.0.0.7", &["10.1.2.3, unknown"], None),
            ("::ffff:10.0.0.7", &[], None),
        ] {
            let client: Option<IpAddr> = client.map(|client| client.parse().unwrap());
            let source = source(&trusted, peer, forwarded);
            assert_eq!(source.client, client.map(ClientNetwork::from), "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn forwarded_address_is_taken_only_from_trusted_proxies() {
        let trusted = ["10.0.0.0/8", "::1"];
        for (peer, forwarded, from) in [
            ("192.0.2.1", &["203.0.113.9"][..], "192.0.2.1"),
            ("10.0.0.7", &["203.0.113.9"], "203.0.113.9"),
            ("::ffff:10.0.0.7", &["203.0.113.9:4711"], "203.0.113.9"),
            ("10.0.0.7", &["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
            ("10.0.0.7", &["1.1.1.1, 203.0.113.9, 10.9.9.9"], "203.0.113.9"),
            ("10.0.0.7", &["1.1.1.1", "2001:db8::1"], "2001:db8::1"),
            ("::1", &["1.1.1.1, [2001:db8::1]:80"], "2001:db8::1"),
            ("10.0.0.7", &["1.1.1.1, unknown"], "10.0.0.7"),
            ("10.0.0.7", &[], "10.0.0.7"),
        ] {
            assert_eq!(client_address(&trusted, peer, forwarded), from, "{peer} {forwarded:?}");
        }
        assert_eq!(
            client_address(&[], "10.0.0.7", &["203.0.113.9"]),
            "10.0.0.7",
            "no proxy is trusted"
        );
        assert_eq!(client_address(&["0.0.0.0/0"], "10.0.0.7", &["203.0.113.9"]), "203.0.113.9");
        for wrong in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/x", "proxy.example.com"] {
            assert!(TrustedProxies::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
