//! Which configuration is used when the program's and the stored one differ.
//!
//! Pure decisions; the coordination layer does the reading and writing. The order is Java ElasticJob's: first check that the job does
//! not belong to another handler ([`Handler::check`]), then choose the configuration ([`resolve_config`]).

use std::{borrow::Cow, collections::BTreeSet, fmt};

use super::{
    bounds::shorten,
    job::{EmptyValues, Job, KeySpelling},
    mask::mask_value,
    name::JobName,
    policy::Overwrite,
    properties::PropertyKind,
    wire::entries,
    yaml::Kind,
};
use crate::problem::Hint;

/// Bytes of a name from the registry that a message shows.
const MAX_QUOTED: usize = 200;

/// The configuration to use, and whether it has to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigDecision {
    /// Nothing is stored yet: store this job.
    Store(Box<Job>),
    /// The program's configuration wins and differs: store this job.
    Overwrite { job: Box<Job>, changes: Vec<Difference> },
    /// The stored configuration is used. Nothing is written; the caller logs `drift` once.
    Keep {
        job: Box<Job>,
        /// What the program's configuration says differently.
        drift: Vec<Difference>,
    },
}

impl ConfigDecision {
    /// The configuration to use.
    pub fn job(&self) -> &Job {
        match self {
            Self::Store(job) | Self::Overwrite { job, .. } | Self::Keep { job, .. } => job,
        }
    }

    /// The configuration to store, if any.
    pub fn to_store(&self) -> Option<&Job> {
        match self {
            Self::Store(job) | Self::Overwrite { job, .. } => Some(job),
            Self::Keep { .. } => None,
        }
    }
}

/// Decides which configuration is used. The stored one wins, unless nothing is stored or the program sets [`Overwrite::LocalWins`].
///
/// A document that could not be read cannot be passed in, and so cannot be overwritten. If the program wins, the parts stored for other
/// programs stay: [extra configuration](super::ForeignConfig), which a Rust program does not have, and the older [`KeySpelling`], which
/// indicates that older instances read the document.
///
/// ```
/// use elasticjob::job::{Job, Overwrite, resolve_config};
///
/// let stored = Job::named("settle")?.shards(3);
/// let local = Job::named("settle")?.shards(4);
///
/// assert_eq!(resolve_config(local.clone(), Some(stored.clone())).job().shards.get(), 3);
/// let local = local.overwrite(Overwrite::LocalWins);
/// assert_eq!(resolve_config(local, Some(stored)).job().shards.get(), 4);
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
pub fn resolve_config(local: Job, stored: Option<Job>) -> ConfigDecision {
    let Some(stored) = stored else { return ConfigDecision::Store(Box::new(local)) };
    if local.overwrite == Overwrite::StoredWins {
        return ConfigDecision::Keep { drift: drift(&local, &stored), job: Box::new(stored) };
    }
    let job = replacing(local, &stored);
    let changes = drift(&job, &stored);
    if changes.is_empty() {
        return ConfigDecision::Keep { job: Box::new(stored), drift: changes };
    }
    ConfigDecision::Overwrite { job: Box::new(job), changes }
}

/// Prepares `job` to replace `stored`. Keeps the parts stored for other programs: [extra configuration](super::ForeignConfig) if `job` has none,
/// and the older [`KeySpelling`].
#[must_use]
pub fn replacing(mut job: Job, stored: &Job) -> Job {
    if job.foreign_config.is_empty() {
        job.foreign_config = stored.foreign_config.clone();
    }
    if stored.spelling == KeySpelling::UpTo304 {
        job.spelling = KeySpelling::UpTo304;
    }
    job
}

/// One property that differs between two configurations. For display: values that look like secrets are `***`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The property's name: `cron`, `props.elasticjob.timeout`.
    pub key: String,
    /// The program's value; `None` if it sets none.
    pub local: Option<String>,
    /// The stored value; `None` if none is stored.
    pub stored: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| {
            value.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"))
        };
        write!(f, "{}: here {}, stored {}", self.key, side(&self.local), side(&self.stored))
    }
}

