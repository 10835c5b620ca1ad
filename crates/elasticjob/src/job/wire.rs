//! A job's configuration as it is stored: Java ElasticJob's YAML.
//!
//! Written byte for byte as 3.0.5 writes it. Read as Java reads it, and slightly more leniently: both spellings of the thread-pool key,
//! any tag on extra configuration, and null instead of an empty list are accepted. A missing key means what it means to Java, which is
//! not the documented default: no monitoring, no misfire compensation, no reconciliation.

use std::collections::HashMap;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::{
    bounds::MAX_DOCUMENT,
    error::{InvalidValue, UnreadableDocument},
    foreign_config::ForeignConfig,
    job::{Job, KeySpelling},
    mask::{mask_text, mask_value},
    name::JobName,
    plugins::TypeName,
    properties::{Access, Missing, Property, PropertyKind},
    props::Props,
    shards::{ShardCount, ShardLimit},
    yaml::{BOOL, INT, Kind, Node, emit, java_to_string, load, parse_bool, parse_int},
};

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
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn to_yaml(&self) -> String {
        let entries = entries(self).into_iter().map(|(key, _, value)| (Node::text(key), value));
        emit(&Node::mapping(entries.collect()))
    }

    /// The configuration as JSON, for display: what looks like a secret is [masked](super::mask_value), and configuration of other programs is
    /// reduced to its tags, because it may contain passwords.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let json = Job::named("settle")?.shards(3).to_json();
    /// assert_eq!(json["shardingTotalCount"], 3);
    /// assert_eq!(json["failover"], false);
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let entries = entries(self).into_iter().map(|(key, property, node)| {
            let value = match property.kind() {
                PropertyKind::Foreign => self.foreign_config.tags().into(),
                PropertyKind::Map => {
                    self.props.iter().map(|(key, value)| (key, mask_value(key, value))).collect()
                }
                PropertyKind::Text => match node.kind {
                    Kind::Scalar(text) => mask_value(key, &text).into(),
                    _ => Value::Null,
                },
                _ => to_json_value(node),
            };
            (key.to_owned(), value)
        });
        Value::Object(entries.collect())
    }

    /// Reads the document stored for the job `name`, which may have up to 10,000 shards.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let document = b"jobName: settle\nshardingTotalCount: 3\ncron: every day\n";
    /// let error = Job::read(&"settle".parse()?, document).unwrap_err();
    /// assert!(error.to_string().starts_with("job settle: the stored config cannot be read, line 3, key cron: "));
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn read(name: &JobName, document: &[u8]) -> Result<Self, UnreadableDocument> {
        Self::read_within(ShardLimit::DEFAULT, name, document)
    }

    /// Reads the document stored for the job `name`, in a process with another limit of shards.
    pub fn read_within(
        limit: ShardLimit,
        name: &JobName,
        document: &[u8],
    ) -> Result<Self, UnreadableDocument> {
        let reader = Reader { job: name, limit, line: 0, key: String::new() };
        if document.len() > MAX_DOCUMENT {
            let size = document.len();
            return Err(
                reader.error(format!("it has {size} bytes, at most {MAX_DOCUMENT} are read"))
            );
        }
        let text = std::str::from_utf8(document).map_err(|_| reader.error("it is not UTF-8"))?;
        let root = load(text).map_err(|error| UnreadableDocument {
            line: Some(error.line),
            ..reader.error(error.problem)
        })?;
        let root = root.ok_or_else(|| reader.error("it is empty"))?;
        reader.document(&root)
    }

    /// Refuses a configuration that no process would read: a value exceeds its bound, or there are more shards than the limit. The same holds when a
    /// configuration is read.
    ///
    /// ```
    /// use elasticjob::job::{Job, ShardLimit};
    ///
    /// let job = Job::named("settle")?.shards(20_000);
    /// assert!(job.check(ShardLimit::default()).is_err());
    /// assert!(job.check("20000".parse()?).is_ok());
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn check(&self, limit: ShardLimit) -> Result<(), InvalidValue> {
        limit.check(self.shards)?;
        for property in Property::all() {
            property.check(self).map_err(|problem| {
                let what = format!("{} of job", property.key);
                InvalidValue::new(what, self.name.as_str(), problem)
            })?;
        }
        let size = self.to_yaml().len();
        if size > MAX_DOCUMENT {
            let problem = format!("it has {size} bytes, at most {MAX_DOCUMENT} are read");
            return Err(InvalidValue::new("configuration", self.name.as_str(), problem));
        }
        Ok(())
    }

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
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), InvalidValue> {
        let property = Property::find(key).filter(|property| property.is_settable());
        let Some(property) = property else {
            return Err(InvalidValue::new("property", key, "there is no such property"));
        };
        let too_large = |problem| InvalidValue::new(property.key, text, problem);
        property.bound.check_text(text).map_err(too_large)?;
        let mut job = self.clone();
        if let Access::Parsed { set, .. } = property.access {
            *self = set(job, text)?;
            return Ok(());
        }
        // The caller may store the job elsewhere; the limit of this process is checked when it is stored here.
        let limit = ShardCount::MAX.into();
        let mut reader = Reader { job: &self.name, limit, line: 0, key: key.to_owned() };
        reader.read(&mut job, property, &Node::text(text)).map_err(|error| {
            let prefix = format!("{text:?} is ");
            let problem = match error.problem.strip_prefix(&prefix) {
                Some(rest) => format!("it is {rest}"),
                None => error.problem,
            };
            InvalidValue { hint: error.hint, ..InvalidValue::new(key.to_owned(), text, problem) }
        })?;
        *self = job;
        Ok(())
    }

    /// Sets a property that is a list of texts, by Java's name.
    ///
    /// ```
    /// use elasticjob::job::Job;
    ///
    /// let mut job = Job::named("settle")?;
    /// job.set_list("jobListenerTypes", vec!["audit".to_owned()])?;
    /// assert_eq!(job.listener_types, ["audit"]);
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn set_list(&mut self, key: &str, texts: Vec<String>) -> Result<(), InvalidValue> {
        let Some(property) = Property::find(key) else {
            return Err(InvalidValue::new("property", key, "there is no such list"));
        };
        let Access::List { put, .. } = &property.access else {
            return Err(InvalidValue::new("property", key, "it is not a list"));
        };
        let checked = property.bound.check_entries(texts.iter().map(String::as_str));
        checked.map_err(|problem| InvalidValue::new(property.key, "", problem))?;
        put(self, texts);
        Ok(())
    }

    /// Gives a property the value that it has in a new job. The job keeps its name, and the configuration of other programs.
    pub fn unset(&mut self, property: &Property) {
        let fresh = Self::new(self.name.clone());
        match &property.access {
            Access::Name | Access::Foreign => {}
            Access::Text { get, put } => put(self, get(&fresh).map(ToOwned::to_owned)),
            Access::Parsed { get, read, .. } => {
                let empty_values = self.empty_values;
                // The value of a new job is always valid.
                let _ = read(self, get(&fresh));
                self.empty_values = empty_values;
            }
            Access::TypeName { get, put } => put(self, get(&fresh).cloned()),
            Access::Flag { get, put } => put(self, get(&fresh)),
            Access::Number { get, put } => put(self, get(&fresh)),
            Access::Count { get, put } => put(self, get(&fresh)),
            Access::List { get, put } => put(self, get(&fresh).to_vec()),
            Access::Props => self.props = fresh.props,
        }
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

/// A job's properties and the keys under which Java stores them, in Java's order; unset ones are omitted.
pub(super) fn entries(job: &Job) -> Vec<(&'static str, &'static Property, Node)> {
    let older = job.spelling == KeySpelling::UpTo304;
    let mut entries: Vec<_> = Property::all()
        .iter()
        .filter_map(|property| {
            let key = property.key_up_to_304.filter(|_| older).unwrap_or(property.key);
            Some((key, property, write(job, property)?))
        })
        .collect();
    entries.sort_unstable_by_key(|(key, ..)| *key);
    entries
}

/// A property as a node; `None` if it is unset.
fn write(job: &Job, property: &Property) -> Option<Node> {
    let list = |node: Node| Some(node).filter(|node| node.kind != Kind::Sequence(Vec::new()));
    match &property.access {
        Access::Name => Some(Node::text(job.name.as_str())),
        Access::Text { get, .. } | Access::Parsed { get, .. } => get(job).map(Node::text),
        Access::TypeName { get, .. } => get(job).map(|name| Node::text(name.as_str())),
        Access::Flag { get, .. } => Some(Node::bool(get(job))),
        Access::Number { get, .. } => Some(Node::int(get(job))),
        Access::Count { get, .. } => Some(Node::int(get(job).get())),
        Access::List { get, .. } => list(Node::sequence(get(job).iter().map(Node::text).collect())),
        Access::Props => {
            let props = job.props.iter().map(|(key, value)| (Node::text(key), Node::text(value)));
            Some(Node::mapping(props.collect())).filter(|_| !job.props.is_empty())
        }
        Access::Foreign => list(job.foreign_config.to_node()),
    }
}

/// If a key occurs twice, the last value wins; Java does not even parse the others.
fn last_entry_per_key(entries: &[(Node, Node)]) -> impl Iterator<Item = &(Node, Node)> {
    /// A key that is not text is an error of its own, so each of those counts as another key.
    fn identity(index: usize, key: &Node) -> (&str, Result<&str, usize>) {
        match &key.kind {
            Kind::Scalar(text) => (&*key.tag, Ok(text)),
            _ => (&*key.tag, Err(index)),
        }
    }
    let indexed = entries.iter().enumerate();
    let last: HashMap<_, usize> =
        indexed.clone().map(|(index, (key, _))| (identity(index, key), index)).collect();
    indexed.filter_map(move |(index, entry)| {
        (last.get(&identity(index, &entry.0)) == Some(&index)).then_some(entry)
    })
}

/// Converts nodes to properties and keeps the current line and key for error messages.
struct Reader<'a> {
    job: &'a JobName,
    limit: ShardLimit,
    line: usize,
    key: String,
}

