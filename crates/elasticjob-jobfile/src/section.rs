//! The section `elasticjob` of a file: registry, history and jobs.

use std::sync::Arc;

use elasticjob::job::{InvalidValue, Job, Property, PropertyKind, keys as prop};

use super::{
    Entry, Jobs, Kind, Layout, Location, history,
    keys::{find_name, suggestion},
    placeholder::Resolver,
    registry,
    tree::{Node, Roots, Value},
};
use elasticjob::problem::Problem;

const REG_CENTER: &str = "regCenter";
pub(super) const SECTION_KEYS: [&str; 5] = [REG_CENTER, "jobs", "tracing", "dump", "enabled"];
pub(super) const TRACING_KEYS: [&str; 4] =
    ["type", "dataSource", "includeJobNames", "excludeJobNames"];
pub(super) const DUMP_KEYS: [&str; 2] = ["enabled", "port"];

/// Keys of a job's entry that say what runs it.
const HANDLER_KEYS: [&str; 3] = ["elasticJobType", "elasticJobClass", "jobBootstrapBeanName"];

/// Keys of a job's entry that are short for an entry of `props`.
const SHORT_KEYS: [(&str, &str); 2] =
    [("scriptCommandLine", "script.command.line"), ("streamingProcess", "streaming.process")];

/// Every key of a job's entry: the properties that are stored, and the keys that only a file has.
pub(super) fn entry_keys() -> Vec<&'static str> {
    let (single, several): (Vec<&Property>, Vec<&Property>) =
        Property::all().iter().filter(|row| row.is_editable()).partition(|row| row.is_settable());
    let mut keys: Vec<&str> = single.into_iter().flat_map(Property::keys).collect();
    keys.sort_unstable();
    keys.extend(HANDLER_KEYS);
    keys.extend(several.into_iter().flat_map(Property::keys));
    keys.extend(SHORT_KEYS.map(|(key, _)| key));
    keys
}

/// Every `elasticjob.*` key that `props` may contain.
pub(super) const ELASTICJOB_PROPS: [&str; 15] = [
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
    prop::SCRIPT_INHERIT_ENVIRONMENT,
    prop::HTTP_LOG_ONLY,
    prop::WEBHOOK_URL,
    prop::WEBHOOK_CONNECT_TIMEOUT,
    prop::WEBHOOK_READ_TIMEOUT,
];

/// Reads the section `elasticjob` and everything else that belongs to ElasticJob.
pub(super) fn read(
    file: &Arc<str>,
    roots: &Roots,
    layout: Layout,
    resolver: &Resolver<'_>,
    jobs: &mut Jobs,
    problems: &mut Vec<Problem>,
) {
    let mut reader = Reader { file, resolver, jobs, problems };
    for (section_name, node) in roots.named("elasticjob") {
        reader.section(section_name, node, layout);
    }
    history::read(&mut reader, roots);
    if layout == Layout::JobPerGroup {
        for (_, node) in roots.named(REG_CENTER) {
            registry::read(&mut reader, node);
        }
    }
}

