//! Accounts: names, argon2 hashes, roles by registry, API tokens.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;
use jiff::Timestamp;
use ring::hmac;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    hash_queue::{HashQueue, HashTurn},
    hash_secret,
    password_hasher::PasswordHasher,
    random_secret,
};
use crate::{
    files,
    http::problem::{Code, Problem},
};

/// Characters of a password.
const PASSWORD_LENGTH: std::ops::RangeInclusive<usize> = 8..=1024;
const MAX_NAME_LENGTH: usize = 64;
const MAX_ACCOUNTS: usize = 1_000;
const MAX_TOKENS: usize = 50;
/// A verified password is not hashed again for this long.
const PASSWORD_CACHE_TTL: Duration = Duration::from_mins(5);
/// Prefix of API tokens, so that a leaked one is recognizable.
pub(crate) const TOKEN_PREFIX: &str = "ejt_";
/// All registries, including future ones, and the console itself.
pub(crate) const ALL_REGISTRIES: &str = "*";

/// Roles in ascending order; each includes the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// Read.
    Viewer,
    /// Operate jobs: trigger, cancel, enable, disable, shut down.
    Operator,
    /// Change configuration (which determines what machines execute) and remove jobs; as a role on `*` also manage registries and accounts.
    Admin,
}

/// Roles by registry; `*` stands for all of them.
pub(crate) type Roles = BTreeMap<String, Role>;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    #[serde(rename = "hash")]
    password_hash: String,
    pub(crate) roles: Roles,
    #[serde(default)]
    pub(crate) tokens: Vec<Token>,
}

/// An API token: used by programs instead of a password.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(rename = "imprint")]
    hash: String,
    /// Upper limit; the token never has a higher role than its account.
    pub(crate) role: Role,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
}

/// What an account authenticated with: not its name, because another token may have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredCredential {
    /// The token with this hash.
    Token(String),
    /// The password whose stored hash has this hash.
    Password(String),
}

