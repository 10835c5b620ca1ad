//! The section `elasticjob` of a file: where the registry is, and the jobs.

use std::sync::Arc;

use elasticjob::job::{Invalid, Job, keys as prop};

use super::{
    Entry, Jobs, Kind, Place, Style, history,
    keys::{known, suggestion},
    placeholder::Resolver,
    registry,
    tree::{Node, Roots, Value},
};
use elasticjob::problem::Problem;

const REG_CENTER: &str = "regCenter";
pub(super) const SECTION: [&str; 5] = [REG_CENTER, "jobs", "tracing", "dump", "enabled"];
pub(super) const TRACING: [&str; 4] = ["type", "dataSource", "includeJobNames", "excludeJobNames"];
pub(super) const DUMP: [&str; 2] = ["enabled", "port"];

/// What a job's entry has besides the properties that are stored.
pub(super) const OF_ENTRY: [&str; 7] = [
    "elasticJobType",
    "elasticJobClass",
    "jobBootstrapBeanName",
    "jobListenerTypes",
    "props",
    "scriptCommandLine",
    "streamingProcess",
];

/// Ours among the free properties.
pub(super) const OURS: [&str; 14] = [
    prop::TIMEOUT,
    prop::RETRY_MAX_ATTEMPTS,
    prop::RETRY_BACKOFF,
    prop::CATCH_UP,
    prop::ON_LEASE_LOSS,
    prop::STRATEGY,
    prop::ALERT,
    prop::HANDLER,
    prop::DST,
    prop::SCRIPT_SHELL,
    prop::HTTP_LOG_ONLY,
    prop::WEBHOOK_URL,
    prop::WEBHOOK_CONNECT_TIMEOUT,
    prop::WEBHOOK_READ_TIMEOUT,
];

/// Reads what is ours among these roots.
pub(super) fn read(
    file: &Arc<str>,
    roots: &Roots,
    style: Style,
    resolver: &Resolver<'_>,
    jobs: &mut Jobs,
    problems: &mut Vec<Problem>,
) {
    let mut reader = Reader { file, resolver, jobs, problems };
    for (written, node) in roots.named("elasticjob") {
        reader.section(written, node, style);
    }
    history::read(&mut reader, roots);
    if style == Style::Groups {
        for (_, node) in roots.named(REG_CENTER) {
            registry::read(&mut reader, node);
        }
    }
}

