//! A job's configuration as it is stored: Java ElasticJob's YAML.
//!
//! Written byte for byte as 3.0.5 writes it. Read as Java reads it, and slightly more leniently: both spellings of the thread-pool key,
//! any tag on extra configuration, and null instead of an empty list are accepted. A missing key means what it means to Java, which is
//! not the documented default: no monitoring, no misfire compensation, no reconciliation.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::{
    error::{InvalidValue, UnreadableDocument},
    extra::ForeignConfig,
    job::{Job, KeySpelling},
    name::JobName,
    plugins::TypeName,
    policy::{Failover, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile, Resharding},
    props::{Props, redact},
    shards::ShardCount,
    yaml::{BOOL, INT, Kind, Node, emit, java_to_string, load, parse_bool, parse_int},
};
use crate::problem::Hint;

const THREAD_POOL: &str = "jobExecutorThreadPoolSizeProviderType";
const THREAD_POOL_UP_TO_304: &str = "jobExecutorServiceHandlerType";
/// Keys that only 2.1.5 documents have.
const LEGACY_KEYS: [&str; 3] = ["jobClass", "jobType", "jobProperties"];

impl Job {
    /// The document, byte for byte as Java ElasticJob writes it.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let yaml = Job::named("settle")?.shards(3).to_yaml();
    /// assert!(yaml.starts_with("description: ''\ndisabled: false\nfailover: false\njobName: settle\n"));
    /// assert_eq!(Job::read(&"settle".parse()?, yaml.as_bytes()).unwrap().shards.get(), 3);
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn to_yaml(&self) -> String {
        let entries = properties(self).into_iter().map(|(key, value)| (Node::text(key), value));
        emit(&Node::mapping(entries.collect()))
    }

    /// The configuration as JSON, for display: properties that look like secrets are `***`, and configuration of other programs is reduced
    /// to its tags, because it may contain passwords.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let json = Job::named("settle")?.shards(3).to_json();
    /// assert_eq!(json["shardingTotalCount"], 3);
    /// assert_eq!(json["failover"], false);
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let entries = properties(self).into_iter().map(|(key, node)| {
            let value = match key {
                "jobExtraConfigurations" => self.extra.tags().into(),
                "props" => {
                    self.props.iter().map(|(key, value)| (key, redact(key, value))).collect()
                }
                _ => to_json_value(node),
            };
            (key.to_owned(), value)
        });
        Value::Object(entries.collect())
    }

    /// Reads the document stored for the job `name`.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let document = b"jobName: settle\nshardingTotalCount: 3\ncron: every day\n";
    /// let error = Job::read(&"settle".parse()?, document).unwrap_err();
    /// assert!(error.to_string().starts_with("job settle: the stored config cannot be read, line 3, key cron: "));
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn read(name: &JobName, document: &[u8]) -> Result<Self, UnreadableDocument> {
        let reader = Reader { job: name, line: 0, key: String::new() };
        let text = std::str::from_utf8(document).map_err(|_| reader.error("it is not UTF-8"))?;
        let root = load(text).map_err(|error| UnreadableDocument {
            line: Some(error.line),
            ..reader.error(error.problem)
        })?;
        let root = root.ok_or_else(|| reader.error("it is empty"))?;
        reader.document(&root)
    }

    /// The properties that [`Job::set`] accepts, by Java's names.
    pub const PROPERTIES: [&str; 19] = [
        "cron",
        "description",
        "disabled",
        "failover",
        "jobErrorHandlerType",
        THREAD_POOL_UP_TO_304,
        THREAD_POOL,
        "jobParameter",
        "jobShardingStrategyType",
        "label",
        "maxTimeDiffSeconds",
        "misfire",
        "monitorExecution",
        "overwrite",
        "reconcileIntervalMinutes",
        "shardingItemParameters",
        "shardingTotalCount",
        "staticSharding",
        "timeZone",
    ];

    /// Sets a property by Java's name, from text, for configurations that come from a file. Both names of the thread pool set the same
    /// property; [`KeySpelling`] decides which name is stored.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let mut job = Job::named("settle")?;
    /// job.set("shardingTotalCount", "3")?;
    /// assert_eq!(job.shards.get(), 3);
    ///
    /// let error = job.set("misfire", "perhaps").unwrap_err();
    /// assert_eq!(error.to_string(), r#"misfire "perhaps": it is neither true nor false"#);
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), InvalidValue> {
        let changed = match key {
            "cron" => self.clone().cron(text)?,
            "timeZone" => self.clone().zone(text)?,
            "shardingItemParameters" => self.clone().items(text)?,
            key if Self::PROPERTIES.contains(&key) => {
                let mut job = self.clone();
                let name = self.name.clone();
                let mut reader = Reader { job: &name, line: 0, key: key.to_owned() };
                let result = reader.property(&mut job, key, &Node::text(text));
                result.map_err(|error| {
                    let prefix = format!("{text:?} is ");
                    let problem = match error.problem.strip_prefix(&prefix) {
                        Some(rest) => format!("it is {rest}"),
                        None => error.problem,
                    };
                    InvalidValue {
                        hint: error.hint,
                        ..InvalidValue::new(key.to_owned(), text, problem)
                    }
                })?;
                job.spelling = self.spelling;
                job
            }
            _ => return Err(InvalidValue::new("property", key, "there is no such property")),
        };
        *self = changed;
        Ok(())
    }
}

