//! YAML, and JSON, which is read as YAML except for surrogate pairs.
//!
//! The library parses exactly the one YAML document that Java ElasticJob stores. Files may hold several documents, and merge keys.

use std::collections::HashMap;

use elasticjob::problem::Problem;
use granit_parser::{Event, Parser, ScalarStyle, ScanError};

use super::tree::{Node, Value};

/// Far more than any configuration has; limits what chained aliases may expand to.
const MAX_NODES: usize = 100_000;
/// Limit for what anchors and aliases copy, in bytes: a long text may be repeated as often as there may be nodes.
const MAX_COPIED: usize = 16 << 20;

/// Parses the documents of a text. An error is a line and a problem.
pub(super) fn read(text: &str) -> Result<Vec<Node>, (usize, Problem)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options = granit_parser::options! { flow_nesting_limit: 50, block_nesting_limit: 50 };
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| scan_error(text, &error))?;
        let handled = builder.handle(event, span.start.line());
        handled.map_err(|(line, problem)| (line, problem.into()))?;
    }
    Ok(builder.documents)
}

/// Most files that YAML refuses have a cron expression that begins with `*` and is not quoted: to YAML that is an alias.
fn scan_error(text: &str, error: &ScanError) -> (usize, Problem) {
    let line = error.marker().line();
    let written = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
    let value = written.split_once(": ").map_or(written, |(_, value)| value);
    let value = value.trim_start_matches("- ").trim();
    if !value.starts_with('*') {
        return (line, error.kind().to_string().into());
    }
    let problem =
        format!("{value:?} is not quoted, and YAML reads text that begins with * as an alias");
    (
        line,
        Problem::new(problem)
            .with_hint(format!("put it in quotes: {}", value_in_quotes(written, value))),
    )
}

/// The line as it should be written.
fn value_in_quotes(written: &str, value: &str) -> String {
    let key = written.strip_suffix(value).unwrap_or_default();
    format!("{key}\"{value}\"")
}

/// The same for JSON. It is stricter than YAML and escapes characters above U+FFFF as surrogate pairs, which YAML does not know.
pub(super) fn read_json(text: &str) -> Result<Vec<Node>, (usize, Problem)> {
    serde_json::from_str::<serde_json::Value>(text)
        .map_err(|error| (error.line(), format!("not JSON: {error}").into()))?;
    read(&join_surrogates(text))
}

fn join_surrogates(text: &str) -> String {
    let unit = |at: &str| u16::from_str_radix(at.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut joined = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('\\') {
        joined.push_str(&rest[..start]);
        rest = &rest[start..];
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        let whole = pair.and_then(|(high, low)| char::decode_utf16([high, low]).next()?.ok());
        if let Some(whole) = whole.filter(|whole| u32::from(*whole) > 0xffff) {
            joined.push(whole);
            rest = &rest[12..];
            continue;
        }
        // An escape and the character it escapes, which may be another backslash.
        let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
        joined.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    joined + rest
}

/// A list or group that is not closed yet.
struct OpenCollection {
    node: Node,
    /// The key whose value comes next.
    key: Option<Key>,
    /// Entries from a merge key; entries written in the group itself take precedence.
    merged: Vec<(String, Node)>,
    anchor: usize,
}

enum Key {
    Name(String, usize),
    Merge,
}

#[derive(Default)]
struct Builder {
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    copied: usize,
    documents: Vec<Node>,
}

impl Builder {
    fn handle(&mut self, event: Event<'_>, line: usize) -> Result<(), (usize, String)> {
        let (node, anchor, size) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = matches!(style, ScalarStyle::Plain) && tag.is_none();
                if self.is_key() {
                    return self.key(&text, plain, line);
                }
                let nothing = plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let value = if nothing { Value::Null } else { Value::Text(text.into_owned()) };
                (Node { line, value }, anchor, 1)
            }
            Event::SequenceStart(_, anchor, _) => {
                return self.open_collection(Value::List(Vec::new()), line, anchor);
            }
            Event::MappingStart(_, anchor, _) => {
                return self.open_collection(Value::Map(Vec::new()), line, anchor);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut open) = self.open.pop() else { return Ok(()) };
                if let Value::Map(entries) = &mut open.node.value {
                    for (key, node) in open.merged {
                        if !entries.iter().any(|(written, _)| *written == key) {
                            entries.push((key, node));
                        }
                    }
                }
                (open.node, open.anchor, 1)
            }
            Event::Alias(id) => {
                let bytes = self.anchors.get(&id).map_or(0, memory);
                self.charge_copy(bytes, line)?;
                match self.anchors.get(&id) {
                    Some(node) => (node.clone(), 0, count(node)),
                    None => return Err((line, "a node cannot contain itself".to_owned())),
                }
            }
            Event::DocumentEnd => {
                self.anchors.clear();
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.nodes += size;
        if self.nodes > MAX_NODES {
            return Err((line, format!("the file has more than {MAX_NODES} nodes")));
        }
        if anchor != 0 {
            self.charge_copy(memory(&node), line)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.attach(node)
    }

    /// Counts a copy before it is made.
    fn charge_copy(&mut self, bytes: usize, line: usize) -> Result<(), (usize, String)> {
        self.copied += bytes;
        if self.copied > MAX_COPIED {
            return Err((line, format!("anchors and aliases copy more than {MAX_COPIED} bytes")));
        }
        Ok(())
    }

    /// Whether the next event is a key.
    fn is_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| matches!(open.node.value, Value::Map(_)) && open.key.is_none())
    }

    fn key(&mut self, text: &str, plain: bool, line: usize) -> Result<(), (usize, String)> {
        let Some(OpenCollection { key, node, .. }) = self.open.last_mut() else { return Ok(()) };
        if plain && text == "<<" {
            *key = Some(Key::Merge);
            return Ok(());
        }
        let Value::Map(entries) = &node.value else { return Ok(()) };
        if entries.iter().any(|(written, _)| written == text) {
            return Err((line, format!("the key {text} appears twice")));
        }
        *key = Some(Key::Name(text.to_owned(), line));
        Ok(())
    }

    fn open_collection(
        &mut self,
        value: Value,
        line: usize,
        anchor: usize,
    ) -> Result<(), (usize, String)> {
        if self.is_key() {
            return Err((line, "a key has to be a single value".to_owned()));
        }
        let node = Node { line, value };
        self.open.push(OpenCollection { node, key: None, merged: Vec::new(), anchor });
        Ok(())
    }

    fn attach(&mut self, node: Node) -> Result<(), (usize, String)> {
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                // The line of a group is the line of its name, not of its first entry.
                Some(Key::Name(name, line)) => entries.push((name, Node { line, ..node })),
                Some(Key::Merge) => merge(&mut open.merged, node)?,
                None => return Err((node.line, "a key has to be a single value".to_owned())),
            },
            Value::Null | Value::Text(_) => {}
        }
        Ok(())
    }
}

