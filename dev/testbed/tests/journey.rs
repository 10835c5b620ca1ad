//! Checks `docs/dev/journey-of-a-fire.md` against the code: the names on the page exist, each step's functions are in its file, and the table has
//! the figures that follow from the steps.
//!
//! A step is a numbered line: the file, then the functions in it, then a colon and the text.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const PAGE: &str = "docs/dev/journey-of-a-fire.md";
const LIBRARY: &str = "crates/elasticjob/src";
const MEMBER: &str = "coordination/member/";

struct Step<'a> {
    /// As on the page: from the root of the workspace, or below the library's `src`.
    file: &'a str,
    functions: Vec<&'a str>,
    text: &'a str,
}

impl Step<'_> {
    /// The crate, or the folder of the library.
    fn area(&self) -> &str {
        let below_crates = self.file.strip_prefix("crates/").unwrap_or(self.file);
        below_crates.split('/').next().unwrap()
    }

    fn is_of_history(&self) -> bool {
        self.area() == "history" || self.file == "node/history_tap.rs"
    }

    /// The number in `**2 requests**`.
    fn requests(&self) -> usize {
        let bold = self.text.split("**").skip(1).step_by(2);
        bold.filter_map(|text| text.split_once(" request")?.0.parse::<usize>().ok()).sum()
    }
}

#[test]
fn functions_of_each_step_are_in_its_file() {
    let page = page();
    let mut checked = 0;
    for step in steps(&page) {
        let code = code_of(&source(step.file));
        for name in &step.functions {
            checked += 1;
            assert!(defines(&code, name), "{} does not define {name}", step.file);
        }
    }
    assert!(checked > 150, "only {checked} functions checked: are the steps still there?");
}

#[test]
fn names_on_the_page_exist() {
    let page = page();
    let sources: Vec<String> = ["elasticjob", "elasticjob-console", "elasticjob-cli"]
        .iter()
        .flat_map(|name| sources_below(&root().join("crates").join(name).join("src")))
        .map(|file| code_of(&file))
        .collect();
    let tree = code_of(&source("coordination/tree.rs"));
    let prose = page.split("```").step_by(2);
    for name in prose.flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let is_path = Path::new(name).extension().is_some()
            || name.ends_with('/')
            || name.starts_with("crates");
        let exists = if is_path {
            root().join(name).exists() || source(name).exists()
        } else {
            let last = name.rsplit("::").next().unwrap();
            let mut candidates = sources.iter().filter(|code| code.contains(last));
            candidates.any(|code| defines(code, name)) || is_node(&tree, name)
        };
        assert!(exists, "{PAGE} names {name:?}, which does not exist");
    }
}

#[test]
fn table_has_the_figures_of_the_steps() {
    let page = page();
    let written: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| journey |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(written.len(), 7, "{written:?}");

    let expected: Vec<String> = written.iter().map(|row| expected_row(&page, row)).collect();

    assert_eq!(written, expected, "write these rows:\n{}", expected.join("\n"));
}

/// The row with the figures that follow from the steps of its section.
fn expected_row(page: &str, row: &str) -> String {
    let title = row.split('|').nth(1).unwrap().trim();
    let steps = steps(section(page, title));
    let crossed = crossings(steps.iter());
    let without_history = crossings(steps.iter().filter(|step| !step.is_of_history()));
    let files = member_files(&steps).len();
    // The console's requests depend on the size of the job.
    let requests = match steps.iter().map(Step::requests).sum::<usize>() {
        0 => "–".to_owned(),
        count => count.to_string(),
    };
    format!("| {title} | {} | {crossed} | {without_history} | {files} | {requests} |", steps.len())
}

#[test]
fn page_says_how_many_files_of_the_member_a_claim_enters() {
    let page = page();
    let of_claim = member_files(&steps(section(&page, "Claim"))).len();
    let folder = source(MEMBER);
    let is_code =
        |file: &&PathBuf| **file != folder.join("mod.rs") && !file.ends_with("test_view.rs");
    let all = sources_below(&folder).iter().filter(is_code).count();

    let sentence = format!("now it is {of_claim} of {all}");

    assert!(page.contains(&sentence), "write: {sentence}");
}