impl StoredCredential {
    fn of_password(password_hash: &str) -> Self {
        Self::Password(hash_secret(password_hash))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct AccountsFile {
    accounts: BTreeMap<String, Account>,
}

/// All accounts, stored in a file or in memory only.
#[derive(Debug)]
pub(crate) struct Accounts {
    path: Option<PathBuf>,
    contents: Mutex<AccountsFile>,
    /// A hash to verify against if the account does not exist, so that both cases take the same time.
    decoy: String,
    pub(crate) hash_queue: HashQueue,
    /// Recently verified passwords as HMACs under a key of this process; spares clients with HTTP basic authentication one argon2 hash per request.
    password_cache: Mutex<HashMap<Vec<u8>, Monotonic>>,
    cache_key: hmac::Key,
}

impl Accounts {
    /// Reads the file; without one, there are no accounts yet and they stay in memory.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, Problem> {
        let read_error = |error: io::Error, path: &PathBuf| {
            let text = format!("cannot read the accounts in {}: {error}", path.display());
            Problem::new(Code::Invalid, text)
        };
        let contents = match path.as_ref().filter(|path| path.exists()) {
            None => AccountsFile::default(),
            Some(path) => {
                let bytes = fs::read(path).map_err(|error| read_error(error, path))?;
                serde_json::from_slice(&bytes).map_err(|error| read_error(error.into(), path))?
            }
        };
        let mut hasher = PasswordHasher::default();
        let decoy = hasher.hash(&random_secret(16)?)?;
        let hash_queue = HashQueue::start(hasher).map_err(|error| {
            Problem::new(
                Code::Internal,
                format!("cannot start the threads that hash passwords: {error}"),
            )
        })?;
        let cache_key = hmac::Key::new(hmac::HMAC_SHA256, random_secret(32)?.as_bytes());
        Ok(Self {
            path,
            contents: Mutex::new(contents),
            decoy,
            hash_queue,
            password_cache: Mutex::default(),
            cache_key,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().accounts.is_empty()
    }

    /// Creates the first account, an admin of everything.
    pub(crate) async fn create_first(&self, name: &str, password: &str) -> Result<(), Problem> {
        let password_hash = self.hash(password.to_owned()).await?;
        let roles = Roles::from([(ALL_REGISTRIES.to_owned(), Role::Admin)]);
        let account = Account { password_hash, roles, tokens: Vec::new() };
        self.lock().accounts.insert(name.to_owned(), account);
        self.save()
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Account> {
        self.lock().accounts.clone()
    }

    /// `None` if there is no such account.
    pub(crate) fn roles(&self, name: &str) -> Option<Roles> {
        self.lock().accounts.get(name).map(|account| account.roles.clone())
    }

    /// The credential that was verified; `None` if the password is wrong, or was changed while it was hashed. It may change at any later
    /// moment, so [`has_credential`](Self::has_credential) has to hold after whatever is granted for it.
    pub(crate) async fn verify_password(
        &self,
        turn: HashTurn,
        name: &str,
        password: &str,
    ) -> Option<StoredCredential> {
        let stored_hash =
            self.lock().accounts.get(name).map(|account| account.password_hash.clone());
        let credential = stored_hash.as_deref().map(StoredCredential::of_password);
        let (hash, password) =
            (stored_hash.unwrap_or_else(|| self.decoy.clone()), password.to_owned());
        let matches = turn.run(move |hasher| hasher.verify(&hash, &password)).await;
        let matches = matches.unwrap_or(false);
        credential.filter(|credential| {
            matches && self.password_credential(name).as_ref() == Some(credential)
        })
    }

    /// The present password of an account, if this is the one and it was verified recently.
    pub(crate) fn cached_password(
        &self,
        name: &str,
        password: &str,
        now: Monotonic,
    ) -> Option<StoredCredential> {
        let credential = self.password_credential(name)?;
        let cache_entry = self.cache_entry(name, password, &credential)?;
        let password_cache = self.password_cache.lock().unwrap_or_else(PoisonError::into_inner);
        let since = password_cache.get(&cache_entry)?;
        (now.saturating_since(*since) < PASSWORD_CACHE_TTL).then_some(credential)
    }

    /// Remembers a password that was verified as this credential.
    pub(crate) fn cache_password(
        &self,
        name: &str,
        password: &str,
        credential: &StoredCredential,
        now: Monotonic,
    ) {
        let Some(cache_entry) = self.cache_entry(name, password, credential) else { return };
        let mut password_cache = self.password_cache.lock().unwrap_or_else(PoisonError::into_inner);
        password_cache.retain(|_, since| now.saturating_since(*since) < PASSWORD_CACHE_TTL);
        if password_cache.len() < MAX_ACCOUNTS {
            password_cache.insert(cache_entry, now);
        }
    }

    /// The hash that was verified is part of the key: a changed password invalidates the entry.
    fn cache_entry(
        &self,
        name: &str,
        password: &str,
        credential: &StoredCredential,
    ) -> Option<Vec<u8>> {
        let StoredCredential::Password(hash) = credential else { return None };
        let text = format!("{name}\n{hash}\n{password}");
        Some(hmac::sign(&self.cache_key, text.as_bytes()).as_ref().to_vec())
    }

    /// Creates or updates an account; `None` keeps the current value. Returns whether it is new.
    pub(crate) async fn put(
        &self,
        name: &str,
        password: Option<String>,
        roles: Option<Roles>,
    ) -> Result<bool, Problem> {
        check_name(name)?;
        let hash = match password {
            Some(password) => Some(self.hash_new(password).await?),
            None => None,
        };
        let is_new = self.change(|accounts| {
            if let Some(account) = accounts.get_mut(name) {
                account.password_hash = hash.unwrap_or_else(|| account.password_hash.clone());
                account.roles = roles.unwrap_or_else(|| account.roles.clone());
                return Ok(false);
            }
            if accounts.len() >= MAX_ACCOUNTS {
                return Err(
                    Problem::new(Code::Refused, "too many accounts").with_hint("remove one")
                );
            }
            let (Some(hash), Some(roles)) = (hash, roles) else {
                let text = format!("there is no account {name} yet");
                return Err(Problem::invalid("password", text)
                    .with_hint("a new one needs password and roles"));
            };
            accounts.insert(
                name.to_owned(),
                Account { password_hash: hash, roles, tokens: Vec::new() },
            );
            Ok(true)
        })?;
        Ok(is_new)
    }

    /// Replaces the password that was verified as `old`; false if it is not the present one any more.
    pub(crate) async fn replace_password(
        &self,
        name: &str,
        old: &StoredCredential,
        new: String,
    ) -> Result<bool, Problem> {
        let hash = self.hash_new(new).await?;
        self.change(|accounts| {
            let account = accounts.get_mut(name);
            let account = account
                .filter(|account| StoredCredential::of_password(&account.password_hash) == *old);
            let Some(account) = account else { return Ok(false) };
            account.password_hash = hash;
            Ok(true)
        })
    }

    async fn hash_new(&self, password: String) -> Result<String, Problem> {
        check_password_length(&password)?;
        self.hash(password).await
    }

    async fn hash(&self, password: String) -> Result<String, Problem> {
        let hashed = self.hash_queue.turn().await?.run(move |hasher| hasher.hash(&password)).await;
        hashed.ok_or_else(|| Problem::new(Code::Internal, "cannot hash the password"))?
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|accounts| accounts.remove(name).map(drop).ok_or_else(|| no_account(name)))
    }

    /// Creates a token. The secret is returned only here.
    pub(crate) fn add_token(
        &self,
        account: &str,
        name: String,
        role: Role,
        now: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<(Token, String), Problem> {
        let (id, secret) = (random_secret(6)?, format!("{TOKEN_PREFIX}{}", random_secret(32)?));
        let token =
            Token { id, name, hash: hash_secret(&secret), role, created_at: now, expires_at };
        let stored = token.clone();
        self.change(|accounts| {
            let account = accounts.get_mut(account).ok_or_else(|| no_account(account))?;
            if account.tokens.len() >= MAX_TOKENS {
                return Err(Problem::new(Code::Refused, "too many tokens").with_hint("remove one"));
            }
            account.tokens.push(stored);
            Ok(())
        })?;
        Ok((token, secret))
    }

    pub(crate) fn remove_token(&self, account: &str, id: &str) -> Result<String, Problem> {
        self.change(|accounts| {
            let tokens = accounts.get_mut(account).map(|account| &mut account.tokens);
            let tokens = tokens.ok_or_else(|| no_account(account))?;
            let Some(index) = tokens.iter().position(|token| token.id == id) else {
                return Err(Problem::new(Code::NotFound, format!("there is no token {id}"))
                    .with_hint("list them"));
            };
            Ok(tokens.remove(index).name)
        })
    }

    /// Account, token name and effective roles of a valid token.
    pub(crate) fn find_token(
        &self,
        secret: &str,
        now: Timestamp,
    ) -> Option<(String, String, Roles)> {
        let hash = hash_secret(secret);
        let contents = self.lock();
        for (name, account) in &contents.accounts {
            let token = account.tokens.iter().find(|token| token.hash == hash);
            let token = token.filter(|token| token.expires_at.is_none_or(|end| now < end));
            if let Some(token) = token {
                let roles = account.roles.iter();
                let roles = roles.map(|(registry, role)| (registry.clone(), token.role.min(*role)));
                return Some((name.clone(), token.name.clone(), roles.collect()));
            }
        }
        None
    }

    /// The stored form of a token.
    pub(crate) fn token_credential(secret: &str) -> StoredCredential {
        StoredCredential::Token(hash_secret(secret))
    }

    /// The present password of an account.
    fn password_credential(&self, account: &str) -> Option<StoredCredential> {
        let contents = self.lock();
        let account = contents.accounts.get(account)?;
        Some(StoredCredential::of_password(&account.password_hash))
    }

    /// Whether an account still has exactly this token, unexpired, or exactly this password.
    pub(crate) fn has_credential(
        &self,
        account: &str,
        credential: &StoredCredential,
        now: Timestamp,
    ) -> bool {
        let contents = self.lock();
        let Some(account) = contents.accounts.get(account) else { return false };
        match credential {
            StoredCredential::Token(hash) => account
                .tokens
                .iter()
                .any(|token| token.hash == *hash && token.expires_at.is_none_or(|end| now < end)),
            // Every hash has its own salt, so it changes even if the same password is set again.
            StoredCredential::Password(_) => {
                StoredCredential::of_password(&account.password_hash) == *credential
            }
        }
    }

    /// Changes accounts in memory and on disk, or neither. An admin of everything must always remain.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Account>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut contents = self.lock();
        let before = contents.accounts.clone();
        let result = change(&mut contents.accounts).and_then(|result| {
            let has_admin = contents
                .accounts
                .values()
                .any(|account| account.roles.get(ALL_REGISTRIES) == Some(&Role::Admin));
            if !has_admin {
                return Err(Problem::new(
                    Code::Refused,
                    "the last admin of * cannot be removed or demoted",
                )
                .with_hint("make another account an admin of * first"));
            }
            match &self.path {
                Some(path) => files::replace(path, &*contents).map(|()| result),
                None => Ok(result),
            }
        });
        if result.is_err() {
            contents.accounts = before;
        }
        result
    }

    fn save(&self) -> Result<(), Problem> {
        match &self.path {
            Some(path) => files::replace(path, &*self.lock()),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AccountsFile> {
        // No code panics while holding this lock.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an account can have this name and password. What is longer is not worth a hash.
pub(crate) fn may_exist(name: &str, password: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH && password.chars().count() <= *PASSWORD_LENGTH.end()
}

fn check_name(name: &str) -> Result<(), Problem> {
    let is_valid = (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "._@-".contains(character))
        // A name of dots alone is not a path segment.
        && name.chars().any(|character| character.is_ascii_alphanumeric());
    if is_valid {
        return Ok(());
    }
    Err(Problem::invalid("username", "not a valid username")
        .with_hint("letters, digits, dots, dashes, underscores and @, at most 64 characters"))
}

pub(crate) fn check_password_length(password: &str) -> Result<(), Problem> {
    if PASSWORD_LENGTH.contains(&password.chars().count()) {
        return Ok(());
    }
    let text = format!(
        "a password has {} to {} characters",
        PASSWORD_LENGTH.start(),
        PASSWORD_LENGTH.end()
    );
    Err(Problem::invalid("password", text))
}

fn no_account(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no account {name}")).with_hint("list them")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn password_that_changes_while_it_is_hashed_is_wrong() {
        let accounts = Accounts::open(None).unwrap();
        accounts.create_first("ann", "old password").await.unwrap();
        let turn = accounts.hash_queue.turn().await.unwrap();
        let mut old = Box::pin(accounts.verify_password(turn, "ann", "old password"));
        assert!((&mut old).now_or_never().is_none(), "its hash is being computed");

        accounts.put("ann", Some("new password".to_owned()), None).await.unwrap();

        assert_eq!(old.await, None);
        let turn = accounts.hash_queue.turn().await.unwrap();
        assert!(accounts.verify_password(turn, "ann", "new password").await.is_some());
    }

    #[tokio::test]
    async fn password_that_changes_once_verified_is_neither_cached_nor_replaced() {
        let (accounts, now) =
            (Accounts::open(None).unwrap(), Monotonic::from_start(Duration::ZERO));
        accounts.create_first("ann", "old password").await.unwrap();
        let turn = accounts.hash_queue.turn().await.unwrap();
        let old = accounts.verify_password(turn, "ann", "old password").await.unwrap();
        accounts.cache_password("ann", "old password", &old, now);
        assert_eq!(accounts.cached_password("ann", "old password", now), Some(old.clone()));

        accounts.put("ann", Some("new password".to_owned()), None).await.unwrap();
        accounts.cache_password("ann", "old password", &old, now);

        assert_eq!(accounts.cached_password("ann", "old password", now), None);
        let replaced = accounts.replace_password("ann", &old, "mine for ever".to_owned()).await;
        assert_eq!(replaced, Ok(false));
        let turn = accounts.hash_queue.turn().await.unwrap();
        assert!(accounts.verify_password(turn, "ann", "new password").await.is_some());
    }
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

    fn accounts_file() -> AccountsFile {
        let roles = successors(Some(Role::Viewer), |role| match role {
            Role::Viewer => Some(Role::Operator),
            Role::Operator => Some(Role::Admin),
            Role::Admin => None,
        });
        let roles = ["test", "shop", ALL_REGISTRIES].map(ToOwned::to_owned).into_iter().zip(roles);
        let token = Token {
            id: "golden".to_owned(),
            name: "ci".to_owned(),
            hash: hash_secret(SECRET),
            role: Role::Operator,
            created_at: "2026-11-15T06:36:07Z".parse().unwrap(),
            expires_at: Some("2036-11-15T06:36:07Z".parse().unwrap()),
        };
        let account =
            Account { password_hash: HASH.to_owned(), roles: roles.collect(), tokens: vec![token] };
        AccountsFile { accounts: BTreeMap::from([("ann".to_owned(), account)]) }
    }

    #[tokio::test]
    async fn accounts_keep_their_stored_words() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("accounts.json");
        files::replace(&path, &accounts_file()).unwrap();

        let stored = golden!("accounts.json", fs::read_to_string(&path).unwrap() + "\n");

        fs::write(&path, &stored).unwrap();
        let accounts = Accounts::open(Some(path.clone())).unwrap();
        let turn = accounts.hash_queue.turn().await.unwrap();
        let credential = accounts.verify_password(turn, "ann", "correct horse").await;
        assert!(credential.is_some(), "the hash");
        let roles = Roles::from([
            (ALL_REGISTRIES.to_owned(), Role::Operator),
            ("shop".to_owned(), Role::Operator),
            ("test".to_owned(), Role::Viewer),
        ]);
        let now = "2026-11-16T00:00:00Z".parse().unwrap();
        let expected = Some(("ann".to_owned(), "ci".to_owned(), roles));
        assert_eq!(accounts.find_token(SECRET, now), expected, "the token's hash");
        accounts.save().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap() + "\n", stored);
    }
}
