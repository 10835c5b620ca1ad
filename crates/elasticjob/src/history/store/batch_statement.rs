//! A statement of a dialect's SQL file with the rows it writes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{dialect::Dialect, statement::Value};

/// Maximum number of rows where every value is a parameter: databases limit parameters to 65,535.
const MAX_ROWS: usize = 1000;
/// Precedes the values of a row in a statement with named values.
const VALUES: &str = "VALUES (\n";

/// A statement of a dialect's SQL file with its rows.
#[derive(Debug, Clone)]
pub(super) struct BatchStatement {
    sql: &'static str,
    rows: Rows,
}

#[derive(Debug, Clone)]
enum Rows {
    None,
    /// All rows as one JSON parameter.
    Json(String),
    /// Each value as a parameter, by name.
    Named(Vec<Map<String, Json>>),
}

impl BatchStatement {
    /// The statement with this name and these rows; `None` without rows.
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

    /// The statement with this name that uses the result of the previous one; `None` in a dialect that needs none.
    pub(super) fn follow_up(dialect: Dialect, name: &str) -> Option<Self> {
        let sql = dialect.statement(name);
        (!sql.is_empty()).then_some(Self { sql, rows: Rows::None })
    }

    /// Estimated size of the largest of its SQL statements.
    pub(super) fn bytes(&self) -> usize {
        /// Size of a parameter without its text: type, length, and its place in the statement.
        const PARAMETER: usize = 16;
        let row_bytes = |row: &Map<String, Json>| -> usize {
            row.values().map(|value| PARAMETER + value.as_str().map_or(0, str::len)).sum()
        };
        let rows = match &self.rows {
            Rows::None => 0,
            Rows::Json(rows) => rows.len(),
            Rows::Named(rows) => {
                let chunks = rows.chunks(MAX_ROWS).map(|rows| rows.iter().map(row_bytes).sum());
                chunks.max().unwrap_or_default()
            }
        };
        self.sql.len() + rows
    }

    /// The SQL statements to send, with their parameters.
    pub(super) fn statements(&self) -> Vec<(Cow<'static, str>, Vec<Value>)> {
        match &self.rows {
            Rows::None => vec![(Cow::Borrowed(self.sql), Vec::new())],
            Rows::Json(rows) => vec![(Cow::Borrowed(self.sql), vec![Value::Text(rows.clone())])],
            Rows::Named(rows) => rows.chunks(MAX_ROWS).map(|rows| self.with_values(rows)).collect(),
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
            let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
            names.push(name);
            text.push('?');
            text.push_str(rest);
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
    fn named_values_become_parameters_of_each_row() {
        let rows = [json!({ "id": "a", "n": 1 }), json!({ "id": "b", "n": null })];
        let rows: Vec<Map<String, Json>> =
            rows.iter().map(|row| row.as_object().cloned().unwrap()).collect();
        let sql = "INSERT INTO t (id, at)\nVALUES (\n    :id, AT(:n DIV 1000)\n)\nON DUPLICATE KEY";
        let statement = BatchStatement { sql, rows: Rows::Named(rows) };

        let (text, values) = statement.statements().pop().unwrap();

        assert_eq!(
            text,
            "INSERT INTO t (id, at)\nVALUES (    ?, AT(? DIV 1000)),\n(    ?, AT(? DIV 1000))\nON DUPLICATE KEY"
        );
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(values, [text("a"), Value::Int(1), text("b"), Value::Null]);
    }
}
