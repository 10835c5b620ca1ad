//! The dependency picture of ARCHITECTURE.md, as a test: it reads the paths that code names.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A crate, and what its modules may name.
struct Crate {
    /// Below the workspace.
    src: &'static str,
    /// Each module and the modules of the same crate it may name.
    modules: &'static [(&'static str, &'static [&'static str])],
    /// Other crates of the workspace it may name; of the library only these modules, where it is not the whole.
    others: &'static [(&'static str, Names)],
}

enum Names {
    All,
    Only(&'static [&'static str]),
}

/// Read it top-down: an arrow points up the list, but for the console's `http`, which puts the routes of all others together.
const CRATES: &[Crate] = &[
    Crate { src: "crates/quartz-cron/src", modules: &[], others: &[] },
    Crate {
        src: "crates/tinykeeper/src",
        modules: &[
            ("wire", &[]),
            ("tree", &["wire"]),
            ("store", &[]),
            ("client", &["wire"]),
            ("server", &["wire", "tree", "store"]),
        ],
        others: &[],
    },
    Crate { src: "crates/elasticjob-macros/src", modules: &[], others: &[] },
    Crate {
        src: "crates/elasticjob/src",
        modules: &[
            ("runtime", &[]),
            ("job", &["runtime", "schedule"]),
            ("registry", &["runtime"]),
            ("coordination", &["runtime", "schedule", "job", "registry"]),
            ("execution", &["runtime", "job"]),
            ("history", &["runtime", "job"]),
            (
                "node",
                &["runtime", "schedule", "job", "registry", "coordination", "execution", "history"],
            ),
            ("admin", &["runtime", "schedule", "job", "registry", "coordination", "history"]),
            (
                "testing",
                &[
                    "runtime",
                    "schedule",
                    "job",
                    "registry",
                    "coordination",
                    "history",
                    "node",
                    "admin",
                ],
            ),
        ],
        others: &[
            ("quartz_cron", Names::All),
            ("tinykeeper", Names::Only(&["client", "tree", "wire"])),
            ("elasticjob_macros", Names::All),
        ],
    },
    Crate {
        src: "crates/elasticjob-jobfile/src",
        modules: &[],
        others: &[(
            "elasticjob",
            Names::Only(&["job", "schedule", "problem", "execution", "history", "registry"]),
        )],
    },
    Crate {
        src: "crates/elasticjob-console/src",
        modules: &[
            ("audit", &["auth", "http"]),
            ("auth", &["audit", "error", "files", "http", "registries"]),
            ("registries", &["auth", "files", "http", "jobs"]),
            ("jobs", &["auth", "http"]),
            ("history", &["auth", "http", "registries"]),
            ("legacy", &["audit", "auth", "history", "http", "jobs", "registries"]),
            ("http", &["audit", "auth", "error", "history", "jobs", "legacy", "registries"]),
        ],
        others: &[(
            "elasticjob",
            Names::Only(&["admin", "history", "job", "schedule", "problem", "runtime", "registry"]),
        )],
    },
    Crate {
        src: "crates/elasticjob-cli/src",
        modules: &[
            ("worker", &["error"]),
            ("observe", &["error", "worker"]),
            ("dev", &["error", "output", "worker"]),
            ("cli", &["dev", "error", "logs", "observe", "output", "worker"]),
        ],
        others: &[
            (
                "elasticjob",
                Names::Only(&[
                    "Job",
                    "admin",
                    "execution",
                    "history",
                    "job",
                    "node",
                    "problem",
                    "registry",
                    "runtime",
                    "schedule",
                ]),
            ),
            ("elasticjob_console", Names::All),
            ("elasticjob_jobfile", Names::All),
            ("tinykeeper", Names::Only(&["server"])),
        ],
    },
    Crate {
        src: "dev/testbed/src",
        modules: &[("bin", &[])],
        others: &[("elasticjob", Names::Only(&["execution", "job", "node"]))],
    },
    Crate {
        src: "dev/bench/src",
        modules: ANY,
        others: &[("elasticjob", Names::All), ("tinykeeper", Names::All), ("testbed", Names::All)],
    },
    Crate {
        src: "dev/chaos/src",
        modules: ANY,
        others: &[("elasticjob", Names::All), ("testbed", Names::All)],
    },
    Crate { src: "dev/interop/src", modules: ANY, others: &[("elasticjob", Names::All)] },
];

/// What is not shipped is not held to an order within.
const ANY: &[(&str, &[&str])] = &[("*", &[])];

const WORKSPACE: [&str; 8] = [
    "quartz_cron",
    "tinykeeper",
    "elasticjob_macros",
    "elasticjob",
    "elasticjob_jobfile",
    "elasticjob_console",
    "testbed",
    "interop",
];

