//! YAML as Java ElasticJob reads and writes it: SnakeYAML 2.2's dialect of YAML 1.1, and its output byte for byte.
//!
//! A document is a tree of [`Node`]s: [`load`] parses text into a tree, [`emit`] formats a tree as text. A scalar keeps both its text and
//! the type that the text resolves to. A typed reader would discard one of them, and compatibility needs both: `yes` is the text "yes"
//! where Java has a string and `true` elsewhere, and `10` and `'10'` in a block that is not interpreted must stay different.

mod emit;
mod load;
mod node;
mod resolve;

pub(super) use self::{
    emit::emit,
    load::load,
    node::{BOOL, INT, Kind, Node},
    resolve::{java_to_string, parse_bool, parse_int},
};
