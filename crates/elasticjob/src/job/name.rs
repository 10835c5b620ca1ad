//! What a job is called.

use std::{fmt, str::FromStr, sync::Arc};

use super::error::Invalid;

/// What a job is called, everywhere: in the registry, in history, in a task's id.
///
/// Invariant: one segment of a registry path (not empty, no `/`, not `.` or `..`, no character a registry refuses), and free of
/// `@-@`, which separates the parts of a [`TaskId`](super::TaskId). Cheap to clone.
///
/// ```
/// use elasticjob::job::JobName;
///
/// let name: JobName = "settle-orders".parse()?;
/// assert_eq!(name.as_str(), "settle-orders");
/// assert!("a/b".parse::<JobName>().is_err());
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobName(Arc<str>);

impl JobName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |problem: &str| Err(Invalid::new("job name", text, problem));
        if text.is_empty() {
            return wrong("a job has a name");
        }
        if text.contains('/') {
            return wrong("`/` separates the parts of a registry path; `-`, `.` and `_` are fine");
        }
        if matches!(text, "." | "..") {
            return wrong("`.` and `..` are not names");
        }
        if let Some(character) = text.chars().find(|character| is_refused(*character)) {
            return wrong(&format!("a registry refuses the character {character:?}"));
        }
        // A name that ends in `@-` would make the separator start too early.
        if text.contains("@-@") || text.ends_with("@-") {
            return wrong("`@-@` separates the parts of a task id");
        }
        Ok(Self(text.into()))
    }
}

/// What ZooKeeper refuses in a path. It looks at UTF-16 units, so everything outside the basic plane is out, too.
pub(super) fn is_refused(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::registry::Path;

    #[test]
    fn a_name_that_cannot_be_one_says_why() {
        for (text, why) in [
            ("", "has a name"),
            ("a/b", "registry path"),
            ("..", "not names"),
            ("a\u{7}", "'\\u{7}'"),
            ("a@-@b", "task id"),
            ("a@-", "task id"),
            ("😀", "refuses"),
        ] {
            let error = text.parse::<JobName>().unwrap_err();

            assert!(error.to_string().contains(why), "{error}");
        }
    }

    proptest! {
        /// The rule is spelled twice, because this room does not know the registry. It is one rule.
        #[test]
        fn a_name_is_one_segment_of_a_path(text in "\\PC{0,8}|.{0,4}|[./a]{0,3}") {
            let is_segment = !text.contains('/') && format!("/{text}").parse::<Path>().is_ok() && !text.is_empty();
            let reserved = text.contains("@-@") || text.ends_with("@-");

            prop_assert_eq!(text.parse::<JobName>().is_ok(), is_segment && !reserved);
        }
    }
}
