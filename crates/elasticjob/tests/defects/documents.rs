//! Checks that every test named in the documents exists, and that `docs/defects.md` lists every test of a defect.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// A setting of PostgreSQL whose name looks like the name of a test.
const NOT_A_TEST: &str = "idle_in_transaction_session_timeout";

/// The test names in a text: several words in lower case, in backticks.
fn test_names(text: &str) -> BTreeSet<String> {
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
            && *name != NOT_A_TEST
    };
    text.split('`').skip(1).step_by(2).filter(is_test).map(ToOwned::to_owned).collect()
}

/// Collects every page below `docs` except `migration.md`: it names tests of `interop`, which checks it.
fn collect_pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md")
            && path.file_name().is_some_and(|name| name != "migration.md")
        {
            found.push(path);
        }
    }
}

/// Collects the name of every function in the sources below a folder.
fn collect_functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(|name| name.trim().to_owned()));
        }
    }
}

fn all_functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["src", "tests"] {
        collect_functions(&root().join("crates/elasticjob").join(folder), &mut found);
    }
    for folder in [
        "crates/elasticjob-cli/tests",
        "crates/elasticjob-console/src",
        "crates/tinykeeper/src",
        "crates/tinykeeper/tests",
        "dev/testbed/tests",
        "dev/chaos/tests",
    ] {
        collect_functions(&root().join(folder), &mut found);
    }
    found
}

fn is_defect_test(name: &str) -> bool {
    let (kind, rest) = name.split_at_checked(1).unwrap_or_default();
    let number = rest.split('_').next().unwrap_or_default();
    matches!(kind, "s" | "l") && number.len() == 2 && number.parse::<u32>().is_ok()
}

#[test]
fn tests_named_in_documents_exist() {
    let (existing, mut found) = (all_functions(), Vec::new());
    collect_pages(&root().join("docs"), &mut found);
    found.push(root().join("SECURITY.md"));
    for page in &found {
        let named = test_names(&fs::read_to_string(page).unwrap());
        let missing: Vec<_> = named.difference(&existing).collect();
        assert!(missing.is_empty(), "{} names {missing:?}", page.display());
    }
    for page in ["guarantees.md", "defects.md", "failover.md", "../SECURITY.md"] {
        assert!(!test_names(&document(page)).is_empty(), "docs/{page} names no test");
    }
}

#[test]
fn defects_page_lists_every_defect_with_its_tests() {
    let text = document("defects.md");
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| S") || line.starts_with("| L")) {
        let number = line.split('|').nth(1).unwrap().trim().to_owned();
        assert!(
            lines.insert(number.clone(), test_names(line)).is_none(),
            "{number} is listed twice"
        );
    }
    let all = (1..=15).map(|number| format!("S{number}"));
    let all: Vec<String> = all.chain((1..=25).map(|number| format!("L{number}"))).collect();
    assert_eq!(lines.keys().cloned().collect::<BTreeSet<_>>(), all.iter().cloned().collect());

    let tests: BTreeSet<String> =
        all_functions().into_iter().filter(|name| is_defect_test(name)).collect();
    let listed: BTreeSet<String> = lines.values().flatten().cloned().collect();
    assert_eq!(listed, tests);
    for (number, named) in &lines {
        let (kind, count) = number.split_at(1);
        let prefix = format!("{}{:02}_", kind.to_lowercase(), count.parse::<u32>().unwrap());
        assert!(named.iter().any(|name| name.starts_with(&prefix)), "{number} has no test");
    }
}
