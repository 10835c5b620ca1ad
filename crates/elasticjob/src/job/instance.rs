//! Who is a member: an instance's id, and the document it leaves in the registry.

use std::{fmt, net::Ipv4Addr, str::FromStr, sync::Arc};

use super::{
    error::{Invalid, Unreadable},
    name::{JobName, is_refused},
    yaml::{Kind, Node, emit, load},
};

const SEPARATOR: &str = "@-@";

/// The server in the text of an instance's id; all of it if it is none.
pub fn server_of(id: &str) -> &str {
    id.split_once(SEPARATOR).map_or(id, |(server, _)| server)
}

/// An instance's id: `192.168.1.5@-@4711-9f86d081`, or `192.168.1.5@-@4711` where Java made it.
///
/// Invariant: an IPv4 address, one `@-@`, and a name that can be part of a registry path. The ancestor cuts ids apart to find the
/// server, so one of another form would be a stranger to it. Cheap to clone.
///
/// ```
/// use elasticjob::job::InstanceId;
///
/// let ours = InstanceId::new([10, 0, 0, 7].into(), 4711, 0x9f86_d081);
/// assert_eq!(ours.as_str(), "10.0.0.7@-@4711-9f86d081");
/// assert_eq!(ours.server(), "10.0.0.7");
///
/// let theirs: InstanceId = "10.0.0.7@-@4711".parse()?;
/// assert!(theirs.is_java() && !ours.is_java());
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// A new id. The random part is what makes it unique: addresses and process ids come back.
    pub fn new(address: Ipv4Addr, process: u32, random: u32) -> Self {
        Self(format!("{address}{SEPARATOR}{process}-{random:08x}").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The server's address: the name of its node below `servers`.
    pub fn server(&self) -> &str {
        server_of(&self.0)
    }

    /// What follows the address.
    pub fn process(&self) -> &str {
        self.0.split_once(SEPARATOR).map_or("", |(_, process)| process)
    }

    /// Whether Java made it: Java has a process id and nothing else.
    pub fn is_java(&self) -> bool {
        self.process().bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl FromStr for InstanceId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |problem: &str| Err(Invalid::new("instance id", text, problem));
        let Some((server, process)) = text.split_once(SEPARATOR) else {
            return wrong("an address, @-@ and a process; for example 10.0.0.7@-@4711");
        };
        if server.parse::<Ipv4Addr>().is_err() {
            return wrong("what stands before @-@ is not an IPv4 address");
        }
        if process.is_empty() || process.contains(SEPARATOR) {
            return wrong("one @-@, and a process after it");
        }
        if process.contains(|character| character == '/' || is_refused(character)) {
            return wrong("what stands after @-@ cannot be part of a registry path");
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

/// What an instance says about itself in the registry.
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
    /// Its id.
    pub id: InstanceId,
    /// What it wants to be known by: `weight=3,zone=a`.
    pub labels: Option<String>,
    /// The server's address.
    pub server: String,
}

impl Instance {
    /// An instance without labels.
    pub fn new(id: InstanceId) -> Self {
        Self { labels: None, server: id.server().to_owned(), id }
    }

    /// With these labels.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = Some(labels.into());
        self
    }

    /// One label's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_deref()?.split(',').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then_some(value.trim())
        })
    }

    /// Its share when shards are dealt by weight: the label `weight`, else one.
    pub fn weight(&self) -> u32 {
        self.label("weight").and_then(|weight| weight.parse().ok()).unwrap_or(1)
    }

    /// The document, as the ancestor writes it.
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

    /// Reads the document at `instances/{id}`. An empty one says nothing but that the instance is there, which is what 2.1.5 wrote.
    ///
    /// Unlike Java this does not stop at a key it does not know: nobody rewrites another's document, and a live member must not
    /// vanish because it has more to say.
    pub fn read(job: &JobName, id: &InstanceId, document: &[u8]) -> Result<Self, Unreadable> {
        let wrong = |line: Option<usize>, key: Option<&str>, problem: &str| Unreadable {
            job: job.clone(),
            document: format!("instance {id}"),
            line,
            key: key.map(ToOwned::to_owned),
            problem: problem.to_owned(),
        };
        let text =
            std::str::from_utf8(document).map_err(|_| wrong(None, None, "it is not UTF-8"))?;
        let root = load(text).map_err(|error| wrong(Some(error.line), None, &error.problem))?;
        let mut instance = Self::new(id.clone());
        let Some(root) = root.filter(|root| !root.is_null()) else { return Ok(instance) };
        let Kind::Mapping(entries) = &root.kind else {
            return Err(wrong(Some(root.line), None, "it is not a map"));
        };
        for (key, value) in entries {
            let (Kind::Scalar(key), Kind::Scalar(text)) = (&key.kind, &value.kind) else {
                continue;
            };
            match key.as_str() {
                "jobInstanceId" if text != id.as_str() => {
                    let problem = format!("it says that it belongs to {text}");
                    return Err(wrong(Some(value.line), Some(key), &problem));
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

    fn read(document: &str) -> Result<Instance, Unreadable> {
        Instance::read(&"j".parse().unwrap(), &"1.2.3.4@-@5".parse().unwrap(), document.as_bytes())
    }

    #[test]
    fn an_id_of_another_form_says_why() {
        for (text, why) in [
            ("1.2.3.4", "for example"),
            ("host@-@1", "IPv4"),
            ("1.2.3.4@-@", "process"),
            ("1.2.3.4@-@1@-@2", "one @-@"),
            ("1.2.3.4@-@a/b", "registry path"),
        ] {
            let error = text.parse::<InstanceId>().unwrap_err();

            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_document_is_read_whoever_wrote_it() {
        let javas = read("jobInstanceId: 1.2.3.4@-@5\nserverIp: 1.2.3.4\n").unwrap();
        let older = read("").unwrap();
        let newer = read("jobInstanceId: 1.2.3.4@-@5\nserverIp: 1.2.3.4\nmood: [good]\n").unwrap();

        assert_eq!(javas, older);
        assert_eq!(javas, newer);
    }

    #[test]
    fn a_document_that_cannot_be_read_says_whose_and_where() {
        for (document, place) in [
            ("- a", "line 1"),
            ("jobInstanceId: 9.9.9.9@-@1\n", "key jobInstanceId"),
            ("a: 'b", "line 1"),
        ] {
            let error = read(document).unwrap_err().to_string();

            assert!(error.contains("instance 1.2.3.4@-@5") && error.contains(place), "{error}");
        }
    }

    #[test]
    fn a_weight_is_a_label() {
        let id: InstanceId = "1.2.3.4@-@5".parse().unwrap();

        assert_eq!(Instance::new(id.clone()).labels("zone=a, weight = 3").weight(), 3);
        assert_eq!(Instance::new(id.clone()).labels("anything").weight(), 1);
        assert_eq!(Instance::new(id).weight(), 1);
    }
}
