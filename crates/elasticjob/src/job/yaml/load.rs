//! From text to a tree.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag as ParsedTag};

use super::node::{Kind, MAP, Node, SEQ, Tag};

/// Far beyond any configuration; what a chain of aliases may grow to.
const MAX_NODES: usize = 20_000;

/// Text that is not one YAML document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::job) struct LoadError {
    /// The line, from one.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

/// The one document of a text; none if there is nothing in it.
pub(in crate::job) fn load(text: &str) -> Result<Option<Node>, LoadError> {
    let disguise = Disguise::of(text);
    let mut options = granit_parser::options! { flow_nesting_limit: 50, block_nesting_limit: 50 };
    options.set_emit_comments(false);
    let mut builder = Builder {
        disguise: &disguise,
        open: Vec::new(),
        known: HashMap::new(),
        nodes: 0,
        root: None,
    };
    for event in Parser::new_from_str_with_options(&disguise.text, options) {
        let (event, span) = event.map_err(|error| wrong(&error))?;
        builder.take(event, span.start.line())?;
    }
    Ok(builder.root)
}

fn wrong(error: &ScanError) -> LoadError {
    LoadError { line: error.marker().line(), problem: error.kind().to_string() }
}

/// A collection whose end has not come yet.
struct Open {
    node: Node,
    key: Option<Node>,
    anchor: usize,
}

struct Builder<'a> {
    disguise: &'a Disguise,
    open: Vec<Open>,
    known: HashMap<usize, (Node, usize)>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), LoadError> {
        let problem = |problem: &str| Err(LoadError { line, problem: problem.to_owned() });
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return problem("there is a second document");
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text = self.disguise.lift(&text);
                let plain = matches!(style, ScalarStyle::Plain) && tag.is_none();
                let tag =
                    full_tag(tag.as_deref()).unwrap_or_else(|| Node::tag_of_scalar(&text, plain));
                let node = Node { line, tag, kind: Kind::Scalar(text) };
                return self.place(node, anchor, 1);
            }
            Event::SequenceStart(_, anchor, tag) => {
                let tag = full_tag(tag.as_deref()).unwrap_or(SEQ);
                let node = Node { line, tag, kind: Kind::Sequence(Vec::new()) };
                self.open.push(Open { node, key: None, anchor });
            }
            Event::MappingStart(_, anchor, tag) => {
                let tag = full_tag(tag.as_deref()).unwrap_or(MAP);
                let node = Node { line, tag, kind: Kind::Mapping(Vec::new()) };
                self.open.push(Open { node, key: None, anchor });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { node, anchor, .. }) = self.open.pop() {
                    return self.place(node, anchor, 1);
                }
            }
            Event::Alias(id) => {
                let Some((node, size)) = self.known.get(&id).cloned() else {
                    return problem("a node cannot contain itself");
                };
                return self.place(node, 0, size);
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), LoadError> {
        self.nodes += size;
        if self.nodes > MAX_NODES {
            let problem = format!("the document has more than {MAX_NODES} nodes");
            return Err(LoadError { line: node.line, problem });
        }
        if anchor != 0 {
            self.known.insert(anchor, (node.clone(), count(&node)));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open { node: parent, key, .. }) => match &mut parent.kind {
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

/// The tag that was written, if one was. A lone `!` is none, it says "do not judge by the looks".
fn full_tag(tag: Option<&ParsedTag>) -> Option<Tag> {
    let (handle, suffix) = tag?.parts();
    Some(format!("{handle}{suffix}")).filter(|tag| tag != "!").map(Tag::from)
}

/// What YAML 1.1 as SnakeYAML reads it takes and YAML 1.2, which the parser speaks, does not. For the parser each such character is
/// replaced by a mark that does not occur otherwise; afterwards each mark becomes what it was.
///
/// * U+0085, U+2028 and U+2029 end a line: a mark and a line feed. A mark at the start of a line is indented, or it would end the block it
///   is in. No space is lost by that: text with spaces before such an end is never written as a block.
/// * U+FEFF may stand anywhere: a mark.
struct Disguise {
    text: String,
    marks: Vec<(char, char)>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl Disguise {
    fn of(text: &str) -> Self {
        const DEEP: &str = "                                                            ";
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut free = ('\u{e000}'..='\u{f8ff}').filter(|mark| !text.contains(*mark));
        let marks: Vec<_> = ['\u{85}', '\u{2028}', '\u{2029}', BYTE_ORDER_MARK]
            .into_iter()
            .filter(|original| text.contains(*original))
            .filter_map(|original| Some((original, free.next()?)))
            .collect();
        if marks.is_empty() {
            return Self { text: text.to_owned(), marks };
        }
        let mut disguised = String::new();
        for character in text.chars() {
            match marks.iter().find(|(original, _)| *original == character) {
                None => disguised.push(character),
                Some((BYTE_ORDER_MARK, mark)) => disguised.push(*mark),
                Some((_, mark)) => {
                    if disguised.ends_with('\n') {
                        disguised.push_str(DEEP);
                    }
                    disguised.extend([*mark, '\n']);
                }
            }
        }
        Self { text: disguised, marks }
    }

    fn lift(&self, text: &str) -> String {
        let mut lifted = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match self.marks.iter().find(|(_, mark)| *mark == character) {
                None => lifted.push(character),
                Some((BYTE_ORDER_MARK, _)) => lifted.push(BYTE_ORDER_MARK),
                Some((original, _)) => {
                    lifted.truncate(lifted.trim_end_matches(' ').len());
                    // In a folded scalar the line feed has become a space; at the end of one it is gone.
                    if characters.next_if(|next| matches!(next, '\n' | ' ')).is_some() {
                        lifted.push(*original);
                    }
                }
            }
        }
        lifted
    }
}
