//! Access lists: permission checks, and resolution of the list a client sends into the list a node stores.

use std::net::IpAddr;

use crate::wire::{Acl, AuthId, Code, Perms};

/// Whether a caller with `ids` has any permission of `wanted` by this list. An empty list allows everything, as in ZooKeeper.
pub fn is_allowed(list: &[Acl], wanted: Perms, ids: &[AuthId]) -> bool {
    list.is_empty()
        || list.iter().filter(|acl| acl.perms.intersects(wanted)).any(|acl| match &*acl.id.scheme {
            "world" => acl.id.id == "anyone",
            "ip" => ids.iter().any(|id| id.scheme == "ip" && ip_matches(&id.id, &acl.id.id)),
            scheme => ids.iter().any(|id| id.scheme == scheme && id.id == acl.id.id),
        })
}

/// Returns the list to store for a `requested` list: `auth` is replaced by every authenticated id of `ids`, duplicates are
/// dropped.
pub(super) fn resolve(requested: &[Acl], ids: &[AuthId]) -> Result<Vec<Acl>, Code> {
    let mut list: Vec<Acl> = Vec::with_capacity(requested.len());
    let mut add = |acl: Acl| {
        if !list.contains(&acl) {
            list.push(acl);
        }
    };
    for acl in requested {
        match &*acl.id.scheme {
            "world" if acl.id.id == "anyone" => add(acl.clone()),
            "auth" => {
                // An address is not authenticated, so it does not count here.
                let mut authenticated = ids.iter().filter(|id| id.scheme != "ip").peekable();
                authenticated.peek().ok_or(Code::INVALID_ACL)?;
                authenticated.for_each(|id| add(Acl { perms: acl.perms, id: id.clone() }));
            }
            "digest" if acl.id.id.split(':').count() == 2 => add(acl.clone()),
            "ip" if parse_range(&acl.id.id).is_some() => add(acl.clone()),
            _ => return Err(Code::INVALID_ACL),
        }
    }
    if list.is_empty() { Err(Code::INVALID_ACL) } else { Ok(list) }
}

/// The list with its digests hidden, as shown to a caller without ADMIN.
pub(super) fn mask_digests(list: &[Acl]) -> Vec<Acl> {
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

    fn list(scheme: &str, user: &str) -> Vec<Acl> {
        vec![Acl { perms: Perms::READ, id: id(scheme, user) }]
    }

    #[test]
    fn ip_entry_allows_only_its_range() {
        let caller = [id("ip", "10.1.2.3")];

        assert!(is_allowed(&list("ip", "10.1.0.0/16"), Perms::READ, &caller));
        assert!(is_allowed(&list("ip", "10.1.2.3"), Perms::READ, &caller));
        assert!(!is_allowed(&list("ip", "10.2.0.0/16"), Perms::READ, &caller));
        assert!(!is_allowed(&list("ip", "10.1.0.0/16"), Perms::WRITE, &caller));
        assert!(!is_allowed(&list("ip", "::1"), Perms::READ, &caller));
    }

    #[test]
    fn auth_entry_resolves_to_authenticated_ids_without_the_address() {
        let jane = AuthId::digest("jane:secret");
        let ids = [id("ip", "10.1.2.3"), jane.clone()];

        assert_eq!(
            resolve(&Acl::creator_all(), &ids).unwrap(),
            [Acl { perms: Perms::ALL, id: jane }]
        );
        assert_eq!(resolve(&Acl::creator_all(), &ids[..1]), Err(Code::INVALID_ACL));
    }

    #[test]
    fn invalid_list_is_refused() {
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
