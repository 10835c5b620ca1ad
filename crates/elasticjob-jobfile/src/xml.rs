//! The XML of Spring's namespaces `reg` and `job`, as used up to Java ElasticJob 2.1.5.
//!
//! A job's attributes correspond to the keys that 2.1.5 stores, so they are converted to that form and read from there.

use std::sync::Arc;

use roxmltree::{Attribute, Document, Node as Element};
use serde_json::{Map, Value, json};

use super::{
    Jobs,
    keys::{find_name, suggestion},
    legacy,
    placeholder::Resolver,
    registry,
    section::Reader,
    tree::Node,
};
use elasticjob::{
    job::{Property, PropertyKind},
    problem::Problem,
};

/// Attributes of a job and the key under which 2.1.5 stores them; `None` if only Spring uses them.
pub(super) const ATTRIBUTES: [(&str, Option<&str>); 25] = [
    ("id", Some("jobName")),
    ("class", Some("jobClass")),
    ("job-ref", Some("jobClass")),
    ("registry-center-ref", None),
    ("cron", Some("cron")),
    ("sharding-total-count", Some("shardingTotalCount")),
    ("sharding-item-parameters", Some("shardingItemParameters")),
    ("job-parameter", Some("jobParameter")),
    ("monitor-execution", Some("monitorExecution")),
    ("monitor-port", Some("monitorPort")),
    ("max-time-diff-seconds", Some("maxTimeDiffSeconds")),
    ("failover", Some("failover")),
    ("misfire", Some("misfire")),
    ("job-sharding-strategy-class", Some("jobShardingStrategyClass")),
    ("description", Some("description")),
    ("disabled", Some("disabled")),
    ("overwrite", Some("overwrite")),
    ("reconcile-interval-minutes", Some("reconcileIntervalMinutes")),
    ("streaming-process", Some("streamingProcess")),
    ("script-command-line", Some("scriptCommandLine")),
    ("job-exception-handler", Some("job_exception_handler")),
    ("executor-service-handler", Some("executor_service_handler")),
    ("event-trace-rdb-data-source", None),
    ("depends-on", None),
    ("lazy-init", None),
];

/// Reads the registry and the jobs of a file.
pub(super) fn read(
    file: &Arc<str>,
    text: &str,
    resolver: &Resolver<'_>,
    jobs: &mut Jobs,
    problems: &mut Vec<Problem>,
) {
    let mut reader = Reader { file, resolver, jobs, problems };
    let (whole, added) = with_root(text);
    let document = match Document::parse(&whole) {
        Ok(document) => document,
        Err(error) => {
            let (line, problem) = syntax_error(text, added, &error);
            return reader.report(line, format!("not XML: {problem}"));
        }
    };
    for element in document.descendants().filter(Element::is_element) {
        let space = element.tag_name().namespace().unwrap_or_default();
        let line = document.text_pos_at(element.range().start).row as usize;
        let is_registry = space.contains("ddframe/reg");
        match element.tag_name().name() {
            "zookeeper" if is_registry => registry_center(&mut reader, &document, element, line),
            "simple" | "dataflow" | "script" if space.contains("ddframe/job") => {
                job(&mut reader, &document, element, line);
            }
            // Child elements of a job. Listeners are Java classes and are ignored.
            name if space.contains("ddframe/job") => {
                let is_listener = matches!(name, "listener" | "distributed-listener");
                if !is_listener {
                    reader.report(
                        line,
                        Problem::new(format!("<job:{name}> is unknown"))
                            .with_hint("simple, dataflow or script"),
                    );
                }
            }
            name if is_registry => {
                reader.report(
                    line,
                    Problem::new(format!("<reg:{name}> is unknown")).with_hint("zookeeper"),
                );
            }
            name if space.contains("elasticjob") => {
                let problem = format!("<{name}> of the 3.x namespace is not supported");
                reader.report(
                    line,
                    Problem::new(problem).with_hint("write the job into an application.yml"),
                );
            }
            _ => {}
        }
    }
}