#[test]
fn steps_are_numbered_in_order() {
    let page = page();
    let mut expected = 1;
    for line in page.lines() {
        // A section for one process begins anew.
        if line.starts_with("## ") || (line.starts_with("### ") && line.contains(':')) {
            expected = 1;
        } else if let Some((number, _)) = line.split_once(". `") {
            assert_eq!(number, expected.to_string(), "{line}");
            expected += 1;
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).unwrap()
}

fn source(file: &str) -> PathBuf {
    let folder = if file.starts_with("crates/") { "" } else { LIBRARY };
    root().join(folder).join(file)
}

/// The text from this heading to the next one of the same level or above.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let heading = |level: &str| page.split_once(&format!("\n{level} {title}\n"));
    match (heading("##"), heading("###")) {
        (Some((_, rest)), None) => rest.split("\n## ").next().unwrap(),
        (None, Some((_, rest))) => {
            rest.split("\n## ").next().unwrap().split("\n### ").next().unwrap()
        }
        _ => panic!("{PAGE} has no section {title:?}, or two"),
    }
}

fn steps(text: &str) -> Vec<Step<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some((number, _)) = line.split_once(". `")
            && number.parse::<u32>().is_ok()
        {
            // The lines that continue it are indented.
            let more = after.split_inclusive('\n').take_while(|line| line.starts_with("   "));
            let end = line.len() + 1 + more.map(str::len).sum::<usize>();
            found.push(step(&rest[..end.min(rest.len())]));
        }
        rest = after;
    }
    found
}

fn step(text: &str) -> Step<'_> {
    let (head, text) =
        text.split_once("`: ").unwrap_or_else(|| panic!("a step without functions: {text}"));
    let mut names = head.split('`').skip(1).step_by(2);
    Step { file: names.next().unwrap(), functions: names.collect(), text }
}

fn crossings<'a>(steps: impl Iterator<Item = &'a Step<'a>>) -> usize {
    let areas: Vec<&str> = steps.map(Step::area).collect();
    areas.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn member_files<'a>(steps: &[Step<'a>]) -> BTreeSet<&'a str> {
    steps.iter().map(|step| step.file).filter(|file| file.starts_with(MEMBER)).collect()
}

/// Whether the code defines `name` or `Type::name`: a function, a type, a constant or a variant.
fn defines(code: &str, name: &str) -> bool {
    let keywords = ["fn", "struct", "enum", "trait", "const"];
    match name.split_once("::") {
        None => keywords.iter().any(|keyword| has_words(code, &format!("{keyword} {name}"))),
        Some((owner, name)) => items(code).any(|item| {
            let header = item.split('{').next().unwrap();
            let is_enum = has_words(header, "enum");
            let is_member =
                has_words(item, &format!("fn {name}")) || (is_enum && has_variant(item, name));
            has_words(header, owner) && is_member
        }),
    }
}

/// The enums, traits and implementations of a formatted file: each ends with a brace in the first column.
fn items(code: &str) -> impl Iterator<Item = &str> {
    let kinds = ["impl", "enum", "trait"];
    code.split("\n}").filter_map(move |text| {
        let mut starts = text.match_indices('\n').map(|(at, _)| &text[at + 1..]);
        starts.find(|item| {
            let line = item.lines().next().unwrap_or_default();
            line.starts_with(|c: char| c.is_alphabetic())
                && kinds.iter().any(|kind| has_words(line, kind))
        })
    })
}

fn has_variant(item: &str, name: &str) -> bool {
    item.lines().any(|line| {
        let rest = line.strip_prefix("    ").and_then(|line| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with([',', '(', ' ']))
    })
}

/// Whether the words occur, not as a part of longer ones.
fn has_words(code: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(words).any(|(at, _)| {
        !is_part(code[..at].chars().next_back())
            && !is_part(code[at + words.len()..].chars().next())
    })
}

/// Whether this is a path or name of the registry's tree.
fn is_node(tree: &str, name: &str) -> bool {
    tree.contains(&format!("\"{name}\""))
}

fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(sources_below(&entry.path()));
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            found.push(entry.path());
        }
    }
    found
}

/// The source without comments and tests.
fn code_of(file: &Path) -> String {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}
