//! Formats a tree as text, as SnakeYAML 2.2 does with Java ElasticJob's settings: block style, two spaces, eighty columns, lists not
//! indented below their key.
//!
//! Widths are counted in UTF-16 units, as in Java.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use super::{
    node::{BINARY, Kind, MAP, Node, SEQ, STR},
    resolve::resolve,
};

const WIDTH: usize = 80;
const STEP: usize = 2;
/// A key shares a line with its value if its tag and text together are shorter than this.
const SIMPLE_KEY: usize = 128;

/// Formats a document.
pub(in crate::job) fn emit(root: &Node) -> String {
    let mut emitter = Emitter { out: String::new(), column: 0, whitespace: true, indention: true };
    emitter.node(root, NodePosition { indent: None, in_mapping: false, simple_key: false });
    emitter.indent(0);
    emitter.out
}

/// The position of a node to be written.
#[derive(Clone, Copy)]
struct NodePosition {
    /// Indentation of the enclosing collection; `None` for the root.
    indent: Option<usize>,
    in_mapping: bool,
    simple_key: bool,
}

impl NodePosition {
    fn inner_indent(self) -> usize {
        self.indent.map_or(0, |indent| indent + STEP)
    }
}

struct Emitter {
    out: String,
    column: usize,
    /// The last character was whitespace.
    whitespace: bool,
    /// This line has only indentation and `-`, `?`, `:` so far.
    indention: bool,
}

impl Emitter {
    fn node(&mut self, node: &Node, position: NodePosition) {
        match &node.kind {
            Kind::Scalar(text) => self.scalar(node, text, position),
            Kind::Sequence(items) => {
                self.tag_unless(node, node.tag == SEQ);
                self.sequence(items, position);
            }
            Kind::Mapping(entries) => {
                self.tag_unless(node, node.tag == MAP);
                self.mapping(entries, position);
            }
        }
    }

    fn sequence(&mut self, items: &[Node], position: NodePosition) {
        if items.is_empty() {
            self.indicator("[", true, true, false);
            return self.indicator("]", false, false, false);
        }
        let flush = position.in_mapping && !self.indention;
        let indent = if flush { position.indent.unwrap_or(0) } else { position.inner_indent() };
        for item in items {
            self.indent(indent);
            self.indicator("-", true, false, true);
            self.node(
                item,
                NodePosition { indent: Some(indent), in_mapping: false, simple_key: false },
            );
        }
    }

    fn mapping(&mut self, entries: &[(Node, Node)], position: NodePosition) {
        if entries.is_empty() {
            self.indicator("{", true, true, false);
            return self.indicator("}", false, false, false);
        }
        let indent = position.inner_indent();
        let inside = NodePosition { indent: Some(indent), in_mapping: true, simple_key: false };
        for (key, value) in entries {
            self.indent(indent);
            if is_simple_key(key) {
                self.node(key, NodePosition { simple_key: true, ..inside });
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.node(key, inside);
                self.indent(indent);
                self.indicator(":", true, false, true);
            }
            self.node(value, inside);
        }
    }

