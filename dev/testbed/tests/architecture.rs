//! Checks the dependency table of ARCHITECTURE.md against the paths that the code names.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A crate, and the modules and crates that its code may name.
struct Crate {
    /// Path below the workspace root.
    src: &'static str,
    /// Each module, with the modules of the same crate that it may name.
    modules: &'static [(&'static str, &'static [&'static str])],
    /// Other crates of the workspace that it may name, and which of their modules.
    others: &'static [(&'static str, AllowedModules)],
}

enum AllowedModules {
    All,
    Only(&'static [&'static str]),
}

/// In order of dependency: a module names only modules above it, except for the console's `http`, which joins the routes of all others.
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
            ("job", &["problem", "runtime", "schedule"]),
            ("registry", &["problem", "runtime"]),
            ("coordination", &["problem", "runtime", "schedule", "job", "registry"]),
            ("execution", &["problem", "runtime", "job"]),
            ("history", &["problem", "runtime", "job"]),
            (
                "node",
                &[
                    "problem",
                    "runtime",
                    "schedule",
                    "job",
                    "registry",
                    "coordination",
                    "execution",
                    "history",
                ],
            ),
            (
                "admin",
                &["problem", "runtime", "schedule", "job", "registry", "coordination", "history"],
            ),
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
            ("quartz_cron", AllowedModules::All),
            ("tinykeeper", AllowedModules::Only(&["client", "tree", "wire"])),
            ("elasticjob_macros", AllowedModules::All),
        ],
    },
    Crate {
        src: "crates/elasticjob-jobfile/src",
        modules: &[],
        others: &[(
            "elasticjob",
            AllowedModules::Only(&[
                "job",
                "schedule",
                "problem",
                "execution",
                "history",
                "registry",
            ]),
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
            (
                "http",
                &["audit", "auth", "error", "files", "history", "jobs", "legacy", "registries"],
            ),
        ],
        others: &[(
            "elasticjob",
            AllowedModules::Only(&[
                "admin", "history", "job", "schedule", "problem", "runtime", "registry",
            ]),
        )],
    },
    Crate {
        src: "crates/elasticjob-cli/src",
        modules: &[
            ("worker", &["error", "stop_signals"]),
            ("observe", &["error", "stop_signals", "worker"]),
            ("dev", &["error", "file_limit", "output", "stop_signals", "worker"]),
            (
                "cli",
                &[
                    "dev",
                    "error",
                    "file_limit",
                    "logs",
                    "observe",
                    "output",
                    "stop_signals",
                    "worker",
                ],
            ),
        ],
        others: &[
            (
                "elasticjob",
                AllowedModules::Only(&[
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
            ("elasticjob_console", AllowedModules::All),
            ("elasticjob_jobfile", AllowedModules::All),
            ("tinykeeper", AllowedModules::Only(&["server"])),
        ],
    },
    Crate {
        src: "dev/testbed/src",
        modules: &[("bin", &[])],
        others: &[("elasticjob", AllowedModules::Only(&["execution", "job", "node"]))],
    },
    Crate {
        src: "dev/bench/src",
        modules: ANY,
        others: &[
            ("elasticjob", AllowedModules::All),
            ("tinykeeper", AllowedModules::All),
            ("testbed", AllowedModules::All),
        ],
    },
    Crate {
        src: "dev/chaos/src",
        modules: ANY,
        others: &[("elasticjob", AllowedModules::All), ("testbed", AllowedModules::All)],
    },
    Crate { src: "dev/interop/src", modules: ANY, others: &[("elasticjob", AllowedModules::All)] },
];

/// Crates that are not shipped have no rules for their modules.
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
fn modules_name_only_allowed_modules() {
    let mut violations = Vec::new();
    let mut checked = 0;
    for Crate { src, modules, .. } in CRATES {
        for (module, allowed) in modules.iter().filter(|(module, _)| *module != "*") {
            for named in names(&root().join(src).join(module), "crate") {
                checked += 1;
                if named != *module && !allowed.contains(&named.as_str()) {
                    violations.push(format!("{src}: {module} -> {named}"));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} names checked: are the files still there?");
    assert!(violations.is_empty(), "not allowed by the table: {violations:?}");
}

#[test]
fn crates_name_only_allowed_crates() {
    let mut violations = Vec::new();
    let mut checked = 0;
    for Crate { src, others, .. } in CRATES {
        let own = src.split('/').nth(1).unwrap().replace('-', "_");
        for other in WORKSPACE.iter().filter(|other| **other != own) {
            let named = names(&root().join(src), other);
            // Code that a macro generates names the library as its user does.
            if named.is_empty() || own == "elasticjob_macros" {
                continue;
            }
            checked += named.len();
            match others.iter().find(|(name, _)| name == other) {
                None => violations.push(format!("{src} -> {other}")),
                Some((_, AllowedModules::All)) => {}
                Some((_, AllowedModules::Only(modules))) => violations.extend(
                    named
                        .iter()
                        .filter(|module| !modules.contains(&module.as_str()))
                        .map(|module| format!("{src} -> {other}::{module}")),
                ),
            }
        }
    }
    assert!(checked > 50, "only {checked} names checked: are the files still there?");
    assert!(violations.is_empty(), "not allowed by the table: {violations:?}");
}

/// The console reaches a registry through `admin`; of the module `registry` it uses only the URL.
#[test]
fn console_names_nothing_of_the_registry_but_its_url() {
    let allowed = BTreeSet::from(["RegistryUrl".to_owned(), "UrlError".to_owned()]);
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files(&root().join("crates/elasticjob-console/src")) {
        let code = code_of(&file);
        let named = paths_below(&code, "registry");
        let others = named.difference(&allowed);
        violations.extend(others.map(|other| format!("{}: registry::{other}", file.display())));
        seen.extend(named);
    }
    assert!(!seen.is_disjoint(&allowed), "the console names no URL: are the files still there?");
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn every_module_folder_is_in_the_table() {
    for Crate { src, modules, .. } in CRATES.iter().filter(|one| one.modules != ANY) {
        let folders: BTreeSet<String> = fs::read_dir(root().join(src))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<String> = modules.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(folders, listed, "{src}");
    }
}

#[test]
fn every_crate_of_the_workspace_is_in_the_table() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let members: BTreeSet<String> = members
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .map(|member| format!("{member}/src"))
        .collect();
    let listed: BTreeSet<String> = CRATES.iter().map(|one| one.src.to_owned()).collect();

    assert_eq!(members, listed);
}

#[test]
fn pure_modules_do_no_io_and_read_no_clock() {
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
    let mut violations = Vec::new();
    for folder in
        ["crates/tinykeeper/src/wire", "crates/tinykeeper/src/tree", "crates/quartz-cron/src"]
    {
        let files = files(&root().join(folder));
        assert!(!files.is_empty(), "{folder}");
        for file in files {
            let code = code_of(&file);
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                violations.push(format!("{} names {word}", file.display()));
            }
        }
    }
    assert!(violations.is_empty(), "{violations:?}");
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

/// The source without comments and tests.
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
