//! References to secrets in a configuration: `secret:NAME`.
//!
//! The value is in a file that only the worker can read; `execution::Secrets` reads it. Here is only how a reference is written.

use std::fmt;

const PREFIX: &str = "secret:";

/// Longest name of a secret.
const MAX_NAME: usize = 128;

/// A reference to a secret, as a value or in one: `secret:shop-token`, `Bearer secret:shop-token`, `https://shop/?key=secret:shop`.
///
/// Invariant: the name is a plain file name of letters, digits, `.`, `_` and `-`; it begins with a letter or a digit and has at most 128 characters.
///
/// ```
/// use elasticjob::job::SecretRef;
///
/// let names: Vec<&str> = SecretRef::find_all("Bearer secret:shop-token").map(|found| found.name()).collect();
/// assert_eq!(names, ["shop-token"]);
/// assert_eq!(SecretRef::find_all("topsecret:x, secret: x, secret:/etc/passwd").count(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretRef<'a> {
    name: &'a str,
    /// Where it begins in the text that it was found in.
    at: usize,
}

impl<'a> SecretRef<'a> {
    /// Every reference in a text, in order.
    pub fn find_all(text: &'a str) -> impl Iterator<Item = Self> {
        text.match_indices(PREFIX).filter_map(move |(at, _)| Self::read(text, at))
    }

    /// The name of the secret, and of its file.
    pub fn name(self) -> &'a str {
        self.name
    }

    /// The text with each reference replaced; the first error ends it.
    pub(crate) fn replace_all<E>(
        text: &'a str,
        mut replace: impl FnMut(Self) -> Result<String, E>,
    ) -> Result<String, E> {
        let (mut replaced, mut copied_to) = (String::with_capacity(text.len()), 0);
        for reference in Self::find_all(text) {
            replaced.push_str(&text[copied_to..reference.at]);
            replaced.push_str(&replace(reference)?);
            copied_to = reference.at + PREFIX.len() + reference.name.len();
        }
        replaced.push_str(&text[copied_to..]);
        Ok(replaced)
    }

    /// Whether a reference begins at this byte.
    pub(super) fn starts_at(text: &str, at: usize) -> bool {
        text[at..].starts_with(PREFIX) && SecretRef::read(text, at).is_some()
    }

    fn read(text: &'a str, at: usize) -> Option<Self> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // A longer word that ends so is no reference: `topsecret:`.
        if text[..at].bytes().next_back().is_some_and(|byte| is_word(byte) || byte >= 0x80) {
            return None;
        }
        // Spring's placeholder with a default, and a host with a port: a secret is never a host.
        if ["${", "//", "@"].iter().any(|before| text[..at].ends_with(before)) {
            return None;
        }
        let rest = &text[at + PREFIX.len()..];
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let name = &rest[..length];
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        (begins && length <= MAX_NAME).then_some(Self { name, at })
    }
}

impl fmt::Display for SecretRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        SecretRef::find_all(text).map(SecretRef::name).collect()
    }

    #[test]
    fn name_of_a_secret_is_a_plain_file_name() {
        for (text, expected) in [
            ("secret:a", &["a"][..]),
            ("https://u:secret:a.b-c_d@h/secret:x?key=secret:y&z", &["a.b-c_d", "x", "y"]),
            ("secret:", &[]),
            ("secret:../x", &[]),
            ("secret:.hidden", &[]),
            ("secret:/etc/shadow", &[]),
            ("secret:é", &[]),
            ("my_secret:a, my-secret:a, ésecret:a, x.secret:a", &[]),
            ("${secret:a}", &[]),
            ("http://secret:8080/x", &[]),
            ("http://u:p@secret:8080/x", &[]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
        assert!(names(&format!("secret:{}", "x".repeat(129))).is_empty());
        assert_eq!(names("secret:a/../../b"), ["a"], "the rest is not part of the name");
    }

    #[test]
    fn replaced_references_keep_the_text_around_them() {
        let replaced = SecretRef::replace_all("<secret:a|secret:bb>", |found| {
            Ok::<_, ()>(found.name().to_uppercase())
        });

        assert_eq!(replaced.unwrap(), "<A|BB>");
    }
}