/// Wraps a snippet, as articles show them, into a root element with the namespaces. Line numbers stay the same; the second value is the number of
/// characters that were added in front of the first line.
fn with_root(text: &str) -> (String, usize) {
    const OPEN: &str = "<beans xmlns:reg=\"http://www.dangdang.com/schema/ddframe/reg\" xmlns:job=\"http://www.dangdang.com/schema/ddframe/job\">";
    if text.contains("xmlns") {
        return (text.to_owned(), 0);
    }
    (format!("{OPEN}{text}</beans>"), OPEN.len())
}

/// The line and the message of a syntax error, in terms of the text without the added root element.
fn syntax_error(text: &str, added: usize, error: &roxmltree::Error) -> (usize, String) {
    let position = error.pos();
    let line = position.row as usize;
    let column = position.col as usize;
    let column = if line == 1 { column.saturating_sub(added).max(1) } else { column };
    let last_line = text.lines().count().max(1);
    let length = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
    let is_at_end = line > last_line || line == last_line && column > length;
    match error {
        // The tag that the file does not have is the one that was added.
        roxmltree::Error::UnexpectedCloseTag(open, ..) if added > 0 && is_at_end => {
            (last_line, format!("the element {open:?} is not closed"))
        }
        error => {
            let message = error.to_string().replacen(&format!(" at {position}"), "", 1);
            let line = line.min(last_line);
            if is_at_end {
                (line, format!("{message}, at the end of the file"))
            } else {
                (line, format!("{message}, column {column}"))
            }
        }
    }
}

fn line_of(document: &Document<'_>, attribute: &Attribute<'_, '_>) -> usize {
    document.text_pos_at(attribute.range().start).row as usize
}

fn registry_center(
    reader: &mut Reader<'_>,
    document: &Document<'_>,
    element: Element<'_, '_>,
    line: usize,
) {
    let mut group = Node::map(line);
    for attribute in element.attributes().filter(|attribute| attribute.name() != "id") {
        let value = Node::text(line_of(document, &attribute), attribute.value());
        group.insert(&[attribute.name()], value);
    }
    registry::read(reader, &group);
}

fn job(reader: &mut Reader<'_>, document: &Document<'_>, element: Element<'_, '_>, line: usize) {
    let before = reader.problems.len();
    let names: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
    let mut stored = Map::new();
    for attribute in element.attributes() {
        let line = line_of(document, &attribute);
        let Some(name) = find_name(attribute.name(), &names) else {
            let hint = suggestion(attribute.name(), &names);
            reader.report(
                line,
                Problem::new(format!("the attribute {} is unknown", attribute.name()))
                    .with_hint(hint),
            );
            continue;
        };
        let key = ATTRIBUTES.iter().find(|(known, _)| *known == name).and_then(|(_, key)| *key);
        let text = reader.text(name, &Node::text(line, attribute.value()));
        if let (Some(key), Some(text)) = (key, text) {
            stored.insert(key.to_owned(), typed(key, text));
        }
    }
    if reader.problems.len() > before {
        return;
    }
    stored.insert("jobType".to_owned(), element.tag_name().name().to_uppercase().into());
    let handlers = ["job_exception_handler", "executor_service_handler"];
    let handlers = handlers.map(|key| (key, stored.remove(key)));
    let handlers: Map<String, Value> =
        handlers.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    stored.insert("jobProperties".to_owned(), json!(handlers));
    let name = stored.get("jobName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let location = reader.location(line);
    legacy::add(&name, &Value::Object(stored).to_string(), location, reader.jobs, reader.problems);
}

/// The value as 2.1.5 stores it: a number, a boolean or text.
fn typed(key: &str, text: String) -> Value {
    let kind = match key {
        "monitorPort" => Some(PropertyKind::Number),
        "streamingProcess" => Some(PropertyKind::Flag),
        key => Property::find(key).map(Property::kind),
    };
    match kind {
        Some(PropertyKind::Number | PropertyKind::Count) => {
            text.trim().parse::<i64>().map_or(Value::String(text), Value::from)
        }
        Some(PropertyKind::Flag) => {
            text.trim().parse::<bool>().map_or(Value::String(text), Value::from)
        }
        _ => Value::String(text),
    }
}
