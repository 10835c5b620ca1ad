//! Determines from which moment on the leader must count the session timeout. The lease is based on that moment.
//!
//! The ensemble's leader ends sessions, with one timer per session. A request does not reset that timer by itself: the connected
//! server records the contact, and a follower reports its contacts to the leader only every half tick, while the leader
//! processes a write without resetting the timer. Measured on three ZooKeeper 3.8 servers: a client with a session timeout of
//! 6 s, idle since its last ping, wrote at *t* and got its reply; then its follower froze, and the leader ended the session at
//! *t* + 4.2 s.
//!
//! The lease therefore counts from a *contact*: a request with a reply. A contact counts once the leader must know of it: when
//! another request, sent at least the lag after that reply, has a reply that came from the leader. Reports and requests travel
//! from follower to leader in one stream, so the report arrived first. The leader takes part in opening and resuming a session,
//! so these contacts count without the lag.

use std::{collections::VecDeque, time::Duration};

/// Number of contacts to remember. They are at least an eighth of the lag apart, so this covers several times the lag.
const MAX_CONTACTS: usize = 64;

/// The contacts of one connection.
#[derive(Debug)]
pub(super) struct Contacts {
    /// Longest time a server may take to report a contact to its leader; `None` for a single server.
    lag: Option<Duration>,
    recent: VecDeque<Contact>,
}

#[derive(Debug, Clone, Copy)]
struct Contact {
    sent_at: Duration,
    /// A request sent at or after this time reaches the leader after the report of this contact.
    reported_by: Duration,
}

impl Contacts {
    /// Creates the contacts of a connection whose handshake was sent at `requested_at`.
    pub(super) fn new(requested_at: Duration, lag: Option<Duration>) -> Self {
        let handshake = Contact { sent_at: requested_at, reported_by: requested_at };
        Self { lag, recent: VecDeque::from([handshake]) }
    }

    /// Records a request sent at `sent_at` whose reply arrived at `received_at`.
    pub(super) fn record(&mut self, sent_at: Duration, received_at: Duration) {
        let Some(lag) = self.lag else { return };
        if self.recent.back().is_some_and(|last| sent_at < last.sent_at + lag / 8) {
            return;
        }
        if self.recent.len() == MAX_CONTACTS {
            self.recent.pop_front();
        }
        self.recent.push_back(Contact { sent_at, reported_by: received_at + lag });
    }

    /// Called when the leader has replied to a request sent at `sent_at`. Returns the newest known moment from which the leader
    /// must count the session timeout.
    pub(super) fn confirm(&mut self, sent_at: Duration) -> Option<Duration> {
        if self.lag.is_none() {
            return Some(sent_at);
        }
        while self.recent.get(1).is_some_and(|next| next.reported_by <= sent_at) {
            self.recent.pop_front();
        }
        let newest = self.recent.front().filter(|contact| contact.reported_by <= sent_at);
        newest.map(|contact| contact.sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn contact_counts_once_a_later_request_reached_the_leader() {
        let mut contacts = Contacts::new(at(100), Some(at(8)));

        contacts.record(at(110), at(111));
        assert_eq!(contacts.confirm(at(118)), Some(at(100)), "the report may not have arrived");
        assert_eq!(contacts.confirm(at(119)), Some(at(110)));
        assert_eq!(contacts.confirm(at(200)), Some(at(110)), "nothing newer is known");
    }

    #[test]
    fn contact_does_not_count_after_exactly_half_a_tick() {
        let half_a_tick = at(1);
        let lag = crate::client::Config::new(["localhost:2181"]).touch_lag;
        let mut contacts = Contacts::new(at(0), lag);
        contacts.record(at(10), at(10));

        assert_eq!(contacts.confirm(at(10) + half_a_tick), Some(at(0)), "the leader may be late");
        assert_eq!(contacts.confirm(at(10) + half_a_tick * 5 / 4), Some(at(10)));
    }

    #[test]
    fn slow_server_still_renews_the_lease() {
        let mut contacts = Contacts::new(at(0), Some(at(8)));
        let latency = 20;

        // A write every second, each with its reply twenty seconds later.
        for sent in 1..100 {
            contacts.confirm(at(sent));
            contacts.record(at(sent), at(sent + latency));
        }

        assert_eq!(contacts.confirm(at(100)), Some(at(100 - latency - 8)));
    }

    #[test]
    fn number_of_stored_contacts_is_bounded() {
        let mut contacts = Contacts::new(at(0), Some(at(8)));

        for sent in 1..10_000 {
            contacts.record(at(sent), at(sent));
        }

        assert_eq!(contacts.recent.len(), MAX_CONTACTS);
        assert_eq!(contacts.confirm(at(9_999)), Some(at(9_991)));
    }

    #[test]
    fn without_a_lag_a_request_counts_at_once() {
        let mut contacts = Contacts::new(at(100), None);

        assert_eq!(contacts.confirm(at(110)), Some(at(110)));
    }
}