    fn scalar(&mut self, node: &Node, text: &str, position: NodePosition) {
        if let Some(binary) = to_binary(node) {
            return self.node(&binary, position);
        }
        let style = Style::of(node, text, position.simple_key);
        let is_resolved = resolve(text) == node.tag;
        self.tag_unless(node, if style == Style::Plain { is_resolved } else { node.tag == STR });
        let indent = position.indent.map_or(STEP, |indent| indent + STEP);
        let fold = !position.simple_key;
        match style {
            Style::Plain => self.plain(text, indent, fold),
            Style::Single => self.single_quoted(text, indent, fold),
            Style::Double => self.double_quoted(text, indent, fold),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn tag_unless(&mut self, node: &Node, implied: bool) {
        if !implied {
            self.indicator(&node.written_tag(), true, false, false);
        }
    }

    fn plain(&mut self, text: &str, indent: usize, fold: bool) {
        if text.is_empty() {
            return;
        }
        if !self.whitespace {
            self.raw(" ");
        }
        self.whitespace = false;
        self.indention = false;
        for (_, run) in runs(text) {
            if fold && run == " " && self.column > WIDTH {
                self.indent(indent);
                self.whitespace = false;
                self.indention = false;
            } else {
                self.raw(run);
            }
        }
    }

    fn single_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.indicator("'", true, false, false);
        for (at, run) in runs(text) {
            let inside = at > 0 && at + run.len() < text.len();
            if fold && run == " " && inside && self.column > WIDTH {
                self.indent(indent);
            } else {
                self.raw(&run.replace('\'', "''"));
            }
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.indicator("\"", true, false, false);
        let last = text.encode_utf16().count() - usize::from(!text.is_empty());
        // Characters read and not yet written; they need no escape.
        let mut pending = String::new();
        let mut at = 0;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            at += character.len_utf16();
            let escape = escape_of(character);
            if let Some(escape) = &escape {
                self.flush(&mut pending);
                self.raw(escape);
            }
            // SnakeYAML counts one column less right after an escape.
            let column =
                if escape.is_some() { self.column - 1 } else { self.column + pending.len() };
            let may_break = character == ' ' || escape.is_some() || pending.is_empty();
            if fold && may_break && (1..last).contains(&(at - 1)) && column > WIDTH {
                self.flush(&mut pending);
                self.raw("\\");
                self.indent(indent);
                self.whitespace = false;
                self.indention = false;
                let next = if escape.is_some() { characters.peek() } else { Some(&character) };
                if next == Some(&' ') {
                    self.raw("\\");
                }
            }
            if escape.is_none() {
                pending.push(character);
            }
        }
        self.flush(&mut pending);
        self.indicator("\"", false, false, false);
    }

    fn flush(&mut self, pending: &mut String) {
        self.raw(pending);
        pending.clear();
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator(&format!("|{}", block_hints(text)), true, false, false);
        self.line_break('\n');
        let mut at_line_start = true;
        for character in text.chars() {
            if is_break(character) {
                self.line_break(character);
                at_line_start = true;
                continue;
            }
            if at_line_start {
                self.indent(indent);
                at_line_start = false;
            }
            self.out.push(character);
        }
        if !at_line_start {
            self.line_break('\n');
        }
    }

    fn indicator(&mut self, text: &str, needs_space: bool, is_space: bool, is_indention: bool) {
        if needs_space && !self.whitespace {
            self.raw(" ");
        }
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
        self.raw(text);
    }

    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break('\n');
        }
        if indent > self.column {
            self.whitespace = true;
            self.raw(&" ".repeat(indent - self.column));
        }
    }

    fn line_break(&mut self, character: char) {
        self.whitespace = true;
        self.indention = true;
        self.column = 0;
        self.out.push(character);
    }

    fn raw(&mut self, text: &str) {
        self.column += text.encode_utf16().count();
        self.out.push_str(text);
    }
}

/// Splits text into runs of spaces and of other characters, each with its byte offset.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let spaces = rest.starts_with(' ');
        let length = rest.find(|c| (c == ' ') != spaces).unwrap_or(rest.len());
        let run = (at, &rest[..length]);
        at += length;
        (length > 0).then_some(run)
    })
}

/// Text with characters that YAML cannot represent is written as binary.
fn to_binary(node: &Node) -> Option<Node> {
    match &node.kind {
        Kind::Scalar(text) if node.tag == STR && !text.chars().all(is_printable) => {
            Some(Node { line: 0, tag: BINARY, kind: Kind::Scalar(BASE64.encode(text)) })
        }
        _ => None,
    }
}

