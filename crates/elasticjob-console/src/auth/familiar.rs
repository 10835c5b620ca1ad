//! The networks from which users logged in before: a stranger who guesses a user's password cannot slow the user down there.
//!
//! They are stored, because an attack would otherwise lock users out when the console restarts. Only hashes are, under a salt of the file, so that it
//! tells neither names nor addresses at a glance. Only a right password adds one, and both users and networks are bounded.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::random_secret;
use crate::{
    files,
    http::{client_network::ClientNetwork, problem::Problem},
};

/// A network is familiar for this long after the last login.
const FAMILIAR_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A later login is stored only if it is this much later: not every one should write a file.
const STORED_AFTER: SignedDuration = SignedDuration::from_hours(24);
const MAX_NETWORKS: usize = 16;
const MAX_USERS: usize = 1_000;

/// Familiar networks, stored in a file or in memory only.
#[derive(Debug)]
pub(crate) struct FamiliarNetworks {
    path: Option<PathBuf>,
    known: Mutex<FamiliarFile>,
    /// Held while writing to the file.
    writing: Mutex<()>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FamiliarFile {
    salt: String,
    /// The last login by hashed name and hashed network.
    users: BTreeMap<String, BTreeMap<String, Timestamp>>,
}

impl FamiliarNetworks {
    /// A file that cannot be read is replaced at the next login: no user is refused because of it.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, Problem> {
        let stored = path.as_deref().filter(|path| path.exists()).and_then(read);
        let known = match stored {
            Some(stored) => stored,
            None => FamiliarFile { salt: random_secret(16)?, users: BTreeMap::new() },
        };
        Ok(Self { path, known: Mutex::new(known), writing: Mutex::default() })
    }

    pub(crate) fn contains(
        &self,
        username: &str,
        client: Option<ClientNetwork>,
        now: Timestamp,
    ) -> bool {
        let known = self.lock();
        let Some(network) = client.map(|client| known.network(client)) else { return false };
        let last =
            known.users.get(&known.user(username)).and_then(|networks| networks.get(&network));
        last.is_some_and(|last| now.duration_since(*last) < FAMILIAR_FOR)
    }

    /// The user logged in from there.
    pub(crate) fn add(&self, username: &str, client: Option<ClientNetwork>, now: Timestamp) {
        let Some(client) = client else { return };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = {
            let mut known = self.lock();
            if !known.add(username, client, now) {
                return;
            }
            known.clone()
        };
        if let Some(path) = &self.path {
            // The login goes on: the network is familiar until the console restarts. The log has the reason.
            let _ = files::replace(path, &changed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FamiliarFile> {
        // No code panics while holding this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Option<FamiliarFile> {
    let stored = fs::read(path).map_err(serde_json::Error::io);
    match stored.and_then(|bytes| serde_json::from_slice(&bytes)) {
        Ok(stored) => Some(stored),
        Err(error) => {
            tracing::warn!(
                path = %path.display(),
                %error,
                hint = "it is written anew when users log in; until then their addresses are not familiar",
                "cannot read familiar addresses"
            );
            None
        }
    }
}

impl FamiliarFile {
    /// Whether there is something to store. Of too many networks the one that was used longest ago is forgotten; likewise of too many users.
    fn add(&mut self, username: &str, client: ClientNetwork, now: Timestamp) -> bool {
        let (user, network) = (self.user(username), self.network(client));
        if self.users.len() >= MAX_USERS && !self.users.contains_key(&user) {
            let oldest = self.users.iter().min_by_key(|(_, networks)| networks.values().max());
            if let Some(user) = oldest.map(|(user, _)| user.clone()) {
                self.users.remove(&user);
            }
        }
        let networks = self.users.entry(user).or_default();
        let is_recent = |last: &Timestamp| now.duration_since(*last).abs() < STORED_AFTER;
        if networks.get(&network).is_some_and(is_recent) {
            return false;
        }
        networks.retain(|_, last| now.duration_since(*last) < FAMILIAR_FOR);
        networks.insert(network, now);
        while networks.len() > MAX_NETWORKS {
            let oldest = networks.iter().min_by_key(|(_, last)| **last);
            let Some(network) = oldest.map(|(network, _)| network.clone()) else { break };
            networks.remove(&network);
        }
        true
    }

    fn user(&self, username: &str) -> String {
        self.hash(b"user", username.as_bytes())
    }

    fn network(&self, client: ClientNetwork) -> String {
        self.hash(b"network", &client.to_bytes())
    }

    fn hash(&self, kind: &[u8], value: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.salt.as_bytes());
        let tag = hmac::sign(&key, &[kind, b" ", value].concat());
        BASE64.encode(&tag.as_ref()[..16])
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tempfile::TempDir;
    use testbed::golden;

    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_763_000_000 + day * 24 * 3_600).unwrap()
    }

    fn network(number: u32) -> ClientNetwork {
        IpAddr::from(number.to_be_bytes()).into()
    }

    #[test]
    fn network_is_familiar_for_a_month_also_after_a_restart() {
        let folder = TempDir::new().unwrap();
        let path = Some(folder.path().join("familiar.json"));
        let before = FamiliarNetworks::open(path.clone()).unwrap();
        before.add("ann", Some(network(7)), at(0));
        before.add("ann", None, at(0));

        let familiar = FamiliarNetworks::open(path).unwrap();

        assert!(familiar.contains("ann", Some(network(7)), at(29)));
        assert!(!familiar.contains("ann", Some(network(7)), at(30)), "too long ago");
        assert!(
            !familiar.contains("ann", Some(network(8)), at(1))
                && !familiar.contains("bob", Some(network(7)), at(1))
        );
        assert!(!familiar.contains("ann", None, at(1)), "an unknown client is not familiar");
    }

    #[test]
    fn file_that_cannot_be_read_is_replaced_at_the_next_login() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("familiar.json");
        fs::write(&path, "{\"salt\":").unwrap();

        FamiliarNetworks::open(Some(path.clone())).unwrap().add("ann", Some(network(7)), at(0));

        assert!(FamiliarNetworks::open(Some(path)).unwrap().contains(
            "ann",
            Some(network(7)),
            at(1)
        ));
    }

    #[test]
    fn familiar_networks_are_bounded() {
        let familiar = FamiliarNetworks::open(None).unwrap();
        for number in 0..2_000 {
            familiar.add(
                &format!("user {number}"),
                Some(network(number)),
                at(i64::from(number) / 100),
            );
        }
        for number in 0..100 {
            familiar.add("ann", Some(network(number)), at(30));
        }

        let known = familiar.lock();
        assert_eq!(known.users.len(), MAX_USERS);
        assert_eq!(known.users[&known.user("ann")].len(), MAX_NETWORKS);
    }

    /// Frozen: `tests/golden/README.md` says why.
    #[test]
    fn stored_networks_keep_their_format() {
        let mut file = FamiliarFile { salt: "salt".to_owned(), users: BTreeMap::new() };
        file.add("ann", network(7), at(0));
        let stored = golden!("familiar.json", serde_json::to_string_pretty(&file).unwrap() + "\n");

        let read: FamiliarFile = serde_json::from_str(&stored).unwrap();

        let familiar =
            FamiliarNetworks { path: None, known: Mutex::new(read), writing: Mutex::default() };
        assert!(familiar.contains("ann", Some(network(7)), at(1)));
    }
}