impl Reader<'_> {
    fn error(&self, problem: impl Into<String>) -> UnreadableDocument {
        // It may quote a value, and is shown to everyone who may see the job.
        let problem = mask_text(&problem.into()).into_owned();
        UnreadableDocument::new(self.job, "config", problem).at(
            Some(self.line).filter(|line| *line > 0),
            Some(self.key.as_str()).filter(|key| !key.is_empty()),
        )
    }

    fn document(mut self, root: &Node) -> Result<Job, UnreadableDocument> {
        self.line = root.line;
        let Kind::Mapping(entries) = &root.kind else {
            let problem = if root.is_null() { "it is empty" } else { "it is not a map" };
            return Err(self.error(problem));
        };
        let mut job = Job::new(self.job.clone());
        for property in Property::all() {
            if let Missing::Is(value) = property.missing {
                self.read(&mut job, property, &Node::text(value))?;
            }
        }
        let mut required: Vec<&str> = Property::all()
            .iter()
            .filter(|property| property.missing == Missing::Error)
            .map(|property| property.key)
            .collect();
        for (key, value) in last_entry_per_key(entries) {
            self.line = key.line;
            let Kind::Scalar(name) = &key.kind else {
                return Err(self.error(format!("a key is text, not {}", key.kind_name())));
            };
            self.key.clone_from(name);
            self.line = value.line.max(key.line);
            let property = Property::find(name).ok_or_else(|| self.unknown_key())?;
            self.read(&mut job, property, value)?;
            if let Some(older) = property.key_up_to_304 {
                let is_older = name == older;
                job.spelling = if is_older { KeySpelling::UpTo304 } else { KeySpelling::Since305 };
            }
            required.retain(|key| key != name);
        }
        (self.line, self.key) = (0, String::new());
        match required.first() {
            None => Ok(job),
            Some(key) => Err(self.error(format!("it has no {key}"))),
        }
    }

    fn unknown_key(&self) -> UnreadableDocument {
        if LEGACY_KEYS.contains(&self.key.as_str()) {
            let problem =
                "it was written by ElasticJob 2.1.5, which cannot share a job with this version";
            return self.error(problem).with_hint("elasticjob job import");
        }
        let problem = "the key is unknown, also to Java";
        self.error(problem).with_hint("correct it, or move it into props")
    }

    /// Reads a property into the job.
    fn read(
        &mut self,
        job: &mut Job,
        property: &Property,
        value: &Node,
    ) -> Result<(), UnreadableDocument> {
        match &property.access {
            Access::Name => self.check_name(value)?,
            Access::Text { put, .. } => put(job, self.bounded_text(property, value)?),
            Access::Parsed { read, .. } => {
                let text = self.bounded_text(property, value)?;
                read(job, text.as_deref()).map_err(|problem| UnreadableDocument {
                    hint: problem.hint.map(Into::into),
                    ..self.error(problem.message)
                })?;
            }
            Access::TypeName { put, .. } => {
                put(job, self.bounded_text(property, value)?.map(TypeName::from));
            }
            Access::Flag { put, .. } => put(job, self.flag(value)?),
            Access::Number { put, .. } => put(job, self.int(value)?),
            Access::Count { put, .. } => put(job, self.count(value)?),
            Access::List { put, .. } => put(job, self.list(value)?),
            Access::Props => job.props = self.props(value)?,
            Access::Foreign => {
                job.foreign_config = ForeignConfig::from_node(value)
                    .ok_or_else(|| self.error("it is not a list"))?;
            }
        }
        property.check(job).map_err(|problem| self.error(problem))
    }

    /// A text whose bound is checked before it is parsed.
    fn bounded_text(
        &self,
        property: &Property,
        value: &Node,
    ) -> Result<Option<String>, UnreadableDocument> {
        let text = self.text(value)?;
        let checked = property.bound.check_text(text.as_deref().unwrap_or_default());
        checked.map_err(|problem| self.error(problem))?;
        Ok(text)
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
        let count = ShardCount::try_from(count);
        let checked = count.and_then(|count| self.limit.check(count).map(|()| count));
        checked.map_err(|error| UnreadableDocument {
            hint: error.hint,
            ..self.error(format!("{}, not {}", error.problem, error.text))
        })
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
        let settable = Property::all().iter().filter(|property| property.is_settable());
        for (property, key) in settable.flat_map(|row| row.keys().map(move |key| (row, key))) {
            let mut job = Job::named("j").unwrap();
            let value = match (key, property.kind()) {
                ("cron", _) => "0 0 2 * * ?",
                ("timeZone", _) => "GMT+8:00",
                ("shardingItemParameters", _) => "0=a",
                (_, PropertyKind::Number | PropertyKind::Count) => "7",
                (_, PropertyKind::Flag) if property.default == Some("true") => "false",
                (_, PropertyKind::Flag) => "true",
                _ => "text",
            };

            job.set(key, value).unwrap();

            let stored = property.key;
            let line = format!("{stored}: ");
            let yaml = job.to_yaml();
            let text = yaml.lines().find_map(|text| text.strip_prefix(&line)).unwrap_or_default();
            assert_eq!(text.trim_matches('\''), value, "{key}: {yaml}");
        }
    }

    #[test]
    fn unset_property_has_the_value_of_a_new_job() {
        let document = include_str!("../../tests/golden/job.yaml");
        let mut job = Job::read(&"settle".parse().unwrap(), document.as_bytes()).unwrap();
        let foreign_config = job.foreign_config.clone();

        for property in Property::all() {
            job.unset(property);
        }

        assert_eq!(job, Job { foreign_config, ..Job::named("settle").unwrap() });
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
