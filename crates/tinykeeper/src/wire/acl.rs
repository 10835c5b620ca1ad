//! Access lists and identities.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::BytesMut;
use sha1::{Digest, Sha1};

use super::jute::{DecodeError, Reader, Writer};

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Perms(pub i32);

impl Perms {
    /// Read data and list children.
    pub const READ: Perms = Perms(1);
    /// Change data.
    pub const WRITE: Perms = Perms(2);
    /// Create children.
    pub const CREATE: Perms = Perms(4);
    /// Delete children.
    pub const DELETE: Perms = Perms(8);
    /// Change the ACL.
    pub const ADMIN: Perms = Perms(16);
    pub const ALL: Perms = Perms(31);

    /// Whether any permission of `other` is in this set.
    pub fn intersects(self, other: Perms) -> bool {
        self.0 & other.0 != 0
    }
}

/// An identity under an authentication scheme: `world:anyone`, `digest:user:hash`, `ip:10.0.0.0/8`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuthId {
    /// `world`, `auth`, `digest` or `ip`.
    pub scheme: String,
    /// The identity, in the format of the scheme.
    pub id: String,
}

impl AuthId {
    /// The id that `user:password` authenticates under the `digest` scheme.
    pub fn digest(credentials: &str) -> Self {
        let user = credentials.split(':').next().unwrap_or_default();
        let hash = STANDARD.encode(Sha1::digest(credentials.as_bytes()));
        Self { scheme: "digest".into(), id: format!("{user}:{hash}") }
    }
}

// A digest id contains the hash of a password, which is enough for an offline attack, so it is not printed.
impl fmt::Debug for AuthId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.id.split_once(':') {
            Some((user, _)) if self.scheme == "digest" => format!("{user}:…"),
            _ => self.id.clone(),
        };
        write!(f, "{}:{shown}", self.scheme)
    }
}

/// One entry of an access list: permissions granted to an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Acl {
    pub perms: Perms,
    pub id: AuthId,
}

impl Acl {
    /// Grants everyone everything: ZooKeeper's `OPEN_ACL_UNSAFE`.
    pub fn open() -> Vec<Self> {
        vec![Self { perms: Perms::ALL, id: AuthId { scheme: "world".into(), id: "anyone".into() } }]
    }

    /// Grants everything to the creator's authenticated ids and nothing to others: ZooKeeper's `CREATOR_ALL_ACL`.
    pub fn creator_all() -> Vec<Self> {
        vec![Self { perms: Perms::ALL, id: AuthId { scheme: "auth".into(), id: String::new() } }]
    }

    pub fn decode_list(reader: &mut Reader) -> Result<Vec<Self>, DecodeError> {
        reader.vector("acl", |reader| {
            Ok(Self {
                perms: Perms(reader.i32("perms")?),
                id: AuthId { scheme: reader.string("scheme")?, id: reader.string("id")? },
            })
        })
    }

    pub fn encode_list(list: &[Self], out: &mut BytesMut) {
        out.put_int(list.len() as i32);
        for acl in list {
            out.put_int(acl.perms.0);
            out.put_string(&acl.id.scheme);
            out.put_string(&acl.id.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_equals_the_one_zookeeper_computes() {
        // Recorded from ZooKeeper's DigestAuthenticationProvider for super:secret.
        assert_eq!(AuthId::digest("super:secret").id, "super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
    }

    #[test]
    fn debug_output_hides_the_digest() {
        let shown = format!("{:?}", AuthId::digest("jane:secret"));

        assert_eq!(shown, "digest:jane:…");
    }
}
