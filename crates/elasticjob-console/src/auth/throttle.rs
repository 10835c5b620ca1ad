//! Limits password attempts, and logins at a provider.
//!
//! An attempt with a password passes three lanes, and waits for the slowest of them:
//!
//! | lane | free failures | then each waits twice as long, up to | a failure is forgiven after |
//! |---|---|---|---|
//! | a name from an address | 5 | 5 min | 15 min |
//! | an address, whatever the names | 50 | 10 s | 1 min |
//! | a name, whatever the addresses | 20 | 10 s | 1 min |
//!
//! The second lane slows down guessing many names, the third one guessing from many addresses. They must not lock a user out whom a stranger
//! shares the address or the name with, so their wait is short, and [familiar](super::familiar) addresses skip them. In the third lane attempts
//! take [turns](super::turns).
//!
//! A trusted proxy that names no client takes only the third lane: its address may stand for all clients.
//!
//! A login at a provider passes a lane of its address: a client that began one could otherwise send any number of guessed codes to the provider.
//!
//! Names and addresses are kept as hashes, and an IPv6 address counts as its /64 network, which is what one client gets.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;
use ring::digest::{Context, SHA256};

use super::{
    lane::{Key, Lane, Rule},
    turns::{Asking, Turns},
};
use crate::http::client_network::ClientNetwork;

const NAME_AND_ADDRESS: Rule =
    Rule { free: 5, max_wait: Duration::from_mins(5), forgiven_after: Duration::from_mins(15) };
/// Users who share an address should not wait because of one user's mistakes.
const ADDRESS: Rule =
    Rule { free: 50, max_wait: Duration::from_secs(10), forgiven_after: Duration::from_mins(1) };
const NAME: Rule =
    Rule { free: 20, max_wait: Duration::from_secs(10), forgiven_after: Duration::from_mins(1) };
const PROVIDER: Rule =
    Rule { free: 10, max_wait: Duration::from_secs(10), forgiven_after: Duration::from_mins(1) };

/// Failed attempts.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<Lanes>);

#[derive(Debug)]
struct Lanes {
    name_and_address: Lane,
    address: Lane,
    name: Lane,
    turns: Turns,
    provider: Lane,
}

/// The keys of an attempt in the lanes that it takes.
#[derive(Debug, Clone, Copy, Default)]
struct Keys {
    name_and_address: Option<Key>,
    address: Option<Key>,
    name: Option<Key>,
    provider: Option<Key>,
}

/// An attempt that was admitted. It counts as failed until it [succeeds](Self::succeed), so that concurrent attempts cannot bypass the limit.
/// Dropped before the password or code [is checked](Self::begin_check), it is withdrawn: a client that hangs up has learned nothing.
#[derive(Debug)]
pub(crate) struct Attempt<'t> {
    throttle: &'t Throttle,
    keys: Keys,
    at: Monotonic,
    /// When each lane had its attempt before this one.
    before: [Option<Monotonic>; 4],
    is_withdrawn_on_drop: bool,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Mutex::new(Lanes {
            name_and_address: Lane::new(NAME_AND_ADDRESS),
            address: Lane::new(ADDRESS),
            name: Lane::new(NAME),
            turns: Turns::default(),
            provider: Lane::new(PROVIDER),
        }))
    }
}

