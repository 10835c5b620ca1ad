//! How long a node lives, and how ZooKeeper packs that into one number.

use crate::wire::CreateMode;

const TTL_MARK: i64 = 0xff00_0000_0000_0000_u64 as i64;
const TTL_MAX: i64 = 0x0000_00ff_ffff_ffff;

/// How long a node lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until somebody deletes it.
    Persistent,
    /// As long as this session.
    Ephemeral {
        /// The session.
        session: i64,
    },
    /// Until it has had children and has none any more.
    Container,
    /// Until it has no children and was not changed for this long.
    Ttl {
        /// In milliseconds.
        millis: i64,
    },
}

impl Lifetime {
    /// What `mode` asks for in `session`; `None` if the mode is not one, or its time to live is out of range.
    pub fn of(mode: CreateMode, session: i64) -> Option<Self> {
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

    /// As one number, the way ZooKeeper keeps it.
    pub fn to_owner(self) -> i64 {
        match self {
            Lifetime::Persistent => 0,
            Lifetime::Ephemeral { session } => session,
            Lifetime::Container => i64::MIN,
            Lifetime::Ttl { millis } => TTL_MARK | millis,
        }
    }

    /// From that number.
    pub fn from_owner(owner: i64) -> Self {
        match owner {
            0 => Lifetime::Persistent,
            i64::MIN => Lifetime::Container,
            owner if owner & TTL_MARK == TTL_MARK => Lifetime::Ttl { millis: owner & TTL_MAX },
            session => Lifetime::Ephemeral { session },
        }
    }

    /// The session it lives with, if it lives with one.
    pub fn session(self) -> Option<i64> {
        if let Lifetime::Ephemeral { session } = self { Some(session) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_survives_the_protocols_packing() {
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
    fn a_time_to_live_out_of_range_is_no_lifetime() {
        for millis in [-1, 0, TTL_MAX + 1] {
            assert_eq!(Lifetime::of(CreateMode::PersistentTtl(millis), 1), None);
        }
    }
}
