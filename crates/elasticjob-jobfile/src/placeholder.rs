//! `${NAME}` and `${NAME:default}`, as Spring fills them in: from the environment, then from the files.

use std::collections::BTreeMap;

use super::keys::relaxed;

/// Deeper than anybody nests them; what refers to itself ends here.
const DEPTH: usize = 20;

/// Fills in placeholders.
pub(super) struct Resolver<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    known: BTreeMap<String, String>,
}

impl<'a> Resolver<'a> {
    /// From the environment, then from these keys.
    pub(super) fn new(
        variable: &'a dyn Fn(&str) -> Option<String>,
        known: BTreeMap<String, String>,
    ) -> Self {
        Self { variable, known }
    }

    /// The text with everything filled in.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        self.fill_to(text, DEPTH)
    }

    fn fill_to(&self, text: &str, depth: usize) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let inside = &rest[start + 2..];
            let Some(end) = closing(inside) else { break };
            if depth == 0 {
                return Err("its placeholders refer to each other without end".to_owned());
            }
            filled.push_str(&rest[..start]);
            filled.push_str(&self.one(&inside[..end], depth - 1)?);
            rest = &inside[end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn one(&self, inside: &str, depth: usize) -> Result<String, String> {
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.trim();
        let found = (self.variable)(name)
            .or_else(|| (self.variable)(&as_variable(name)))
            .or_else(|| self.known.get(&relaxed(name)).cloned());
        match (found, default) {
            (Some(found), _) => self.fill_to(&found, depth),
            (None, Some(default)) => self.fill_to(default, depth),
            (None, None) => Err(format!(
                "nothing is known for ${{{name}}}; hint: set the environment variable {}, or write ${{{name}:a default}}",
                as_variable(name)
            )),
        }
    }
}

/// Where the brace that is open ends.
fn closing(inside: &str) -> Option<usize> {
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

/// How Spring looks for a key in the environment.
fn as_variable(name: &str) -> String {
    let name = name.replace('-', "");
    name.chars()
        .map(|each| if each.is_ascii_alphanumeric() { each.to_ascii_uppercase() } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "ZK_HOST" => Some("zk1".to_owned()),
            "LOOP" => Some("${LOOP}".to_owned()),
            _ => None,
        };
        let known = BTreeMap::from([("app.name".to_owned(), "shop".to_owned())]);
        Resolver::new(&variable, known).fill(text)
    }

    #[test]
    fn the_environment_comes_before_the_files_and_those_before_the_default() {
        assert_eq!(fill("${ZK_HOST}:2181,${zk.host:x}").unwrap(), "zk1:2181,zk1");
        assert_eq!(fill("${app.name:x}-${APP-NAME2:a:b}").unwrap(), "shop-a:b");
        assert_eq!(fill("${A:${B:${app.name}}}").unwrap(), "shop");
        assert_eq!(fill("${A:{\"a\":{}}}!").unwrap(), "{\"a\":{}}!");
        assert_eq!(fill("$1 $HOME ${").unwrap(), "$1 $HOME ${");
    }

    #[test]
    fn what_nobody_knows_is_named_and_what_refers_to_itself_ends() {
        assert!(fill("${zk.port}").unwrap_err().contains("ZK_PORT"));
        assert!(fill("${LOOP}").unwrap_err().contains("without end"));
    }
}
