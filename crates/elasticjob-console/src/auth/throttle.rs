//! Limits password attempts.
//!
//! An attempt passes three lanes, and waits for the slowest of them:
//!
//! | lane | free failures | then each waits twice as long, up to | a failure is forgiven after |
//! |---|---|---|---|
//! | a name from an address | 5 | 5 min | 15 min |
//! | an address, whatever the names | 50 | 10 s | 1 min |
//! | a name, whatever the addresses | 20 | 10 s | 1 min |
//!
//! The second lane slows down guessing many names, the third one guessing from many addresses. They must not lock a user out whom a stranger
//! shares the address or the name with, so their wait is short, and addresses from which the user logged in before skip them.
//!
//! A trusted proxy that names no client takes only the third lane: its address may stand for all clients.
//!
//! Memory is bounded: names and addresses are kept as hashes, and a full lane evicts the entry that would be forgiven first. Every failure
//! postpones that, so a flood of single attempts cannot evict an entry with many failures. An IPv6 address counts as its /64 network, which
//! is what one client gets.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;
use ring::digest::{Context, SHA256};

use crate::http::client_network::ClientNetwork;

const NAME_AND_ADDRESS: Rule =
    Rule { free: 5, max_wait: Duration::from_mins(5), forgiven_after: Duration::from_mins(15) };
/// Users who share an address should not wait because of one user's mistakes.
const ADDRESS: Rule =
    Rule { free: 50, max_wait: Duration::from_secs(10), forgiven_after: Duration::from_mins(1) };
const NAME: Rule =
    Rule { free: 20, max_wait: Duration::from_secs(10), forgiven_after: Duration::from_mins(1) };
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Failures beyond the free ones that are counted; more would only take longer to be forgiven.
const MAX_EXCESS: u32 = 16;
/// Entries of a lane.
const MAX_ENTRIES: usize = 10_000;

/// An address from which a user logged in is familiar for this long.
const FAMILIAR_FOR: Duration = Duration::from_hours(30 * 24);
const MAX_FAMILIAR_ADDRESSES: usize = 16;
const MAX_FAMILIAR_NAMES: usize = 1_000;

/// Failed attempts, and familiar addresses.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<Lanes>);

#[derive(Debug)]
struct Lanes {
    name_and_address: Lane,
    address: Lane,
    name: Lane,
    familiar: FamiliarAddresses,
}

/// A hash, so that the length of a name does not matter.
type Key = [u8; 16];

/// The keys of an attempt.
#[derive(Debug, Clone, Copy)]
struct Keys {
    /// `None` if the client is not known: all unknown clients must not share one entry.
    client: Option<ClientKeys>,
    name: Key,
    /// Only the lane of name and address is taken.
    is_familiar: bool,
}

#[derive(Debug, Clone, Copy)]
struct ClientKeys {
    name_and_address: Key,
    address: Key,
}

/// An attempt that was admitted. It counts as failed until it [succeeds](Self::succeed), so that concurrent attempts cannot bypass the limit.
/// Dropped before the password [is checked](Self::begin_check), it is withdrawn: a client that hangs up has learned nothing.
#[derive(Debug)]
pub(crate) struct Attempt<'t> {
    throttle: &'t Throttle,
    keys: Keys,
    at: Monotonic,
    /// When each lane had its attempt before this one.
    before: [Option<Monotonic>; 3],
    is_withdrawn_on_drop: bool,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Mutex::new(Lanes {
            name_and_address: Lane::new(NAME_AND_ADDRESS),
            address: Lane::new(ADDRESS),
            name: Lane::new(NAME),
            familiar: FamiliarAddresses::default(),
        }))
    }
}

impl Throttle {
    /// Admits an attempt and counts it, or returns how long to wait. `client` is `None` if it is not known behind a proxy.
    pub(crate) fn begin(
        &self,
        username: &str,
        client: Option<ClientNetwork>,
        now: Monotonic,
    ) -> Result<Attempt<'_>, Duration> {
        let mut keys = Keys::new(username, client);
        let mut lanes = self.lock();
        keys.is_familiar = lanes.familiar.contains(&keys, now);
        let wait = lanes.each(&keys).map(|(lane, key)| lane.wait(&key, now)).max();
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        let mut before = [None; 3];
        for ((lane, key), before) in lanes.each(&keys).zip(&mut before) {
            *before = lane.add(key, now);
        }
        let is_withdrawn_on_drop = true;
        Ok(Attempt { throttle: self, keys, at: now, before, is_withdrawn_on_drop })
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // No code panics while holding this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// The user logged in from this address before.
    pub(crate) fn is_familiar(&self) -> bool {
        self.keys.is_familiar
    }

