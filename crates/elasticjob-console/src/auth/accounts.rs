//! Accounts: names, argon2 hashes, roles by registry, API tokens.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use elasticjob::runtime::Monotonic;
use jiff::Timestamp;
use ring::hmac;
use serde::{Deserialize, Serialize};
use tokio::{sync::Semaphore, task::spawn_blocking};
use utoipa::ToSchema;

use super::{imprint, secret};
use crate::{
    files,
    http::problem::{Code, Problem},
};

/// How many passwords are looked at at once: each takes a core for a moment, and 19 MiB.
const AT_ONCE: usize = 2;
/// What may be a password.
const PASSWORD: std::ops::RangeInclusive<usize> = 8..=1024;
const MOST_ACCOUNTS: usize = 1_000;
const MOST_TOKENS: usize = 50;
/// How long a password that was right is not looked at again.
const LATELY: Duration = Duration::from_mins(5);
/// What an API token begins with, so that it is recognised where it should not be.
pub(crate) const TOKEN: &str = "ejt_";
/// Every registry, those to come included; and the console itself.
pub(crate) const EVERYWHERE: &str = "*";

/// What somebody may do. Each may what the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// Look.
    Viewer,
    /// Steer what there is: trigger, cancel, enable, disable, shut down.
    Operator,
    /// Change what there is: configuration, which is also what machines execute; remove; everywhere (`*`): registries and accounts.
    Admin,
}

/// Roles by registry; `*` is all of them.
pub(crate) type Roles = BTreeMap<String, Role>;

/// Somebody who may log in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    hash: String,
    pub(crate) roles: Roles,
    #[serde(default)]
    pub(crate) tokens: Vec<Token>,
}

/// What a program shows instead of a password.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) name: String,
    imprint: String,
    /// At most this, and never more than the account.
    pub(crate) role: Role,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Filed {
    accounts: BTreeMap<String, Account>,
}

/// All accounts.
#[derive(Debug)]
pub(crate) struct Accounts {
    file: Option<PathBuf>,
    filed: Mutex<Filed>,
    /// What a password is compared with where there is no such account, so that both take the same time.
    decoy: String,
    turns: Semaphore,
    /// Passwords that were right lately, sealed with a key that only this process knows; whoever sends theirs with every request is not hashed every time.
    lately: Mutex<HashMap<Vec<u8>, Monotonic>>,
    seal: hmac::Key,
}