#[test]
fn modules_only_name_what_the_picture_allows() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for Crate { src, modules, .. } in CRATES {
        for (module, allowed) in modules.iter().filter(|(module, _)| *module != "*") {
            for named in names(&root().join(src).join(module), "crate") {
                looked_at += 1;
                if named != *module && !allowed.contains(&named.as_str()) {
                    wrong.push(format!("{src}: {module} -> {named}"));
                }
            }
        }
    }
    assert!(looked_at > 50, "{looked_at}: are the files still there?");
    assert!(wrong.is_empty(), "not in the picture: {wrong:?}");
}

#[test]
fn crates_only_name_what_the_picture_allows() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for Crate { src, others, .. } in CRATES {
        let own = src.split('/').nth(1).unwrap().replace('-', "_");
        for other in WORKSPACE.iter().filter(|other| **other != own) {
            let named = names(&root().join(src), other);
            // Code that a macro writes names the library as its user does.
            if named.is_empty() || own == "elasticjob_macros" {
                continue;
            }
            looked_at += named.len();
            match others.iter().find(|(name, _)| name == other) {
                None => wrong.push(format!("{src} -> {other}")),
                Some((_, Names::All)) => {}
                Some((_, Names::Only(modules))) => wrong.extend(
                    named
                        .iter()
                        .filter(|module| !modules.contains(&module.as_str()))
                        .map(|module| format!("{src} -> {other}::{module}")),
                ),
            }
        }
    }
    assert!(looked_at > 50, "{looked_at}: are the files still there?");
    assert!(wrong.is_empty(), "not in the picture: {wrong:?}");
}

/// The console reaches a registry through `admin`; of the registry it knows what a URL looks like.
#[test]
fn console_names_nothing_of_the_registry_but_its_url() {
    let allowed = BTreeSet::from(["RegistryUrl".to_owned(), "UrlError".to_owned()]);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files(&root().join("crates/elasticjob-console/src")) {
        let code = code_of(&file);
        let named = paths_below(&code, "registry");
        let others = named.difference(&allowed);
        wrong.extend(others.map(|other| format!("{}: registry::{other}", file.display())));
        seen.extend(named);
    }
    assert!(!seen.is_disjoint(&allowed), "it names no URL: are the files still there?");
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_module_folder_is_in_the_picture() {
    for Crate { src, modules, .. } in CRATES.iter().filter(|one| one.modules != ANY) {
        let folders: BTreeSet<String> = fs::read_dir(root().join(src))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        let drawn: BTreeSet<String> = modules.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(folders, drawn, "{src}");
    }
}

#[test]
fn every_crate_of_the_workspace_is_in_the_picture() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let members: BTreeSet<String> = members
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .map(|member| format!("{member}/src"))
        .collect();
    let drawn: BTreeSet<String> = CRATES.iter().map(|one| one.src.to_owned()).collect();

    assert_eq!(members, drawn);
}

/// Pure code touches no socket, thread, timer or clock.
#[test]
fn pure_modules_touch_nothing_outside() {
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
    for folder in
        ["crates/tinykeeper/src/wire", "crates/tinykeeper/src/tree", "crates/quartz-cron/src"]
    {
        let files = files(&root().join(folder));
        assert!(!files.is_empty(), "{folder}");
        for file in files {
            let code = code_of(&file);
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{} names {word}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first segment of every path that code under `folder` names below `root`.
fn names(folder: &Path, root: &str) -> BTreeSet<String> {
    files(folder).iter().flat_map(|file| paths_below(&code_of(file), root)).collect()
}

/// The first segment after `root::`, in `use` trees too.
fn paths_below(code: &str, root: &str) -> BTreeSet<String> {
    let prefix = format!("{root}::");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(&prefix) {
        // `$crate::`, or the end of a longer name.
        let before = code[..at].chars().next_back();
        if before.is_some_and(|before| before == '$' || before == '_' || before.is_alphanumeric()) {
            continue;
        }
        let rest = code[at + prefix.len()..].trim_start();
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads(group)),
            None => found.extend(ident(rest)),
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            found.push(entry.path());
        }
    }
    found
}

/// The text without comments; what tests name does not count.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    if file.file_name().is_some_and(|name| name == "tests.rs" || name == "golden.rs") {
        return String::new();
    }
    let tests = ["tests", "golden"].map(|module| format!("#[cfg(test)]\nmod {module} {{"));
    let end = tests.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    let text = &text[..end];
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
                out.extend(ident(&group[at..]).filter(|name| name != "self"));
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
