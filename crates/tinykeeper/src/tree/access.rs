//! Access lists: permission checks, and resolution of the list a client sends into the list a node stores.
//!
//! Every check compares the entries of a list with the ids of a caller, so both are limited, and a multi compares each list
//! once.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
};

use super::model::Caller;
use crate::wire::{Acl, AuthId, Code, Perms};

/// Number of entries that an access list may have. ZooKeeper has no limit but the size of a request, and takes quadratic time.
pub const MAX_ACL_ENTRIES: usize = 256;
/// Length of an id in an access list or of a connection, in bytes.
pub const MAX_ID_BYTES: usize = 255;

/// Number of comparisons up to which a check is cheaper than remembering its result.
const CHEAP_CHECK: usize = 32;

/// Whether a caller with `ids` has any permission of `wanted` by this list. An empty list allows everything, as in ZooKeeper.
pub fn is_allowed(list: &[Acl], wanted: Perms, ids: &[AuthId]) -> bool {
    list.is_empty()
        || list.iter().filter(|acl| acl.perms.intersects(wanted)).any(|acl| matches(acl, ids))
}

fn matches(acl: &Acl, ids: &[AuthId]) -> bool {
    match &*acl.id.scheme {
        "world" => acl.id.id == "anyone",
        "ip" => ids.iter().any(|id| id.scheme == "ip" && ip_matches(&id.id, &acl.id.id)),
        scheme => ids.iter().any(|id| id.scheme == scheme && id.id == acl.id.id),
    }
}

/// The permission checks of one request. They compare each long list with the ids of the caller once: a request of one
/// megabyte may name 50,000 times a node with a long list.
#[derive(Debug)]
pub(super) struct AccessChecks<'a> {
    pub(super) caller: Caller<'a>,
    /// Permissions by the address of a list. The list is kept, so that no other list gets its address.
    granted: HashMap<usize, (Arc<[Acl]>, Perms)>,
}

impl<'a> AccessChecks<'a> {
    pub(super) fn of(caller: Caller<'a>) -> Self {
        Self { caller, granted: HashMap::new() }
    }

    /// Refuses a caller that has no permission of `wanted` by this list.
    pub(super) fn check(&mut self, list: &Arc<[Acl]>, wanted: Perms) -> Result<(), Code> {
        let ids = self.caller.ids;
        let is_allowed = if list.len() * (ids.len() + 1) <= CHEAP_CHECK {
            is_allowed(list, wanted, ids)
        } else {
            let (_, granted) = self
                .granted
                .entry(Arc::as_ptr(list).addr())
                .or_insert_with(|| (Arc::clone(list), granted(list, ids)));
            granted.intersects(wanted)
        };
        if is_allowed { Ok(()) } else { Err(Code::NO_AUTH) }
    }
}

/// All permissions of a caller with `ids` by a list that is not empty.
fn granted(list: &[Acl], ids: &[AuthId]) -> Perms {
    let matching = list.iter().filter(|acl| matches(acl, ids));
    Perms(matching.fold(0, |perms, acl| perms | acl.perms.0))
}

