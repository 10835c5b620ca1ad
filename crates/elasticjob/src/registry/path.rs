//! Registry paths and namespaces.

use std::{fmt, str::FromStr, sync::Arc};

/// The path of a node.
///
/// Invariant: absolute; every segment is non-empty, not `.` or `..`, and free of characters a registry refuses; no trailing
/// slash. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Arc<str>);

/// Text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a registry path: {problem}")]
pub struct PathError {
    pub text: String,
    pub problem: &'static str,
}

impl Path {
    /// The root of the tree, `/`.
    pub fn root() -> Self {
        Self("/".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A path below this one; `relative` has one or more segments and no leading slash.
    pub fn join(&self, relative: impl fmt::Display) -> Result<Self, PathError> {
        let base = if &*self.0 == "/" { "" } else { &self.0 };
        format!("{base}/{relative}").parse()
    }

    /// The parent path; `None` for the root.
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

    /// The part after `prefix` and a slash; `None` if this path is not below `prefix`.
    pub fn relative_to(&self, prefix: &Path) -> Option<&str> {
        if &*prefix.0 == "/" {
            return self.0.strip_prefix('/').filter(|rest| !rest.is_empty());
        }
        self.0.strip_prefix(&*prefix.0)?.strip_prefix('/')
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let invalid = |problem| Err(PathError { text: text.to_owned(), problem });
        if text == "/" {
            return Ok(Self::root());
        }
        let Some(rest) = text.strip_prefix('/') else {
            return invalid("it does not start with a slash");
        };
        if rest.split('/').any(str::is_empty) {
            return invalid("it has an empty segment");
        }
        if rest.split('/').any(|segment| matches!(segment, "." | "..")) {
            return invalid("`.` and `..` are not names here");
        }
        if !tinykeeper::tree::path::is_valid(text) {
            return invalid("it has a character that a registry refuses");
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

/// The common prefix of all nodes of one cluster: `/shop` or `/team/shop`.
///
/// The client adds the prefix; the server does not enforce it, so [siblings](Namespace::sibling) stay reachable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(Path);

impl Namespace {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The namespace next to this one, for state that must not appear inside it: `/shop` → `/shop~ledger`.
    pub fn sibling(&self, purpose: &str) -> Result<Self, PathError> {
        format!("{}~{purpose}", self.0).parse()
    }
}

impl FromStr for Namespace {
    type Err = PathError;

    /// Accepts text with or without a leading slash.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let path: Path = format!("/{}", text.strip_prefix('/').unwrap_or(text)).parse()?;
        if path == Path::root() {
            return Err(PathError { text: text.to_owned(), problem: "a namespace needs a name" });
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
    fn path_error_names_the_problem() {
        for (text, problem) in [
            ("a", "slash"),
            ("", "slash"),
            ("/a/", "empty"),
            ("//", "empty"),
            ("/a/../b", "names"),
            ("/a\u{1}", "character"),
        ] {
            let error = text.parse::<Path>().unwrap_err();

            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn join_parent_and_relative_to_follow_the_tree() {
        assert_eq!(path("/a").join("b/c").unwrap(), path("/a/b/c"));
        assert_eq!(Path::root().join("a").unwrap(), path("/a"));
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a").parent(), Some(Path::root()));
        assert_eq!(Path::root().parent(), None);
        assert_eq!(path("/a/b/c").relative_to(&path("/a")), Some("b/c"));
        assert_eq!(path("/ab").relative_to(&path("/a")), None);
        assert_eq!(path("/a").relative_to(&Path::root()), Some("a"));
    }

    #[test]
    fn namespace_may_have_several_segments_and_siblings() {
        let namespace: Namespace = "team/shop".parse().unwrap();

        assert_eq!(namespace.path(), &path("/team/shop"));
        assert_eq!(namespace.sibling("ledger").unwrap().path(), &path("/team/shop~ledger"));
        assert!("/".parse::<Namespace>().is_err());
        assert!("".parse::<Namespace>().is_err());
    }
}
