//! A statement and the rows it takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{dialect::Dialect, select::Value};

/// How many rows are put at once where every value is a parameter: databases count them in two bytes.
const ROWS: usize = 1000;
/// Where the values of a row begin, in a statement that has them by name.
const VALUES: &str = "VALUES (\n";

/// A statement of a dialect's file, with rows for it.
#[derive(Debug, Clone)]
pub(super) struct Write {
    sql: &'static str,
    rows: Rows,
}

#[derive(Debug, Clone)]
enum Rows {
    None,
    /// All as one parameter.
    Json(String),
    /// One after the other, with the values by name.
    Named(Vec<Map<String, Json>>),
}

impl Write {
    /// The statement of this name, with these rows; nothing for none.
    pub(super) fn new<T: Serialize>(
        dialect: Dialect,
        name: &str,
        rows: impl Iterator<Item = T>,
    ) -> Result<Option<Self>, serde_json::Error> {
        let sql = dialect.statement(name);
        let rows: Vec<T> = rows.collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let rows = if sql.contains(VALUES) {
            Rows::Named(serde_json::from_value(serde_json::to_value(&rows)?)?)
        } else {
            Rows::Json(serde_json::to_string(&rows)?)
        };
        Ok(Some(Self { sql, rows }))
    }

    /// The statement of this name, which goes on from the one before; nothing in a dialect that needs none.
    pub(super) fn after(dialect: Dialect, name: &str) -> Option<Self> {
        let sql = dialect.statement(name);
        (!sql.is_empty()).then_some(Self { sql, rows: Rows::None })
    }

    /// About how many bytes the largest of its statements is.
    pub(super) fn bytes(&self) -> usize {
        /// What a parameter takes beside its text: its type, its length, its place in the statement.
        const PARAMETER: usize = 16;
        let of_row = |row: &Map<String, Json>| -> usize {
            row.values().map(|value| PARAMETER + value.as_str().map_or(0, str::len)).sum()
        };
        let rows = match &self.rows {
            Rows::None => 0,
            Rows::Json(rows) => rows.len(),
            Rows::Named(rows) => {
                let chunks = rows.chunks(ROWS).map(|rows| rows.iter().map(of_row).sum());
                chunks.max().unwrap_or_default()
            }
        };
        self.sql.len() + rows
    }

    /// What is sent: statements with their parameters.
    pub(super) fn statements(&self) -> Vec<(Cow<'static, str>, Vec<Value>)> {
        match &self.rows {
            Rows::None => vec![(Cow::Borrowed(self.sql), Vec::new())],
            Rows::Json(rows) => vec![(Cow::Borrowed(self.sql), vec![Value::Text(rows.clone())])],
            Rows::Named(rows) => rows.chunks(ROWS).map(|rows| self.with_values(rows)).collect(),
        }
    }

    fn with_values(&self, rows: &[Map<String, Json>]) -> (Cow<'static, str>, Vec<Value>) {
        let (head, rest) = self.sql.split_once(VALUES).unwrap_or((self.sql, ""));
        let (row, tail) = rest.split_once("\n)").unwrap_or((rest, ""));
        let mut pieces = row.split(':');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        let mut names = Vec::new();
        for piece in pieces {
            let end = piece.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            let (name, after) = piece.split_at(end.unwrap_or(piece.len()));
            names.push(name);
            text.push('?');
            text.push_str(after);
        }
        let value = |row: &Map<String, Json>, name: &str| match row.get(name) {
            Some(Json::String(text)) => Value::Text(text.clone()),
            Some(Json::Number(number)) => Value::Int(number.as_i64().unwrap_or_default()),
            _ => Value::Null,
        };
        let values =
            rows.iter().flat_map(|row| names.iter().map(move |name| value(row, name))).collect();
        let tuples = vec![format!("({text})"); rows.len()].join(",\n");
        (Cow::Owned(format!("{head}VALUES {tuples}{tail}")), values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_put_row_by_row_where_the_statement_names_them() {
        let rows = [json!({ "id": "a", "n": 1 }), json!({ "id": "b", "n": null })];
        let rows: Vec<Map<String, Json>> =
            rows.iter().map(|row| row.as_object().cloned().unwrap()).collect();
        let sql = "INSERT INTO t (id, at)\nVALUES (\n    :id, AT(:n DIV 1000)\n)\nON DUPLICATE KEY";
        let write = Write { sql, rows: Rows::Named(rows) };

        let (text, values) = write.statements().pop().unwrap();

        assert_eq!(
            text,
            "INSERT INTO t (id, at)\nVALUES (    ?, AT(? DIV 1000)),\n(    ?, AT(? DIV 1000))\nON DUPLICATE KEY"
        );
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(values, [text("a"), Value::Int(1), text("b"), Value::Null]);
    }
}
