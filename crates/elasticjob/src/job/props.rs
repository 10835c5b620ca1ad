//! Free properties, and the policies stored among them.
//!
//! Java ElasticJob rejects unknown keys everywhere but in `props`. So settings that only this library has are stored there, under the
//! prefix `elasticjob.`, and Java preserves them without reading them.

use std::{fmt, num::NonZeroU32, time::Duration};

use super::{
    bounds::{Bound, MAX_ATTEMPTS, MAX_ENTRIES, MAX_NAME, MAX_TEXT},
    duration,
    error::InvalidValue,
    mask::mask_value,
    plugins::{Strategy, TypeName},
    policy::{Backoff, CatchUp, LeaseLoss, Retry},
};
use crate::schedule::Dst;

/// The keys that this library reads.
pub mod keys {
    /// Time limit of an attempt: `30s`.
    pub const TIMEOUT: &str = "elasticjob.timeout";
    /// Attempts at a shard in one run, including the first: `3`.
    pub const RETRY_MAX_ATTEMPTS: &str = "elasticjob.retry.max.attempts";
    /// How long to wait between attempts: `1s..1m`.
    pub const RETRY_BACKOFF: &str = "elasticjob.retry.backoff";
    /// What happens to fires that were due while no instance was up: `none`, `last`, `all:6h`.
    pub const CATCH_UP: &str = "elasticjob.catch.up";
    /// What happens to a running shard whose instance loses its lease: `cancel`, `finish-fenced`, `continue`.
    pub const ON_LEASE_LOSS: &str = "elasticjob.on.lease.loss";
    /// A sharding strategy that Java does not know: `STICKY`, `WEIGHTED`.
    pub const STRATEGY: &str = "elasticjob.strategy";
    /// An alert that Java does not know: `WEBHOOK`.
    pub const ALERT: &str = "elasticjob.alert";
    /// Name of the Rust handler that the job belongs to.
    pub const HANDLER: &str = "elasticjob.handler";
    /// What happens when the clocks change: `default`, `quartz`.
    pub const DST: &str = "elasticjob.dst";
    /// Whether a shell interprets a script's command line: `true`, `false`.
    pub const SCRIPT_SHELL: &str = "elasticjob.script.shell";
    /// Whether a script inherits the worker's `ELASTICJOB_*` variables, URLs with passwords included: `true`, `false`. Counts only where the worker's
    /// operator sets it: in a job file or a program, not in the registry.
    pub const SCRIPT_INHERIT_ENVIRONMENT: &str = "elasticjob.script.inherit.environment";
    /// Whether an error response to an HTTP job is only logged, as Java does, instead of failing the shard: `true`, `false`.
    pub const HTTP_LOG_ONLY: &str = "elasticjob.http.log.only";

    /// Beginning of the keys of an HTTP job's headers, which end with the name of the header: `elasticjob.http.header.Authorization`.
    pub const HTTP_HEADER: &str = "elasticjob.http.header.";

    /// URL of a `WEBHOOK` alert.
    pub const WEBHOOK_URL: &str = "elasticjob.webhook.url";
    /// Connect timeout of a `WEBHOOK` alert, in milliseconds: `3000`.
    pub const WEBHOOK_CONNECT_TIMEOUT: &str = "elasticjob.webhook.connectTimeoutMilliseconds";
    /// Read timeout of a `WEBHOOK` alert, in milliseconds: `5000`.
    pub const WEBHOOK_READ_TIMEOUT: &str = "elasticjob.webhook.readTimeoutMilliseconds";

    pub(super) const PREFIX: &str = "elasticjob.";
    pub(in crate::job) const ALL: [&str; 15] = [
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
        SCRIPT_INHERIT_ENVIRONMENT,
        HTTP_LOG_ONLY,
        WEBHOOK_URL,
        WEBHOOK_CONNECT_TIMEOUT,
        WEBHOOK_READ_TIMEOUT,
    ];
}

/// A job's free properties, in the order they were written.
///
/// Invariant: every key occurs once, every key of [`keys`] has a valid value, and there are at most a thousand, of bounded size. Comparison ignores the order. Values that look like
/// secrets are not printed.
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
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Clone, Default)]
pub struct Props {
    entries: Vec<(String, String)>,
    policies: Policies,
}

