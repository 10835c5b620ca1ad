//! The nodes of a YAML document.

use std::borrow::Cow;

use super::resolve::resolve;

const PREFIX: &str = "tag:yaml.org,2002:";

/// A node's full tag.
pub(in crate::job) type Tag = Cow<'static, str>;

pub(in crate::job) const STR: Tag = Cow::Borrowed("tag:yaml.org,2002:str");
pub(in crate::job) const NULL: Tag = Cow::Borrowed("tag:yaml.org,2002:null");
pub(in crate::job) const BOOL: Tag = Cow::Borrowed("tag:yaml.org,2002:bool");
pub(in crate::job) const INT: Tag = Cow::Borrowed("tag:yaml.org,2002:int");
pub(in crate::job) const FLOAT: Tag = Cow::Borrowed("tag:yaml.org,2002:float");
pub(in crate::job) const TIMESTAMP: Tag = Cow::Borrowed("tag:yaml.org,2002:timestamp");
pub(in crate::job) const MERGE: Tag = Cow::Borrowed("tag:yaml.org,2002:merge");
pub(in crate::job) const BINARY: Tag = Cow::Borrowed("tag:yaml.org,2002:binary");
pub(in crate::job) const SEQ: Tag = Cow::Borrowed("tag:yaml.org,2002:seq");
pub(in crate::job) const MAP: Tag = Cow::Borrowed("tag:yaml.org,2002:map");

/// One node of a document. Comparison ignores the line.
#[derive(Debug, Clone)]
pub(in crate::job) struct Node {
    /// The line it starts on, from one; zero if it was not parsed from text.
    pub line: usize,
    /// The explicit tag, or the one that the text resolves to.
    pub tag: Tag,
    pub kind: Kind,
}

/// A node's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::job) enum Kind {
    Scalar(String),
    Sequence(Vec<Node>),
    /// Keys and values, in order.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    pub(in crate::job) fn text(text: impl Into<String>) -> Self {
        Self { line: 0, tag: STR, kind: Kind::Scalar(text.into()) }
    }

    pub(in crate::job) fn int(value: impl Into<i64>) -> Self {
        Self { line: 0, tag: INT, kind: Kind::Scalar(value.into().to_string()) }
    }

    pub(in crate::job) fn bool(value: bool) -> Self {
        Self { line: 0, tag: BOOL, kind: Kind::Scalar(value.to_string()) }
    }

    pub(in crate::job) fn sequence(items: Vec<Node>) -> Self {
        Self { line: 0, tag: SEQ, kind: Kind::Sequence(items) }
    }

    pub(in crate::job) fn mapping(entries: Vec<(Node, Node)>) -> Self {
        Self { line: 0, tag: MAP, kind: Kind::Mapping(entries) }
    }

    /// The tag of a scalar that is written without one.
    pub(in crate::job) fn tag_of_scalar(text: &str, plain: bool) -> Tag {
        if plain { resolve(text) } else { STR }
    }

    pub(in crate::job) fn is_null(&self) -> bool {
        self.tag == NULL
    }

    /// Whether its text is base64-encoded binary data.
    pub(in crate::job) fn is_binary(&self) -> bool {
        self.tag == BINARY
    }

    /// The kind of node, for error messages.
    pub(in crate::job) fn kind_name(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(_) => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a map",
        }
    }

    /// The tag in YAML syntax: `!!int`, `!mine`, `!<other>`.
    pub(in crate::job) fn written_tag(&self) -> String {
        match self.tag.strip_prefix(PREFIX) {
            Some(rest) if !rest.is_empty() => format!("!!{}", percent_encode(rest)),
            _ if self.tag.starts_with('!') => percent_encode(&self.tag),
            _ => format!("!<{}>", percent_encode(&self.tag)),
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.kind == other.kind
    }
}

impl Eq for Node {}

/// Percent-encodes characters that are not allowed in a tag.
fn percent_encode(tag: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')')
        .remove(b'@')
        .remove(b':')
        .remove(b'$')
        .remove(b'&')
        .remove(b',')
        .remove(b';')
        .remove(b'=')
        .remove(b'[')
        .remove(b']')
        .remove(b'/');
    utf8_percent_encode(tag, UNSAFE).to_string()
}