impl Throttle {
    /// Admits an attempt with a password and counts it, or returns how long to wait. `client` is `None` if it is not known behind a proxy.
    pub(crate) fn begin(
        &self,
        username: &str,
        client: Option<ClientNetwork>,
        is_familiar: bool,
        now: Monotonic,
    ) -> Result<Attempt<'_>, Duration> {
        let name = username.as_bytes();
        let network = client.map(ClientNetwork::to_bytes);
        let keys = Keys {
            name_and_address: network.as_ref().map(|network| key(&[name, network])),
            address: network.as_ref().filter(|_| !is_familiar).map(|network| key(&[network])),
            name: (!is_familiar).then(|| key(&[name])),
            provider: None,
        };
        let mut lanes = self.lock();
        lanes.check_own(&keys, now)?;
        if let Some(key_of_name) = keys.name
            && let Some(opens_at) = lanes.name.opens_at(&key_of_name, now)
        {
            let site = client.map(|client| client.site().to_bytes());
            let asking = Asking {
                name: key_of_name,
                site: site.as_ref().map(|site| key(&[site])),
                name_and_site: key(&[name, site.as_deref().unwrap_or_default()]),
            };
            lanes.turns.ask(&asking, opens_at, now)?;
        }
        Ok(self.admit(lanes, keys, now))
    }

    /// Admits a login at a provider and counts it, or returns how long to wait.
    pub(crate) fn begin_at_provider(
        &self,
        client: Option<ClientNetwork>,
        now: Monotonic,
    ) -> Result<Attempt<'_>, Duration> {
        let provider = client.map(|client| key(&[&client.to_bytes()]));
        let keys = Keys { provider, ..Keys::default() };
        let lanes = self.lock();
        lanes.check_own(&keys, now)?;
        Ok(self.admit(lanes, keys, now))
    }

    fn admit(&self, mut lanes: MutexGuard<'_, Lanes>, keys: Keys, now: Monotonic) -> Attempt<'_> {
        let before = lanes.each(&keys).map(|(lane, key)| key.and_then(|key| lane.add(key, now)));
        Attempt { throttle: self, keys, at: now, before, is_withdrawn_on_drop: true }
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // No code panics while holding this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// The password or code is being checked: from now on the attempt counts, even if the client hangs up.
    pub(crate) fn begin_check(&mut self) {
        self.is_withdrawn_on_drop = false;
    }

    /// The password or code was right. Failures of this name from this address are forgotten; others still count, so that an attacker with an
    /// account of its own cannot clear them.
    pub(crate) fn succeed(mut self) {
        self.is_withdrawn_on_drop = false;
        self.withdraw();
        if let Some(key) = &self.keys.name_and_address {
            self.throttle.lock().name_and_address.forgive(key);
        }
    }

    fn withdraw(&self) {
        let mut lanes = self.throttle.lock();
        for ((lane, key), before) in lanes.each(&self.keys).into_iter().zip(self.before) {
            if let Some(key) = key {
                lane.withdraw(&key, self.at, before);
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_withdrawn_on_drop {
            self.withdraw();
        }
    }
}

fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut key = Key::default();
    key.copy_from_slice(&hash.finish().as_ref()[..16]);
    key
}

impl Lanes {
    /// Checks the lanes of the client's address, in which there are no turns.
    fn check_own(&self, keys: &Keys, now: Monotonic) -> Result<(), Duration> {
        let lanes = [
            (&self.name_and_address, keys.name_and_address),
            (&self.address, keys.address),
            (&self.provider, keys.provider),
        ];
        let waits = lanes.iter().filter_map(|(lane, key)| Some(lane.wait(&(*key)?, now)));
        match waits.max() {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => Ok(()),
        }
    }

    /// Every lane, with the key of an attempt that takes it.
    fn each(&mut self, keys: &Keys) -> [(&mut Lane, Option<Key>); 4] {
        [
            (&mut self.name_and_address, keys.name_and_address),
            (&mut self.address, keys.address),
            (&mut self.name, keys.name),
            (&mut self.provider, keys.provider),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::HashSet, net::IpAddr};

    use super::{super::lane::MAX_ENTRIES, *};

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from(number))
    }

    /// A throttle with the addresses from which users logged in.
    #[derive(Default)]
    struct Logins {
        throttle: Throttle,
        familiar: RefCell<HashSet<(String, IpAddr)>>,
    }

    impl Logins {
        fn begin(
            &self,
            name: &str,
            address: IpAddr,
            now: Monotonic,
        ) -> Result<Attempt<'_>, Duration> {
            let is_familiar = self.familiar.borrow().contains(&(name.to_owned(), address));
            self.throttle.begin(name, Some(address.into()), is_familiar, now)
        }

        /// A wrong password, or how long to wait.
        fn fail(&self, name: &str, address: IpAddr, now: Monotonic) -> Result<(), Duration> {
            self.begin(name, address, now).map(|mut attempt| attempt.begin_check())
        }

        fn log_in(&self, name: &str, address: IpAddr, now: Monotonic) -> bool {
            let is_admitted = self.begin(name, address, now).map(Attempt::succeed).is_ok();
            if is_admitted {
                self.familiar.borrow_mut().insert((name.to_owned(), address));
            }
            is_admitted
        }

        fn entries(&self) -> [usize; 3] {
            let lanes = self.throttle.lock();
            [&lanes.name_and_address, &lanes.address, &lanes.name].map(Lane::len)
        }
    }

    #[test]
    fn wait_doubles_after_five_failures_until_a_success() {
        let throttle = Logins::default();
        let fail = |now| throttle.fail("ann", ip(1), now);
        for _ in 0..5 {
            fail(at(0)).unwrap();
        }

        assert_eq!(fail(at(0)), Err(Duration::from_secs(1)));
        fail(at(1)).unwrap();
        assert_eq!(fail(at(2)), Err(Duration::from_secs(1)));
        fail(at(3)).unwrap();
        assert_eq!(fail(at(3)), Err(Duration::from_secs(4)));
        assert_eq!(throttle.fail("bob", ip(1), at(3)), Ok(()), "another name");
        assert_eq!(throttle.fail("ann", ip(2), at(3)), Ok(()), "another address");

        assert!(throttle.log_in("ann", ip(1), at(7)));
        for _ in 0..5 {
            fail(at(7)).unwrap();
        }
        assert_eq!(fail(at(7)), Err(Duration::from_secs(1)));
    }

    #[test]
    fn wait_is_capped_and_failures_are_forgiven() {
        let throttle = Logins::default();
        for attempt in 0..100 {
            throttle.fail("ann", ip(1), at(attempt * 300)).unwrap();
        }

        let end = 99 * 300;
        assert_eq!(throttle.fail("ann", ip(1), at(end)), Err(Duration::from_mins(5)));
        let forgiven = at(end + 21 * 15 * 60);
        for _ in 0..5 {
            throttle.fail("ann", ip(1), forgiven).unwrap();
        }
    }

    #[test]
    fn address_that_tries_many_names_has_to_wait() {
        let throttle = Logins::default();
        for name in 0..50 {
            throttle.fail(&format!("user {name}"), ip(1), at(0)).unwrap();
        }

        assert_eq!(throttle.fail("ann", ip(1), at(0)), Err(Duration::from_secs(1)));
        assert!(throttle.log_in("eve", ip(1), at(1)), "an account of the attacker");
        throttle.fail("ann", ip(1), at(1)).unwrap();
        assert_eq!(throttle.fail("ann", ip(1), at(1)), Err(Duration::from_secs(2)), "51 failures");
    }

    #[test]
    fn stranger_behind_the_same_address_locks_no_user_out() {
        let throttle = Logins::default();
        assert!(throttle.log_in("ann", ip(1), at(0)));
        let end = 3_600;
        for second in 0..=end {
            let _ = throttle.fail(&format!("user {second}"), ip(1), at(second));
        }

        assert!(throttle.log_in("ann", ip(1), at(end)), "a familiar address skips the lane");
        let wait = throttle.fail("bob", ip(1), at(end)).unwrap_err();
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        assert!(throttle.log_in("bob", ip(1), at(end) + wait), "another user gets a turn");
    }

    #[test]
    fn unknown_clients_behind_a_proxy_do_not_slow_each_other() {
        let throttle = Logins::default();
        let begin = |name: &str| throttle.throttle.begin(name, None, false, at(0));
        let fail = |name: &str| begin(name).map(|mut attempt| attempt.begin_check());
        for name in 0..1_000 {
            fail(&format!("user {name}")).unwrap();
        }
        for _ in 0..20 {
            fail("ann").unwrap();
        }

        assert_eq!(fail("ann"), Err(Duration::from_secs(1)), "the name's own lane");
        begin("bob").unwrap().succeed();
        assert_eq!(throttle.entries(), [0, 0, 1_001]);
    }

    #[test]
    fn guesses_from_many_addresses_slow_the_account_for_seconds_only() {
        let throttle = Logins::default();
        assert!(throttle.log_in("admin", ip(7), at(0)));
        let mut checked = 0;
        for second in 0..3600 {
            for number in 0..20 {
                let address = ip(1_000 + second * 20 + number);
                let guess = throttle.fail("admin", address, at(u64::from(second)));
                checked += u32::from(guess.is_ok());
            }
        }

        // 20 at once, a few in the next seconds, and then one in ten seconds, or fifteen if the first in the queue does not come back.
        assert!((230..=385).contains(&checked), "{checked} of 72,000");
        assert!(throttle.log_in("admin", ip(7), at(3600)), "a familiar address skips the lane");
        // If the turn is free, another guess takes it.
        let _ = throttle.fail("admin", ip(99), at(3600));
        let wait = throttle.fail("admin", ip(8), at(3600)).unwrap_err();
        assert!(wait <= Duration::from_secs(15), "{wait:?}");
        assert!(throttle.log_in("admin", ip(8), at(3600) + wait), "a new address gets its turn");
        assert!(throttle.log_in("ann", ip(9), at(3600)), "other accounts are not slowed");
    }

    #[test]
    fn familiar_address_still_has_its_own_limit() {
        let throttle = Logins::default();
        assert!(throttle.log_in("admin", ip(7), at(0)));
        for _ in 0..5 {
            throttle.fail("admin", ip(7), at(0)).unwrap();
        }

        assert_eq!(throttle.fail("admin", ip(7), at(0)), Err(Duration::from_secs(1)));
    }

    /// How long the owner of an account takes to log in from an address that is not familiar. Guesses start two minutes before.
    fn seconds_to_log_in(guess: impl Fn(&Logins, u64)) -> u64 {
        const BEGIN: u64 = 120;
        let throttle = Logins::default();
        let mut comes_at = at(BEGIN);
        for second in 0..BEGIN + 600 {
            guess(&throttle, second);
            if at(second) < comes_at {
                continue;
            }
            match throttle.begin("admin", ip(1), at(second)) {
                Ok(attempt) => {
                    attempt.succeed();
                    return second - BEGIN;
                }
                // A person needs a moment to try again.
                Err(wait) => comes_at = at(second) + wait + Duration::from_secs(2),
            }
        }
        panic!("the owner gets no turn in ten minutes")
    }

    #[test]
    fn owner_at_a_new_address_gets_a_turn_between_constant_guesses() {
        let seconds = seconds_to_log_in(|throttle, second| {
            for number in 0..300 {
                let _ = throttle.fail("admin", ip(1_000 + number), at(second));
            }
        });
        assert!(seconds <= 30, "{seconds} s");

        // From one IPv6 network of a customer, and as patient as the owner.
        let comes_at = RefCell::new(vec![at(0); 200]);
        let seconds = seconds_to_log_in(|throttle, second| {
            for (number, comes_at) in comes_at.borrow_mut().iter_mut().enumerate() {
                let address = format!("2001:db8:1:{number:x}::1").parse().unwrap();
                if at(second) >= *comes_at
                    && let Err(wait) = throttle.fail("admin", address, at(second))
                {
                    *comes_at = at(second) + wait;
                }
            }
        });
        assert!(seconds <= 60, "{seconds} s");
    }

    #[test]
    fn queue_of_turns_is_bounded_and_holds_no_place_of_one_who_left() {
        let throttle = Logins::default();
        for second in 0..200 {
            for number in 0..100 {
                let address = ip(10_000 + u32::try_from(second).unwrap() * 100 + number);
                let _ = throttle.fail("admin", address, at(second));
            }
        }

        assert!(throttle.throttle.lock().turns.waiting() <= 100);
        let later = at(200 + 120);
        assert!(throttle.log_in("admin", ip(1), later), "those who asked have left");
        assert_eq!(throttle.throttle.lock().turns.waiting(), 0);
    }

    #[test]
    fn guessed_codes_slow_down_their_address_alone() {
        let throttle = Throttle::default();
        let begin = |address: u32| throttle.begin_at_provider(Some(ip(address).into()), at(0));
        for _ in 0..10 {
            begin(1).unwrap().begin_check();
        }

        assert_eq!(begin(1).unwrap_err(), Duration::from_secs(1));
        begin(2).unwrap().succeed();
        assert!(throttle.begin("ann", Some(ip(1).into()), false, at(0)).is_ok(), "by password");
    }

    #[test]
    fn client_that_hangs_up_while_it_waits_is_not_counted() {
        let throttle = Logins::default();
        for address in 0..20_000 {
            drop(throttle.begin("admin", ip(address), at(0)).unwrap());
        }
        assert_eq!(throttle.entries(), [0, 0, 0]);
        for _ in 0..100 {
            drop(throttle.begin("admin", ip(1), at(0)).unwrap());
        }

        throttle.fail("admin", ip(1), at(0)).unwrap();
        assert_eq!(throttle.entries(), [1, 1, 1]);
        drop(throttle.begin("admin", ip(1), at(5)).unwrap());
        assert_eq!(throttle.entries(), [1, 1, 1], "the failure before it is still counted");
    }

    #[test]
    fn concurrent_attempts_count_before_they_are_checked() {
        let throttle = Logins::default();
        let pending: Vec<_> =
            (0..5).map(|_| throttle.begin("ann", ip(1), at(0)).unwrap()).collect();

        assert!(throttle.begin("ann", ip(1), at(0)).is_err());
        drop(pending);
        assert!(throttle.begin("ann", ip(1), at(0)).is_ok());
    }

    #[test]
    fn flood_of_names_and_addresses_locks_out_no_other_user() {
        let throttle = Logins::default();
        for _ in 0..5 {
            throttle.fail("admin", ip(1), at(0)).unwrap();
        }
        for address in 0..20 {
            throttle.fail("bob", ip(100 + address), at(0)).unwrap();
        }
        for number in 0..10_500 {
            let name = "x".repeat(1_000) + &number.to_string();
            throttle.fail(&name, ip(10_000 + number), at(0)).unwrap();
        }

        let entries = throttle.entries();
        assert!(entries.iter().all(|entries| *entries <= MAX_ENTRIES), "{entries:?}");
        assert!(throttle.log_in("ann", ip(5), at(0)), "a full table refuses no user");
        assert!(throttle.fail("admin", ip(1), at(0)).is_err(), "many failures are not evicted");
        assert!(throttle.fail("bob", ip(200), at(0)).is_err(), "many failures are not evicted");
    }

    #[test]
    fn ipv6_addresses_of_one_network_are_one_client() {
        let throttle = Logins::default();
        for host in 0..5 {
            let address = format!("2001:db8:0:1::{host:x}").parse().unwrap();
            throttle.fail("ann", address, at(0)).unwrap();
        }

        assert!(throttle.fail("ann", "2001:db8:0:1:ffff::1".parse().unwrap(), at(0)).is_err());
        assert!(throttle.fail("ann", "2001:db8:0:2::1".parse().unwrap(), at(0)).is_ok());
    }
}
