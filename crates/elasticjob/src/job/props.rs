//! Free properties, and our own policies among them.
//!
//! The ancestor stops at a key it does not know, everywhere but here. So this is where our extensions travel, under the prefix
//! `elasticjob.`, and Java carries them along without looking.

use std::{fmt, num::NonZeroU32, time::Duration};

use super::{
    duration,
    error::Invalid,
    kinds::{Strategy, TypeName},
    policy::{Backoff, CatchUp, LeaseLoss, Retry},
};
use crate::schedule::Dst;

/// The keys that mean something to us.
pub mod keys {
    /// How long a shard may run: `30s`.
    pub const TIMEOUT: &str = "elasticjob.timeout";
    /// How often a shard is tried in one run: `3`.
    pub const RETRY_MAX_ATTEMPTS: &str = "elasticjob.retry.max.attempts";
    /// How long to wait in between: `1s..1m`.
    pub const RETRY_BACKOFF: &str = "elasticjob.retry.backoff";
    /// What becomes of fires that nobody was there for: `none`, `last`, `all:6h`.
    pub const CATCH_UP: &str = "elasticjob.catch.up";
    /// What becomes of a running shard that loses its lease: `cancel`, `finish-fenced`, `continue`.
    pub const ON_LEASE_LOSS: &str = "elasticjob.on.lease.loss";
    /// A strategy that the ancestor does not know: `STICKY`, `WEIGHTED`.
    pub const STRATEGY: &str = "elasticjob.strategy";
    /// Whom to tell about failures, where the ancestor does not know the way: `WEBHOOK`.
    pub const ALERT: &str = "elasticjob.alert";
    /// Which Rust handler the job belongs to.
    pub const HANDLER: &str = "elasticjob.handler";
    /// What happens when the clocks change: `default`, `quartz`.
    pub const DST: &str = "elasticjob.dst";
    /// Whether a script's command line is for a shell: `true`, `false`.
    pub const SCRIPT_SHELL: &str = "elasticjob.script.shell";
    /// Whether an HTTP job that is answered with an error is only logged, as the ancestor does: `true`, `false`.
    pub const HTTP_LOG_ONLY: &str = "elasticjob.http.log.only";

    /// Where a `WEBHOOK` alert goes.
    pub const WEBHOOK_URL: &str = "elasticjob.webhook.url";
    /// How long connecting to it may take, in milliseconds: `3000`.
    pub const WEBHOOK_CONNECT_TIMEOUT: &str = "elasticjob.webhook.connectTimeoutMilliseconds";
    /// How long its answer may take, in milliseconds: `5000`.
    pub const WEBHOOK_READ_TIMEOUT: &str = "elasticjob.webhook.readTimeoutMilliseconds";

    pub(super) const PREFIX: &str = "elasticjob.";
    pub(in crate::job) const ALL: [&str; 14] = [
        TIMEOUT,
        RETRY_MAX_ATTEMPTS,
        RETRY_BACKOFF,
        CATCH_UP,
        ON_LEASE_LOSS,
        STRATEGY,
        ALERT,
        HANDLER,
        DST,
        SCRIPT_SHELL,
        HTTP_LOG_ONLY,
        WEBHOOK_URL,
        WEBHOOK_CONNECT_TIMEOUT,
        WEBHOOK_READ_TIMEOUT,
    ];
}

/// A job's free properties: text by text, in the order they were written.
///
/// Invariant: every key occurs once, and every key of [`keys`] has a value that can be read. The order does not count when two are
/// compared. Values that look like secrets are not printed.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::job::Props;
///
/// let mut props = Props::new();
/// props.set("script.command.line", "sh backup.sh")?;
/// props.set("elasticjob.timeout", "90s")?;
/// assert_eq!(props.policies().timeout, Some(Duration::from_secs(90)));
///
/// let error = props.set("elasticjob.timeout", "soon").unwrap_err();
/// assert_eq!(error.to_string(), r#"elasticjob.timeout "soon": a number and ms, s, m, h or d; for example 500ms or 30s"#);
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Clone, Default)]
pub struct Props {
    entries: Vec<(String, String)>,
    policies: Policies,
}

/// What the properties under `elasticjob.` say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// How long a shard may run.
    pub timeout: Option<Duration>,
    /// If a shard fails.
    pub retry: Retry,
    /// What becomes of fires that nobody was there for.
    pub catch_up: CatchUp,
    /// If a running shard's lease is lost.
    pub on_lease_loss: LeaseLoss,
    /// A strategy that overrules `jobShardingStrategyType`.
    pub strategy: Option<Strategy>,
    /// An alert that overrules `jobErrorHandlerType`.
    pub alert: Option<TypeName>,
    /// Which Rust handler the job belongs to.
    pub handler: Option<String>,
    /// What happens when the clocks change. Where nothing is stored it is Quartz's rule, because then Java made the job.
    pub dst: Dst,
    /// Whether a script's command line is for a shell.
    pub script_shell: bool,
    /// Whether an HTTP job that is answered with an error is only logged.
    pub http_log_only: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            timeout: None,
            retry: Retry::NEVER,
            catch_up: CatchUp::None,
            on_lease_loss: LeaseLoss::Cancel,
            strategy: None,
            alert: None,
            handler: None,
            dst: Dst::Quartz,
            script_shell: false,
            http_log_only: false,
        }
    }
}

