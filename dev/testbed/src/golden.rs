//! Golden files: words that are stored, checked in as they are stored.

use std::{env, fmt::Write, fs, path::Path};

/// Rewrites the golden files instead of comparing with them.
const UPDATE: &str = "UPDATE_GOLDEN";

/// Compares `actual` with the file `tests/golden/NAME` of the crate whose test calls it, and returns the file's text.
///
/// Panics if they differ. `UPDATE_GOLDEN=1` rewrites the file instead; CI refuses that.
#[macro_export]
macro_rules! golden {
    ($name:expr, $actual:expr $(,)?) => {
        $crate::golden::check(env!("CARGO_MANIFEST_DIR"), $name, $actual.as_ref())
    };
}

/// Reads the file `tests/golden/NAME` of the crate whose test calls it: for documents that users write and programs only read.
#[macro_export]
macro_rules! golden_input {
    ($name:expr $(,)?) => {
        $crate::golden::read(env!("CARGO_MANIFEST_DIR"), $name)
    };
}

/// What [`golden!`](crate::golden!) calls.
#[doc(hidden)]
#[track_caller]
pub fn check(root: &str, name: &str, actual: &str) -> String {
    let path = Path::new(root).join("tests/golden").join(name);
    if env::var_os(UPDATE).is_some_and(|set| !set.is_empty()) {
        assert!(env::var_os("CI").is_none(), "{UPDATE} is set in CI, where it hides every change");
        fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let golden = read(root, name);
    if let Some(difference) = difference(&golden, actual) {
        panic!(
            "{} differs, which breaks what users have stored:\n{difference}\
             If the change is meant, write a migration, then set {UPDATE}=1; tests/golden/README.md says more.",
            path.display()
        );
    }
    golden
}

/// What [`golden_input!`](crate::golden_input!) calls.
#[doc(hidden)]
#[track_caller]
pub fn read(root: &str, name: &str) -> String {
    let path = Path::new(root).join("tests/golden").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines that only one of the two has, in order; nothing if the texts are equal.
fn difference(golden: &str, actual: &str) -> Option<String> {
    if golden == actual {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), actual.lines().collect());
    let mut told = String::new();
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let ends = |lines: &[&str]| lines.len() - same;
    let rest = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let rest = rest.min(ends(&old)).min(ends(&new));
    let _ = writeln!(told, "from line {}:", same + 1);
    for (mark, lines) in [('-', &old), ('+', &new)] {
        for line in &lines[same..lines.len() - rest] {
            let _ = writeln!(told, "{mark} {line}");
        }
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_the_first_line_and_both_sides() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(
            difference("a\nb\nc\n", "a\nx\ny\nc\n").unwrap(),
            "from line 2:\n- b\n+ x\n+ y\n"
        );
        assert_eq!(difference("a\na\n", "a\n").unwrap(), "from line 2:\n- a\n");
        assert_eq!(difference("a", "a\n").unwrap(), "from line 2:\n", "the line end alone");
    }
}