fn to_json_value(node: Node) -> Value {
    match node.kind {
        Kind::Scalar(text) if node.tag == BOOL => (text == "true").into(),
        Kind::Scalar(text) => match text.parse::<i64>() {
            Ok(number) if node.tag == INT => number.into(),
            _ => text.into(),
        },
        Kind::Sequence(items) => items.into_iter().map(to_json_value).collect(),
        // Only `props` is a map, and it is handled by the caller.
        Kind::Mapping(_) => Value::Null,
    }
}

/// A job's properties under Java's names, in Java's order; unset ones are omitted.
pub(super) fn properties(job: &Job) -> Vec<(&'static str, Node)> {
    let text = |text: &str| Some(Node::text(text));
    let name = |name: &Option<TypeName>| name.as_ref().map(|name| Node::text(name.as_str()));
    let empty_text = |is_empty: bool| is_empty.then(|| Node::text(""));
    let flag = |flag: bool| Some(Node::bool(flag));
    let list = |node: Node| Some(node).filter(|node| node.kind != Kind::Sequence(Vec::new()));
    let listeners = job.listener_types.iter().map(|name| Node::text(name.as_str())).collect();
    let props = job.props.iter().map(|(key, value)| (Node::text(key), Node::text(value))).collect();
    let thread_pool = match job.spelling {
        KeySpelling::Since305 => THREAD_POOL,
        KeySpelling::UpTo304 => THREAD_POOL_UP_TO_304,
    };
    let cron = job.cron.as_ref().map(|cron| Node::text(cron.as_str()));
    let zone = job.zone.as_ref().map(|zone| Node::text(zone.as_str()));
    [
        ("cron", cron.or_else(|| empty_text(job.empty_values.cron))),
        ("description", text(&job.description)),
        ("disabled", flag(job.disabled)),
        ("failover", flag(job.failover == Failover::TakeOver)),
        ("jobErrorHandlerType", name(&job.error_handler_type)),
        (thread_pool, name(&job.thread_pool_type)),
        ("jobExtraConfigurations", list(job.extra.to_node())),
        ("jobListenerTypes", list(Node::sequence(listeners))),
        ("jobName", text(job.name.as_str())),
        ("jobParameter", text(&job.parameter)),
        ("jobShardingStrategyType", name(&job.strategy_type)),
        ("label", job.label.as_deref().map(Node::text)),
        ("maxTimeDiffSeconds", Some(Node::int(job.max_time_diff.get()))),
        ("misfire", flag(job.misfire == Misfire::RunOnce)),
        ("monitorExecution", flag(job.monitor == Monitor::Executions)),
        ("overwrite", flag(job.overwrite == Overwrite::LocalWins)),
        ("props", Some(Node::mapping(props)).filter(|_| !job.props.is_empty())),
        ("reconcileIntervalMinutes", Some(Node::int(job.reconcile.get()))),
        ("shardingItemParameters", text(job.items.as_str())),
        ("shardingTotalCount", Some(Node::int(job.shards.get()))),
        ("staticSharding", flag(job.resharding == Resharding::Static)),
        ("timeZone", zone.or_else(|| empty_text(job.empty_values.zone))),
    ]
    .into_iter()
    .filter_map(|(key, node)| Some((key, node?)))
    .collect()
}

/// If a key occurs twice, the last value wins; Java does not even parse the others.
fn last_entry_per_key(entries: &[(Node, Node)]) -> impl Iterator<Item = &(Node, Node)> {
    entries.iter().enumerate().filter_map(|(index, entry)| {
        let is_repeated = entries[index + 1..].iter().any(|(later, _)| *later == entry.0);
        (!is_repeated).then_some(entry)
    })
}

/// Converts nodes to properties and keeps the current line and key for error messages.
struct Reader<'a> {
    job: &'a JobName,
    line: usize,
    key: String,
}

