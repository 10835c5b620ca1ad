//! Instance ids, and the document that an instance stores in the registry.

use std::{fmt, net::Ipv4Addr, str::FromStr, sync::Arc};

use super::{
    bounds::{Bound, MAX_DOCUMENT, MAX_INSTANCE_LABELS, MAX_NAME},
    error::{InvalidValue, UnreadableDocument},
    name::{JobName, is_refused},
    yaml::{Kind, Node, emit, load},
};

const SEPARATOR: &str = "@-@";
/// What ElasticJob 2.x, and 3.0.0 before its release, writes into the node of an instance that is to run all its shards now.
pub(crate) const INSTANCE_TRIGGER: &str = "TRIGGER";

/// Whether the data of an instance node is that of ElasticJob 2.x, which stores no document there, only its trigger.
pub(crate) fn is_legacy_document(data: &[u8]) -> bool {
    data.trim_ascii().is_empty() || is_instance_trigger(data)
}

/// Whether the data of an instance node is the trigger of ElasticJob 2.x.
pub(crate) fn is_instance_trigger(data: &[u8]) -> bool {
    data.trim_ascii() == INSTANCE_TRIGGER.as_bytes()
}

/// The server part of an instance id; the whole text if it is not an instance id.
pub fn server_of(id: &str) -> &str {
    id.split_once(SEPARATOR).map_or(id, |(server, _)| server)
}

/// Address and process id of an instance id: the same for all sessions of one process. The whole text if it is not an instance id.
pub fn process_of(id: &str) -> &str {
    let Some((server, process)) = id.split_once(SEPARATOR) else { return id };
    let pid = process.split('-').next().unwrap_or(process);
    &id[..server.len() + SEPARATOR.len() + pid.len()]
}

