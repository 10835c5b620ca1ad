//! The words of job files, frozen: `tests/golden/README.md` says why.

use std::fmt::Write;

use testbed::{golden, golden_input};

use super::{
    Jobs, parse,
    registry::KEYS,
    section::{DUMP_KEYS, ELASTICJOB_PROPS, SECTION_KEYS, TRACING_KEYS, entry_keys},
    xml::ATTRIBUTES,
};

fn jobs(file: &str) -> Jobs {
    parse(&vec![(file.to_owned(), golden_input!(file))], &|_| None).unwrap()
}

/// All that was read, but for the sentences about what was not.
fn described(Jobs { registry, history, entries, notes }: &Jobs) -> String {
    let url = |url: &Option<(super::Location, String)>| {
        url.as_ref().map_or_else(|| "none".to_owned(), |(_, url)| url.clone())
    };
    let mut text = format!("registry: {}\nhistory: {}\n", url(registry), url(history));
    let _ = writeln!(text, "notes: {}", notes.len());
    for super::Entry { job, kind, location: _ } in entries {
        let _ = writeln!(text, "---\n# run by {kind}\n{}", job.to_yaml().trim_end());
    }
    text
}

#[test]
fn job_files_are_read_by_the_same_words() {
    for file in ["jobs.yml", "jobs.json", "jobs.toml", "jobs.properties"] {
        golden!("jobs.read.txt", described(&jobs(file)));
    }
    golden!("jobs-older.read.txt", described(&jobs("jobs-older.properties")));
    golden!("jobs-xml.read.txt", described(&jobs("jobs.xml")));
}

#[test]
fn every_key_of_a_job_file_is_frozen() {
    let yaml = golden_input!("jobs.yml");
    let written: Vec<&str> =
        yaml.lines().filter_map(|line| line.trim().split_once(':')).map(|(key, _)| key).collect();
    let keys =
        [&SECTION_KEYS[..], &TRACING_KEYS, &DUMP_KEYS, &KEYS, entry_keys().as_slice()].concat();
    let missing: Vec<&str> = keys.into_iter().filter(|key| !written.contains(key)).collect();
    assert!(missing.is_empty(), "add these to jobs.yml: {missing:?}");
    let missing: Vec<&str> =
        ELASTICJOB_PROPS.into_iter().filter(|key| !yaml.contains(key)).collect();
    assert!(missing.is_empty(), "add these to the props of jobs.yml: {missing:?}");

    let xml = golden_input!("jobs.xml");
    let attributes = ATTRIBUTES.into_iter().map(|(name, _)| name);
    let missing: Vec<&str> =
        attributes.filter(|name| !xml.contains(&format!(" {name}=\""))).collect();
    assert!(missing.is_empty(), "add these to jobs.xml: {missing:?}");
}

#[test]
fn springs_own_words_are_understood() {
    let files = [("application.yml".to_owned(), golden_input!("application.yml"))];
    let active = |profile: &'static str| {
        let variable =
            move |name: &str| (name == "SPRING_PROFILES_ACTIVE").then(|| profile.to_owned());
        parse(&files.to_vec(), &variable).unwrap()
    };

    for (profile, namespace) in [("", "shop"), ("production", "live"), ("test", "test")] {
        let Jobs { registry, history, .. } = active(profile);
        assert_eq!(registry.unwrap().1, format!("zookeeper://zk1/{namespace}"));
        assert_eq!(history.unwrap().1, "postgres://ann:secret@db:5432/jobs");
    }
}
