//! Authentication of connections.

use std::net::IpAddr;

use crate::{tree::MAX_ID_BYTES, wire::AuthId};

/// Number of ids that a connection may have, its address included. Every permission check compares them with a list.
pub(super) const MAX_IDS: usize = 16;

/// The id that every connection has: its address.
pub(super) fn address_id(ip: IpAddr) -> AuthId {
    AuthId { scheme: "ip".into(), id: ip.to_canonical().to_string() }
}

/// The id that an `auth` packet proves; `None` if the scheme is unknown, or the proof is too long or not text.
pub(super) fn authenticate(scheme: &str, proof: &[u8], ip: IpAddr) -> Option<AuthId> {
    match scheme {
        "digest" => {
            let id = AuthId::digest(std::str::from_utf8(proof).ok()?);
            (id.id.len() <= MAX_ID_BYTES).then_some(id)
        }
        "ip" => Some(address_id(ip)),
        _ => None,
    }
}

/// Adds an id to those of a connection; `false` if it has too many.
pub(super) fn add_id(ids: &mut Vec<AuthId>, id: AuthId) -> bool {
    if ids.contains(&id) {
        return true;
    }
    if ids.len() >= MAX_IDS {
        return false;
    }
    ids.push(id);
    true
}

/// The user name of an id, without the digest.
pub(super) fn user_name(id: &AuthId) -> &str {
    match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        _ => &id.id,
    }
}