impl Accounts {
    /// Those in the file; without a file, none yet, and in memory alone.
    pub(crate) fn open(file: Option<PathBuf>) -> Result<Self, Problem> {
        let cannot = |error: io::Error, path: &PathBuf| {
            let text = format!("cannot read the accounts in {}: {error}", path.display());
            Problem::new(Code::Invalid, text)
        };
        let filed = match file.as_ref().filter(|path| path.exists()) {
            None => Filed::default(),
            Some(path) => {
                let bytes = fs::read(path).map_err(|error| cannot(error, path))?;
                serde_json::from_slice(&bytes).map_err(|error| cannot(error.into(), path))?
            }
        };
        let decoy = hash(&secret(16)?)?;
        let seal = hmac::Key::new(hmac::HMAC_SHA256, secret(32)?.as_bytes());
        Ok(Self {
            file,
            filed: Mutex::new(filed),
            decoy,
            turns: Semaphore::new(AT_ONCE),
            lately: Mutex::default(),
            seal,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().accounts.is_empty()
    }

    /// Adds the first account, if there is none. The password is told once, by whoever calls this.
    pub(crate) fn begin(&self, name: &str, password: &str) -> Result<(), Problem> {
        let roles = Roles::from([(EVERYWHERE.to_owned(), Role::Admin)]);
        let account = Account { hash: hash(password)?, roles, tokens: Vec::new() };
        self.lock().accounts.insert(name.to_owned(), account);
        self.keep()
    }

    /// All, by name.
    pub(crate) fn all(&self) -> BTreeMap<String, Account> {
        self.lock().accounts.clone()
    }

    /// What somebody may; nothing if there is no such account.
    pub(crate) fn roles(&self, name: &str) -> Option<Roles> {
        self.lock().accounts.get(name).map(|account| account.roles.clone())
    }

    /// Whether that is the password.
    pub(crate) async fn knows(&self, name: &str, password: &str) -> Result<bool, Problem> {
        let known = self.lock().accounts.get(name).map(|account| account.hash.clone());
        let is_known = known.is_some();
        let (hash, password) = (known.unwrap_or_else(|| self.decoy.clone()), password.to_owned());
        let Ok(_turn) = self.turns.acquire().await else { return Ok(false) };
        let is_right = spawn_blocking(move || is_password(&hash, &password)).await;
        Ok(is_known && is_right.unwrap_or(false))
    }

    /// Whether that was the password a moment ago, and still is.
    pub(crate) fn knew(&self, name: &str, password: &str, now: Monotonic) -> bool {
        let Some(sealed) = self.sealed(name, password) else { return false };
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        lately.get(&sealed).is_some_and(|since| now.saturating_since(*since) < LATELY)
    }

    /// It is the password, and will be for a moment.
    pub(crate) fn remember(&self, name: &str, password: &str, now: Monotonic) {
        let Some(sealed) = self.sealed(name, password) else { return };
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        lately.retain(|_, since| now.saturating_since(*since) < LATELY);
        if lately.len() < MOST_ACCOUNTS {
            lately.insert(sealed, now);
        }
    }

    /// With the hash that is kept of it: another password, another seal.
    fn sealed(&self, name: &str, password: &str) -> Option<Vec<u8>> {
        let hash = self.lock().accounts.get(name)?.hash.clone();
        let text = format!("{name}\n{hash}\n{password}");
        Some(hmac::sign(&self.seal, text.as_bytes()).as_ref().to_vec())
    }

    /// Makes an account, or changes it. What is left out stays.
    pub(crate) async fn put(
        &self,
        name: &str,
        password: Option<String>,
        roles: Option<Roles>,
    ) -> Result<bool, Problem> {
        check_name(name)?;
        let hash =
            match password {
                Some(password) => {
                    check_password(&password)?;
                    let Ok(_turn) = self.turns.acquire().await else { return Ok(false) };
                    let hashed = spawn_blocking(move || hash(&password)).await;
                    Some(hashed.map_err(|_| {
                        Problem::new(Code::Internal, "the password was not hashed")
                    })??)
                }
                None => None,
            };
        let is_new = self.change(|accounts| {
            if let Some(account) = accounts.get_mut(name) {
                account.hash = hash.unwrap_or_else(|| account.hash.clone());
                account.roles = roles.unwrap_or_else(|| account.roles.clone());
                return Ok(false);
            }
            if accounts.len() >= MOST_ACCOUNTS {
                return Err(Problem::new(
                    Code::Refused,
                    "there are too many accounts; hint: remove one",
                ));
            }
            let (Some(hash), Some(roles)) = (hash, roles) else {
                let text = format!(
                    "there is no account {name} yet; hint: a new one needs password and roles"
                );
                return Err(Problem::invalid("password", text));
            };
            accounts.insert(name.to_owned(), Account { hash, roles, tokens: Vec::new() });
            Ok(true)
        })?;
        Ok(is_new)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|accounts| accounts.remove(name).map(drop).ok_or_else(|| no_account(name)))
    }

    /// Makes a token. It is told once, here.
    pub(crate) fn add_token(
        &self,
        account: &str,
        name: String,
        role: Role,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(Token, String), Problem> {
        let (id, secret) = (secret(6)?, format!("{TOKEN}{}", secret(32)?));
        let token =
            Token { id, name, imprint: imprint(&secret), role, created_at: now, expires_at };
        let kept = token.clone();
        self.change(|accounts| {
            let account = accounts.get_mut(account).ok_or_else(|| no_account(account))?;
            if account.tokens.len() >= MOST_TOKENS {
                return Err(Problem::new(
                    Code::Refused,
                    "there are too many tokens; hint: remove one",
                ));
            }
            account.tokens.push(kept);
            Ok(())
        })?;
        Ok((token, secret))
    }

    pub(crate) fn remove_token(&self, account: &str, id: &str) -> Result<String, Problem> {
        self.change(|accounts| {
            let tokens = accounts.get_mut(account).map(|account| &mut account.tokens);
            let tokens = tokens.ok_or_else(|| no_account(account))?;
            let Some(place) = tokens.iter().position(|token| token.id == id) else {
                return Err(Problem::new(
                    Code::NotFound,
                    format!("there is no token {id}; hint: list them"),
                ));
            };
            Ok(tokens.remove(place).name)
        })
    }

    /// Whose token that is, what it is called, and what it may.
    pub(crate) fn token(&self, secret: &str, now: Timestamp) -> Option<(String, String, Roles)> {
        let imprint = imprint(secret);
        let filed = self.lock();
        for (name, account) in &filed.accounts {
            let token = account.tokens.iter().find(|token| token.imprint == imprint);
            let token = token.filter(|token| token.expires_at.is_none_or(|end| now < end));
            if let Some(token) = token {
                let roles = account.roles.iter();
                let roles = roles.map(|(registry, role)| (registry.clone(), token.role.min(*role)));
                return Some((name.clone(), token.name.clone(), roles.collect()));
            }
        }
        None
    }

    /// Whether an account still has a token of this name.
    pub(crate) fn has_token(&self, account: &str, name: &str, now: Timestamp) -> bool {
        let filed = self.lock();
        let mut tokens =
            filed.accounts.get(account).into_iter().flat_map(|account| &account.tokens);
        tokens.any(|token| token.name == name && token.expires_at.is_none_or(|end| now < end))
    }

    /// Changes accounts, on disk too, or not at all. Somebody who may everything is always left.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Account>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut filed = self.lock();
        let before = filed.accounts.clone();
        let result = change(&mut filed.accounts).and_then(|result| {
            let is_ruled = filed.accounts.values().any(|account| {
                account.roles.get(EVERYWHERE) == Some(&Role::Admin)
            });
            if !is_ruled {
                return Err(Problem::new(
                    Code::Refused,
                    "nobody would be left who may everything; hint: make somebody else an admin of * first",
                ));
            }
            match &self.file {
                Some(path) => files::replace(path, &*filed).map(|()| result),
                None => Ok(result),
            }
        });
        if result.is_err() {
            filed.accounts = before;
        }
        result
    }

    fn keep(&self) -> Result<(), Problem> {
        match &self.file {
            Some(path) => files::replace(path, &*self.lock()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Filed> {
        // Nothing under this lock panics half way.
        self.filed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(password: &str) -> Result<String, Problem> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|error| {
        Problem::new(Code::Internal, format!("a password cannot be hashed: {error}"))
    })
}

fn is_password(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

fn check_name(name: &str) -> Result<(), Problem> {
    let is_good = (1..=64).contains(&name.len())
        && name.chars().all(|each| each.is_ascii_alphanumeric() || "._@-".contains(each))
        // Dots alone are no part of a path.
        && name.chars().any(|each| each.is_ascii_alphanumeric());
    if is_good {
        return Ok(());
    }
    Err(Problem::invalid(
        "username",
        "that cannot be a user name; hint: letters, digits, dots, dashes, underscores and @, at most 64",
    ))
}

pub(crate) fn check_password(password: &str) -> Result<(), Problem> {
    if PASSWORD.contains(&password.chars().count()) {
        return Ok(());
    }
    let text = format!("a password has {} to {} characters", PASSWORD.start(), PASSWORD.end());
    Err(Problem::invalid("password", text))
}

fn no_account(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no account {name}; hint: list them"))
}

/// The words of `accounts.json`, frozen: `tests/golden/README.md` says why.
#[cfg(test)]
mod golden {
    use std::iter::successors;

    use tempfile::TempDir;
    use testbed::golden;

    use super::*;

    /// Of the password `correct horse`.
    const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$SJDC2cLIKbKULWkv4kIUJQ$/FWIq5g7yKkagQoHd6yo1xbaIqdJoTomo9uk6rqgHxM";
    const SECRET: &str = "ejt_golden";

    fn filed() -> Filed {
        let roles = successors(Some(Role::Viewer), |role| match role {
            Role::Viewer => Some(Role::Operator),
            Role::Operator => Some(Role::Admin),
            Role::Admin => None,
        });
        let roles = ["test", "shop", EVERYWHERE].map(ToOwned::to_owned).into_iter().zip(roles);
        let token = Token {
            id: "golden".to_owned(),
            name: "ci".to_owned(),
            imprint: imprint(SECRET),
            role: Role::Operator,
            created_at: "2026-11-15T06:36:07Z".parse().unwrap(),
            expires_at: Some("2036-11-15T06:36:07Z".parse().unwrap()),
        };
        let account =
            Account { hash: HASH.to_owned(), roles: roles.collect(), tokens: vec![token] };
        Filed { accounts: BTreeMap::from([("ann".to_owned(), account)]) }
    }

    #[tokio::test]
    async fn accounts_are_stored_in_the_same_words() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("accounts.json");
        files::replace(&path, &filed()).unwrap();

        let stored = golden!("accounts.json", fs::read_to_string(&path).unwrap() + "\n");

        fs::write(&path, &stored).unwrap();
        let accounts = Accounts::open(Some(path.clone())).unwrap();
        assert!(accounts.knows("ann", "correct horse").await.unwrap(), "the hash");
        let roles = Roles::from([
            (EVERYWHERE.to_owned(), Role::Operator),
            ("shop".to_owned(), Role::Operator),
            ("test".to_owned(), Role::Viewer),
        ]);
        let now = "2026-11-16T00:00:00Z".parse().unwrap();
        let expected = Some(("ann".to_owned(), "ci".to_owned(), roles));
        assert_eq!(accounts.token(SECRET, now), expected, "the token's imprint");
        accounts.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap() + "\n", stored);
    }
}
