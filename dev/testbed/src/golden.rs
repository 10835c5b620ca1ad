//! Golden files: checked-in copies of stored formats.

use std::{env, fmt::Write, fs, path::Path};

/// The environment variable that makes tests rewrite the golden files instead of comparing with them.
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
        assert!(
            env::var_os("CI").is_none(),
            "{UPDATE} must not be set in CI: it would hide every change"
        );
        fs::write(&path, actual).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let golden = read(root, name);
    if let Some(difference) = difference(&golden, actual) {
        panic!(
            "{} differs, which breaks what users have stored:\n{difference}\
             If the change is meant, write a migration, then set {UPDATE}=1; see tests/golden/README.md.",
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

/// The lines that only one of the texts has, with their numbers in the golden file; `None` if the texts are equal.
fn difference(golden: &str, actual: &str) -> Option<String> {
    if golden == actual {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (golden.split('\n').collect(), actual.split('\n').collect());
    // Length of the longest common subsequence of the lines from `i` and `j` on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i][j] = if line == other {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut report = String::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(report, "{:>5} - {}", i + 1, old[i]);
            i += 1;
        } else {
            let _ = writeln!(report, "{:>5} + {}", i + 1, new[j]);
            j += 1;
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_shows_the_lines_that_only_one_side_has() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(
            difference("a\nb\nc\nd\n", "a\nx\nc\n").unwrap(),
            "    2 - b\n    3 + x\n    4 - d\n"
        );
        assert_eq!(difference("a", "a\n").unwrap(), "    2 + \n", "the line end alone");
    }
}