impl Reader<'_> {
    fn error(&self, problem: impl Into<String>) -> UnreadableDocument {
        UnreadableDocument {
            job: self.job.clone(),
            document: "config".to_owned(),
            line: Some(self.line).filter(|line| *line > 0),
            key: Some(self.key.clone()).filter(|key| !key.is_empty()),
            problem: problem.into(),
            hint: None,
        }
    }

    fn document(mut self, root: &Node) -> Result<Job, UnreadableDocument> {
        self.line = root.line;
        let Kind::Mapping(entries) = &root.kind else {
            let problem = if root.is_null() { "it is empty" } else { "it is not a map" };
            return Err(self.error(problem));
        };
        let mut job = Job::new(self.job.clone());
        (job.monitor, job.misfire, job.reconcile) =
            (Monitor::Nothing, Misfire::Skip, Reconcile::OFF);
        let (mut has_name, mut has_count) = (false, false);
        for (key, value) in last_entry_per_key(entries) {
            self.line = key.line;
            let Kind::Scalar(name) = &key.kind else {
                return Err(self.error(format!("a key is text, not {}", key.kind_name())));
            };
            self.key.clone_from(name);
            self.line = value.line.max(key.line);
            self.property(&mut job, name, value)?;
            has_name |= name == "jobName";
            has_count |= name == "shardingTotalCount";
        }
        (self.line, self.key) = (0, String::new());
        match (has_name, has_count) {
            (true, true) => Ok(job),
            (false, _) => Err(self.error("it has no jobName")),
            (_, false) => Err(self.error("it has no shardingTotalCount")),
        }
    }

    fn property(
        &mut self,
        job: &mut Job,
        key: &str,
        value: &Node,
    ) -> Result<(), UnreadableDocument> {
        match key {
            "cron" => {
                let text = self.text(value)?;
                job.empty_values.cron = text.as_deref() == Some("");
                job.cron = self.parse(text.filter(|text| !text.is_empty()).as_deref())?;
            }
            "timeZone" => {
                let text = self.text(value)?;
                job.empty_values.zone = text.as_deref() == Some("");
                job.zone = self.parse(text.filter(|text| !text.is_empty()).as_deref())?;
            }
            "description" => job.description = self.text(value)?.unwrap_or_default(),
            "disabled" => job.disabled = self.flag(value)?,
            "failover" => {
                job.failover = if self.flag(value)? { Failover::TakeOver } else { Failover::Wait };
            }
            "jobErrorHandlerType" => job.error_handler_type = self.name(value)?,
            THREAD_POOL => {
                (job.thread_pool_type, job.spelling) = (self.name(value)?, KeySpelling::Since305);
            }
            THREAD_POOL_UP_TO_304 => {
                (job.thread_pool_type, job.spelling) = (self.name(value)?, KeySpelling::UpTo304);
            }
            "jobExtraConfigurations" => {
                job.extra = ForeignConfig::from_node(value)
                    .ok_or_else(|| self.error("it is not a list"))?;
            }
            "jobListenerTypes" => job.listener_types = self.list(value)?,
            "jobName" => self.check_name(value)?,
            "jobParameter" => job.parameter = self.text(value)?.unwrap_or_default(),
            "jobShardingStrategyType" => job.strategy_type = self.name(value)?,
            "label" => job.label = self.text(value)?,
            "maxTimeDiffSeconds" => job.max_time_diff = MaxTimeDiff::seconds(self.int(value)?),
            "misfire" => {
                job.misfire = if self.flag(value)? { Misfire::RunOnce } else { Misfire::Skip };
            }
            "monitorExecution" => {
                job.monitor =
                    if self.flag(value)? { Monitor::Executions } else { Monitor::Nothing };
            }
            "overwrite" => {
                job.overwrite =
                    if self.flag(value)? { Overwrite::LocalWins } else { Overwrite::StoredWins };
            }
            "props" => job.props = self.props(value)?,
            "reconcileIntervalMinutes" => job.reconcile = Reconcile::minutes(self.int(value)?),
            "shardingItemParameters" => {
                job.items = self.parse(self.text(value)?.as_deref())?.unwrap_or_default();
            }
            "shardingTotalCount" => job.shards = self.count(value)?,
            "staticSharding" => {
                job.resharding =
                    if self.flag(value)? { Resharding::Static } else { Resharding::Elastic };
            }
            legacy if LEGACY_KEYS.contains(&legacy) => {
                let problem = "it was written by ElasticJob 2.1.5, which cannot share a job with this version";
                return Err(self.error(problem).with_hint("elasticjob job import"));
            }
            _ => {
                let problem = "the key is unknown, also to Java";
                return Err(self.error(problem).with_hint("correct it, or move it into props"));
            }
        }
        Ok(())
    }

    fn check_name(&self, value: &Node) -> Result<(), UnreadableDocument> {
        match self.text(value)? {
            Some(name) if name == self.job.as_str() => Ok(()),
            name => {
                let name = name.unwrap_or_default();
                Err(self.error(format!("the document is for job {name:?}")))
            }
        }
    }

    /// Where Java has a string, the scalar's text is used as written, even if it looks like another type.
    fn text(&self, value: &Node) -> Result<Option<String>, UnreadableDocument> {
        match &value.kind {
            Kind::Scalar(_) if value.is_null() => Ok(None),
            Kind::Scalar(text) if value.is_binary() => {
                let compact: String = text.split_whitespace().collect();
                let bytes = BASE64.decode(compact).ok();
                let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
                text.map(Some).ok_or_else(|| self.error("it is binary data that is not UTF-8 text"))
            }
            Kind::Scalar(text) => Ok(Some(text.clone())),
            _ => Err(self.error(format!("it is {} and should be text", value.kind_name()))),
        }
    }

    fn name(&self, value: &Node) -> Result<Option<TypeName>, UnreadableDocument> {
        Ok(self.text(value)?.map(TypeName::from))
    }

    fn parse<T: std::str::FromStr>(
        &self,
        text: Option<&str>,
    ) -> Result<Option<T>, UnreadableDocument>
    where
        T::Err: Hint,
    {
        text.map(str::parse).transpose().map_err(|error: T::Err| {
            let hint = error.hint().map(Cow::into_owned);
            UnreadableDocument { hint, ..self.error(error.to_string()) }
        })
    }

    fn flag(&self, value: &Node) -> Result<bool, UnreadableDocument> {
        let text = self.text(value)?.unwrap_or_default();
        parse_bool(&text).ok_or_else(|| self.error(format!("{text:?} is neither true nor false")))
    }

    fn int(&self, value: &Node) -> Result<i32, UnreadableDocument> {
        let text = self.text(value)?.unwrap_or_default();
        parse_int(&text)
            .ok_or_else(|| self.error(format!("{text:?} is not a whole number of 32 bits")))
    }

    fn count(&self, value: &Node) -> Result<ShardCount, UnreadableDocument> {
        let count = self.int(value)?;
        let count = u32::try_from(count).unwrap_or(0);
        ShardCount::try_from(count).map_err(|error| self.error(error.problem))
    }

    fn list(&self, value: &Node) -> Result<Vec<String>, UnreadableDocument> {
        match &value.kind {
            Kind::Sequence(items) => items
                .iter()
                .map(|item| self.text(item)?.ok_or_else(|| self.error("an entry is empty")))
                .collect(),
            _ if value.is_null() => Ok(Vec::new()),
            _ => Err(self.error(format!("it is {} and should be a list", value.kind_name()))),
        }
    }

    fn props(&mut self, value: &Node) -> Result<Props, UnreadableDocument> {
        let mut props = Props::new();
        let entries = match &value.kind {
            Kind::Mapping(entries) => entries,
            _ if value.is_null() => return Ok(props),
            _ => return Err(self.error(format!("it is {} and should be a map", value.kind_name()))),
        };
        for (key, value) in last_entry_per_key(entries) {
            (self.line, self.key) = (key.line, "props".to_owned());
            let name = self.text(key)?.unwrap_or_default();
            (self.line, self.key) = (value.line.max(key.line), format!("props.{name}"));
            if value.is_null() {
                return Err(self.error("it has no value"));
            }
            let text = if value.is_binary() { self.text(value)? } else { None };
            let text = text.unwrap_or_else(|| java_to_string(value));
            props.set(name, text).map_err(|error: InvalidValue| self.error(error.problem))?;
        }
        Ok(props)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_is_set_by_name_and_stored_under_it() {
        for key in Job::PROPERTIES {
            let mut job = Job::named("j").unwrap();
            let value = match key {
                "cron" => "0 0 2 * * ?",
                "timeZone" => "GMT+8:00",
                "shardingItemParameters" => "0=a",
                "maxTimeDiffSeconds" | "reconcileIntervalMinutes" | "shardingTotalCount" => "7",
                "misfire" | "monitorExecution" => "false",
                "disabled" | "failover" | "overwrite" | "staticSharding" => "true",
                _ => "text",
            };

            job.set(key, value).unwrap();

            let stored = if key == THREAD_POOL_UP_TO_304 { THREAD_POOL } else { key };
            let line = format!("{stored}: ");
            let yaml = job.to_yaml();
            let text = yaml.lines().find_map(|text| text.strip_prefix(&line)).unwrap_or_default();
            assert_eq!(text.trim_matches('\''), value, "{key}: {yaml}");
        }
    }

    #[test]
    fn refused_value_changes_nothing() {
        let mut job = Job::named("j").unwrap();
        let before = job.clone();
        for (key, value) in [
            ("cron", "every day"),
            ("timeZone", "Mars/Olympus"),
            ("shardingTotalCount", "0"),
            ("shardingTotalCount", "many"),
            ("failover", "perhaps"),
            ("shardingItemParameters", "0"),
            ("props", "a"),
            ("jobName", "k"),
        ] {
            job.set(key, value).unwrap_err();
        }

        assert_eq!(job, before);
    }
}
