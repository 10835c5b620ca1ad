//! The dependency picture of ARCHITECTURE.md, as a test.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Rooms, and whom each may name.
type Picture = &'static [(&'static str, &'static [&'static str])];

/// Each room of `elasticjob` and the rooms it may name. Read it top-down: an arrow never points down the list.
const ELASTICJOB: Picture = &[
    ("runtime", &[]),
    ("schedule", &[]),
    ("job", &["runtime", "schedule"]),
    ("registry", &["runtime"]),
    ("coordination", &["runtime", "schedule", "job", "registry"]),
    ("execution", &["runtime", "job"]),
    ("history", &["runtime", "job"]),
    ("node", &["runtime", "schedule", "job", "registry", "coordination", "execution", "history"]),
    ("admin", &["runtime", "schedule", "job", "registry", "coordination", "history"]),
    (
        "testing",
        &["runtime", "schedule", "job", "registry", "coordination", "history", "node", "admin"],
    ),
];

/// The same for `tinykeeper`.
const TINYKEEPER: Picture = &[
    ("wire", &[]),
    ("tree", &["wire"]),
    ("store", &[]),
    ("client", &["wire"]),
    ("server", &["wire", "tree", "store"]),
];

#[test]
fn rooms_only_name_what_the_picture_allows() {
    let mut wrong = Vec::new();
    for (src, picture) in houses() {
        for (room, allowed) in picture {
            for named in names(&src.join(room)) {
                if named != *room && !allowed.contains(&named.as_str()) {
                    wrong.push(format!("{room} -> {named}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not in the picture: {wrong:?}");
}

#[test]
fn every_room_is_in_the_picture() {
    for (src, picture) in houses() {
        let folders: BTreeSet<String> = fs::read_dir(&src)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        let drawn: BTreeSet<String> = picture.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(folders, drawn, "{}", src.display());
    }
}

/// Who is pure stays pure: no sockets, threads, timers or clocks.
#[test]
fn the_pure_rooms_touch_nothing_outside() {
    let forbidden = [
        "tokio::",
        "std::net::Tcp",
        "std::thread",
        "std::fs",
        "Instant",
        "SystemTime",
        "Timestamp::now",
        "TimeZone::system",
        "rand::",
    ];
    let mut wrong = Vec::new();
    for room in ["tinykeeper/src/wire", "tinykeeper/src/tree", "elasticjob/src/schedule"] {
        for file in files(&crates().join(room)) {
            let code = code_of(&file);
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{} names {word}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn houses() -> [(PathBuf, Picture); 2] {
    [(crates().join("elasticjob/src"), ELASTICJOB), (crates().join("tinykeeper/src"), TINYKEEPER)]
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every top-level module that code under `folder` names with `crate::`.
fn names(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files(folder) {
        let code = code_of(&file);
        for (at, _) in code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with('$')) {
            let rest = code[at + "crate::".len()..].trim_start();
            match rest.strip_prefix('{') {
                Some(group) => found.extend(heads(group)),
                None => found.extend(ident(rest)),
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// The text without comments; what tests name does not count.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first path segment of each entry of a `{a::b, c::{d, e}}` group.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut fresh, mut out) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && depth == 0 && c.is_alphabetic() => {
                out.extend(ident(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    out
}

fn ident(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}