/// Whether a key shares a line with its value.
fn is_simple_key(key: &Node) -> bool {
    if let Some(binary) = to_binary(key) {
        return is_simple_key(&binary);
    }
    let (length, simple) = match &key.kind {
        Kind::Scalar(text) => {
            (text.encode_utf16().count(), !text.is_empty() && !text.contains(is_break))
        }
        Kind::Sequence(items) => (0, items.is_empty()),
        Kind::Mapping(entries) => (0, entries.is_empty()),
    };
    simple && key.written_tag().len() + length < SIMPLE_KEY
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

impl Style {
    fn of(node: &Node, text: &str, simple_key: bool) -> Self {
        let allowed = AllowedStyles::of(text);
        let wants_block = node.tag == BINARY || text.contains(is_break);
        if wants_block {
            return if !simple_key && allowed.block { Self::Literal } else { Self::Double };
        }
        let empty_key = simple_key && text.is_empty();
        if resolve(text) == node.tag && allowed.plain && !empty_key {
            Self::Plain
        } else if allowed.single {
            Self::Single
        } else {
            Self::Double
        }
    }
}

/// The styles that represent a text without loss.
struct AllowedStyles {
    plain: bool,
    single: bool,
    block: bool,
}

impl AllowedStyles {
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { plain: true, single: true, block: false };
        }
        let characters: Vec<char> = text.chars().collect();
        let after = |index: usize| characters.get(index + 1).copied();
        let first = characters[0];
        let ends_word = |next: Option<char>| next.is_none_or(|c| matches!(c, ' ' | '\t'));
        let first_alone = ends_word(after(0)) || after(0).is_some_and(is_break);
        let mut indicator = text.starts_with("---")
            || text.starts_with("...")
            || "#,[]{}&*!|>'\"%@`".contains(first)
            || (matches!(first, '?' | ':' | '-') && first_alone);
        for index in 1..characters.len() {
            let before = characters[index - 1];
            // SnakeYAML checks for a line break before the colon instead of after it, so this must, too.
            indicator |= match characters[index] {
                ':' => ends_word(after(index)) || is_break(before),
                '#' => matches!(before, ' ' | '\t') || is_break(before),
                _ => false,
            };
        }
        let special = characters.iter().any(|c| *c != '\n' && !is_ordinary(*c));
        let edge = |c: char| c == ' ' || is_break(c);
        let trailing_space = characters.last() == Some(&' ');
        let pair = |one: fn(char) -> bool, two: fn(char) -> bool| {
            characters.windows(2).any(|pair| one(pair[0]) && two(pair[1]))
        };
        let break_then_space = pair(is_break, |c| c == ' ');
        let space_then_break = pair(|c| c == ' ', is_break);
        let leading_zero = text.len() > 1
            && first == '0'
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        let has_space_at_edge = edge(first) || characters.last().copied().is_some_and(edge);
        let is_lossless = !space_then_break && !special;
        Self {
            plain: is_lossless
                && !break_then_space
                && !has_space_at_edge
                && !leading_zero
                && !indicator,
            single: is_lossless && !break_then_space,
            block: is_lossless && !trailing_space,
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character never needs an escape.
fn is_ordinary(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a document may contain a character, escaped if necessary.
fn is_printable(character: char) -> bool {
    is_ordinary(character) || matches!(character, '\t' | '\n' | '\r')
}

/// The escape of a character between double quotes; `None` if it needs none.
fn escape_of(character: char) -> Option<String> {
    let letter = match character {
        '\t' => 't',
        '\n' => 'n',
        '\r' => 'r',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        ' '..='~' => return None,
        other => return Some(other.to_string()),
    };
    Some(format!("\\{letter}"))
}

fn block_hints(text: &str) -> String {
    let mut hints = String::new();
    if text.starts_with(|c| c == ' ' || is_break(c)) {
        hints.push('2');
    }
    let mut from_the_end = text.chars().rev();
    match (from_the_end.next(), from_the_end.next()) {
        (Some(last), _) if !is_break(last) => hints.push('-'),
        (_, before) if before.is_none_or(is_break) => hints.push('+'),
        _ => {}
    }
    hints
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use proptest::prelude::*;
    use serde_json::Value;

    use super::{super::load::load, *};

    const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/yaml-write.jsonl");

    /// The document that SnakeYAML was given for each text: the text as a value, in a list, as a key, and nested.
    fn document(text: &str) -> Node {
        let node = || Node::text(text);
        let list = Node::sequence(vec![node(), Node::text("x")]);
        let inner = if text == "n" {
            vec![(node(), node())]
        } else {
            vec![(node(), Node::text("v")), (Node::text("n"), node())]
        };
        Node::mapping(vec![
            (Node::text("a"), node()),
            (Node::text("b"), list),
            (Node::text("c"), Node::mapping(inner)),
        ])
    }

    /// Recorded from SnakeYAML 2.2. The environment variable `YAML_WRITE` names another file.
    #[test]
    fn text_is_written_as_snakeyaml_writes_it() {
        let file = env::var("YAML_WRITE").unwrap_or_else(|_| VECTORS.to_owned());
        let (mut checked, mut different) = (0, Vec::new());
        for line in fs::read_to_string(file).unwrap().lines() {
            checked += 1;
            let vector: Value = serde_json::from_str(line).unwrap();
            let (text, yaml) = (vector["text"].as_str().unwrap(), vector["yaml"].as_str().unwrap());
            let written = emit(&document(text));
            if written != yaml {
                different.push(format!("{text:?}\n  {yaml:?}\n  {written:?}"));
            }
        }
        assert!(checked > 0);
        assert!(
            different.is_empty(),
            "{} differ:\n{}",
            different.len(),
            different[..different.len().min(10)].join("\n")
        );
    }

    proptest! {
        #[test]
        fn emitted_document_loads_back(text in "\\PC{0,200}|(?s).{0,40}|[ a\n\t:#'\"\u{85}\u{2028}\u{2029}-]{0,120}") {
            let yaml = emit(&document(&text));

            let read = load(&yaml).unwrap().unwrap();

            prop_assert_eq!(emit(&read), yaml);
            if text.chars().all(is_printable) {
                prop_assert_eq!(read, document(&text));
            }
        }
    }
}