impl Policies {
    /// The same policies with one property more.
    fn with(&self, key: &str, value: &str) -> Result<Self, Invalid> {
        let mut policies = self.clone();
        policies.apply(key, value).map_err(|error| Invalid {
            what: key.to_owned().into(),
            text: value.to_owned(),
            problem: error.problem,
        })?;
        Ok(policies)
    }

    fn apply(&mut self, key: &str, value: &str) -> Result<(), Invalid> {
        let name = Some(value).filter(|value| !value.is_empty());
        match key {
            keys::TIMEOUT => self.timeout = Some(duration::parse("timeout", value)?),
            keys::RETRY_MAX_ATTEMPTS => {
                self.retry.max_attempts = value.parse::<NonZeroU32>().map_err(|_| {
                    Invalid::new("attempts", value, "a number from one; the first try counts")
                })?;
            }
            keys::RETRY_BACKOFF => self.retry.backoff = value.parse::<Backoff>()?,
            keys::CATCH_UP => self.catch_up = value.parse()?,
            keys::ON_LEASE_LOSS => self.on_lease_loss = value.parse()?,
            keys::STRATEGY => self.strategy = name.map(|name| Strategy::named(Some(&name.into()))),
            keys::ALERT => self.alert = name.map(TypeName::from),
            keys::HANDLER => self.handler = name.map(ToOwned::to_owned),
            keys::DST => {
                self.dst = value
                    .parse()
                    .map_err(|_| Invalid::new("DST rule", value, "default or quartz"))?;
            }
            keys::SCRIPT_SHELL => self.script_shell = flag(value)?,
            keys::HTTP_LOG_ONLY => self.http_log_only = flag(value)?,
            _ => {}
        }
        Ok(())
    }
}

fn flag(value: &str) -> Result<bool, Invalid> {
    value.parse().map_err(|_| Invalid::new("flag", value, "true or false"))
}

impl Props {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A property's value.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Sets a property; one that is there already keeps its place.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> Result<(), Invalid> {
        let (key, value) = (key.into(), value.into());
        self.policies = self.policies.with(&key, &value)?;
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    /// Removes a property.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|(known, _)| known != key);
        // What is left could be read before, so it can be read now.
        self.policies = self.iter().fold(Policies::default(), |policies, (key, value)| {
            policies.with(key, value).unwrap_or(policies)
        });
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What those under `elasticjob.` say.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Those under `elasticjob.` that mean nothing to this version: a slip of the pen, or a newer version's. They are kept.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .map(|(key, _)| key)
            .filter(|key| key.starts_with(keys::PREFIX) && !keys::ALL.contains(key))
    }
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Eq for Props {}

impl fmt::Debug for Props {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, value)| (key, shown(key, value)))).finish()
    }
}

/// A property's value for logs: secrets and addresses that carry a token are left out.
pub(super) fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    let key = key.to_ascii_lowercase();
    let secret = ["password", "secret", "token", "webhook", "credential", "authorization"];
    if !value.is_empty() && secret.iter().any(|word| key.contains(word)) { "***" } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_keeps_its_place_and_a_bad_one_changes_nothing() {
        let mut props = Props::new();
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3"), (keys::CATCH_UP, "last")] {
            props.set(key, value).unwrap();
        }

        props.set(keys::CATCH_UP, "sometimes").unwrap_err();

        assert_eq!(
            props.iter().collect::<Vec<_>>(),
            [("b", "3"), ("a", "2"), (keys::CATCH_UP, "last")]
        );
        assert_eq!(props.policies().catch_up, CatchUp::Last);
    }

    #[test]
    fn what_is_removed_means_nothing_any_more() {
        let mut props = Props::new();
        props.set(keys::TIMEOUT, "1s").unwrap();

        props.remove(keys::TIMEOUT);

        assert_eq!(props.policies(), &Policies::default());
    }

    #[test]
    fn every_policy_says_what_would_be_right() {
        for key in keys::ALL {
            // An alert that is not set up does not keep a job from running.
            let free = matches!(key, keys::STRATEGY | keys::ALERT | keys::HANDLER)
                || key.starts_with("elasticjob.webhook.");
            let result = Props::new().set(key, "?!");

            assert_eq!(result.is_ok(), free, "{key}");
            if let Err(error) = result {
                assert!(error.to_string().starts_with(key), "{error}");
            }
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_kept_and_found() {
        let mut props = Props::new();
        props.set("elasticjob.timout", "1s").unwrap();
        props.set("http.uri", "http://localhost").unwrap();

        assert_eq!(props.unknown().collect::<Vec<_>>(), ["elasticjob.timout"]);
    }

    #[test]
    fn secrets_are_not_printed() {
        let mut props = Props::new();
        props.set("email.password", "hunter2").unwrap();
        props.set("email.host", "mail").unwrap();

        let printed = format!("{props:?}");

        assert!(!printed.contains("hunter2") && printed.contains("mail"), "{printed}");
    }
}
