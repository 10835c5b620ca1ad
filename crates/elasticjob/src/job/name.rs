//! Job names.

use std::{fmt, str::FromStr, sync::Arc};

use super::{bounds::MAX_NAME, error::InvalidValue};

/// A job's name in the registry, in history and in task ids.
///
/// Invariant: one segment of a registry path (not empty, at most 1,000 bytes, no `/`, not `.` or `..`, no character a registry refuses), and free of
/// `@-@`, which separates the parts of a [`TaskId`](super::TaskId). Cheap to clone.
///
/// ```
/// use elasticjob::job::JobName;
///
/// let name: JobName = "settle-orders".parse()?;
/// assert_eq!(name.as_str(), "settle-orders");
/// assert!("a/b".parse::<JobName>().is_err());
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobName(Arc<str>);

impl JobName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobName {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = |problem: &str| Err(InvalidValue::new("job name", text, problem));
        if text.is_empty() {
            return invalid("the name is empty");
        }
        if text.len() > MAX_NAME {
            return invalid(&format!("a name has at most {MAX_NAME} bytes"));
        }
        if text.contains('/') {
            return invalid(
                "`/` separates the parts of a registry path; `-`, `.` and `_` are fine",
            );
        }
        if matches!(text, "." | "..") {
            return invalid("`.` and `..` are not names");
        }
        if let Some(character) = text.chars().find(|character| is_refused(*character)) {
            return invalid(&format!("a registry refuses the character {character:?}"));
        }
        // A name that ends in `@-` would make the separator start too early.
        if text.contains("@-@") || text.ends_with("@-") {
            return invalid("`@-@` separates the parts of a task id");
        }
        Ok(Self(text.into()))
    }
}

/// Whether ZooKeeper refuses the character in a path. It checks UTF-16 units, so it refuses everything outside the basic plane, too.
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
    fn name_error_says_why() {
        for (text, problem) in [
            ("", "is empty"),
            (&"a".repeat(1_001), "at most 1000 bytes"),
            ("a/b", "registry path"),
            ("..", "not names"),
            ("a\u{7}", "'\\u{7}'"),
            ("a@-@b", "task id"),
            ("a@-", "task id"),
            ("😀", "refuses"),
        ] {
            let error = text.parse::<JobName>().unwrap_err();

            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    proptest! {
        /// `JobName` and `registry::Path` implement the same rule twice, because `job` does not depend on `registry`.
        #[test]
        fn name_is_one_segment_of_a_registry_path(text in "\\PC{0,8}|.{0,4}|[./a]{0,3}") {
            let is_segment = !text.contains('/') && format!("/{text}").parse::<Path>().is_ok() && !text.is_empty();
            let is_reserved = text.contains("@-@") || text.ends_with("@-");

            prop_assert_eq!(text.parse::<JobName>().is_ok(), is_segment && !is_reserved);
        }
    }
}
