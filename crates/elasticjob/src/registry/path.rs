//! Paths, and the namespace they are under.

use std::{fmt, str::FromStr, sync::Arc};

/// A place in the tree.
///
/// Invariant: absolute; every segment is non-empty, not `.` or `..`, and free of characters a registry refuses; no trailing
/// slash. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Arc<str>);

/// Text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a registry path: {problem}")]
pub struct PathError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl Path {
    /// The place above all others.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A place below this one; `relative` has one or more segments and no leading slash.
    pub fn join(&self, relative: impl fmt::Display) -> Result<Self, PathError> {
        let base = if &*self.0 == "/" { "" } else { &self.0 };
        format!("{base}/{relative}").parse()
    }

    /// The place above; the root has none.
    pub fn parent(&self) -> Option<Self> {
        match self.0.rfind('/')? {
            0 if self.0.len() == 1 => None,
            0 => Some(Self::root()),
            at => Some(Self(self.0[..at].into())),
        }
    }

    /// The last segment; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rfind('/').map_or("", |at| &self.0[at + 1..])
    }

    /// What follows `prefix` and a slash, if this place is below it.
    pub fn below(&self, prefix: &Path) -> Option<&str> {
        if &*prefix.0 == "/" {
            return self.0.strip_prefix('/').filter(|rest| !rest.is_empty());
        }
        self.0.strip_prefix(&*prefix.0)?.strip_prefix('/')
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = |problem| Err(PathError { text: text.to_owned(), problem });
        if text == "/" {
            return Ok(Self::root());
        }
        let Some(rest) = text.strip_prefix('/') else {
            return wrong("it does not start with a slash");
        };
        if rest.split('/').any(str::is_empty) {
            return wrong("it has an empty segment");
        }
        if rest.split('/').any(|segment| matches!(segment, "." | "..")) {
            return wrong("`.` and `..` are not names here");
        }
        if !tinykeeper::tree::path::is_valid(text) {
            return wrong("it has a character that a registry refuses");
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The prefix of everything that belongs together: `/shop`, or `/team/shop`.
///
/// A prefix the client adds, not a root the server enforces, so that [siblings](Namespace::sibling) stay reachable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(Path);

impl Namespace {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The namespace beside this one for state that must not be seen inside it: `/shop` → `/shop~ledger`.
    pub fn sibling(&self, purpose: &str) -> Result<Self, PathError> {
        format!("{}~{purpose}", self.0).parse()
    }
}

impl FromStr for Namespace {
    type Err = PathError;

    /// With or without the leading slash.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let path: Path = format!("/{}", text.strip_prefix('/').unwrap_or(text)).parse()?;
        if path == Path::root() {
            return Err(PathError { text: text.to_owned(), problem: "a namespace has a name" });
        }
        Ok(Self(path))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn text_that_is_not_a_path_says_why() {
        for (text, why) in [
            ("a", "slash"),
            ("", "slash"),
            ("/a/", "empty"),
            ("//", "empty"),
            ("/a/../b", "names"),
            ("/a\u{1}", "character"),
        ] {
            let error = text.parse::<Path>().unwrap_err();

            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_place_knows_what_is_above_and_below() {
        assert_eq!(path("/a").join("b/c").unwrap(), path("/a/b/c"));
        assert_eq!(Path::root().join("a").unwrap(), path("/a"));
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), Some(Path::root()));
        assert_eq!(Path::root().parent(), None);
        assert_eq!(path("/a/b/c").below(&path("/a")), Some("b/c"));
        assert_eq!(path("/ab").below(&path("/a")), None);
        assert_eq!(path("/a").below(&Path::root()), Some("a"));
    }

    #[test]
    fn a_namespace_may_be_deep_and_has_siblings() {
        let namespace: Namespace = "team/shop".parse().unwrap();

        assert_eq!(namespace.path(), &path("/team/shop"));
        assert_eq!(namespace.sibling("ledger").unwrap().path(), &path("/team/shop~ledger"));
        assert!("/".parse::<Namespace>().is_err());
        assert!("".parse::<Namespace>().is_err());
    }
}
