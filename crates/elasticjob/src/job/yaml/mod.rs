//! The YAML the ancestor speaks: SnakeYAML 2.2's reading of YAML 1.1, and its way of writing, byte for byte.
//!
//! A document is a tree of [`Node`]s: [`load`] makes one from text, [`emit`] makes text from one. A scalar keeps its text and the type it
//! resolved to, side by side. That is what a typed reader throws away and what compatibility stands on: `yes` is the text "yes" where
//! the ancestor has a string and `true` where it has none, and `10` and `'10'` in a block we do not understand must stay what they are.

mod emit;
mod load;
mod node;
mod resolve;

pub(super) use self::{
    emit::emit,
    load::load,
    node::{BOOL, INT, Kind, Node},
    resolve::{bool_of, int_of, java_text},
};