/// Returns the list to store for a `requested` list: `auth` is replaced by every authenticated id of `ids`, duplicates are
/// dropped. A list or an id over its limit is refused.
pub(super) fn resolve(requested: &[Acl], ids: &[AuthId]) -> Result<Vec<Acl>, Code> {
    if requested.len() > MAX_ACL_ENTRIES {
        return Err(Code::INVALID_ACL);
    }
    let mut list: Vec<Acl> = Vec::with_capacity(requested.len());
    let mut known = HashSet::with_capacity(requested.len());
    let mut add = |perms: Perms, id| {
        if known.insert((perms, id)) {
            list.push(Acl { perms, id: AuthId::clone(id) });
        }
        if list.len() <= MAX_ACL_ENTRIES { Ok(()) } else { Err(Code::INVALID_ACL) }
    };
    for acl in requested {
        let id = &acl.id;
        match &*id.scheme {
            _ if id.id.len() > MAX_ID_BYTES => return Err(Code::INVALID_ACL),
            "world" if id.id == "anyone" => add(acl.perms, id)?,
            "auth" => {
                // An address is not authenticated, so it does not count here.
                let mut authenticated = ids.iter().filter(|id| id.scheme != "ip").peekable();
                authenticated.peek().ok_or(Code::INVALID_ACL)?;
                authenticated.try_for_each(|id| add(acl.perms, id))?;
            }
            "digest" if id.id.split(':').count() == 2 => add(acl.perms, id)?,
            "ip" if parse_range(&id.id).is_some() => add(acl.perms, id)?,
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

    /// This many different entries.
    fn entries(count: usize) -> Vec<Acl> {
        (0..count)
            .map(|number| Acl { perms: Perms::READ, id: id("digest", &format!("{number}:x")) })
            .collect()
    }

    #[test]
    fn list_over_the_limit_is_refused() {
        assert_eq!(resolve(&entries(MAX_ACL_ENTRIES), &[]).unwrap(), entries(MAX_ACL_ENTRIES));
        assert_eq!(resolve(&entries(MAX_ACL_ENTRIES + 1), &[]), Err(Code::INVALID_ACL));
        let long = |length: usize| list("digest", &format!("{}:x", "u".repeat(length - 2)));
        assert!(resolve(&long(MAX_ID_BYTES), &[]).is_ok());
        assert_eq!(resolve(&long(MAX_ID_BYTES + 1), &[]), Err(Code::INVALID_ACL));
    }

    #[test]
    fn list_that_exceeds_the_limit_by_its_auth_entries_is_refused() {
        let ids = [AuthId::digest("jane:secret"), AuthId::digest("joe:secret")];
        let auth = |count: usize| -> Vec<Acl> {
            (0..count).map(|perms| Acl { perms: Perms(perms as i32), id: id("auth", "") }).collect()
        };

        assert_eq!(resolve(&auth(MAX_ACL_ENTRIES / 2), &ids).unwrap().len(), MAX_ACL_ENTRIES);
        assert_eq!(resolve(&auth(MAX_ACL_ENTRIES / 2 + 1), &ids), Err(Code::INVALID_ACL));
    }

    #[test]
    fn duplicate_entries_are_stored_once_in_their_order() {
        let jane = AuthId::digest("jane:secret");
        let all = |id: &AuthId| Acl { perms: Perms::ALL, id: id.clone() };
        let mut requested = Acl::open();
        requested.extend([all(&jane), all(&jane)]);
        requested.extend(Acl::creator_all());
        requested.extend(Acl::open());

        let stored = resolve(&requested, std::slice::from_ref(&jane)).unwrap();

        assert_eq!(stored, [Acl::open(), vec![all(&jane)]].concat());
    }

    #[test]
    fn remembered_check_gives_the_same_result_as_a_first_one() {
        let jane = AuthId::digest("jane:secret");
        let ids = [id("ip", "10.1.2.3"), jane.clone()];
        let mut entries = entries(100);
        entries.push(Acl { perms: Perms(Perms::READ.0 | Perms::CREATE.0), id: jane });
        entries.push(Acl { perms: Perms::WRITE, id: id("ip", "10.0.0.0/8") });
        let lists: [Arc<[Acl]>; 3] = [entries.into(), Acl::open().into(), Arc::new([])];
        let mut checks = AccessChecks::of(Caller { session: 1, ids: &ids });

        for _ in 0..2 {
            for list in &lists {
                for wanted in (0..32).map(Perms) {
                    assert_eq!(
                        checks.check(list, wanted).is_ok(),
                        is_allowed(list, wanted, &ids),
                        "{wanted:?}"
                    );
                }
            }
        }
        assert_eq!(checks.granted.len(), 1, "only the long list is remembered");
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
