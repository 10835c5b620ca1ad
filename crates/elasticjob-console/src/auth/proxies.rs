//! Proxies in front of the console that are believed when they say where a request comes from.
//!
//! A proxy adds the address it was asked from to the end of `X-Forwarded-For`; what stands before that anybody could have sent. So the header is read from its
//! end, over the addresses of proxies that are believed, up to the first that is none.

use std::{net::IpAddr, str::FromStr};

use axum::http::HeaderMap;

const FORWARDED: &str = "x-forwarded-for";

/// Those that are believed.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Vec<Net>);

/// An address, or those that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Net {
    address: IpAddr,
    bits: u8,
}

impl Proxies {
    /// From addresses and nets (`10.0.0.0/8`), or which of them is none.
    pub fn new(texts: &[String]) -> Result<Self, String> {
        let net = |text: &String| {
            text.parse().map_err(|()| {
                format!(
                    "{text:?} is no address and no net; hint: for example 10.0.0.7 or 10.0.0.0/8"
                )
            })
        };
        texts.iter().map(net).collect::<Result<_, _>>().map(Self)
    }

    /// Where a request comes from that was sent by this peer.
    pub(super) fn origin(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut origin = peer.to_canonical();
        let said = headers.get_all(FORWARDED).iter().filter_map(|value| value.to_str().ok());
        let mut hops: Vec<&str> = said.flat_map(|value| value.split(',')).map(str::trim).collect();
        while self.trusts(origin)
            && let Some(hop) = hops.pop().and_then(address)
        {
            origin = hop;
        }
        origin
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.holds(address))
    }
}

/// An address, with or without a port.
fn address(hop: &str) -> Option<IpAddr> {
    let plain = hop.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let address = plain.unwrap_or(hop).parse().ok();
    let address = address.or_else(|| hop.parse::<std::net::SocketAddr>().ok().map(|it| it.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

impl FromStr for Net {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| ())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most { Err(()) } else { Ok(Self { address, bits }) }
    }
}

impl Net {
    fn holds(self, address: IpAddr) -> bool {
        // The same number of bits from the left.
        let alike = |one: u128, other: u128, width: u32| {
            let rest = width - u32::from(self.bits);
            one.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                alike(u32::from(one).into(), u32::from(other).into(), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => alike(one.into(), other.into(), 128),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let trusted: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        let headers = forwarded
            .iter()
            .map(|value| (axum::http::HeaderName::from_static(FORWARDED), value.parse().unwrap()));
        let proxies = Proxies::new(&trusted).unwrap();
        proxies.origin(peer.parse().unwrap(), &headers.collect()).to_string()
    }

    #[test]
    fn what_a_proxy_says_is_believed_and_what_its_client_says_is_not() {
        let ours = ["10.0.0.0/8", "::1"];
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
            assert_eq!(origin(&ours, peer, forwarded), from, "{peer} {forwarded:?}");
        }
        assert_eq!(origin(&[], "10.0.0.7", &["203.0.113.9"]), "10.0.0.7", "nobody is believed");
        assert_eq!(origin(&["0.0.0.0/0"], "10.0.0.7", &["203.0.113.9"]), "203.0.113.9");
        for wrong in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/x", "proxy.example.com"] {
            assert!(Proxies::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
