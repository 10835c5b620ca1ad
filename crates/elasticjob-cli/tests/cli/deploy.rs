//! The files in `deploy/` match the binary.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    metrics::{metrics, worker},
    process::{binary, elasticjob},
};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// The names of metrics in a text.
fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("elasticjob_")).map(ToOwned::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_in_deploy_are_exported_and_exported_ones_documented() {
    let (_scene, _process, address) = worker().await;
    let series = metrics(&address);
    let exported: BTreeSet<&str> =
        series.keys().map(|series| series.split('{').next().unwrap()).collect();

    for folder in ["prometheus", "grafana"] {
        for file in files(&deploy().join(folder)) {
            let names = metric_names(&fs::read_to_string(&file).unwrap());
            assert!(names.len() >= 5, "{}: {names:?}", file.display());
            for name in &names {
                assert!(exported.contains(&**name), "{}: no worker exports {name}", file.display());
            }
        }
    }
    let page = include_str!("../../../../docs/command-line.md");
    for name in exported {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(metric_names(page).contains(family.unwrap_or(name)), "{name} is not documented");
    }
}

#[test]
fn yaml_and_json_files_are_valid() {
    let mut read = 0;
    for file in files(&deploy()) {
        let text = fs::read_to_string(&file).unwrap();
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("json") => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
            Some("yml" | "yaml") => {
                for event in granit_parser::Parser::new_from_str(&text) {
                    event.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                }
            }
            _ => continue,
        }
        read += 1;
    }
    assert_eq!(read, 5);
}

#[test]
fn jobs_of_the_kubernetes_manifests_are_valid() {
    let file = deploy().join("kubernetes/jobs.yml");

    let output = elasticjob(&["run", "--check", "-f", file.to_str().unwrap()]);

    assert_eq!((output.code, &*output.stderr), (Some(0), ""));
    assert!(output.stdout.contains("hello"), "{}", output.stdout);
}

/// The word after `start` on each line that has it.
fn words_after(text: &str, start: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(start));
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "_.".contains(letter));
    lines.map(|(_, rest)| rest.split(ends).next().unwrap().to_owned()).collect()
}

#[test]
fn passwords_in_deploy_come_from_files_that_run_reads() {
    let read = |file: &str| fs::read_to_string(deploy().join(file)).unwrap();
    let help = elasticjob(&["run", "--help"]).stdout;
    let unit = read("systemd/elasticjob.service");
    let folder = tempfile::tempdir().unwrap();
    for name in words_after(&unit, "LoadCredential=") {
        fs::write(folder.path().join(name), "no-such-kind://").unwrap();
    }

    // The credential of the unit is what the worker takes as its registry.
    let jobs = deploy().join("kubernetes/jobs.yml");
    let output = binary()
        .args(["run", "--check", "-f", jobs.to_str().unwrap()])
        .env("CREDENTIALS_DIRECTORY", folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no-such-kind"), "{stderr}");

    for (file, count) in [("kubernetes/worker.yaml", 2), ("container/Dockerfile", 2)] {
        let text = read(file);
        let variables: BTreeSet<String> = ["name: ", "-e "]
            .iter()
            .flat_map(|start| words_after(&text, start))
            .filter(|name| name.starts_with("ELASTICJOB_"))
            .collect();
        assert_eq!(variables.len(), count, "{file}: {variables:?}");
        for name in variables.iter().filter(|name| *name != "ELASTICJOB_ADDRESS") {
            assert!(help.contains(&format!("[env: {name}")), "{file}: run does not read {name}");
        }
    }
    assert!(!read("kubernetes/worker.yaml").contains("secretKeyRef"), "it is a file");
}

#[test]
fn flags_used_in_deploy_are_flags_of_run() {
    let help = elasticjob(&["run", "--help"]).stdout;
    let mut used = BTreeSet::new();
    for file in ["systemd/elasticjob.service", "container/Dockerfile", "kubernetes/worker.yaml"] {
        let text = fs::read_to_string(deploy().join(file)).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| {
            ["ExecStart", "CMD", "- --"].iter().any(|begin| line.starts_with(begin))
        });
        let words: Vec<String> = lines
            .flat_map(|line| line.split([' ', '"', '=', ',']).map(ToOwned::to_owned))
            .filter(|word| word.starts_with("--"))
            .collect();
        assert!(words.len() >= 2, "{file}: {words:?}");
        used.extend(words);
    }
    for flag in used {
        assert!(help.contains(&flag), "run has no {flag}");
    }
}
