//! Access lists: who may do what, and what a list given by a client really means.

use std::net::IpAddr;

use crate::wire::{Acl, AuthId, Code, Perms};

/// Whether somebody who proved `ids` has one of `wanted` by this list. An empty list closes nothing, as in ZooKeeper.
pub fn is_allowed(list: &[Acl], wanted: Perms, ids: &[AuthId]) -> bool {
    list.is_empty()
        || list.iter().filter(|acl| acl.perms.intersects(wanted)).any(|acl| match &*acl.id.scheme {
            "world" => acl.id.id == "anyone",
            "ip" => ids.iter().any(|id| id.scheme == "ip" && ip_matches(&id.id, &acl.id.id)),
            scheme => ids.iter().any(|id| id.scheme == scheme && id.id == acl.id.id),
        })
}

/// The list a node gets when a client that proved `ids` asks for `asked`: `auth` stands for everything proved, repetitions go.
pub(super) fn resolve(asked: &[Acl], ids: &[AuthId]) -> Result<Vec<Acl>, Code> {
    let mut list: Vec<Acl> = Vec::with_capacity(asked.len());
    let mut add = |acl: Acl| {
        if !list.contains(&acl) {
            list.push(acl);
        }
    };
    for acl in asked {
        match &*acl.id.scheme {
            "world" if acl.id.id == "anyone" => add(acl.clone()),
            "auth" => {
                // An address is not proof of anything, so it does not count here.
                let mut proved = ids.iter().filter(|id| id.scheme != "ip").peekable();
                proved.peek().ok_or(Code::INVALID_ACL)?;
                proved.for_each(|id| add(Acl { perms: acl.perms, id: id.clone() }));
            }
            "digest" if acl.id.id.split(':').count() == 2 => add(acl.clone()),
            "ip" if parse_range(&acl.id.id).is_some() => add(acl.clone()),
            _ => return Err(Code::INVALID_ACL),
        }
    }
    if list.is_empty() { Err(Code::INVALID_ACL) } else { Ok(list) }
}

/// The list as somebody without ADMIN may see it: digests are hidden.
pub(super) fn masked(list: &[Acl]) -> Vec<Acl> {
    list.iter()
        .map(|acl| match acl.id.id.split_once(':') {
            Some((user, _)) if acl.id.scheme == "digest" => Acl {
                perms: acl.perms,
                id: AuthId { scheme: acl.id.scheme.clone(), id: format!("{user}:x") },
            },
            _ => acl.clone(),
        })
        .collect()
}

fn ip_matches(address: &str, range: &str) -> bool {
    let (Ok(address), Some((network, bits))) = (address.parse::<IpAddr>(), parse_range(range))
    else {
        return false;
    };
    let (address, network) = (octets(address), octets(network));
    address.len() == network.len()
        && (0..usize::from(bits))
            .all(|bit| (address[bit / 8] ^ network[bit / 8]) & (0x80 >> (bit % 8)) == 0)
}

fn parse_range(range: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match range.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (range, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(longest);
    (bits <= longest).then_some((address, bits))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(scheme: &str, id: &str) -> AuthId {
        AuthId { scheme: scheme.into(), id: id.into() }
    }

    fn list(scheme: &str, who: &str) -> Vec<Acl> {
        vec![Acl { perms: Perms::READ, id: id(scheme, who) }]
    }

    #[test]
    fn an_address_opens_only_its_range() {
        let here = [id("ip", "10.1.2.3")];

        assert!(is_allowed(&list("ip", "10.1.0.0/16"), Perms::READ, &here));
        assert!(is_allowed(&list("ip", "10.1.2.3"), Perms::READ, &here));
        assert!(!is_allowed(&list("ip", "10.2.0.0/16"), Perms::READ, &here));
        assert!(!is_allowed(&list("ip", "10.1.0.0/16"), Perms::WRITE, &here));
        assert!(!is_allowed(&list("ip", "::1"), Perms::READ, &here));
    }

    #[test]
    fn auth_means_everything_proved_and_an_address_proves_nothing() {
        let jane = AuthId::digest("jane:secret");
        let proved = [id("ip", "10.1.2.3"), jane.clone()];

        assert_eq!(
            resolve(&Acl::creator_all(), &proved).unwrap(),
            [Acl { perms: Perms::ALL, id: jane }]
        );
        assert_eq!(resolve(&Acl::creator_all(), &proved[..1]), Err(Code::INVALID_ACL));
    }

    #[test]
    fn a_list_that_means_nothing_is_refused() {
        for bad in [
            vec![],
            list("world", "me"),
            list("digest", "nocolon"),
            list("ip", "1.2.3.4/33"),
            list("x", "y"),
        ] {
            assert_eq!(resolve(&bad, &[]), Err(Code::INVALID_ACL), "{bad:?}");
        }
    }
}