/// The properties in which two configurations differ, under Java ElasticJob's names.
///
/// ```
/// use elasticjob::job::{Job, drift};
///
/// let local = Job::named("settle")?.shards(4);
/// let stored = Job::named("settle")?.shards(3);
/// assert_eq!(drift(&local, &stored)[0].to_string(), r#"shardingTotalCount: here "4", stored "3""#);
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
pub fn drift(local: &Job, stored: &Job) -> Vec<Difference> {
    let (here, there) = (flatten(local), flatten(stored));
    let value = |side: &[(String, String)], key: &str| {
        side.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    let mut seen = BTreeSet::new();
    here.iter()
        .chain(&there)
        .map(|(key, _)| key)
        .filter(|key| seen.insert(*key))
        .map(|key| Difference {
            key: key.clone(),
            local: value(&here, key),
            stored: value(&there, key),
        })
        .filter(|difference| difference.local != difference.stored)
        .map(|difference| Difference {
            local: difference.local.map(|text| mask_value(&difference.key, &text).into_owned()),
            stored: difference.stored.map(|text| mask_value(&difference.key, &text).into_owned()),
            key: difference.key,
        })
        .collect()
}

/// Every property with its value as text. Unset and empty properties mean the same and are omitted.
fn flatten(job: &Job) -> Vec<(String, String)> {
    let job = Job {
        spelling: KeySpelling::default(),
        empty_values: EmptyValues::default(),
        ..job.clone()
    };
    let mut pairs = Vec::new();
    for (key, property, node) in entries(&job) {
        match (property.kind(), node.kind) {
            (PropertyKind::Map, _) => pairs.extend(
                job.props.iter().map(|(key, value)| (format!("props.{key}"), value.to_owned())),
            ),
            (PropertyKind::Foreign, _) => {
                pairs.push((key.to_owned(), job.foreign_config.tags().join(",")));
            }
            (_, Kind::Sequence(items)) => {
                let items = items.into_iter().filter_map(|item| match item.kind {
                    Kind::Scalar(text) => Some(text),
                    _ => None,
                });
                pairs.push((key.to_owned(), items.collect::<Vec<_>>().join(",")));
            }
            (_, Kind::Scalar(text)) if !text.is_empty() => pairs.push((key.to_owned(), text)),
            _ => {}
        }
    }
    pairs
}

/// What runs a job's shards; stored as the data of the job's root node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// A command line (`SCRIPT`).
    Script,
    /// A request (`HTTP`).
    Http,
    /// A Rust function or struct.
    Code {
        /// The class that Java instances run the job with, if they share it: `com.acme.SettleOrders`.
        java_class: Option<String>,
    },
}

impl Handler {
    /// The data of the job's root node.
    pub fn root_data(&self) -> &str {
        match self {
            Self::Script => "SCRIPT",
            Self::Http => "HTTP",
            Self::Code { java_class } => java_class.as_deref().unwrap_or_default(),
        }
    }

    /// Checks that the job does not belong to another handler. `root` is the data of the job's root node, `stored` its configuration.
    ///
    /// Java compares the root data only, and empty data matches everything. Rust handlers are also compared by name
    /// (`elasticjob.handler`), because their root data is empty.
    ///
    /// ```
    /// use elasticjob::job::{Handler, Job};
    ///
    /// let local = Job::named("settle")?;
    /// let error = Handler::Script.check(&local, "com.acme.Settle", None).unwrap_err();
    /// assert!(error.to_string().starts_with("job settle belongs to the Java class com.acme.Settle, not to a script"));
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn check(&self, local: &Job, root: &str, stored: Option<&Job>) -> Result<(), Conflict> {
        let conflict = |theirs: String, hint: String| {
            let ours = self.describe(local);
            Err(Conflict { job: local.name.clone(), ours, theirs, hint })
        };
        if !root.trim().is_empty() && !self.matches_root(root) {
            let hint = match (self, is_job_type(root)) {
                (Self::Code { .. }, false) => format!(
                    "if this is the same work, set the handler's Java class to {}; otherwise choose another name",
                    quoted(root)
                ),
                _ => "choose another name, or remove the job once no instance runs it".to_owned(),
            };
            return conflict(describe_root(root), hint);
        }
        let theirs = stored.and_then(|stored| stored.props.policies().handler.as_deref());
        let ours = local.props.policies().handler.as_deref();
        match (self, theirs, ours) {
            (_, None, _) | (Self::Code { .. }, Some(_), None) => Ok(()),
            (Self::Code { .. }, Some(theirs), Some(ours)) if theirs == ours => Ok(()),
            (Self::Code { .. }, Some(theirs), Some(_)) => conflict(
                format!("the Rust handler {}", quoted(theirs)),
                format!(
                    "if the handler was only renamed, keep the name {}; otherwise choose another name for the job",
                    quoted(theirs)
                ),
            ),
            (_, Some(theirs), _) => conflict(
                format!("the Rust handler {}", quoted(theirs)),
                "choose another name, or remove the job once no instance runs it".to_owned(),
            ),
        }
    }

