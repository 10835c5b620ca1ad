//! Parses YAML text into a tree.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag as ParsedTag};

use super::node::{Kind, MAP, Node, SEQ, Tag};

/// Limit for documents that grow through aliases; far beyond any real configuration.
const MAX_NODES: usize = 20_000;
/// Limit for what anchors and aliases copy, in bytes: a long text may be repeated as often as there may be nodes.
const MAX_COPIED: usize = 4 << 20;

/// Text that is not one YAML document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::job) struct LoadError {
    /// Line number, from one.
    pub line: usize,
    pub problem: String,
}

/// Parses the only document of a text; `None` if the text has none.
pub(in crate::job) fn load(text: &str) -> Result<Option<Node>, LoadError> {
    let placeholders = Placeholders::insert(text);
    let mut options = granit_parser::options! { flow_nesting_limit: 50, block_nesting_limit: 50 };
    options.set_emit_comments(false);
    let mut builder = Builder {
        placeholders: &placeholders,
        open: Vec::new(),
        anchors: HashMap::new(),
        node_count: 0,
        copied: 0,
        root: None,
    };
    for event in Parser::new_from_str_with_options(&placeholders.text, options) {
        let (event, span) = event.map_err(|error| scan_error(&error))?;
        builder.handle(event, span.start.line())?;
    }
    Ok(builder.root)
}

fn scan_error(error: &ScanError) -> LoadError {
    LoadError { line: error.marker().line(), problem: error.kind().to_string() }
}

/// A collection that has not ended yet.
struct OpenCollection {
    node: Node,
    key: Option<Node>,
    anchor: usize,
}

struct Builder<'a> {
    placeholders: &'a Placeholders,
    open: Vec<OpenCollection>,
    /// Anchored nodes with their sizes.
    anchors: HashMap<usize, (Node, usize)>,
    node_count: usize,
    copied: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn handle(&mut self, event: Event<'_>, line: usize) -> Result<(), LoadError> {
        let problem = |problem: &str| Err(LoadError { line, problem: problem.to_owned() });
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return problem("there is a second document");
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text = self.placeholders.restore(&text);
                let plain = matches!(style, ScalarStyle::Plain) && tag.is_none();
                let tag =
                    full_tag(tag.as_deref()).unwrap_or_else(|| Node::tag_of_scalar(&text, plain));
                let node = Node { line, tag, kind: Kind::Scalar(text) };
                return self.attach(node, anchor, 1);
            }
            Event::SequenceStart(_, anchor, tag) => {
                let tag = full_tag(tag.as_deref()).unwrap_or(SEQ);
                let node = Node { line, tag, kind: Kind::Sequence(Vec::new()) };
                self.open.push(OpenCollection { node, key: None, anchor });
            }
            Event::MappingStart(_, anchor, tag) => {
                let tag = full_tag(tag.as_deref()).unwrap_or(MAP);
                let node = Node { line, tag, kind: Kind::Mapping(Vec::new()) };
                self.open.push(OpenCollection { node, key: None, anchor });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(OpenCollection { node, anchor, .. }) = self.open.pop() {
                    return self.attach(node, anchor, 1);
                }
            }
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id) else {
                    return problem("a node cannot contain itself");
                };
                let (bytes, size) = (memory(node), *size);
                self.charge_copy(bytes, line)?;
                let Some((node, _)) = self.anchors.get(&id).cloned() else { return Ok(()) };
                return self.attach(node, 0, size);
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a copy before it is made.
    fn charge_copy(&mut self, bytes: usize, line: usize) -> Result<(), LoadError> {
        self.copied += bytes;
        if self.copied > MAX_COPIED {
            let problem = format!("anchors and aliases copy more than {MAX_COPIED} bytes");
            return Err(LoadError { line, problem });
        }
        Ok(())
    }

    /// Adds a finished node to its parent, or makes it the root.
    fn attach(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), LoadError> {
        self.node_count += size;
        if self.node_count > MAX_NODES {
            let problem = format!("the document has more than {MAX_NODES} nodes");
            return Err(LoadError { line: node.line, problem });
        }
        if anchor != 0 {
            self.charge_copy(memory(&node), node.line)?;
            self.anchors.insert(anchor, (node.clone(), count(&node)));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection { node: parent, key, .. }) => match &mut parent.kind {
                Kind::Sequence(items) => items.push(node),
                Kind::Mapping(entries) => match key.take() {
                    None => *key = Some(node),
                    Some(key) => entries.push((key, node)),
                },
                Kind::Scalar(_) => {}
            },
        }
        Ok(())
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::Scalar(_) => 0,
        Kind::Sequence(items) => items.iter().map(count).sum(),
        Kind::Mapping(entries) => {
            entries.iter().map(|(key, value)| count(key) + count(value)).sum()
        }
    }
}

