//! What counts when the program says one thing and the registry another.
//!
//! Decisions only; whoever reads and writes the registry asks here first. The order is the ancestor's: first whether the job is somebody
//! else's ([`Handler::check`]), then which configuration counts ([`settle`]).

use std::{collections::BTreeSet, fmt};

use super::{
    job::{Blank, Job, Spelling},
    name::JobName,
    policy::Overwrite,
    props::shown,
    wire::properties,
    yaml::Kind,
};

/// Which configuration counts, and whether something has to be written for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was stored: this is to be stored.
    Store(Box<Job>),
    /// The program wins and says something else: this is to be stored.
    Overwrite {
        /// What counts.
        job: Box<Job>,
        /// What it changes.
        changes: Vec<Difference>,
    },
    /// What is stored counts. Nothing is to be written; what the program says otherwise is to be logged, once.
    Keep {
        /// What counts.
        job: Box<Job>,
        /// What the program says otherwise.
        drift: Vec<Difference>,
    },
}

impl Settled {
    /// The configuration that counts.
    pub fn job(&self) -> &Job {
        match self {
            Self::Store(job) | Self::Overwrite { job, .. } | Self::Keep { job, .. } => job,
        }
    }

    /// The configuration to be stored, if something is.
    pub fn to_store(&self) -> Option<&Job> {
        match self {
            Self::Store(job) | Self::Overwrite { job, .. } => Some(job),
            Self::Keep { .. } => None,
        }
    }
}

/// Which configuration counts. What is stored wins, unless there is nothing or the program says [`Overwrite::LocalWins`].
///
/// There is no way to call this with a document that could not be read, and so none to overwrite it. When the program wins, what is stored
/// on behalf of others stays: [extra configuration](super::Extra), of which a Rust program has none, and the older [`Spelling`], which
/// says that older instances read it.
///
/// ```
/// use elasticjob::job::{Job, Overwrite, settle};
///
/// let stored = Job::named("settle")?.shards(3);
/// let local = Job::named("settle")?.shards(4);
///
/// assert_eq!(settle(local.clone(), Some(stored.clone())).job().shards.get(), 3);
/// let local = local.if_stored_differs(Overwrite::LocalWins);
/// assert_eq!(settle(local, Some(stored)).job().shards.get(), 4);
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
pub fn settle(local: Job, stored: Option<Job>) -> Settled {
    let Some(stored) = stored else { return Settled::Store(Box::new(local)) };
    if local.overwrite == Overwrite::StoredWins {
        return Settled::Keep { drift: drift(&local, &stored), job: Box::new(stored) };
    }
    let job = in_place_of(local, &stored);
    let changes = drift(&job, &stored);
    if changes.is_empty() {
        return Settled::Keep { job: Box::new(stored), drift: changes };
    }
    Settled::Overwrite { job: Box::new(job), changes }
}

/// What is stored when `job` takes the place of `stored`: what is there on behalf of others stays, [extra configuration](super::Extra) that
/// `job` has none of, and the older [`Spelling`].
#[must_use]
pub fn in_place_of(mut job: Job, stored: &Job) -> Job {
    if job.extra.is_empty() {
        job.extra = stored.extra.clone();
    }
    if stored.spelling == Spelling::UpTo304 {
        job.spelling = Spelling::UpTo304;
    }
    job
}

/// One property that is not the same here and there. For people: values that look like secrets are `***`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name: `cron`, `props.elasticjob.timeout`.
    pub key: String,
    /// What the program says; nothing if it does not say anything.
    pub local: Option<String>,
    /// What is stored; nothing if nothing is.
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

/// What a program says otherwise than the registry, by the ancestor's names.
///
/// ```
/// use elasticjob::job::{Job, drift};
///
/// let local = Job::named("settle")?.shards(4);
/// let stored = Job::named("settle")?.shards(3);
/// assert_eq!(drift(&local, &stored)[0].to_string(), r#"shardingTotalCount: here "4", stored "3""#);
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
pub fn drift(local: &Job, stored: &Job) -> Vec<Difference> {
    let (here, there) = (flat(local), flat(stored));
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
            local: difference.local.map(|text| shown(&difference.key, &text).to_owned()),
            stored: difference.stored.map(|text| shown(&difference.key, &text).to_owned()),
            key: difference.key,
        })
        .collect()
}

/// Every property with its value as text; those that are not set and those that are empty are left out, which is the same.
fn flat(job: &Job) -> Vec<(String, String)> {
    let job = Job { spelling: Spelling::default(), blank: Blank::default(), ..job.clone() };
    let mut flat = Vec::new();
    for (key, node) in properties(&job) {
        match (key, node.kind) {
            ("props", _) => flat.extend(
                job.props.iter().map(|(key, value)| (format!("props.{key}"), value.to_owned())),
            ),
            ("jobListenerTypes", _) => flat.push((key.to_owned(), job.listener_types.join(","))),
            ("jobExtraConfigurations", _) => {
                flat.push((key.to_owned(), job.extra.tags().join(",")));
            }
            (_, Kind::Scalar(text)) if !text.is_empty() => flat.push((key.to_owned(), text)),
            _ => {}
        }
    }
    flat
}

/// What runs a job's shards, as the registry is told: the data of the job's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// A command line (`SCRIPT`).
    Script,
    /// A request (`HTTP`).
    Http,
    /// A Rust function or struct. Where Java instances share the job, the class they run it with.
    Code {
        /// `com.acme.SettleOrders`, if the job is shared with Java.
        java_class: Option<String>,
    },
}

