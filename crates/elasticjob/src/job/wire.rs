//! A job's configuration as it is stored: Java ElasticJob's YAML.
//!
//! Written byte for byte as 3.0.5 writes it. Read as Java reads it, and slightly more leniently: both spellings of the thread-pool key,
//! any tag on extra configuration, and null instead of an empty list are accepted. A missing key means what it means to Java, which is
//! not the documented default: no monitoring, no misfire compensation, no reconciliation.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;

use super::{
    error::{InvalidValue, UnreadableDocument},
    foreign_config::ForeignConfig,
    job::{Job, KeySpelling},
    mask::{mask_text, mask_value},
    name::JobName,
    plugins::TypeName,
    properties::{Access, Missing, Property, PropertyKind},
    props::Props,
    shards::ShardCount,
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

    /// Reads the document stored for the job `name`.
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
        let reader = Reader { job: name, line: 0, key: String::new() };
        let text = std::str::from_utf8(document).map_err(|_| reader.error("it is not UTF-8"))?;
        let root = load(text).map_err(|error| UnreadableDocument {
            line: Some(error.line),
            ..reader.error(error.problem)
        })?;
        let root = root.ok_or_else(|| reader.error("it is empty"))?;
        reader.document(&root)
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
        let mut job = self.clone();
        if let Access::Parsed { set, .. } = property.access {
            *self = set(job, text)?;
            return Ok(());
        }
        let mut reader = Reader { job: &self.name, line: 0, key: key.to_owned() };
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
        match Property::find(key).map(|property| &property.access) {
            Some(Access::List { put, .. }) => put(self, texts),
            _ => return Err(InvalidValue::new("property", key, "there is no such list")),
        }
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
            // It may quote a value, and is shown to everyone who may see the job.
            problem: mask_text(&problem.into()).into_owned(),
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
            Access::Text { put, .. } => put(job, self.text(value)?),
            Access::Parsed { read, .. } => {
                let text = self.text(value)?;
                read(job, text.as_deref()).map_err(|problem| UnreadableDocument {
                    hint: problem.hint.map(Into::into),
                    ..self.error(problem.message)
                })?;
            }
            Access::TypeName { put, .. } => put(job, self.text(value)?.map(TypeName::from)),
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