/// Reads values and collects their problems.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Arc<str>,
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) jobs: &'a mut Jobs,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn location(&self, line: usize) -> Location {
        Location { file: Arc::clone(self.file), line }
    }

    pub(super) fn report(&mut self, line: usize, problem: impl Into<Problem>) {
        let location = self.location(line);
        self.problems.push(problem.into().at(location));
    }

    pub(super) fn note(&mut self, line: usize, note: &str) {
        let location = self.location(line);
        self.jobs.notes.push(format!("{location}: {note}"));
    }

    /// A single value with its placeholders resolved. `None` if it is absent or blank, or if it has a problem, which is then reported.
    pub(super) fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Null => None,
            Value::Text(text) => match self.resolver.resolve(text) {
                Ok(text) => Some(text).filter(|text| !text.trim().is_empty()),
                Err(problem) => {
                    self.report(node.line, problem.at(key));
                    None
                }
            },
            Value::List(_) | Value::Map(_) => {
                self.report(
                    node.line,
                    format!("{key} is {} and should be a single value", node.kind_name()),
                );
                None
            }
        }
    }

    /// The entries of a group; reports a problem if the node is not a group.
    pub(super) fn group<'n>(&mut self, key: &str, node: &'n Node) -> &'n [(String, Node)] {
        match &node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            Value::Text(_) | Value::List(_) => {
                self.report(
                    node.line,
                    format!("{key} is {} and should be a group", node.kind_name()),
                );
                &[]
            }
        }
    }

    pub(super) fn report_unknown(
        &mut self,
        line: usize,
        location: &str,
        key: &str,
        names: &[&str],
    ) {
        let hint = suggestion(key, names);
        self.report(line, Problem::new(format!("{location}{key} is unknown")).with_hint(hint));
    }

    fn section(&mut self, section_name: &str, node: &Node, layout: Layout) {
        let mut ungrouped = Node::map(node.line);
        let (mut groups, mut is_enabled) = (Vec::new(), true);
        for (key, node) in self.group(section_name, node) {
            match find_name(key, &SECTION_KEYS) {
                Some("regCenter") => registry::read(self, node),
                Some("jobs") => {
                    let jobs = self.group("jobs", node).iter();
                    groups.extend(jobs.map(|(name, node)| (unbracketed(name), node)));
                }
                Some("tracing") => self.check_keys("tracing", node, &TRACING_KEYS),
                Some("dump") => {
                    self.check_keys("dump", node, &DUMP_KEYS);
                    self.note(node.line, "dump is for Java processes and has no effect here");
                }
                Some(_) => {
                    let text = self.text("enabled", node).unwrap_or_default();
                    is_enabled = !text.eq_ignore_ascii_case("false");
                }
                None if layout == Layout::JobPerGroup && matches!(node.value, Value::Map(_)) => {
                    groups.push((unbracketed(key), node));
                }
                None if layout == Layout::JobPerGroup => ungrouped.insert(&[key], node.clone()),
                None => {
                    self.report_unknown(node.line, &format!("{section_name}."), key, &SECTION_KEYS);
                }
            }
        }
        if ungrouped != Node::map(node.line) {
            let name = match ungrouped.find(&["jobName"]).cloned() {
                Some(name) => self.text("jobName", &name),
                None => Some(section_name.to_owned()),
            };
            let Some(name) = name else { return };
            let mut properties = ungrouped;
            if let Value::Map(entries) = &mut properties.value {
                entries.retain(|(key, _)| find_name(key, &["jobName"]).is_none());
                properties.line = entries.first().map_or(node.line, |(_, node)| node.line);
            }
            self.job(&name, &properties);
        }
        if !is_enabled {
            self.note(node.line, "elasticjob.enabled is false: its jobs are ignored");
            return;
        }
        for (name, node) in groups {
            self.job(name, node);
        }
    }

    /// Reports the unknown keys of a group.
    fn check_keys(&mut self, name: &str, node: &Node, names: &[&str]) {
        for (key, node) in self.group(name, node) {
            if find_name(key, names).is_none() {
                self.report_unknown(node.line, &format!("{name}."), key, names);
            }
        }
    }

    fn job(&mut self, name: &str, node: &Node) {
        let before = self.problems.len();
        let mut job = match Job::named(name) {
            Ok(job) => job,
            Err(error) => return self.report(node.line, Problem::of(&error)),
        };
        let (mut class, mut kind) = (None, None);
        let names = entry_keys();
        for (key, value) in self.group(name, node) {
            let Some(key) = find_name(key, &names) else {
                self.report_unknown(value.line, &format!("job {name}: "), key, &names);
                continue;
            };
            let label = format!("job {name}: {key}");
            let set = match Property::find(key).map(Property::kind) {
                Some(PropertyKind::Map) => {
                    self.props(&mut job, "", value);
                    Ok(())
                }
                Some(PropertyKind::List) => job.set_list(key, self.list(&label, value)),
                Some(_) => self.text(&label, value).map_or(Ok(()), |text| job.set(key, &text)),
                // Names a Java object; it means nothing here.
                None if key == "jobBootstrapBeanName" => Ok(()),
                None => match (key, self.text(&label, value)) {
                    (_, None) => Ok(()),
                    ("elasticJobClass", text) => {
                        class = text;
                        Ok(())
                    }
                    ("elasticJobType", Some(text)) => {
                        kind = Some((value.line, text));
                        Ok(())
                    }
                    (key, Some(text)) => {
                        let prop = SHORT_KEYS.iter().find(|(short, _)| *short == key);
                        prop.map_or(Ok(()), |(_, prop)| job.props.set(*prop, text))
                    }
                },
            };
            if let Err(error) = set {
                self.report_invalid(value.line, name, &error);
            }
        }
        let Some(kind) = self.kind(node.line, &job, class, kind) else { return };
        if self.problems.len() == before {
            let location = self.location(node.line);
            self.jobs.entries.push(Entry { job, kind, location });
        }
    }

    fn report_invalid(&mut self, line: usize, job: &str, error: &InvalidValue) {
        self.report(line, Problem::of(error).at(format_args!("job {job}")));
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
                let problem = format!("job {name} has both elasticJobClass and elasticJobType");
                self.report(line, Problem::new(problem).with_hint("keep one of them"));
                None
            }
            (None, Some((_, kind))) if kind.trim().eq_ignore_ascii_case("SCRIPT") => {
                Some(Kind::Script)
            }
            (None, Some((_, kind))) if kind.trim().eq_ignore_ascii_case("HTTP") => Some(Kind::Http),
            (None, Some((line, kind))) => {
                let location = format!("job {name}: elasticJobType ");
                self.report_unknown(line, &location, kind.trim(), &TYPES);
                None
            }
            (None, None) if job.props.get("script.command.line").is_some() => Some(Kind::Script),
            (None, None) if job.props.get("http.uri").is_some() => Some(Kind::Http),
            (None, None) => {
                let problem = format!("job {name}: no handler is configured");
                let hint = "elasticJobType SCRIPT with script.command.line in props, or HTTP with http.uri and http.method";
                self.report(line, Problem::new(problem).with_hint(hint));
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

    /// Reads `props`; nested groups become dotted keys. Keys that begin with `elasticjob.` must be known.
    fn props(&mut self, job: &mut Job, prefix: &str, node: &Node) {
        for (key, node) in self.group("props", node) {
            let key = format!("{prefix}{}", unbracketed(key));
            if matches!(node.value, Value::Map(_)) {
                self.props(job, &format!("{key}."), node);
                continue;
            }
            let name = job.name.to_string();
            if key.starts_with("elasticjob.") && !ELASTICJOB_PROPS.contains(&key.as_str()) {
                self.report_unknown(
                    node.line,
                    &format!("job {name}: props."),
                    &key,
                    &ELASTICJOB_PROPS,
                );
                continue;
            }
            if let Some(text) = self.text(&format!("job {name}: props.{key}"), node)
                && let Err(error) = job.props.set(key, text)
            {
                self.report_invalid(node.line, &name, &error);
            }
        }
    }
}

/// Strips the brackets that Spring puts around a name with dots.
fn unbracketed(name: &str) -> &str {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}
