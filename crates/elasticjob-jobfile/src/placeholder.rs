//! Resolves `${NAME}` and `${NAME:default}` as Spring does: from the environment, then from the files.

use std::{cell::Cell, collections::BTreeMap};

use elasticjob::problem::Problem;

use super::keys::normalize;

/// Deeper than any real nesting; stops placeholders that refer to themselves.
const MAX_DEPTH: usize = 20;
/// Placeholders in one value, those in the values they stand for included: two in each of twenty levels are a million.
const MAX_PLACEHOLDERS: usize = 1_000;
/// Bytes that all placeholders of one value stand for.
const MAX_BYTES: usize = 1 << 20;

/// What the placeholders of one value may still take.
struct Budget {
    placeholders: Cell<usize>,
    bytes: Cell<usize>,
}

impl Budget {
    fn take(&self, bytes: usize) -> Result<(), Problem> {
        let placeholders = self.placeholders.get().checked_sub(1);
        let bytes = self.bytes.get().checked_sub(bytes);
        let (Some(placeholders), Some(bytes)) = (placeholders, bytes) else {
            return Err(Problem::new(format!(
                "its placeholders stand for more than {MAX_PLACEHOLDERS} others or {MAX_BYTES} bytes"
            )));
        };
        self.placeholders.set(placeholders);
        self.bytes.set(bytes);
        Ok(())
    }
}

pub(super) struct Resolver<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    properties: BTreeMap<String, String>,
}

impl<'a> Resolver<'a> {
    /// Resolves from environment variables first, then from `properties`.
    pub(super) fn new(
        variable: &'a dyn Fn(&str) -> Option<String>,
        properties: BTreeMap<String, String>,
    ) -> Self {
        Self { variable, properties }
    }

    /// The text with every placeholder replaced.
    pub(super) fn resolve(&self, text: &str) -> Result<String, Problem> {
        let budget =
            Budget { placeholders: Cell::new(MAX_PLACEHOLDERS), bytes: Cell::new(MAX_BYTES) };
        self.resolve_to_depth(text, MAX_DEPTH, &budget)
    }

    fn resolve_to_depth(
        &self,
        text: &str,
        depth: usize,
        budget: &Budget,
    ) -> Result<String, Problem> {
        let mut resolved = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let inside = &rest[start + 2..];
            let Some(end) = closing_brace(inside) else { break };
            if depth == 0 {
                return Err("placeholders refer to each other in a cycle".into());
            }
            resolved.push_str(&rest[..start]);
            resolved.push_str(&self.resolve_one(&inside[..end], depth - 1, budget)?);
            rest = &inside[end + 1..];
        }
        resolved.push_str(rest);
        Ok(resolved)
    }

    fn resolve_one(&self, inside: &str, depth: usize, budget: &Budget) -> Result<String, Problem> {
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.trim();
        let found = (self.variable)(name)
            .or_else(|| (self.variable)(&variable_name(name)))
            .or_else(|| self.properties.get(&normalize(name)).cloned());
        let value = found.as_deref().or(default);
        budget.take(value.map_or(0, str::len))?;
        if let Some(value) = value {
            return self.resolve_to_depth(value, depth, budget);
        }
        let problem = format!("placeholder ${{{name}}} has no value");
        let variable = variable_name(name);
        let hint =
            format!("set the environment variable {variable}, or write ${{{name}:a default}}");
        Err(Problem::new(problem).with_hint(hint))
    }
}

/// Position of the brace that closes the placeholder.
fn closing_brace(inside: &str) -> Option<usize> {
    let mut open = 1;
    for (index, character) in inside.char_indices() {
        match character {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(index);
        }
    }
    None
}

/// The environment variable in which Spring looks for a key.
fn variable_name(name: &str) -> String {
    let name = name.replace('-', "");
    name.chars()
        .map(|each| if each.is_ascii_alphanumeric() { each.to_ascii_uppercase() } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, Problem> {
        let variable = |name: &str| match name {
            "ZK_HOST" => Some("zk1".to_owned()),
            "LOOP" => Some("${LOOP}".to_owned()),
            _ => None,
        };
        let properties = BTreeMap::from([("app.name".to_owned(), "shop".to_owned())]);
        Resolver::new(&variable, properties).resolve(text)
    }

    #[test]
    fn environment_precedes_files_and_files_precede_default() {
        assert_eq!(fill("${ZK_HOST}:2181,${zk.host:x}").unwrap(), "zk1:2181,zk1");
        assert_eq!(fill("${app.name:x}-${APP-NAME2:a:b}").unwrap(), "shop-a:b");
        assert_eq!(fill("${A:${B:${app.name}}}").unwrap(), "shop");
        assert_eq!(fill("${A:{\"a\":{}}}!").unwrap(), "{\"a\":{}}!");
        assert_eq!(fill("$1 $HOME ${").unwrap(), "$1 $HOME ${");
    }

    #[test]
    fn placeholders_that_multiply_are_refused_at_once() {
        let mut properties: BTreeMap<String, String> = (0..18)
            .map(|level| (format!("a{level}"), format!("${{a{}}}", level + 1).repeat(10)))
            .collect();
        properties.insert("a18".to_owned(), String::new());
        properties.insert("long".to_owned(), "x".repeat(100_000));
        let resolver = Resolver::new(&|_| None, properties);

        for text in ["${a0}".to_owned(), "${long}".repeat(100)] {
            let problem = resolver.resolve(&text).unwrap_err();
            assert!(problem.message.contains("stand for more than"), "{problem}");
        }
        assert!(resolver.resolve(&"${long}".repeat(5)).is_ok());
    }

    #[test]
    fn unknown_names_and_cycles_are_errors() {
        assert!(fill("${zk.port}").unwrap_err().to_string().contains("ZK_PORT"));
        assert!(fill("${LOOP}").unwrap_err().message.contains("cycle"));
    }
}
