//! Node lifetimes, and ZooKeeper's encoding of them in the owner field.

use crate::wire::CreateMode;

const TTL_MARK: i64 = 0xff00_0000_0000_0000_u64 as i64;
const TTL_MAX: i64 = 0x0000_00ff_ffff_ffff;

/// How long a node lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until this session ends.
    Ephemeral { session: i64 },
    /// Until its last child is deleted; a container that never had a child stays.
    Container,
    /// Until it has no children and has not changed for this long.
    Ttl { millis: i64 },
}

impl Lifetime {
    /// The lifetime that `mode` requests in `session`; `None` if the mode is unknown or its time to live is out of range.
    pub fn from_mode(mode: CreateMode, session: i64) -> Option<Self> {
        match mode {
            CreateMode::Persistent | CreateMode::PersistentSequential => Some(Lifetime::Persistent),
            CreateMode::Ephemeral | CreateMode::EphemeralSequential => {
                Some(Lifetime::Ephemeral { session })
            }
            CreateMode::Container => Some(Lifetime::Container),
            CreateMode::PersistentTtl(millis) | CreateMode::PersistentSequentialTtl(millis) => {
                (1..=TTL_MAX).contains(&millis).then_some(Lifetime::Ttl { millis })
            }
            CreateMode::Unknown(..) => None,
        }
    }

    /// Encodes the lifetime as ZooKeeper does in the owner field.
    pub fn to_owner(self) -> i64 {
        match self {
            Lifetime::Persistent => 0,
            Lifetime::Ephemeral { session } => session,
            Lifetime::Container => i64::MIN,
            Lifetime::Ttl { millis } => TTL_MARK | millis,
        }
    }

    /// Decodes an owner field.
    pub fn from_owner(owner: i64) -> Self {
        match owner {
            0 => Lifetime::Persistent,
            i64::MIN => Lifetime::Container,
            owner if owner & TTL_MARK == TTL_MARK => Lifetime::Ttl { millis: owner & TTL_MAX },
            session => Lifetime::Ephemeral { session },
        }
    }

    /// The owning session of an ephemeral node.
    pub fn session(self) -> Option<i64> {
        if let Lifetime::Ephemeral { session } = self { Some(session) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetime_round_trips_through_the_owner_field() {
        for lifetime in [
            Lifetime::Persistent,
            Lifetime::Ephemeral { session: 0x0012_3456_789a_bcde },
            Lifetime::Container,
            Lifetime::Ttl { millis: 1 },
            Lifetime::Ttl { millis: TTL_MAX },
        ] {
            assert_eq!(Lifetime::from_owner(lifetime.to_owner()), lifetime);
        }
    }

    #[test]
    fn ttl_out_of_range_is_rejected() {
        for millis in [-1, 0, TTL_MAX + 1] {
            assert_eq!(Lifetime::from_mode(CreateMode::PersistentTtl(millis), 1), None);
        }
    }
}
