//! Parses YAML text into a tree.

use std::{
    collections::{HashMap, HashSet},
    iter::Sum,
    ops::{Add, RangeInclusive},
};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag as ParsedTag};

use super::node::{Kind, MAP, Node, SEQ, Tag};

/// Limits for documents that grow through aliases; far beyond any real configuration.
const MAX_NODES: usize = 20_000;
/// Bytes of all texts together. A document has at most a quarter of that, so only aliases exceed it.
const MAX_BYTES: usize = 4 << 20;

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
        total: Size::default(),
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

/// How much of a document a node is.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    /// Of a node alone, without what it contains.
    fn of(node: &Node) -> Self {
        let bytes = if let Kind::Scalar(text) = &node.kind { text.len() } else { 0 };
        Self { nodes: 1, bytes: node.tag.len() + bytes }
    }

    /// Of a node and everything it contains.
    fn of_all(node: &Node) -> Self {
        let inner: Self = match &node.kind {
            Kind::Scalar(_) => Self::default(),
            Kind::Sequence(items) => items.iter().map(Self::of_all).sum(),
            Kind::Mapping(entries) => {
                entries.iter().flat_map(|(key, value)| [key, value]).map(Self::of_all).sum()
            }
        };
        Self::of(node) + inner
    }

    /// What is too large about it.
    fn problem(self) -> Option<String> {
        if self.nodes > MAX_NODES {
            return Some(format!("the document has more than {MAX_NODES} nodes"));
        }
        (self.bytes > MAX_BYTES)
            .then(|| format!("its texts and aliases have more than {MAX_BYTES} bytes"))
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nodes: self.nodes + other.nodes, bytes: self.bytes + other.bytes }
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
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
    anchors: HashMap<usize, (Node, Size)>,
    /// Of everything so far. Aliases count with what they stand for.
    total: Size,
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
                return self.attach(node, anchor);
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
                    return self.attach(node, anchor);
                }
            }
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id) else {
                    return problem("a node cannot contain itself");
                };
                // Before it is copied. Attaching counts the node itself once more.
                self.total = self.total + *size;
                if let Some(problem) = self.total.problem() {
                    return Err(LoadError { line, problem });
                }
                let node = node.clone();
                return self.attach(node, 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a finished node to its parent, or makes it the root.
    fn attach(&mut self, node: Node, anchor: usize) -> Result<(), LoadError> {
        self.total = self.total + Size::of(&node);
        if let Some(problem) = self.total.problem() {
            return Err(LoadError { line: node.line, problem });
        }
        if anchor != 0 {
            // The copy counts, too: anchors inside of anchors are copied once more at each level.
            let size = Size::of_all(&node);
            self.total = self.total + size;
            if let Some(problem) = self.total.problem() {
                return Err(LoadError { line: node.line, problem });
            }
            self.anchors.insert(anchor, (node.clone(), size));
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

        assert!(problem(&format!("a: &a {long}\nb: [{aliases}]")).contains("more than"));
        assert!(load(&format!("a: &a {long}\nb: [*a, *a]")).is_ok());
    }

    #[test]
    fn nodes_that_nested_anchors_copy_are_bounded() {
        let open: Vec<String> = (0..40).map(|level| format!("&a{level} [")).collect();
        let text = [open.concat(), "x,".repeat(15_000), "]".repeat(40)].concat();

        assert!(problem(&text).contains("more than"));
    }
}
