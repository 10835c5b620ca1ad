//! Authentication of connections.

use std::net::IpAddr;

use crate::wire::AuthId;

/// The id that every connection has: its address.
pub(super) fn address_id(ip: IpAddr) -> AuthId {
    AuthId { scheme: "ip".into(), id: ip.to_canonical().to_string() }
}

/// The id that an `auth` packet proves; `None` if the scheme is unknown or the proof is not text.
pub(super) fn authenticate(scheme: &str, proof: &[u8], ip: IpAddr) -> Option<AuthId> {
    match scheme {
        "digest" => Some(AuthId::digest(std::str::from_utf8(proof).ok()?)),
        "ip" => Some(address_id(ip)),
        _ => None,
    }
}

/// The user name of an id, without the digest.
pub(super) fn user_name(id: &AuthId) -> &str {
    match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        _ => &id.id,
    }
}