/// Takes one value after the other, and collects what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Arc<str>,
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) jobs: &'a mut Jobs,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn place(&self, line: usize) -> Place {
        Place { file: Arc::clone(self.file), line }
    }

    /// Something is wrong in this line.
    pub(super) fn wrong(&mut self, line: usize, problem: impl AsRef<str>) {
        let place = self.place(line);
        self.problems.push(Problem::new(format!("{place}: {}", problem.as_ref())));
    }

    pub(super) fn note(&mut self, line: usize, note: &str) {
        let place = self.place(line);
        self.jobs.notes.push(format!("{place}: {note}"));
    }

    /// A single value with its placeholders filled in; nothing if there is none, or if it is wrong, which is then told.
    pub(super) fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Nothing => None,
            Value::Text(text) => match self.resolver.fill(text) {
                Ok(text) => Some(text).filter(|text| !text.trim().is_empty()),
                Err(problem) => {
                    self.wrong(node.line, format!("{key}: {problem}"));
                    None
                }
            },
            Value::List(_) | Value::Map(_) => {
                self.wrong(
                    node.line,
                    format!("{key} is {} and should be a single value", node.kind()),
                );
                None
            }
        }
    }

    /// The entries of a group.
    pub(super) fn group<'n>(&mut self, key: &str, node: &'n Node) -> &'n [(String, Node)] {
        match &node.value {
            Value::Map(entries) => entries,
            Value::Nothing => &[],
            Value::Text(_) | Value::List(_) => {
                self.wrong(node.line, format!("{key} is {} and should be a group", node.kind()));
                &[]
            }
        }
    }

    pub(super) fn unknown(&mut self, line: usize, place: &str, key: &str, names: &[&str]) {
        let hint = suggestion(key, names);
        self.wrong(line, format!("{place}{key} is unknown; hint: {hint}"));
    }

    fn section(&mut self, written: &str, node: &Node, style: Style) {
        let mut alone = Node::map(node.line);
        let (mut groups, mut is_enabled) = (Vec::new(), true);
        for (key, node) in self.group(written, node) {
            match known(key, &SECTION) {
                Some("regCenter") => registry::read(self, node),
                Some("jobs") => {
                    let jobs = self.group("jobs", node).iter();
                    groups.extend(jobs.map(|(name, node)| (unbracketed(name), node)));
                }
                Some("tracing") => self.check("tracing", node, &TRACING),
                Some("dump") => {
                    self.check("dump", node, &DUMP);
                    self.note(node.line, "dump is for Java processes and has no effect here");
                }
                Some(_) => {
                    let text = self.text("enabled", node).unwrap_or_default();
                    is_enabled = !text.eq_ignore_ascii_case("false");
                }
                None if style == Style::Groups && matches!(node.value, Value::Map(_)) => {
                    groups.push((unbracketed(key), node));
                }
                None if style == Style::Groups => alone.put(&[key], node.clone()),
                None => self.unknown(node.line, &format!("{written}."), key, &SECTION),
            }
        }
        if alone != Node::map(node.line) {
            let name = match alone.find(&["jobName"]).cloned() {
                Some(name) => self.text("jobName", &name),
                None => Some(written.to_owned()),
            };
            let Some(name) = name else { return };
            let mut others = alone;
            if let Value::Map(entries) = &mut others.value {
                entries.retain(|(key, _)| known(key, &["jobName"]).is_none());
                others.line = entries.first().map_or(node.line, |(_, node)| node.line);
            }
            self.job(&name, &others);
        }
        if !is_enabled {
            self.note(node.line, "elasticjob.enabled is false: its jobs are left out");
            return;
        }
        for (name, node) in groups {
            self.job(name, node);
        }
    }

    /// Whether all of a group's names are known.
    fn check(&mut self, name: &str, node: &Node, names: &[&str]) {
        for (key, node) in self.group(name, node) {
            if known(key, names).is_none() {
                self.unknown(node.line, &format!("{name}."), key, names);
            }
        }
    }

    fn job(&mut self, name: &str, node: &Node) {
        let before = self.problems.len();
        let mut job = match Job::named(name) {
            Ok(job) => job,
            Err(error) => return self.wrong(node.line, error.to_string()),
        };
        let (mut class, mut kind) = (None, None);
        let names: Vec<&str> = Job::PROPERTIES.into_iter().chain(OF_ENTRY).collect();
        for (key, value) in self.group(name, node) {
            let Some(key) = known(key, &names) else {
                self.unknown(value.line, &format!("job {name}: "), key, &names);
                continue;
            };
            let set = match key {
                "props" => {
                    self.props(&mut job, "", value);
                    Ok(())
                }
                "jobListenerTypes" => {
                    job.listener_types = self.list(&format!("job {name}: {key}"), value);
                    Ok(())
                }
                // The name of a Java object: nobody here has to know it.
                "jobBootstrapBeanName" => Ok(()),
                key => match (key, self.text(&format!("job {name}: {key}"), value)) {
                    (_, None) => Ok(()),
                    ("elasticJobClass", text) => {
                        class = text;
                        Ok(())
                    }
                    ("elasticJobType", Some(text)) => {
                        kind = Some((value.line, text));
                        Ok(())
                    }
                    ("scriptCommandLine", Some(text)) => job.props.set("script.command.line", text),
                    ("streamingProcess", Some(text)) => job.props.set("streaming.process", text),
                    (key, Some(text)) => job.set(key, &text),
                },
            };
            if let Err(error) = set {
                self.invalid(value.line, name, &error);
            }
        }
        let Some(kind) = self.kind(node.line, &job, class, kind) else { return };
        if self.problems.len() == before {
            let place = self.place(node.line);
            self.jobs.entries.push(Entry { job, kind, place });
        }
    }

    fn invalid(&mut self, line: usize, job: &str, error: &Invalid) {
        self.wrong(line, format!("job {job}: {error}"));
    }

    fn kind(
        &mut self,
        line: usize,
        job: &Job,
        class: Option<String>,
        kind: Option<(usize, String)>,
    ) -> Option<Kind> {
        const TYPES: [&str; 2] = ["SCRIPT", "HTTP"];
        let name = &job.name;
        match (class, kind) {
            (Some(class), None) => Some(Kind::Java(class)),
            (Some(_), Some((line, _))) => {
                self.wrong(line, format!("job {name} has both elasticJobClass and elasticJobType; hint: it is one or the other"));
                None
            }
            (None, Some((_, kind))) if kind.trim().eq_ignore_ascii_case("SCRIPT") => {
                Some(Kind::Script)
            }
            (None, Some((_, kind))) if kind.trim().eq_ignore_ascii_case("HTTP") => Some(Kind::Http),
            (None, Some((line, kind))) => {
                let place = format!("job {name}: elasticJobType ");
                self.unknown(line, &place, kind.trim(), &TYPES);
                None
            }
            (None, None) if job.props.get("script.command.line").is_some() => Some(Kind::Script),
            (None, None) if job.props.get("http.uri").is_some() => Some(Kind::Http),
            (None, None) => {
                self.wrong(line, format!("job {name}: nothing says what runs it; hint: elasticJobType SCRIPT with script.command.line in props, or HTTP with http.uri and http.method"));
                None
            }
        }
    }

    fn list(&mut self, key: &str, node: &Node) -> Vec<String> {
        let items: Vec<String> = match &node.value {
            Value::List(items) => items.iter().filter_map(|item| self.text(key, item)).collect(),
            _ => self.text(key, node).into_iter().collect(),
        };
        let items = items.iter().flat_map(|item| item.split(','));
        items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    }

    /// Groups in groups are dots in keys. Those that begin with our name have to be known.
    fn props(&mut self, job: &mut Job, prefix: &str, node: &Node) {
        for (key, node) in self.group("props", node) {
            let key = format!("{prefix}{}", unbracketed(key));
            if matches!(node.value, Value::Map(_)) {
                self.props(job, &format!("{key}."), node);
                continue;
            }
            let name = job.name.to_string();
            if key.starts_with("elasticjob.") && !OURS.contains(&key.as_str()) {
                self.unknown(node.line, &format!("job {name}: props."), &key, &OURS);
                continue;
            }
            if let Some(text) = self.text(&format!("job {name}: props.{key}"), node)
                && let Err(error) = job.props.set(key, text)
            {
                self.invalid(node.line, &name, &error);
            }
        }
    }
}

/// Spring's way to write a name with dots in it.
fn unbracketed(name: &str) -> &str {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}
