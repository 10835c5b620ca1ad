//! The table of a job's properties.
//!
//! Everything that names them is built from it: the stored YAML, [`Job::set`], drift, the keys of job files, config edits of the console
//! and their OpenAPI schema. Tests hold the keys of `#[elasticjob::job]` and the table of `docs/configuration.md` equal to it. A new
//! property needs a row here, a field of [`Job`] and a builder method.

use super::{
    bounds::{Bound, MAX_CRON, MAX_ENTRIES, MAX_NAME, MAX_TEXT},
    error::InvalidValue,
    job::Job,
    plugins::TypeName,
    policy::{Failover, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile, Resharding},
    shards::ShardCount,
};
use crate::{
    problem::{Hint, Problem},
    schedule::{Cron, Zone},
};

/// One property of a job's configuration.
#[derive(Debug)]
pub struct Property {
    /// Java ElasticJob's name, under which it is stored.
    pub key: &'static str,
    /// Java ElasticJob's name up to 3.0.4, if it was another; see [`KeySpelling`](super::KeySpelling).
    pub key_up_to_304: Option<&'static str>,
    /// The effective value of an unset property, if there is one.
    pub default: Option<&'static str>,
    /// What a stored document means that does not have the key.
    pub missing: Missing,
    /// The call of the builder, for documentation: `.cron(…)?`.
    pub builder: Option<&'static str>,
    /// Its key in `#[elasticjob::job]`.
    pub attribute: Option<&'static str>,
    /// One line of Markdown for the configuration page.
    pub description: &'static str,
    /// The largest value that is stored, and read.
    pub bound: Bound,
    pub(super) access: Access,
}

/// What a stored document means that does not have a property. Java ElasticJob reads `false` and `0` where its builder has other defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The property's default.
    Default,
    /// This value instead of the default.
    Is(&'static str),
    /// The document cannot be read.
    Error,
}

/// What values a property has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyKind {
    /// The job's name. It cannot be changed.
    Name,
    Text,
    /// The name of a strategy, a thread pool or an error handler.
    TypeName,
    /// True or false.
    Flag,
    /// A whole number of 32 bits.
    Number,
    /// A whole number above zero.
    Count,
    /// Several texts.
    List,
    /// Free keys with texts.
    Map,
    /// Configuration of other programs. It cannot be changed.
    Foreign,
}

impl Property {
    /// Every property, in the order of the configuration page.
    pub fn all() -> &'static [Self] {
        &PROPERTIES
    }

    /// The property with this key, in either spelling.
    ///
    /// ```
    /// use elasticjob::job::{Property, PropertyKind};
    ///
    /// assert_eq!(Property::find("misfire").unwrap().kind(), PropertyKind::Flag);
    /// ```
    pub fn find(key: &str) -> Option<&'static Self> {
        PROPERTIES.iter().find(|property| property.keys().any(|known| known == key))
    }

    /// The older spelling of its key if there is one, and its key.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.key_up_to_304.into_iter().chain([self.key])
    }

    pub fn kind(&self) -> PropertyKind {
        match self.access {
            Access::Name => PropertyKind::Name,
            Access::Text { .. } | Access::Parsed { .. } => PropertyKind::Text,
            Access::TypeName { .. } => PropertyKind::TypeName,
            Access::Flag { .. } => PropertyKind::Flag,
            Access::Number { .. } => PropertyKind::Number,
            Access::Count { .. } => PropertyKind::Count,
            Access::List { .. } => PropertyKind::List,
            Access::Props => PropertyKind::Map,
            Access::Foreign => PropertyKind::Foreign,
        }
    }

    /// Whether a job file or a config edit may set it. The name and the configuration of other programs stay as they are.
    pub fn is_editable(&self) -> bool {
        !matches!(self.kind(), PropertyKind::Name | PropertyKind::Foreign)
    }

    /// Refuses a value that exceeds the property's bound; the text says why.
    pub(super) fn check(&self, job: &Job) -> Result<(), String> {
        match &self.access {
            Access::Text { get, .. } | Access::Parsed { get, .. } => {
                self.bound.check_text(get(job).unwrap_or_default())
            }
            Access::TypeName { get, .. } => {
                self.bound.check_text(get(job).map_or("", TypeName::as_str))
            }
            Access::List { get, .. } => {
                self.bound.check_entries(get(job).iter().map(String::as_str))
            }
            // Valid by their types. The number of shards has a limit of its own.
            Access::Name
            | Access::Flag { .. }
            | Access::Number { .. }
            | Access::Count { .. }
            | Access::Props
            | Access::Foreign => Ok(()),
        }
    }

    /// Whether its value is a single text, flag or number, so that [`Job::set`] accepts it.
    pub fn is_settable(&self) -> bool {
        use PropertyKind::{Count, Flag, Number, Text, TypeName};
        matches!(self.kind(), Text | TypeName | Flag | Number | Count)
    }
}

