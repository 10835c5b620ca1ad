//! Limits the responses that last: event streams and exports.

use super::{
    client_network::ClientNetwork,
    limits::Limits,
    problem::{Code, Problem},
    quota::{Quota, QuotaExcess, QuotaSlot},
};

/// Seconds after which a refused client should try again.
const RETRY_AFTER: u64 = 10;

/// Open streams, by user and by client address.
#[derive(Debug)]
pub(crate) struct Streams {
    limits: Limits,
    by_user: Quota<String>,
    by_network: Quota<ClientNetwork>,
}

/// An open stream; to be kept as long as it lasts.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    _of_user: QuotaSlot<String>,
    _of_network: QuotaSlot<ClientNetwork>,
}

impl Streams {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            by_user: Quota::new(limits.streams, limits.streams_per_user),
            by_network: Quota::new(limits.streams, limits.streams_per_address),
            limits,
        }
    }

    /// `client` is `None` if its address is not known behind a proxy.
    pub(crate) fn open(
        &self,
        username: &str,
        client: Option<ClientNetwork>,
    ) -> Result<StreamSlot, Problem> {
        let of_user =
            self.by_user.take(Some(username.to_owned())).map_err(|excess| match excess {
                QuotaExcess::Key => {
                    refusal("this user", "streamsPerUser", self.limits.streams_per_user)
                }
                QuotaExcess::All => refusal("the console", "streams", self.limits.streams),
            })?;
        let of_network = self.by_network.take(client).map_err(|_| {
            refusal("this address", "streamsPerAddress", self.limits.streams_per_address)
        })?;
        Ok(StreamSlot { _of_user: of_user, _of_network: of_network })
    }
}

fn refusal(of: &str, setting: &str, limit: usize) -> Problem {
    Problem::new(Code::TooManyRequests, format!("{of} has {limit} open streams"))
        .with_hint(format!("close some, or raise limits.{setting} in the configuration file"))
        .with_retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn stream_is_refused_beyond_the_limit_of_user_address_or_console() {
        let limits =
            Limits { streams: 4, streams_per_address: 3, streams_per_user: 2, ..Limits::default() };
        let streams = Streams::new(limits);
        let [here, there] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last]).into()));
        let refused = |name, client| streams.open(name, client).unwrap_err().hint.unwrap();

        let _ann = [streams.open("ann", here).unwrap(), streams.open("ann", here).unwrap()];
        assert!(refused("ann", there).contains("limits.streamsPerUser "));
        let bob = streams.open("bob", here).unwrap();
        assert!(refused("carol", here).contains("limits.streamsPerAddress "));
        let _carol = streams.open("carol", None).unwrap();
        assert!(refused("bob", there).contains("limits.streams "));

        drop(bob);
        streams.open("carol", here).unwrap();
    }
}
