//! A parsed file as a tree whose nodes know their lines.

use std::collections::BTreeMap;

use super::keys::normalize;

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) value: Value,
}

/// Single values are kept as text; the code that reads them decides their type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    #[cfg(any(feature = "properties", feature = "xml", test))]
    pub(super) fn text(line: usize, text: impl Into<String>) -> Self {
        Self { line, value: Value::Text(text.into()) }
    }

    pub(super) fn map(line: usize) -> Self {
        Self { line, value: Value::Map(Vec::new()) }
    }

    /// The kind of value, for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a group",
        }
    }

    /// The node at this path. Keys match by Spring's relaxed binding.
    pub(super) fn find(&self, keys: &[&str]) -> Option<&Node> {
        let Some((first, rest)) = keys.split_first() else { return Some(self) };
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find_map(|(key, node)| {
            // The key `spring.profiles` is the same as `spring` with `profiles` below it.
            let taken = key.split('.').count();
            let whole = std::iter::once(first).chain(rest).take(taken);
            let whole: Vec<String> = whole.map(|part| normalize(part)).collect();
            if normalize(key) == whole.join(".") { node.find(&keys[taken..]) } else { None }
        })
    }

    /// Inserts a value at a path, replacing an earlier value. A group and a single value at the same path are both kept, so that the
    /// reader of that path reports the conflict.
    pub(super) fn insert(&mut self, path: &[&str], node: Node) {
        self.insert_with(path, node, |one, other| normalize(one) == normalize(other));
    }

    /// Below `jobs` the keys are job names, which match only if they are spelled identically.
    fn insert_with(&mut self, path: &[&str], node: Node, is_same: fn(&str, &str) -> bool) {
        let Value::Map(entries) = &mut self.value else { return };
        let Some((first, rest)) = path.split_first() else { return };
        let (name, is_item) = match first.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, index)) if !name.is_empty() && index.parse::<usize>().is_ok() => {
                (name, true)
            }
            _ => (*first, false),
        };
        let below =
            if normalize(name) == "jobs" { |one: &str, other: &str| one == other } else { is_same };
        for (key, there) in entries.iter_mut() {
            if !is_same(key, name) {
                continue;
            }
            match (&mut there.value, &node.value) {
                (Value::Map(_), _) if !rest.is_empty() => {
                    return there.insert_with(rest, node, below);
                }
                _ if !rest.is_empty() => {}
                (Value::List(items), _) if is_item => return items.push(node),
                (Value::Map(_), Value::Map(more)) => {
                    for (key, node) in more {
                        there.insert_with(&[key], node.clone(), below);
                    }
                    return;
                }
                (Value::Map(_), _) | (_, Value::Map(_)) => {}
                _ => {
                    *there = node;
                    return;
                }
            }
        }
        let node = if !rest.is_empty() {
            let mut group = Node::map(node.line);
            group.insert_with(rest, node, below);
            group
        } else if is_item {
            Node { line: node.line, value: Value::List(vec![node]) }
        } else {
            node
        };
        entries.push((name.to_owned(), node));
    }

    fn flatten(&self, prefix: &str, properties: &mut BTreeMap<String, String>) {
        match &self.value {
            Value::Text(text) => {
                properties.insert(prefix.to_owned(), text.clone());
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    node.flatten(&format!("{prefix}{dot}{}", normalize(key)), properties);
                }
            }
            Value::Null | Value::List(_) => {}
        }
    }
}

/// The root keys of a file, merged from all of its documents; later documents win.
#[derive(Debug, Default)]
pub(super) struct Roots(Vec<(String, Node)>);

impl Roots {
    /// The root nodes whose key matches `name` by relaxed binding, each with its key as written.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let named = self.0.iter().filter(move |(key, _)| normalize(key) == normalize(name));
        named.map(|(key, node)| (key.as_str(), node))
    }

    /// Merges one more document. Groups are merged; dotted keys become groups.
    pub(super) fn merge_document(&mut self, tree: &Node) -> Result<(), (usize, String)> {
        let entries = match &tree.value {
            Value::Map(entries) => entries,
            Value::Null => return Ok(()),
            _ => {
                return Err((
                    tree.line,
                    format!("the document is {}, not groups", tree.kind_name()),
                ));
            }
        };
        let mut root = Node { line: tree.line, value: Value::Map(std::mem::take(&mut self.0)) };
        for (key, node) in entries {
            root.insert(&split_key(key), expand_dotted_keys(node));
        }
        if let Value::Map(entries) = root.value {
            self.0 = entries;
        }
        Ok(())
    }

    /// Adds every single value by its full key, for placeholders.
    pub(super) fn flatten(&self, properties: &mut BTreeMap<String, String>) {
        for (key, node) in &self.0 {
            node.flatten(&normalize(key), properties);
        }
    }
}

/// Turns dotted keys into groups, one level deep only: further down, dots may be part of a job's name.
fn expand_dotted_keys(node: &Node) -> Node {
    let Value::Map(entries) = &node.value else { return node.clone() };
    let mut spread = Node::map(node.line);
    for (key, node) in entries {
        spread.insert(&split_key(key), node.clone());
    }
    spread
}

/// Splits a dotted key. Text in brackets stays one part, including its dots.
pub(super) fn split_key(key: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (index, character) in key.char_indices() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            '.' if !inside => {
                parts.push(&key[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&key[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bracketed_name_is_one_part_of_a_key() {
        assert_eq!(split_key("jobs.[my.job].cron"), ["jobs", "[my.job]", "cron"]);
    }

    #[test]
    fn later_value_replaces_earlier_one() {
        let mut root = Node::map(1);
        root.insert(&["a", "server-lists"], Node::text(1, "old"));
        root.insert(&["jobs", "settle-orders", "cron"], Node::text(1, "x"));
        root.insert(&["a", "b[0]"], Node::text(2, "x"));
        root.insert(&["a", "b[1]"], Node::text(3, "y"));

        root.insert(&["a", "serverLists"], Node::text(4, "new"));
        root.insert(&["jobs", "settleOrders", "cron"], Node::text(5, "y"));

        assert_eq!(root.find(&["a", "serverLists"]), Some(&Node::text(4, "new")));
        let Value::Map(jobs) = &root.find(&["jobs"]).unwrap().value else { panic!("{root:?}") };
        assert_eq!(jobs.len(), 2, "two names are two jobs");
        let list = Value::List(vec![Node::text(2, "x"), Node::text(3, "y")]);
        assert_eq!(root.find(&["a", "b"]).unwrap().value, list);
    }
}