/// An instance's id: `192.168.1.5@-@4711-9f86d081`, or `192.168.1.5@-@4711` for a Java instance.
///
/// Invariant: an IPv4 address, one `@-@`, and a name that can be part of a registry path. Java ElasticJob splits ids to find the server,
/// so it does not recognise ids of another form. Cheap to clone.
///
/// ```
/// use elasticjob::job::InstanceId;
///
/// let rust = InstanceId::new([10, 0, 0, 7].into(), 4711, 0x9f86_d081);
/// assert_eq!(rust.as_str(), "10.0.0.7@-@4711-9f86d081");
/// assert_eq!(rust.server(), "10.0.0.7");
///
/// let java: InstanceId = "10.0.0.7@-@4711".parse()?;
/// assert!(java.is_java() && !rust.is_java());
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// A new id. The random part makes it unique, because addresses and process ids are reused.
    pub fn new(address: Ipv4Addr, process: u32, random: u32) -> Self {
        Self(format!("{address}{SEPARATOR}{process}-{random:08x}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The server's address, which is also the name of its node below `servers`.
    pub fn server(&self) -> &str {
        server_of(&self.0)
    }

    /// The part after the address: process id, and a random part unless it is a Java instance.
    pub fn process(&self) -> &str {
        self.0.split_once(SEPARATOR).map_or("", |(_, process)| process)
    }

    /// Whether it is a Java instance: those have a process id without a random part.
    pub fn is_java(&self) -> bool {
        self.process().bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl FromStr for InstanceId {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = |problem: &str| Err(InvalidValue::new("instance id", text, problem));
        let Some((server, process)) = text.split_once(SEPARATOR) else {
            return invalid("it is not an address, @-@ and a process; for example 10.0.0.7@-@4711");
        };
        if server.parse::<Ipv4Addr>().is_err() {
            return invalid("the part before @-@ is not an IPv4 address");
        }
        if process.is_empty() || process.contains(SEPARATOR) {
            return invalid("it does not have one @-@ followed by a process");
        }
        if process.contains(|character| character == '/' || is_refused(character)) {
            return invalid("the part after @-@ cannot be part of a registry path");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An instance's own document in the registry.
///
/// ```
/// use elasticjob::job::{Instance, InstanceId};
///
/// let instance = Instance::new(InstanceId::new([10, 0, 0, 7].into(), 4711, 1)).labels("weight=3,zone=a");
/// assert_eq!(
///     instance.to_yaml(),
///     "jobInstanceId: 10.0.0.7@-@4711-00000001\nlabels: weight=3,zone=a\nserverIp: 10.0.0.7\n",
/// );
/// assert_eq!(instance.label("zone"), Some("a"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    pub id: InstanceId,
    /// `weight=3,zone=a`.
    pub labels: Option<String>,
    /// The server's address.
    pub server: String,
}

impl Instance {
    /// An instance without labels.
    pub fn new(id: InstanceId) -> Self {
        Self { labels: None, server: id.server().to_owned(), id }
    }

    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// The value of one label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_deref()?.split(',').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then_some(value.trim())
        })
    }

    /// The instance's weight for [`Strategy::Weighted`](super::Strategy::Weighted): the label `weight`, or one.
    pub fn weight(&self) -> u32 {
        self.label("weight").and_then(|weight| weight.parse().ok()).unwrap_or(1)
    }

    /// The document, byte for byte as Java ElasticJob writes it.
    pub fn to_yaml(&self) -> String {
        let entries = [
            ("jobInstanceId", Some(self.id.as_str())),
            ("labels", self.labels.as_deref()),
            ("serverIp", Some(self.server.as_str())),
        ];
        let entries = entries
            .into_iter()
            .filter_map(|(key, value)| value.map(|value| (Node::text(key), Node::text(value))));
        emit(&Node::mapping(entries.collect()))
    }

    /// Reads the document at `instances/{id}`. An empty document, which version 2.1.5 writes, is an instance without labels; so is its trigger, which
    /// replaces the document until the instance has seen it.
    ///
    /// Unlike Java, this ignores unknown keys: no other instance rewrites the document, and a live instance must not be dropped because
    /// a newer version stores more keys.
    pub fn read(
        job: &JobName,
        id: &InstanceId,
        document: &[u8],
    ) -> Result<Self, UnreadableDocument> {
        let unreadable = |line: Option<usize>, key: Option<&str>, problem: &str| {
            UnreadableDocument::new(job, format!("instance {id}"), problem).at(line, key)
        };
        if document.len() > MAX_DOCUMENT {
            let problem = format!("it has more than {MAX_DOCUMENT} bytes");
            return Err(unreadable(None, None, &problem));
        }
        if is_legacy_document(document) {
            return Ok(Self::new(id.clone()));
        }
        let text =
            std::str::from_utf8(document).map_err(|_| unreadable(None, None, "it is not UTF-8"))?;
        let root =
            load(text).map_err(|error| unreadable(Some(error.line), None, &error.problem))?;
        let mut instance = Self::new(id.clone());
        let Some(root) = root.filter(|root| !root.is_null()) else { return Ok(instance) };
        let Kind::Mapping(entries) = &root.kind else {
            return Err(unreadable(Some(root.line), None, "it is not a map"));
        };
        for (key, value) in entries {
            let (Kind::Scalar(key), Kind::Scalar(text)) = (&key.kind, &value.kind) else {
                continue;
            };
            let bound = match key.as_str() {
                // Lists of instances show them.
                "labels" => Bound::Bytes(MAX_INSTANCE_LABELS),
                "serverIp" => Bound::Bytes(MAX_NAME),
                _ => Bound::Document,
            };
            let checked = bound.check_text(text);
            checked.map_err(|problem| unreadable(Some(value.line), Some(key), &problem))?;
            match key.as_str() {
                "jobInstanceId" if text != id.as_str() => {
                    let problem = format!("the document is for instance {text:?}");
                    return Err(unreadable(Some(value.line), Some(key), &problem));
                }
                "labels" if !value.is_null() => instance.labels = Some(text.clone()),
                "serverIp" if !value.is_null() => instance.server.clone_from(text),
                _ => {}
            }
        }
        Ok(instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Result<Instance, UnreadableDocument> {
        Instance::read(&"j".parse().unwrap(), &"1.2.3.4@-@5".parse().unwrap(), document.as_bytes())
    }

    #[test]
    fn instance_id_error_says_why() {
        for (text, problem) in [
            ("1.2.3.4", "for example"),
            ("host@-@1", "IPv4"),
            ("1.2.3.4@-@", "process"),
            ("1.2.3.4@-@1@-@2", "one @-@"),
            ("1.2.3.4@-@a/b", "registry path"),
        ] {
            let error = text.parse::<InstanceId>().unwrap_err();

            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn sessions_of_one_process_have_the_same_address_and_process_id() {
        assert_eq!(process_of("10.0.0.7@-@4711-9f86d081"), "10.0.0.7@-@4711");
        assert_eq!(process_of("10.0.0.7@-@4711"), "10.0.0.7@-@4711");
        assert_eq!(process_of("unknown"), "unknown");
    }

    #[test]
    fn documents_of_all_versions_are_read() {
        let from_java = read("jobInstanceId: 1.2.3.4@-@5\nserverIp: 1.2.3.4\n").unwrap();
        let from_2_1_5 = read("").unwrap();
        let with_unknown_key =
            read("jobInstanceId: 1.2.3.4@-@5\nserverIp: 1.2.3.4\nmood: [good]\n").unwrap();

        assert_eq!(from_java, from_2_1_5);
        assert_eq!(from_java, read("TRIGGER").unwrap());
        assert_eq!(from_java, with_unknown_key);
    }

    #[test]
    fn unreadable_document_names_instance_and_location() {
        for (document, location) in [
            ("- a", "line 1"),
            ("jobInstanceId: 9.9.9.9@-@1\n", "key jobInstanceId"),
            ("a: 'b", "line 1"),
        ] {
            let error = read(document).unwrap_err().to_string();

            assert!(error.contains("instance 1.2.3.4@-@5") && error.contains(location), "{error}");
        }
    }

    #[test]
    fn weight_is_read_from_a_label() {
        let id: InstanceId = "1.2.3.4@-@5".parse().unwrap();

        assert_eq!(Instance::new(id.clone()).labels("zone=a, weight = 3").weight(), 3);
        assert_eq!(Instance::new(id.clone()).labels("anything").weight(), 1);
        assert_eq!(Instance::new(id).weight(), 1);
    }
}