impl Handler {
    /// What stands in the job's root.
    pub fn root_data(&self) -> &str {
        match self {
            Self::Script => "SCRIPT",
            Self::Http => "HTTP",
            Self::Code { java_class } => java_class.as_deref().unwrap_or_default(),
        }
    }

    /// Whether a job may be run by this: not if another program has it. `root` is the data of the job's root, `stored` its configuration.
    ///
    /// Java goes by the root alone, and nothing there means anything goes. Rust handlers have names of their own (`elasticjob.handler`),
    /// because for Java they are all nothing.
    ///
    /// ```
    /// use elasticjob::job::{Handler, Job};
    ///
    /// let local = Job::named("settle")?;
    /// let error = Handler::Script.check(&local, "com.acme.Settle", None).unwrap_err();
    /// assert!(error.to_string().starts_with("job settle belongs to the Java class com.acme.Settle, not to a script"));
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn check(&self, local: &Job, root: &str, stored: Option<&Job>) -> Result<(), Conflict> {
        let conflict = |theirs: String, hint: String| {
            let ours = self.describe(local);
            Err(Conflict { job: local.name.clone(), ours, theirs, hint })
        };
        if !root.trim().is_empty() && !self.is_called(root) {
            let hint = match (self, is_type(root)) {
                (Self::Code { .. }, false) => format!(
                    "if this is the same work, say so with the Java class {root}; else choose another name"
                ),
                _ => "choose another name, or remove the job when nobody runs it".to_owned(),
            };
            return conflict(describe_root(root), hint);
        }
        let theirs = stored.and_then(|stored| stored.props.policies().handler.as_deref());
        let ours = local.props.policies().handler.as_deref();
        match (self, theirs, ours) {
            (_, None, _) | (Self::Code { .. }, Some(_), None) => Ok(()),
            (Self::Code { .. }, Some(theirs), Some(ours)) if theirs == ours => Ok(()),
            (Self::Code { .. }, Some(theirs), Some(_)) => conflict(
                format!("the Rust handler {theirs}"),
                format!(
                    "if it was only renamed, keep the handler's name {theirs}; else choose another name for the job"
                ),
            ),
            (_, Some(theirs), _) => conflict(
                format!("the Rust handler {theirs}"),
                "choose another name, or remove the job when nobody runs it".to_owned(),
            ),
        }
    }

    /// Types are the same in any case, classes are not.
    fn is_called(&self, root: &str) -> bool {
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

fn is_type(root: &str) -> bool {
    root.eq_ignore_ascii_case("SCRIPT") || root.eq_ignore_ascii_case("HTTP")
}

fn describe_root(root: &str) -> String {
    if root.eq_ignore_ascii_case("SCRIPT") {
        "a script".to_owned()
    } else if root.eq_ignore_ascii_case("HTTP") {
        "an HTTP job".to_owned()
    } else {
        format!("the Java class {root}")
    }
}

/// Two programs want the same job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job {job} belongs to {theirs}, not to {ours}; hint: {hint}")]
pub struct Conflict {
    /// The job.
    pub job: JobName,
    /// What this program runs it with.
    pub ours: String,
    /// Whose it is.
    pub theirs: String,
    /// The way out.
    pub hint: String,
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
    fn nothing_stored_means_store_and_the_stored_one_wins() {
        let stored = job().shards(3);

        assert_eq!(settle(job(), None).to_store(), Some(&job()));
        let settled = settle(job(), Some(stored.clone()));

        assert_eq!((settled.job(), settled.to_store()), (&stored, None));
    }

    #[test]
    fn a_program_that_wins_writes_only_what_differs() {
        let local = job().if_stored_differs(Overwrite::LocalWins);

        assert_eq!(settle(local.clone(), Some(local.clone())).to_store(), None);
        let Settled::Overwrite { job, changes } = settle(local.clone().shards(2), Some(local))
        else {
            panic!()
        };

        assert_eq!((job.shards.get(), changes.len()), (2, 1));
    }

    #[test]
    fn what_is_stored_for_others_survives_a_program_that_wins() {
        let stored =
            read("jobExecutorServiceHandlerType: CPU\njobExtraConfigurations:\n- !!x.Y\n  a: 1\n");

        let settled = settle(job().if_stored_differs(Overwrite::LocalWins), Some(stored.clone()));

        assert_eq!(settled.job().extra, stored.extra);
        assert_eq!(settled.job().spelling, Spelling::UpTo304);
    }

    #[test]
    fn drift_names_every_property_and_no_secret() {
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
    fn words_that_mean_the_same_are_no_drift() {
        let stored = read(
            "monitorExecution: yes\nmisfire: true\nreconcileIntervalMinutes: 012\ncron: ''\ntimeZone: ''\njobErrorHandlerType: ''\njobExecutorServiceHandlerType: ''\nprops: {b: 1, a: x}\n",
        );
        let local = job().prop("a", "x").unwrap().prop("b", "1").unwrap();

        assert_eq!(drift(&local, &stored), []);
    }

    #[test]
    fn a_job_belongs_to_one_program() {
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
    fn a_conflict_names_both_sides_and_the_way_out() {
        let error = Handler::Code { java_class: None }
            .check(&job().handler("shop::settle"), "com.acme.Settle", None)
            .unwrap_err();

        assert_eq!(
            error.to_string(),
            "job j belongs to the Java class com.acme.Settle, not to the Rust handler shop::settle; hint: if this is the same work, say so with the Java class com.acme.Settle; else choose another name"
        );
    }
}