    /// Job types are compared without regard to case, classes exactly.
    fn matches_root(&self, root: &str) -> bool {
        match self {
            Self::Script | Self::Http => root.eq_ignore_ascii_case(self.root_data()),
            Self::Code { .. } => root == self.root_data(),
        }
    }

    fn describe(&self, local: &Job) -> String {
        match (self, local.props.policies().handler.as_deref()) {
            (Self::Script, _) => "a script".to_owned(),
            (Self::Http, _) => "an HTTP job".to_owned(),
            (Self::Code { .. }, Some(name)) => format!("the Rust handler {name}"),
            (Self::Code { java_class: Some(class) }, None) => {
                format!("a Rust handler for the Java class {class}")
            }
            (Self::Code { java_class: None }, None) => "a Rust handler".to_owned(),
        }
    }
}

fn is_job_type(root: &str) -> bool {
    root.eq_ignore_ascii_case("SCRIPT") || root.eq_ignore_ascii_case("HTTP")
}

fn describe_root(root: &str) -> String {
    if root.eq_ignore_ascii_case("SCRIPT") {
        "a script".to_owned()
    } else if root.eq_ignore_ascii_case("HTTP") {
        "an HTTP job".to_owned()
    } else {
        format!("the Java class {}", quoted(root))
    }
}

/// A name that came from the registry: as it is if it looks like a name, otherwise quoted.
fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain =
        |each: char| each.is_alphanumeric() || matches!(each, '.' | '_' | '-' | '$' | ':');
    if !name.is_empty() && name.len() <= MAX_QUOTED && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{:?}", shorten(name, MAX_QUOTED)))
}

/// The job belongs to another handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job {job} belongs to {theirs}, not to {ours}")]
pub struct Conflict {
    pub job: JobName,
    /// The handler of this program.
    pub ours: String,
    /// The handler that the job belongs to.
    pub theirs: String,
    pub hint: String,
}