    /// The password is being checked: from now on the attempt counts, even if the client hangs up.
    pub(crate) fn begin_check(&mut self) {
        self.is_withdrawn_on_drop = false;
    }

    /// The password was right. Failures of this name from this address are forgotten; others still count, so that an attacker with an account
    /// of its own cannot clear them.
    pub(crate) fn succeed(mut self, now: Monotonic) {
        self.is_withdrawn_on_drop = false;
        self.withdraw();
        let Some(client) = &self.keys.client else { return };
        let mut lanes = self.throttle.lock();
        lanes.name_and_address.failures.remove(&client.name_and_address);
        lanes.familiar.add(self.keys.name, client.address, now);
    }

    fn withdraw(&self) {
        let mut lanes = self.throttle.lock();
        for ((lane, key), before) in lanes.each(&self.keys).zip(self.before) {
            lane.withdraw(&key, self.at, before);
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

impl Keys {
    fn new(username: &str, client: Option<ClientNetwork>) -> Self {
        let name = username.as_bytes();
        let client = client.map(|client| {
            let network = client.to_bytes();
            ClientKeys { name_and_address: key(&[name, &network]), address: key(&[&network]) }
        });
        Self { client, name: key(&[name]), is_familiar: false }
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
    /// The lanes that an attempt takes, with its keys there.
    fn each(&mut self, keys: &Keys) -> impl Iterator<Item = (&mut Lane, Key)> {
        let (client, is_familiar) = (keys.client, keys.is_familiar);
        let name_and_address =
            client.map(|client| (&mut self.name_and_address, client.name_and_address));
        let address =
            client.filter(|_| !is_familiar).map(|client| (&mut self.address, client.address));
        let name = (!is_familiar).then_some((&mut self.name, keys.name));
        [name_and_address, address, name].into_iter().flatten()
    }
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Failures without a wait.
    free: u32,
    max_wait: Duration,
    forgiven_after: Duration,
}

#[derive(Debug)]
struct Lane {
    rule: Rule,
    failures: HashMap<Key, Failures>,
}

/// The failures of a key. Their number is the time until all of them are forgiven.
#[derive(Debug, Clone, Copy)]
struct Failures {
    forgiven_at: Monotonic,
    last: Monotonic,
}

impl Lane {
    fn new(rule: Rule) -> Self {
        Self { rule, failures: HashMap::new() }
    }

    fn wait(&self, key: &Key, now: Monotonic) -> Duration {
        let Some(failures) = self.failures.get(key) else { return Duration::ZERO };
        let wait = self.rule.wait(failures.count(&self.rule, now));
        wait.saturating_sub(now.saturating_since(failures.last))
    }

    /// Counts a failure. Returns the time of the failure before it.
    fn add(&mut self, key: Key, now: Monotonic) -> Option<Monotonic> {
        if !self.failures.contains_key(&key) {
            self.make_room(now);
        }
        let Rule { free, forgiven_after, .. } = self.rule;
        let before = self.failures.get(&key).filter(|failures| failures.forgiven_at > now).copied();
        let begin = before.map_or(now, |failures| failures.forgiven_at);
        let latest = now + forgiven_after * (free + MAX_EXCESS);
        let forgiven_at = (begin + forgiven_after).min(latest);
        self.failures.insert(key, Failures { forgiven_at, last: now });
        before.map(|failures| failures.last)
    }

    /// Takes back a failure that was counted at `at`.
    fn withdraw(&mut self, key: &Key, at: Monotonic, before: Option<Monotonic>) {
        let Some(failures) = self.failures.get_mut(key) else { return };
        failures.forgiven_at = failures.forgiven_at - self.rule.forgiven_after;
        if failures.last == at {
            failures.last = before.unwrap_or(at);
        }
        if failures.forgiven_at <= at {
            self.failures.remove(key);
        }
    }

    fn make_room(&mut self, now: Monotonic) {
        if self.failures.len() < MAX_ENTRIES {
            return;
        }
        self.failures.retain(|_, failures| failures.forgiven_at > now);
        if self.failures.len() >= MAX_ENTRIES {
            let first = self.failures.iter().min_by_key(|(_, failures)| failures.forgiven_at);
            if let Some(key) = first.map(|(key, _)| *key) {
                self.failures.remove(&key);
            }
        }
    }
}

impl Failures {
    fn count(&self, rule: &Rule, now: Monotonic) -> u32 {
        let left = self.forgiven_at.saturating_since(now).as_millis();
        u32::try_from(left.div_ceil(rule.forgiven_after.as_millis())).unwrap_or(u32::MAX)
    }
}

impl Rule {
    /// The wait after this many failures.
    fn wait(&self, failures: u32) -> Duration {
        match failures.checked_sub(self.free) {
            None => Duration::ZERO,
            Some(excess) => {
                FIRST_WAIT.saturating_mul(2_u32.saturating_pow(excess)).min(self.max_wait)
            }
        }
    }
}

/// The networks from which each user logged in, with the time of the last login. Only a right password adds one.
#[derive(Debug, Default)]
struct FamiliarAddresses(HashMap<Key, Vec<(Key, Monotonic)>>);

impl FamiliarAddresses {
    fn contains(&self, keys: &Keys, now: Monotonic) -> bool {
        let Some(client) = &keys.client else { return false };
        let addresses = self.0.get(&keys.name).into_iter().flatten();
        let mut addresses = addresses.filter(|(address, _)| *address == client.address);
        addresses.any(|(_, last)| now.saturating_since(*last) < FAMILIAR_FOR)
    }

    /// Of too many addresses the one that was used longest ago is forgotten; likewise of too many users.
    fn add(&mut self, name: Key, address: Key, now: Monotonic) {
        if self.0.len() >= MAX_FAMILIAR_NAMES && !self.0.contains_key(&name) {
            let last_login =
                |addresses: &Vec<(Key, Monotonic)>| addresses.iter().map(|(_, last)| *last).max();
            let oldest = self.0.iter().min_by_key(|(_, addresses)| last_login(addresses));
            if let Some(name) = oldest.map(|(name, _)| *name) {
                self.0.remove(&name);
            }
        }
        let addresses = self.0.entry(name).or_default();
        addresses.retain(|(known, _)| *known != address);
        addresses.insert(0, (address, now));
        addresses.truncate(MAX_FAMILIAR_ADDRESSES);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from(number))
    }

    impl Throttle {
        /// A wrong password, or how long to wait.
        fn fail(&self, name: &str, address: IpAddr, now: Monotonic) -> Result<(), Duration> {
            self.begin(name, Some(address.into()), now).map(|mut attempt| attempt.begin_check())
        }

        fn log_in(&self, name: &str, address: IpAddr, now: Monotonic) -> bool {
            self.begin(name, Some(address.into()), now).map(|attempt| attempt.succeed(now)).is_ok()
        }

        fn entries(&self) -> [usize; 3] {
            let lanes = self.lock();
            [&lanes.name_and_address, &lanes.address, &lanes.name].map(|lane| lane.failures.len())
        }
    }

    #[test]
    fn wait_doubles_after_five_failures_until_a_success() {
        let throttle = Throttle::default();
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
        let throttle = Throttle::default();
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
        let throttle = Throttle::default();
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
        let throttle = Throttle::default();
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
        let throttle = Throttle::default();
        let fail =
            |name: &str| throttle.begin(name, None, at(0)).map(|mut attempt| attempt.begin_check());
        for name in 0..1_000 {
            fail(&format!("user {name}")).unwrap();
        }
        for _ in 0..20 {
            fail("ann").unwrap();
        }

        assert_eq!(fail("ann"), Err(Duration::from_secs(1)), "the name's own lane");
        throttle.begin("bob", None, at(0)).unwrap().succeed(at(0));
        assert_eq!(throttle.entries(), [0, 0, 1_001]);
        assert!(throttle.lock().familiar.0.is_empty(), "an unknown address is not familiar");
    }

    #[test]
    fn guesses_from_many_addresses_slow_the_account_for_seconds_only() {
        let throttle = Throttle::default();
        assert!(throttle.log_in("admin", ip(7), at(0)));
        let mut checked = 0;
        for second in 0..3600 {
            for number in 0..20 {
                let address = ip(1_000 + second * 20 + number);
                let guess = throttle.fail("admin", address, at(u64::from(second)));
                checked += u32::from(guess.is_ok());
            }
        }

        // 20 at once, 1 + 2 + 4 + 8 s for the next ones, and then one in ten seconds.
        assert!((370..=385).contains(&checked), "{checked} of 72,000");
        assert!(throttle.log_in("admin", ip(7), at(3600)), "a familiar address skips the lane");
        let wait = throttle.fail("admin", ip(8), at(3600)).unwrap_err();
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        assert!(throttle.log_in("admin", ip(8), at(3600) + wait), "a new address gets its turn");
        assert!(throttle.log_in("ann", ip(9), at(3600)), "other accounts are not slowed");
    }

    #[test]
    fn familiar_address_still_has_its_own_limit() {
        let throttle = Throttle::default();
        assert!(throttle.log_in("admin", ip(7), at(0)));
        for _ in 0..5 {
            throttle.fail("admin", ip(7), at(0)).unwrap();
        }

        assert_eq!(throttle.fail("admin", ip(7), at(0)), Err(Duration::from_secs(1)));
        let later = at(0) + FAMILIAR_FOR;
        for address in 0..20 {
            throttle.fail("admin", ip(100 + address), later).unwrap();
        }
        assert!(throttle.fail("admin", ip(7), later).is_err(), "familiar for a month");
    }

    #[test]
    fn client_that_hangs_up_while_it_waits_is_not_counted() {
        let throttle = Throttle::default();
        for address in 0..20_000 {
            drop(throttle.begin("admin", Some(ip(address).into()), at(0)).unwrap());
        }
        assert_eq!(throttle.entries(), [0, 0, 0]);
        for _ in 0..100 {
            drop(throttle.begin("admin", Some(ip(1).into()), at(0)).unwrap());
        }

        throttle.fail("admin", ip(1), at(0)).unwrap();
        assert_eq!(throttle.entries(), [1, 1, 1]);
        drop(throttle.begin("admin", Some(ip(1).into()), at(5)).unwrap());
        assert_eq!(throttle.entries(), [1, 1, 1], "the failure before it is still counted");
    }

    #[test]
    fn concurrent_attempts_count_before_they_are_checked() {
        let throttle = Throttle::default();
        let pending: Vec<_> =
            (0..5).map(|_| throttle.begin("ann", Some(ip(1).into()), at(0)).unwrap()).collect();

        assert!(throttle.begin("ann", Some(ip(1).into()), at(0)).is_err());
        drop(pending);
        assert!(throttle.begin("ann", Some(ip(1).into()), at(0)).is_ok());
    }

    #[test]
    fn flood_of_names_and_addresses_locks_out_no_other_user() {
        let throttle = Throttle::default();
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
        let throttle = Throttle::default();
        for host in 0..5 {
            let address = format!("2001:db8:0:1::{host:x}").parse().unwrap();
            throttle.fail("ann", address, at(0)).unwrap();
        }

        assert!(throttle.fail("ann", "2001:db8:0:1:ffff::1".parse().unwrap(), at(0)).is_err());
        assert!(throttle.fail("ann", "2001:db8:0:2::1".parse().unwrap(), at(0)).is_ok());
    }

    #[test]
    fn familiar_addresses_are_bounded() {
        let throttle = Throttle::default();
        for number in 0..2_000 {
            assert!(throttle.log_in(&format!("user {number}"), ip(number), at(u64::from(number))));
        }
        for number in 0..100 {
            assert!(throttle.log_in("ann", ip(number), at(3_000)));
        }

        let lanes = throttle.lock();
        assert_eq!(lanes.familiar.0.len(), MAX_FAMILIAR_NAMES);
        let addresses = &lanes.familiar.0[&Keys::new("ann", None).name];
        assert_eq!(addresses.len(), MAX_FAMILIAR_ADDRESSES);
    }
}
