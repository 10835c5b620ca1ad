//! Validation and decomposition of node paths.

/// Whether ZooKeeper accepts `path`: absolute, without empty, `.` or `..` segments, trailing slash or unprintable characters.
pub fn is_valid(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    rest.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
        && !rest.chars().any(is_forbidden)
}

// The ranges that ZooKeeper's PathUtils refuses. It checks UTF-16 units, so characters outside the basic plane (surrogate
// pairs) are refused too.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// The parent's path; `None` for the root.
pub fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() == 1 => None,
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// The last segment.
pub fn name(path: &str) -> &str {
    path.rfind('/').map_or(path, |at| &path[at + 1..])
}

/// The path of the child `name`.
pub fn child(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// The ancestor whose path has this length; `None` if there is none.
pub fn ancestor_of_length(path: &str, length: usize) -> Option<&str> {
    let is_ancestor = match length {
        0 => false,
        1 => path.len() > 1,
        _ => path.as_bytes().get(length) == Some(&b'/'),
    };
    path.get(..length).filter(|_| is_ancestor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_valid_only_if_zookeeper_accepts_it() {
        for good in ["/", "/a", "/a/b", "/a.b", "/...", "/名前", "/a b", "/-@-"] {
            assert!(is_valid(good), "{good:?}");
        }
        for bad in [
            "",
            "a",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/a/../b",
            "/a\0",
            "/\u{1}",
            "/\u{85}",
            "/\u{e000}",
            "/😀",
        ] {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }

    #[test]
    fn path_has_at_most_one_ancestor_of_each_length() {
        let ancestors = (0..9).map(|length| ancestor_of_length("/名/b/c", length));
        let expected = [None, Some("/"), None, None, Some("/名"), None, Some("/名/b"), None, None];
        assert_eq!(ancestors.collect::<Vec<_>>(), expected);
        assert_eq!(ancestor_of_length("/", 1), None);
    }

    #[test]
    fn path_has_a_parent_and_a_name() {
        assert_eq!((parent("/a/b"), parent("/a")), (Some("/a"), Some("/")));
        assert_eq!(parent("/"), None);
        assert_eq!(
            (name("/a/b"), child("/", "a"), child("/a", "b")),
            ("b", "/a".into(), "/a/b".into())
        );
    }
}