impl Hint for Conflict {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Job::named("j").unwrap()
    }

    fn read(extra: &str) -> Job {
        let document = format!("jobName: j\nshardingTotalCount: 1\n{extra}");
        Job::read(&"j".parse().unwrap(), document.as_bytes()).unwrap()
    }

    #[test]
    fn text_of_the_registry_is_quoted_in_a_conflict() {
        let hostile = "x\u{1b}[2J\nerror: all jobs removed";
        let local = Job::named("settle").unwrap().handler("settle");
        let stored = Job::named("settle").unwrap().handler(hostile);
        let code = Handler::Code { java_class: Some("com.acme.Settle".to_owned()) };

        for conflict in [
            code.check(&local, hostile, None).unwrap_err(),
            code.check(&local, "", Some(&stored)).unwrap_err(),
            Handler::Script.check(&local, hostile, None).unwrap_err(),
            Handler::Script.check(&local, "", Some(&stored)).unwrap_err(),
        ] {
            let text = format!("{conflict}; {}", conflict.hint);
            assert!(!text.contains(['\u{1b}', '\n']), "{text:?}");
            assert!(text.contains(r#"[2J\nerror: all jobs removed""#), "{text:?}");
        }
        let long = code.check(&local, &"x".repeat(1_000_000), None).unwrap_err();
        assert!(format!("{long}; {}", long.hint).len() < 1_000);
    }

    #[test]
    fn first_configuration_is_stored_and_then_wins() {
        let stored = job().shards(3);

        assert_eq!(resolve_config(job(), None).to_store(), Some(&job()));
        let settled = resolve_config(job(), Some(stored.clone()));

        assert_eq!((settled.job(), settled.to_store()), (&stored, None));
    }

    #[test]
    fn local_configuration_is_written_only_if_it_differs() {
        let local = job().overwrite(Overwrite::LocalWins);

        assert_eq!(resolve_config(local.clone(), Some(local.clone())).to_store(), None);
        let ConfigDecision::Overwrite { job, changes } =
            resolve_config(local.clone().shards(2), Some(local))
        else {
            panic!()
        };

        assert_eq!((job.shards.get(), changes.len()), (2, 1));
    }

    #[test]
    fn overwrite_keeps_extra_configuration_and_spelling() {
        let stored =
            read("jobExecutorServiceHandlerType: CPU\njobExtraConfigurations:\n- !!x.Y\n  a: 1\n");

        let settled = resolve_config(job().overwrite(Overwrite::LocalWins), Some(stored.clone()));

        assert_eq!(settled.job().foreign_config, stored.foreign_config);
        assert_eq!(settled.job().spelling, KeySpelling::UpTo304);
    }

    #[test]
    fn drift_names_every_property_and_hides_secrets() {
        let local = job().shards(4).prop("email.password", "one").unwrap().prop("a", "b").unwrap();
        let stored = job().prop("email.password", "two").unwrap().description("d");

        let lines: Vec<String> = drift(&local, &stored).iter().map(ToString::to_string).collect();

        assert_eq!(
            lines,
            [
                r#"props.email.password: here "***", stored "***""#,
                r#"props.a: here "b", stored nothing"#,
                r#"shardingTotalCount: here "4", stored "1""#,
                r#"description: here nothing, stored "d""#,
            ]
        );
    }

    #[test]
    fn equivalent_spellings_are_no_drift() {
        let stored = read(
            "monitorExecution: yes\nmisfire: true\nreconcileIntervalMinutes: 012\ncron: ''\ntimeZone: ''\njobErrorHandlerType: ''\njobExecutorServiceHandlerType: ''\nprops: {b: 1, a: x}\n",
        );
        let local = job().prop("a", "x").unwrap().prop("b", "1").unwrap();

        assert_eq!(drift(&local, &stored), []);
    }

    #[test]
    fn job_belongs_to_one_handler() {
        let code = |class: Option<&str>| Handler::Code { java_class: class.map(ToOwned::to_owned) };
        let ours = job().handler("shop::settle");
        let theirs = job().handler("bank::settle");
        for (handler, root, stored, allowed) in [
            (Handler::Script, "", None, true),
            (Handler::Script, "script", None, true),
            (Handler::Script, "HTTP", None, false),
            (Handler::Script, "com.acme.Settle", None, false),
            (Handler::Http, "HTTP", None, true),
            (Handler::Http, "", Some(&theirs), false),
            (code(None), " ", None, true),
            (code(None), "com.acme.Settle", None, false),
            (code(Some("com.acme.Settle")), "com.acme.Settle", None, true),
            (code(Some("com.acme.Settle")), "com.acme.settle", None, false),
            (code(Some("com.acme.Settle")), "", None, true),
            (code(None), "", Some(&ours), true),
            (code(None), "", Some(&theirs), false),
            (code(None), "SCRIPT", None, false),
        ] {
            let result = handler.check(&ours, root, stored);

            assert_eq!(result.is_ok(), allowed, "{handler:?} {root:?} {result:?}");
        }
    }

    #[test]
    fn conflict_names_both_handlers_and_a_hint() {
        let error = Handler::Code { java_class: None }
            .check(&job().handler("shop::settle"), "com.acme.Settle", None)
            .unwrap_err();

        assert_eq!(
            error.to_string(),
            "job j belongs to the Java class com.acme.Settle, not to the Rust handler shop::settle"
        );
        assert_eq!(
            error.hint,
            "if this is the same work, set the handler's Java class to com.acme.Settle; otherwise choose another name"
        );
    }
}