/// About how many bytes a node takes.
fn memory(node: &Node) -> usize {
    size_of::<Node>()
        + match &node.kind {
            Kind::Scalar(text) => text.len(),
            Kind::Sequence(items) => items.iter().map(memory).sum(),
            Kind::Mapping(entries) => {
                entries.iter().map(|(key, value)| memory(key) + memory(value)).sum()
            }
        }
}

/// The explicit tag, if any. A lone `!` is not a tag; it means that the text is not resolved to a type.
fn full_tag(tag: Option<&ParsedTag>) -> Option<Tag> {
    let (handle, suffix) = tag?.parts();
    Some(format!("{handle}{suffix}")).filter(|tag| tag != "!").map(Tag::from)
}

/// Replaces characters that SnakeYAML's YAML 1.1 accepts and the parser's YAML 1.2 does not. Before parsing, each of them becomes a
/// placeholder character that the text does not contain; after parsing, each placeholder is restored.
///
/// * U+0085, U+2028 and U+2029 end a line: a placeholder and a line feed. A placeholder at the start of a line is indented, or it would end
///   its block. No space is lost by that, because text with spaces before such a line end is never written as a block.
/// * U+FEFF may occur anywhere: a placeholder.
struct Placeholders {
    text: String,
    /// Original characters with their placeholders.
    pairs: Vec<(char, char)>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';
const PRIVATE_USE: RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

impl Placeholders {
    fn insert(text: &str) -> Self {
        const DEEP_INDENT: &str = "                                                            ";
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        // One pass over the text: a search for each of these characters would take seconds in a long text that contains all of them.
        let used: HashSet<char> =
            text.chars().filter(|character| PRIVATE_USE.contains(character)).collect();
        let mut free = PRIVATE_USE.filter(|placeholder| !used.contains(placeholder));
        let pairs: Vec<_> = ['\u{85}', '\u{2028}', '\u{2029}', BYTE_ORDER_MARK]
            .into_iter()
            .filter(|original| text.contains(*original))
            .filter_map(|original| Some((original, free.next()?)))
            .collect();
        if pairs.is_empty() {
            return Self { text: text.to_owned(), pairs };
        }
        let mut replaced = String::new();
        for character in text.chars() {
            match pairs.iter().find(|(original, _)| *original == character) {
                None => replaced.push(character),
                Some((BYTE_ORDER_MARK, placeholder)) => replaced.push(*placeholder),
                Some((_, placeholder)) => {
                    if replaced.ends_with('\n') {
                        replaced.push_str(DEEP_INDENT);
                    }
                    replaced.extend([*placeholder, '\n']);
                }
            }
        }
        Self { text: replaced, pairs }
    }

    fn restore(&self, text: &str) -> String {
        let mut restored = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match self.pairs.iter().find(|(_, placeholder)| *placeholder == character) {
                None => restored.push(character),
                Some((BYTE_ORDER_MARK, _)) => restored.push(BYTE_ORDER_MARK),
                Some((original, _)) => {
                    restored.truncate(restored.trim_end_matches(' ').len());
                    // In a folded scalar, the line feed has become a space; at the end of the scalar it is gone.
                    if characters.next_if(|next| matches!(next, '\n' | ' ')).is_some() {
                        restored.push(*original);
                    }
                }
            }
        }
        restored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        load(text).unwrap_err().problem
    }

    #[test]
    fn text_that_aliases_repeat_is_bounded_in_bytes() {
        let long = "x".repeat(500_000);
        let aliases = "*a,".repeat(10_000);

        assert!(problem(&format!("a: &a {long}\nb: [{aliases}]")).contains("copy more than"));
        assert!(load(&format!("a: &a {long}\nb: [*a, *a]")).is_ok());
    }

    #[test]
    fn nodes_that_nested_anchors_copy_are_bounded() {
        let open: Vec<String> = (0..40).map(|level| format!("&a{level} [")).collect();
        let text = [open.concat(), "x,".repeat(15_000), "]".repeat(40)].concat();

        assert!(problem(&text).contains("copy more than"));
    }
}