fn merge(merged: &mut Vec<(String, Node)>, node: Node) -> Result<(), (usize, String)> {
    match node.value {
        Value::Map(entries) => {
            for (key, node) in entries {
                if !merged.iter().any(|(there, _)| *there == key) {
                    merged.push((key, node));
                }
            }
            Ok(())
        }
        Value::List(items) => items.into_iter().try_for_each(|item| merge(merged, item)),
        Value::Null | Value::Text(_) => {
            Err((node.line, "only a group can be merged with <<".to_owned()))
        }
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::Null | Value::Text(_) => 0,
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|(_, node)| count(node)).sum(),
    }
}

/// About how many bytes a node takes.
fn memory(node: &Node) -> usize {
    size_of::<Node>()
        + match &node.value {
            Value::Null => 0,
            Value::Text(text) => text.len(),
            Value::List(items) => items.iter().map(memory).sum(),
            Value::Map(entries) => entries.iter().map(|(key, node)| key.len() + memory(node)).sum(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_lines_and_written_keys_override_merged_ones() {
        let documents = read("a: &a\n  x: 1\n  y: ~\nb:\n  <<: *a\n  x: 2\n---\nc: [d]\n").unwrap();

        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].find(&["b", "x"]), Some(&Node::text(6, "2")));
        let merged = Node { line: 3, value: Value::Null };
        assert_eq!(documents[0].find(&["b", "y"]), Some(&merged));
    }

    #[test]
    fn duplicate_key_and_wrong_indent_are_reported_with_their_line() {
        assert_eq!(read("a: 1\na: 2\n").unwrap_err().0, 2);
        assert_eq!(read("a:\n  b: 1\n c: 2\n").unwrap_err().0, 3);
    }

    #[test]
    fn many_jobs_are_read_and_alias_bombs_are_rejected() {
        let jobs: Vec<String> =
            (0..5_000).map(|job| format!("  j{job}: {{a: 1, b: {{c: 2}}}}")).collect();
        let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..20 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            bomb.push(format!("a{level}: &a{level} [{below}]"));
        }

        assert!(read(&format!("jobs:\n{}", jobs.join("\n"))).is_ok());
        assert!(read(&bomb.join("\n")).unwrap_err().1.message.contains("more than"));
    }

    #[test]
    fn text_that_aliases_repeat_is_bounded_in_bytes() {
        let long = "x".repeat(500_000);
        let aliases = "*a,".repeat(10_000);

        let (line, problem) = read(&format!("a: &a {long}\nb: [{aliases}]")).unwrap_err();

        assert_eq!(line, 2);
        assert!(problem.message.contains("copy more than"), "{problem}");
    }

    #[test]
    fn json_keeps_lines_and_decodes_surrogate_pairs() {
        let read = read_json("{\n  \"a\": \"\\ud83d\\ude00 \\\\ud83d\\/\"\n}").unwrap();

        assert_eq!(read[0].find(&["a"]), Some(&Node::text(2, "\u{1f600} \\ud83d/")));
        assert_eq!(read_json("{\n  \"a\": 1,\n}").unwrap_err().0, 3);
    }
}