/// The parsed properties under `elasticjob.`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// Time limit of an attempt.
    pub timeout: Option<Duration>,
    pub retry: Retry,
    pub catch_up: CatchUp,
    pub on_lease_loss: LeaseLoss,
    /// Overrides `jobShardingStrategyType`.
    pub strategy: Option<Strategy>,
    /// Overrides `jobErrorHandlerType`.
    pub alert: Option<TypeName>,
    /// Name of the Rust handler that the job belongs to.
    pub handler: Option<String>,
    /// What happens when the clocks change. Without a stored value it is Quartz's rule, because then Java created the job.
    pub dst: Dst,
    /// Whether a shell interprets a script's command line.
    pub script_shell: bool,
    /// Whether a script inherits the worker's `ELASTICJOB_*` variables, if the worker's operator set it.
    pub script_inherit_environment: bool,
    /// Whether an error response to an HTTP job is only logged.
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
            script_inherit_environment: false,
            http_log_only: false,
        }
    }
}

impl Policies {
    /// A copy with one more property applied.
    fn with(&self, key: &str, value: &str) -> Result<Self, InvalidValue> {
        let mut policies = self.clone();
        policies.apply(key, value).map_err(|error| InvalidValue {
            hint: error.hint,
            ..InvalidValue::new(key.to_owned(), value, error.problem)
        })?;
        Ok(policies)
    }

    fn apply(&mut self, key: &str, value: &str) -> Result<(), InvalidValue> {
        let name = Some(value).filter(|value| !value.is_empty());
        match key {
            keys::TIMEOUT => self.timeout = Some(duration::parse("timeout", value)?),
            keys::RETRY_MAX_ATTEMPTS => {
                let attempts = value.parse::<NonZeroU32>().ok();
                let attempts = attempts.filter(|attempts| attempts.get() <= MAX_ATTEMPTS);
                self.retry.max_attempts = attempts.ok_or_else(|| {
                    let problem = format!(
                        "it is not a number from 1 to {MAX_ATTEMPTS}; the first attempt counts"
                    );
                    InvalidValue::new("attempts", value, problem)
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
                    .map_err(|_| InvalidValue::new("DST rule", value, "default or quartz"))?;
            }
            keys::SCRIPT_SHELL => self.script_shell = flag(value)?,
            keys::SCRIPT_INHERIT_ENVIRONMENT => self.script_inherit_environment = flag(value)?,
            keys::HTTP_LOG_ONLY => self.http_log_only = flag(value)?,
            _ => {}
        }
        Ok(())
    }
}

fn flag(value: &str) -> Result<bool, InvalidValue> {
    value.parse().map_err(|_| InvalidValue::new("flag", value, "true or false"))
}

impl Props {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Sets a property; an existing one keeps its position.
    pub fn set(
        &mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<(), InvalidValue> {
        let (key, value) = (key.into(), value.into());
        let too_large = |problem| InvalidValue::new("property", key.as_str(), problem);
        Bound::Bytes(MAX_NAME).check_text(&key).map_err(too_large)?;
        Bound::Bytes(MAX_TEXT).check_text(&value).map_err(too_large)?;
        let is_new = self.get(&key).is_none();
        if is_new && self.entries.len() >= MAX_ENTRIES {
            return Err(too_large(format!("a job has at most {MAX_ENTRIES} properties")));
        }
        if keys::ALL.contains(&key.as_str()) {
            self.policies = self.policies.with(&key, &value)?;
        }
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|(known, _)| known != key);
        // The remaining properties were valid before, so they are valid now.
        self.policies = self.iter().fold(Policies::default(), |policies, (key, value)| {
            policies.with(key, value).unwrap_or(policies)
        });
    }

    /// All properties, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The parsed properties under `elasticjob.`.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Keys under `elasticjob.` that this version does not know: typos, or keys of a newer version. They are preserved.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .map(|(key, _)| key)
            .filter(|key| key.starts_with(keys::PREFIX) && !keys::ALL.contains(key))
            .filter(|key| !key.starts_with(keys::HTTP_HEADER))
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
        f.debug_map()
            .entries(self.iter().map(|(key, value)| (key, mask_value(key, value))))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_keeps_the_position_and_refused_value_changes_nothing() {
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
    fn remove_resets_the_policy() {
        let mut props = Props::new();
        props.set(keys::TIMEOUT, "1s").unwrap();

        props.remove(keys::TIMEOUT);

        assert_eq!(props.policies(), &Policies::default());
    }

    #[test]
    fn policy_error_names_the_key() {
        for key in keys::ALL {
            // These accept any text: a job with an incomplete alert still runs.
            let accepts_any = matches!(key, keys::STRATEGY | keys::ALERT | keys::HANDLER)
                || key.starts_with("elasticjob.webhook.");
            let result = Props::new().set(key, "?!");

            assert_eq!(result.is_ok(), accepts_any, "{key}");
            if let Err(error) = result {
                assert!(error.to_string().starts_with(key), "{error}");
            }
        }
    }

    #[test]
    fn unknown_key_is_preserved_and_listed() {
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
