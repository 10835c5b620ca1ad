//! TOML.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::tree::{Node, Value};

/// Parses a text. An error is a line and a message.
pub(super) fn read(text: &str) -> Result<Node, (usize, String)> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        (line(error.span().map_or(0, |span| span.start)), error.message().to_owned())
    })?;
    Ok(Node { line: 1, value: map(table.get_ref(), &line) })
}

fn map(table: &DeTable<'_>, line: &dyn Fn(usize) -> usize) -> Value {
    let mut entries: Vec<(usize, String, Node)> = table
        .iter()
        .map(|(key, value)| {
            (key.span().start, key.get_ref().to_string(), node(value, key.span().start, line))
        })
        .collect();
    entries.sort_by_key(|(at, ..)| *at);
    Value::Map(entries.into_iter().map(|(_, key, node)| (key, node)).collect())
}

/// `at` is the position of the value's key: the span of a table is its header, which may be far away.
fn node(value: &Spanned<DeValue<'_>>, at: usize, line: &dyn Fn(usize) -> usize) -> Node {
    let content = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Text(number.to_string()),
        DeValue::Float(number) => Value::Text(number.to_string()),
        DeValue::Boolean(flag) => Value::Text(flag.to_string()),
        DeValue::Datetime(at) => Value::Text(at.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| node(item, item.span().start, line));
            Value::List(items.collect())
        }
        DeValue::Table(table) => map(table, line),
    };
    Node { line: line(at), value: content }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_line_numbers() {
        let tree = read("[a]\nx = 0x1F\n\n[a.b]\ny = 'z'\n").unwrap();

        assert_eq!(tree.find(&["a", "b", "y"]), Some(&Node::text(5, "z")));
        assert_eq!(tree.find(&["a", "x"]).unwrap().line, 2);
        assert_eq!(read("a = 1\nb = \n").unwrap_err().0, 2);
    }
}
