//! A statement that is put together, with its parameters.

use super::dialect::Dialect;

/// What stands for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Int(i64),
    Text(String),
    Null,
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A statement. Whatever came from outside is a parameter of it, never its text.
#[derive(Debug, Clone)]
pub(super) struct Select {
    dialect: Dialect,
    text: String,
    values: Vec<Value>,
    filtered: bool,
}

impl Select {
    /// Begins like this.
    pub(super) fn new(dialect: Dialect, text: impl Into<String>) -> Self {
        Self { dialect, text: text.into(), values: Vec::new(), filtered: false }
    }

    /// Goes on like this.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// One more condition; each `?` is one of these values.
    pub(super) fn filter(
        &mut self,
        condition: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> &mut Self {
        self.push(if self.filtered { " AND " } else { " WHERE " });
        self.filtered = true;
        self.with(condition, values)
    }

    /// The same for what may not have been asked.
    pub(super) fn filter_if(&mut self, condition: &str, value: Option<Value>) -> &mut Self {
        match value {
            Some(value) => self.filter(condition, [value]),
            None => self,
        }
    }

    /// A column that has one of these values.
    pub(super) fn filter_in(&mut self, column: &str, values: Vec<Value>) -> &mut Self {
        let places = vec!["?"; values.len()].join(", ");
        self.filter(&format!("{column} IN ({places})"), values)
    }

    /// Goes on like this; each `?` is one of these values.
    pub(super) fn with(
        &mut self,
        text: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> &mut Self {
        let mut parts = text.split('?');
        self.text.push_str(parts.next().unwrap_or_default());
        for (part, value) in parts.zip(values) {
            self.values.push(value);
            self.text.push_str(&self.dialect.parameter(self.values.len()));
            self.text.push_str(part);
        }
        self
    }

    pub(super) fn text(&self) -> String {
        self.text.clone()
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_where_the_dialect_counts_them() {
        let mut select = Select::new(Dialect::Postgres, "SELECT 1 FROM t");
        select.filter("a = ?", [1.into()]).filter("(b < ? OR c = ?)", [2.into(), "x".into()]);

        assert_eq!(select.text(), "SELECT 1 FROM t WHERE a = $1 AND (b < $2 OR c = $3)");
        assert_eq!(select.values().len(), 3);

        select.filter_in("d", vec!["x".into(), "y".into()]);
        assert!(select.text().ends_with(" AND d IN ($4, $5)"), "{}", select.text());
    }
}