/// Where a property is in a [`Job`], and how it gets there.
#[derive(Debug)]
pub(super) enum Access {
    Name,
    /// Any text. A property that has none is not written.
    Text {
        get: fn(&Job) -> Option<&str>,
        put: fn(&mut Job, Option<String>),
    },
    /// A text that has to be valid.
    Parsed {
        get: fn(&Job) -> Option<&str>,
        /// From a stored document.
        read: fn(&mut Job, Option<&str>) -> Result<(), Problem>,
        /// From a person: the builder's method.
        set: fn(Job, &str) -> Result<Job, InvalidValue>,
    },
    TypeName {
        get: fn(&Job) -> Option<&TypeName>,
        put: fn(&mut Job, Option<TypeName>),
    },
    Flag {
        get: fn(&Job) -> bool,
        put: fn(&mut Job, bool),
    },
    Number {
        get: fn(&Job) -> i32,
        put: fn(&mut Job, i32),
    },
    Count {
        get: fn(&Job) -> ShardCount,
        put: fn(&mut Job, ShardCount),
    },
    List {
        get: fn(&Job) -> &[String],
        put: fn(&mut Job, Vec<String>),
    },
    Props,
    Foreign,
}

/// A flag that selects one of two variants.
macro_rules! choice {
    ($field:ident, $kind:ident: $yes:ident | $no:ident) => {
        Access::Flag {
            get: |job| job.$field == $kind::$yes,
            put: |job, yes| job.$field = if yes { $kind::$yes } else { $kind::$no },
        }
    };
}

macro_rules! type_name {
    ($field:ident) => {
        Access::TypeName { get: |job| job.$field.as_ref(), put: |job, name| job.$field = name }
    };
}

/// A text that is always written, even if it is empty.
macro_rules! text {
    ($field:ident) => {
        Access::Text {
            get: |job| Some(&job.$field),
            put: |job, text| job.$field = text.unwrap_or_default(),
        }
    };
}

/// Parses a text. Empty means unset.
fn parse<T: std::str::FromStr<Err: Hint>>(text: Option<&str>) -> Result<Option<T>, Problem> {
    let text = text.filter(|text| !text.is_empty());
    text.map(str::parse).transpose().map_err(|error: T::Err| Problem {
        message: error.to_string(),
        hint: error.hint().map(std::borrow::Cow::into_owned),
    })
}

