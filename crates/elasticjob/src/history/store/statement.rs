//! Builds an SQL statement with its parameters.

use super::{dialect::Dialect, rows::truncate_distinct};

/// The value of a parameter.
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

/// An SQL statement. Input from outside becomes a parameter, never a part of the text.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    dialect: Dialect,
    text: String,
    values: Vec<Value>,
    has_filter: bool,
}

impl Statement {
    pub(super) fn new(dialect: Dialect, text: impl Into<String>) -> Self {
        Self { dialect, text: text.into(), values: Vec::new(), has_filter: false }
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a condition; each `?` stands for one of the values.
    pub(super) fn filter(
        &mut self,
        condition: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> &mut Self {
        self.push(if self.has_filter { " AND " } else { " WHERE " });
        self.has_filter = true;
        self.with(condition, values)
    }

    /// Adds a condition if there is a value.
    pub(super) fn filter_if(&mut self, condition: &str, value: Option<Value>) -> &mut Self {
        match value {
            Some(value) => self.filter(condition, [value]),
            None => self,
        }
    }

    /// Adds the condition that the row was written for this job; its name is stored truncated.
    pub(super) fn filter_job(&mut self, job: Option<&str>) -> &mut Self {
        let job = job.map(|job| truncate_distinct(job, 100).as_str().into());
        self.filter_if("job_name = ?", job)
    }

    /// Adds the condition that the column has one of the values.
    pub(super) fn filter_in(&mut self, column: &str, values: Vec<Value>) -> &mut Self {
        let placeholders = vec!["?"; values.len()].join(", ");
        self.filter(&format!("{column} IN ({placeholders})"), values)
    }

    /// Appends text; each `?` stands for one of the values.
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
    fn parameters_are_numbered_for_postgres() {
        let mut statement = Statement::new(Dialect::Postgres, "SELECT 1 FROM t");
        statement.filter("a = ?", [1.into()]).filter("(b < ? OR c = ?)", [2.into(), "x".into()]);

        assert_eq!(statement.text(), "SELECT 1 FROM t WHERE a = $1 AND (b < $2 OR c = $3)");
        assert_eq!(statement.values().len(), 3);

        statement.filter_in("d", vec!["x".into(), "y".into()]);
        assert!(statement.text().ends_with(" AND d IN ($4, $5)"), "{}", statement.text());
    }
}
