//! Decides which connections are served: as many as the limits allow, and a few more for four-letter words, so that a health probe is
//! answered while clients have all other connections.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    addresses::{AddressLimit, AddressSlot},
    client_warnings::ClientWarnings,
    config::Config,
};

/// Connections over the limits that may send a four-letter word at the same time.
const WORD_SLOTS: usize = 128;
const WORD_SLOTS_PER_ADDRESS: usize = 8;

/// Time in which a connection over the limits has to send its word and accept the reply.
pub(super) const WORD_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Admission {
    clients: Slots,
    words: Slots,
}

/// Ends the connection's count when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    _of_all: OwnedSemaphorePermit,
    _of_address: AddressSlot,
}

/// A limit for connections that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LimitReached {
    #[error("too many connections")]
    All,
    #[error("too many connections of this address")]
    OfAddress,
}

impl Admission {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            clients: Slots::new(config.max_connections, config.max_connections_per_address),
            words: Slots::new(WORD_SLOTS, WORD_SLOTS_PER_ADDRESS),
        }
    }

    /// A slot for a connection. With a limit, the connection may send a four-letter word only.
    pub(super) fn admit(
        &self,
        address: IpAddr,
    ) -> Result<(ConnectionSlot, Option<LimitReached>), LimitReached> {
        match self.clients.try_take(address) {
            Ok(slot) => Ok((slot, None)),
            Err(limit) => match self.words.try_take(address) {
                Ok(slot) => Ok((slot, Some(limit))),
                Err(_) => Err(limit),
            },
        }
    }
}

impl LimitReached {
    pub(super) fn warn(self, peer: SocketAddr, config: &Config, warnings: &ClientWarnings) {
        match self {
            LimitReached::All => {
                if warnings.is_first(peer.ip(), "too many connections") {
                    tracing::warn!(%peer, max_connections = config.max_connections, "connection refused: too many connections");
                }
            }
            LimitReached::OfAddress => {
                if warnings.is_first(peer.ip(), "too many connections of this address") {
                    tracing::warn!(
                        %peer,
                        max_connections_per_address = config.max_connections_per_address,
                        "connection refused: too many connections of this address"
                    );
                }
            }
        }
    }
}

struct Slots {
    all: Arc<Semaphore>,
    per_address: AddressLimit,
}

impl Slots {
    fn new(max: usize, max_per_address: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            per_address: AddressLimit::new(max_per_address),
        }
    }

    fn try_take(&self, address: IpAddr) -> Result<ConnectionSlot, LimitReached> {
        let of_all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| LimitReached::All)?;
        let of_address = self.per_address.try_take(address).ok_or(LimitReached::OfAddress)?;
        Ok(ConnectionSlot { _of_all: of_all, _of_address: of_address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_over_its_limit_leaves_slots_for_words_of_others() {
        let config =
            Config { max_connections: 2, max_connections_per_address: 1, ..Config::in_memory() };
        let admission = Admission::new(&config);
        let (one, other, third): (IpAddr, IpAddr, IpAddr) =
            ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), [10, 0, 0, 3].into());
        let _clients = [one, other].map(|address| admission.admit(address).unwrap().0);

        let words: Vec<_> =
            (0..WORD_SLOTS_PER_ADDRESS).map(|_| admission.admit(one).unwrap()).collect();

        assert!(words.iter().all(|(_, limit)| *limit == Some(LimitReached::All)));
        assert_eq!(admission.admit(one).unwrap_err(), LimitReached::All);
        assert!(admission.admit(third).is_ok(), "another address");
        drop(words);
        assert!(admission.admit(one).is_ok(), "a word has been answered");
    }

    #[test]
    fn admission_accepts_every_limit() {
        let config = Config { max_connections: usize::MAX, ..Config::in_memory() };

        assert!(Admission::new(&config).admit([10, 0, 0, 1].into()).is_ok());
    }
}
