//! What an `auth` packet proves.

use std::net::IpAddr;

use crate::wire::AuthId;

/// The id that everybody has: their address.
pub(super) fn address(ip: IpAddr) -> AuthId {
    AuthId { scheme: "ip".into(), id: ip.to_canonical().to_string() }
}

/// The id this packet proves; `None` if the scheme is unknown or the proof no text.
pub(super) fn prove(scheme: &str, proof: &[u8], ip: IpAddr) -> Option<AuthId> {
    match scheme {
        "digest" => Some(AuthId::digest(std::str::from_utf8(proof).ok()?)),
        "ip" => Some(address(ip)),
        _ => None,
    }
}

/// The name to show for an id: never a digest.
pub(super) fn user(id: &AuthId) -> &str {
    match &*id.scheme {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        _ => &id.id,
    }
}
