//! What the documents promise is tested under the name they give.

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

/// Names of tests have several words and stand in backticks.
fn named_in(text: &str) -> BTreeSet<String> {
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split('`').skip(1).step_by(2).filter(is_test).map(ToOwned::to_owned).collect()
}

/// Every function in the sources below.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
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
        functions(&root().join("crates/elasticjob").join(folder), &mut found);
    }
    for folder in ["dev/testbed/tests", "dev/chaos/tests"] {
        functions(&root().join(folder), &mut found);
    }
    found
}

fn is_of_the_forty(name: &str) -> bool {
    let (kind, rest) = name.split_at_checked(1).unwrap_or_default();
    let number = rest.split('_').next().unwrap_or_default();
    matches!(kind, "s" | "l") && number.len() == 2 && number.parse::<u32>().is_ok()
}

#[test]
fn every_test_a_document_names_is_there() {
    let there = all_functions();
    let pages = ["guarantees.md", "defects.md", "failover.md", "misfire.md", "elastic-scaling.md"];
    for page in pages {
        let named = named_in(&document(page));
        let missing: Vec<_> = named.difference(&there).collect();
        assert!(missing.is_empty(), "docs/{page} names {missing:?}");
    }
    assert!(!named_in(&document("guarantees.md")).is_empty());
}

#[test]
fn every_defect_has_its_line_and_every_test_of_one_is_in_it() {
    let text = document("defects.md");
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| S") || line.starts_with("| L")) {
        let number = line.split('|').nth(1).unwrap().trim().to_owned();
        assert!(lines.insert(number.clone(), named_in(line)).is_none(), "{number} is there twice");
    }
    let all = (1..=15).map(|number| format!("S{number}"));
    let all: Vec<String> = all.chain((1..=25).map(|number| format!("L{number}"))).collect();
    assert_eq!(lines.keys().cloned().collect::<BTreeSet<_>>(), all.iter().cloned().collect());

    let tests: BTreeSet<String> =
        all_functions().into_iter().filter(|name| is_of_the_forty(name)).collect();
    let listed: BTreeSet<String> = lines.values().flatten().cloned().collect();
    assert_eq!(listed, tests);
    for (number, named) in &lines {
        let (kind, count) = number.split_at(1);
        let prefix = format!("{}{:02}_", kind.to_lowercase(), count.parse::<u32>().unwrap());
        assert!(named.iter().any(|name| name.starts_with(&prefix)), "{number} has no test");
    }
}