static PROPERTIES: [Property; 22] = [
    Property {
        key: "jobName",
        key_up_to_304: None,
        default: None,
        missing: Missing::Error,
        builder: Some("Job::named"),
        attribute: Some("name"),
        description: "One segment of a registry path, without `@-@`.",
        bound: Bound::Bytes(MAX_NAME),
        access: Access::Name,
    },
    Property {
        key: "cron",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: Some(".cron(…)?"),
        attribute: Some("cron"),
        description: "When the job fires, as a [Quartz cron expression](cron.md). Without one it runs only when it is triggered.",
        bound: Bound::Bytes(MAX_CRON),
        access: Access::Parsed {
            get: |job| {
                let cron = job.cron.as_ref().map(Cron::as_str);
                cron.or(job.empty_values.cron.then_some(""))
            },
            read: |job, text| {
                job.empty_values.cron = text == Some("");
                job.cron = parse(text)?;
                Ok(())
            },
            set: Job::cron,
        },
    },
    Property {
        key: "timeZone",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: Some(".zone(…)?"),
        attribute: Some("zone"),
        description: "Time zone of the cron expression: `Europe/Paris`, `GMT+8:00`. Java accepts only the second form and throws at the first. Without one it is the machine's.",
        bound: Bound::Bytes(MAX_NAME),
        access: Access::Parsed {
            get: |job| {
                let zone = job.zone.as_ref().map(Zone::as_str);
                zone.or(job.empty_values.zone.then_some(""))
            },
            read: |job, text| {
                job.empty_values.zone = text == Some("");
                job.zone = parse(text)?;
                Ok(())
            },
            set: Job::zone,
        },
    },
    Property {
        key: "shardingTotalCount",
        key_up_to_304: None,
        default: Some("1"),
        missing: Missing::Error,
        builder: Some(".shards(4)"),
        attribute: Some("shards"),
        description: "Number of shards. Java has no default.",
        bound: Bound::Shards,
        access: Access::Count { get: |job| job.shards, put: |job, count| job.shards = count },
    },
    Property {
        key: "shardingItemParameters",
        key_up_to_304: None,
        default: Some(""),
        missing: Missing::Default,
        builder: Some(".items(…)?"),
        attribute: Some("items"),
        description: "The parameter of each shard: `0=Beijing,1=Shanghai`.",
        bound: Bound::Document,
        access: Access::Parsed {
            get: |job| Some(job.items.as_str()),
            read: |job, text| {
                job.items = parse(text)?.unwrap_or_default();
                Ok(())
            },
            set: Job::items,
        },
    },
    Property {
        key: "jobParameter",
        key_up_to_304: None,
        default: Some(""),
        missing: Missing::Default,
        builder: Some(".parameter(…)"),
        attribute: Some("parameter"),
        description: "The parameter of the whole job, passed to every shard.",
        bound: Bound::Bytes(MAX_TEXT),
        access: text!(parameter),
    },
    Property {
        key: "monitorExecution",
        key_up_to_304: None,
        default: Some("true"),
        missing: Missing::Is("false"),
        builder: Some(".monitor(…)"),
        attribute: Some("monitor_execution"),
        description: "Running shards are recorded in the registry. Without it there is no failover, and runs of a shard can overlap.",
        bound: Bound::Document,
        access: choice!(monitor, Monitor: Executions | Nothing),
    },
    Property {
        key: "failover",
        key_up_to_304: None,
        default: Some("false"),
        missing: Missing::Default,
        builder: Some(".failover(…)"),
        attribute: Some("failover"),
        description: "When an instance dies, other instances take over its shards at once.",
        bound: Bound::Document,
        access: choice!(failover, Failover: TakeOver | Wait),
    },
    Property {
        key: "misfire",
        key_up_to_304: None,
        default: Some("true"),
        missing: Missing::Is("false"),
        builder: Some(".misfire(…)"),
        attribute: Some("misfire"),
        description: "A fire that is due while the previous run is still going is compensated once, right after that run.",
        bound: Bound::Document,
        access: choice!(misfire, Misfire: RunOnce | Skip),
    },
    Property {
        key: "maxTimeDiffSeconds",
        key_up_to_304: None,
        default: Some("-1"),
        missing: Missing::Default,
        builder: Some(".max_time_diff(…)"),
        attribute: Some("max_time_diff_seconds"),
        description: "How far a node's clock may differ from the registry's before an alert is sent. Costs no request: answers to earlier writes tell the registry's time. Negative: not checked.",
        bound: Bound::Document,
        access: Access::Number {
            get: |job| job.max_time_diff.get(),
            put: |job, seconds| job.max_time_diff = MaxTimeDiff::seconds(seconds),
        },
    },
    Property {
        key: "reconcileIntervalMinutes",
        key_up_to_304: None,
        default: Some("10"),
        missing: Missing::Is("0"),
        builder: Some(".reconcile(…)"),
        attribute: Some("reconcile_interval_minutes"),
        description: "How often the leader checks that every shard's owner is still up. 0: never.",
        bound: Bound::Document,
        access: Access::Number {
            get: |job| job.reconcile.get(),
            put: |job, minutes| job.reconcile = Reconcile::minutes(minutes),
        },
    },
    Property {
        key: "jobShardingStrategyType",
        key_up_to_304: None,
        default: Some("AVG_ALLOCATION"),
        missing: Missing::Default,
        builder: Some(".strategy(…)"),
        attribute: Some("strategy"),
        description: "How shards are assigned: `AVG_ALLOCATION`, `ODEVITY`, `ROUND_ROBIN`, `SINGLE_SHARDING_BALANCE`, or one of your own.",
        bound: Bound::Bytes(MAX_NAME),
        access: type_name!(strategy_type),
    },
    Property {
        key: "jobExecutorThreadPoolSizeProviderType",
        key_up_to_304: Some("jobExecutorServiceHandlerType"),
        default: Some("CPU"),
        missing: Missing::Default,
        builder: Some(".threads(…)"),
        attribute: Some("thread_pool"),
        description: "How many shards of a run an instance runs concurrently: `CPU` (two per processor), `SINGLE_THREAD`, or an executor of your own. Up to 3.0.4 the key is `jobExecutorServiceHandlerType`; see below.",
        bound: Bound::Bytes(MAX_NAME),
        access: type_name!(thread_pool_type),
    },
    Property {
        key: "jobErrorHandlerType",
        key_up_to_304: None,
        default: Some("LOG"),
        missing: Missing::Default,
        builder: Some(".alert(…)"),
        attribute: Some("alert"),
        description: "Where failures are reported; see below.",
        bound: Bound::Bytes(MAX_NAME),
        access: type_name!(error_handler_type),
    },
    Property {
        key: "jobListenerTypes",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: Some(".java_listeners(…)"),
        attribute: Some("java_listeners"),
        description: "Java listeners by name. A Java instance fails at a name it does not know; Rust listeners are given to the node.",
        bound: Bound::Entries { count: MAX_ENTRIES, bytes: MAX_NAME },
        access: Access::List {
            get: |job| &job.listener_types,
            put: |job, names| job.listener_types = names,
        },
    },
    Property {
        key: "jobExtraConfigurations",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: None,
        attribute: None,
        description: "Kept unchanged. Java ElasticJob stores its tracing here, with its password.",
        bound: Bound::Document,
        access: Access::Foreign,
    },
    Property {
        key: "description",
        key_up_to_304: None,
        default: Some(""),
        missing: Missing::Default,
        builder: Some(".description(…)"),
        attribute: Some("description"),
        description: "For people.",
        bound: Bound::Bytes(MAX_TEXT),
        access: text!(description),
    },
    Property {
        key: "props",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: Some(".prop(…)?"),
        attribute: Some("props"),
        description: "All other settings; see below.",
        bound: Bound::Entries { count: MAX_ENTRIES, bytes: MAX_TEXT },
        access: Access::Props,
    },
    Property {
        key: "disabled",
        key_up_to_304: None,
        default: Some("false"),
        missing: Missing::Default,
        builder: Some(".disabled()"),
        attribute: Some("disabled"),
        description: "Instances start disabled.",
        bound: Bound::Document,
        access: Access::Flag { get: |job| job.disabled, put: |job, yes| job.disabled = yes },
    },
    Property {
        key: "overwrite",
        key_up_to_304: None,
        default: Some("false"),
        missing: Missing::Default,
        builder: Some(".overwrite(…)"),
        attribute: Some("overwrite"),
        description: "The program stores its configuration at start.",
        bound: Bound::Document,
        access: choice!(overwrite, Overwrite: LocalWins | StoredWins),
    },
    Property {
        key: "label",
        key_up_to_304: None,
        default: None,
        missing: Missing::Default,
        builder: Some(".label(…)"),
        attribute: Some("label"),
        description: "Not used.",
        bound: Bound::Bytes(MAX_TEXT),
        access: Access::Text { get: |job| job.label.as_deref(), put: |job, text| job.label = text },
    },
    Property {
        key: "staticSharding",
        key_up_to_304: None,
        default: Some("false"),
        missing: Missing::Default,
        builder: Some(".resharding(…)"),
        attribute: Some("static_sharding"),
        description: "Shards are assigned once, and again only when their number changes.",
        bound: Bound::Document,
        access: choice!(resharding, Resharding: Static | Elastic),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Alert, Strategy, ThreadPool};

    /// The value that a job has, as JSON would show it.
    fn value(job: &Job, key: &str) -> Option<String> {
        let value = job.to_json().get(key)?.clone();
        Some(value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
    }

    #[test]
    fn documented_defaults_are_those_of_a_new_job() {
        let job = Job::named("j").unwrap();
        for row in Property::all() {
            match (row.kind(), row.default) {
                (PropertyKind::Name, default) => assert_eq!(default, None),
                // An unset type is not written; its default is the one that is used.
                (PropertyKind::TypeName, default) => {
                    let mut named = job.clone();
                    named.set(row.key, default.unwrap()).unwrap();
                    assert_eq!(Strategy::of(&named), Strategy::of(&job));
                    assert_eq!(ThreadPool::of(&named), ThreadPool::of(&job));
                    assert_eq!(Alert::of(&named), Alert::of(&job));
                }
                (_, default) => assert_eq!(value(&job, row.key).as_deref(), default, "{}", row.key),
            }
        }
    }

    #[test]
    fn document_without_a_key_means_what_the_table_says() {
        let name = "j".parse().unwrap();
        let lines =
            [("jobName", "jobName: j\n"), ("shardingTotalCount", "shardingTotalCount: 1\n")];
        let document = |without: &str| {
            let kept = lines.iter().filter(|(key, _)| *key != without);
            kept.map(|(_, line)| *line).collect::<String>()
        };

        for row in Property::all() {
            let read = Job::read(&name, document(row.key).as_bytes());
            let expected = match row.missing {
                Missing::Error => {
                    let error = read.unwrap_err();
                    assert_eq!(error.problem, format!("it has no {}", row.key));
                    continue;
                }
                Missing::Default if row.kind() == PropertyKind::TypeName => None,
                Missing::Default => row.default,
                Missing::Is(value) => Some(value),
            };
            assert_eq!(value(&read.unwrap(), row.key).as_deref(), expected, "{}", row.key);
        }
    }
}
