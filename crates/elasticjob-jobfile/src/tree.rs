//! A file as a tree that knows its lines.

use std::collections::BTreeMap;

use super::keys::relaxed;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// From one.
    pub(super) line: usize,
    pub(super) value: Value,
}

/// What stands there. Single values are text: what they have to be is for those who take them to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
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

    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Nothing => "nothing",
            Value::Text(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a group",
        }
    }

    /// What stands at the end of these keys, whichever way they are written.
    pub(super) fn find(&self, keys: &[&str]) -> Option<&Node> {
        let Some((first, rest)) = keys.split_first() else { return Some(self) };
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find_map(|(key, node)| {
            // `spring.profiles` in one key is the same as one below the other.
            let taken = key.split('.').count();
            let whole = std::iter::once(first).chain(rest).take(taken);
            let whole: Vec<String> = whole.map(|part| relaxed(part)).collect();
            if relaxed(key) == whole.join(".") { node.find(&keys[taken..]) } else { None }
        })
    }

    /// Puts a value where the parts of a key say, over what is there already. A group and a single value in one place both stay: whoever
    /// takes them says so.
    pub(super) fn put(&mut self, path: &[&str], node: Node) {
        self.put_where(path, node, |one, other| relaxed(one) == relaxed(other));
    }

    /// Below `jobs` stand names, which are the same only if they are written the same.
    fn put_where(&mut self, path: &[&str], node: Node, is_same: fn(&str, &str) -> bool) {
        let Value::Map(entries) = &mut self.value else { return };
        let Some((first, rest)) = path.split_first() else { return };
        let (name, is_item) = match first.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, index)) if !name.is_empty() && index.parse::<usize>().is_ok() => {
                (name, true)
            }
            _ => (*first, false),
        };
        let below =
            if relaxed(name) == "jobs" { |one: &str, other: &str| one == other } else { is_same };
        for (key, there) in entries.iter_mut() {
            if !is_same(key, name) {
                continue;
            }
            match (&mut there.value, &node.value) {
                (Value::Map(_), _) if !rest.is_empty() => {
                    return there.put_where(rest, node, below);
                }
                _ if !rest.is_empty() => {}
                (Value::List(items), _) if is_item => return items.push(node),
                (Value::Map(_), Value::Map(more)) => {
                    for (key, node) in more {
                        there.put_where(&[key], node.clone(), below);
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
            group.put_where(rest, node, below);
            group
        } else if is_item {
            Node { line: node.line, value: Value::List(vec![node]) }
        } else {
            node
        };
        entries.push((name.to_owned(), node));
    }

    fn flatten(&self, prefix: &str, known: &mut BTreeMap<String, String>) {
        match &self.value {
            Value::Text(text) => {
                known.insert(prefix.to_owned(), text.clone());
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    let dot = if prefix.is_empty() { "" } else { "." };
                    node.flatten(&format!("{prefix}{dot}{}", relaxed(key)), known);
                }
            }
            Value::Nothing | Value::List(_) => {}
        }
    }
}

/// The roots of a file: all of its documents, one over the other.
#[derive(Debug, Default)]
pub(super) struct Roots(Vec<(String, Node)>);

impl Roots {
    /// What is called so at the root, whichever way it is written, and how it is written.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let named = self.0.iter().filter(move |(key, _)| relaxed(key) == relaxed(name));
        named.map(|(key, node)| (key.as_str(), node))
    }

    /// One document more. A root that is a group is merged with what is there; keys with dots are groups.
    pub(super) fn add(&mut self, tree: &Node) -> Result<(), (usize, String)> {
        let entries = match &tree.value {
            Value::Map(entries) => entries,
            Value::Nothing => return Ok(()),
            _ => return Err((tree.line, format!("it is {} and should be groups", tree.kind()))),
        };
        let mut root = Node { line: tree.line, value: Value::Map(std::mem::take(&mut self.0)) };
        for (key, node) in entries {
            root.put(&parts(key), spread(node));
        }
        if let Value::Map(entries) = root.value {
            self.0 = entries;
        }
        Ok(())
    }

    /// Every single value by its whole key, for placeholders.
    pub(super) fn flatten(&self, known: &mut BTreeMap<String, String>) {
        for (key, node) in &self.0 {
            node.flatten(&relaxed(key), known);
        }
    }
}

/// The same with groups for keys with dots, one level down: below that, dots may be part of a job's name.
fn spread(node: &Node) -> Node {
    let Value::Map(entries) = &node.value else { return node.clone() };
    let mut spread = Node::map(node.line);
    for (key, node) in entries {
        spread.put(&parts(key), node.clone());
    }
    spread
}

/// The parts of a key with dots. What stands in brackets is one part, dots and all.
pub(super) fn parts(key: &str) -> Vec<&str> {
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
    fn brackets_hold_a_name_together() {
        assert_eq!(parts("jobs.[my.job].cron"), ["jobs", "[my.job]", "cron"]);
    }

    #[test]
    fn what_comes_later_is_put_over_what_was_there() {
        let mut root = Node::map(1);
        root.put(&["a", "server-lists"], Node::text(1, "old"));
        root.put(&["jobs", "settle-orders", "cron"], Node::text(1, "x"));
        root.put(&["a", "b[0]"], Node::text(2, "x"));
        root.put(&["a", "b[1]"], Node::text(3, "y"));

        root.put(&["a", "serverLists"], Node::text(4, "new"));
        root.put(&["jobs", "settleOrders", "cron"], Node::text(5, "y"));

        assert_eq!(root.find(&["a", "serverLists"]), Some(&Node::text(4, "new")));
        let Value::Map(jobs) = &root.find(&["jobs"]).unwrap().value else { panic!("{root:?}") };
        assert_eq!(jobs.len(), 2, "two names are two jobs");
        let list = Value::List(vec![Node::text(2, "x"), Node::text(3, "y")]);
        assert_eq!(root.find(&["a", "b"]).unwrap().value, list);
    }
}
