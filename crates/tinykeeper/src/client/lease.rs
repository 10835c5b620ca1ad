//! From when the servers must count our session's timeout: what a lease may be built on.
//!
//! The ensemble's leader ends sessions, by a timer for each. A request does not reach that timer by itself: the server we are
//! connected to notes that it heard of us, and a follower tells the leader so only every half tick, while the leader looks at
//! a write without touching the timer. Measured on three ZooKeeper 3.8 servers: a session of 6 s, idle since its last ping,
//! wrote at *t*, was answered, and its follower froze: the leader ended the session at *t* + 4.2 s.
//!
//! So the lease counts from a *contact*: anything we sent that was answered. It counts once the leader must have heard of it:
//! when another request, sent at least the lag after that answer, came back from the leader. Notes and requests travel from
//! follower to leader in one stream, so the note arrived first. Opening a session and taking it up again are contacts the
//! leader has part in, so they count without the lag.

use std::{collections::VecDeque, time::Duration};

/// How many contacts to remember. They are kept an eighth of the lag apart, so this reaches far past it.
const KEPT: usize = 64;

/// The contacts of one connection.
#[derive(Debug)]
pub(super) struct Contacts {
    /// How long a server may take to tell its leader; `None` when there is nobody to tell.
    lag: Option<Duration>,
    recent: VecDeque<Contact>,
}

#[derive(Debug, Clone, Copy)]
struct Contact {
    sent_at: Duration,
    /// What is sent from then on reaches the leader after the news of this contact.
    told_by: Duration,
}

impl Contacts {
    /// The connection took up its session by a handshake sent at `asked_at`.
    pub(super) fn new(asked_at: Duration, lag: Option<Duration>) -> Self {
        let handshake = Contact { sent_at: asked_at, told_by: asked_at };
        Self { lag, recent: VecDeque::from([handshake]) }
    }

    /// Something sent at `sent_at` was answered, the answer arrived at `heard_at`.
    pub(super) fn heard(&mut self, sent_at: Duration, heard_at: Duration) {
        let Some(lag) = self.lag else { return };
        if self.recent.back().is_some_and(|last| sent_at < last.sent_at + lag / 8) {
            return;
        }
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(Contact { sent_at, told_by: heard_at + lag });
    }

    /// The leader answered what was sent at `sent_at`. The newest moment from which it must count our timeout, if we know one.
    pub(super) fn proven(&mut self, sent_at: Duration) -> Option<Duration> {
        if self.lag.is_none() {
            return Some(sent_at);
        }
        while self.recent.get(1).is_some_and(|next| next.told_by <= sent_at) {
            self.recent.pop_front();
        }
        self.recent.front().filter(|contact| contact.told_by <= sent_at).map(|one| one.sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_request_counts_once_another_followed_it_to_the_leader() {
        let mut contacts = Contacts::new(at(100), Some(at(8)));

        contacts.heard(at(110), at(111));
        assert_eq!(contacts.proven(at(118)), Some(at(100)), "the note may not have arrived");
        assert_eq!(contacts.proven(at(119)), Some(at(110)));
        assert_eq!(contacts.proven(at(200)), Some(at(110)), "nothing newer is known");
    }

    #[test]
    fn a_slow_server_still_renews() {
        let mut contacts = Contacts::new(at(0), Some(at(8)));
        let latency = 20;

        // A write every second, each answered twenty seconds later.
        for sent in 1..100 {
            contacts.proven(at(sent));
            contacts.heard(at(sent), at(sent + latency));
        }

        assert_eq!(contacts.proven(at(100)), Some(at(100 - latency - 8)));
    }

    #[test]
    fn contacts_without_end_take_no_more_room() {
        let mut contacts = Contacts::new(at(0), Some(at(8)));

        for sent in 1..10_000 {
            contacts.heard(at(sent), at(sent));
        }

        assert_eq!(contacts.recent.len(), KEPT);
        assert_eq!(contacts.proven(at(9_999)), Some(at(9_991)));
    }

    #[test]
    fn with_nobody_to_tell_a_request_counts_at_once() {
        let mut contacts = Contacts::new(at(100), None);

        assert_eq!(contacts.proven(at(110)), Some(at(110)));
    }
}
