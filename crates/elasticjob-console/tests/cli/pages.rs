//! What the pages show is what happens.

use std::fs;

use tempfile::TempDir;

use crate::process::binary;

const COMMAND_LINE: &str = include_str!("../../../../docs/command-line.md");
const JOB_FILES: &str = include_str!("../../../../docs/job-files.md");

/// The blocks of a page that are in this language.
fn blocks<'a>(page: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!("```{language}\n");
    let blocks: Vec<&str> = page.split(opening.as_str()).skip(1).collect();
    blocks.into_iter().filter_map(|block| block.split("```").next())
}

/// The words of a command; `'…'` is one.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate().flat_map(|(index, part)| {
        if index % 2 == 1 {
            vec![part.to_owned()]
        } else {
            part.split_whitespace().map(ToOwned::to_owned).collect()
        }
    });
    parts.collect()
}

#[test]
fn every_command_on_the_pages_prints_what_they_say() {
    let folder = TempDir::new().unwrap();
    let described = blocks(JOB_FILES, "yaml").next().unwrap();
    fs::write(folder.path().join("application.yml"), described).unwrap();
    let mut checked = 0;

    for block in blocks(COMMAND_LINE, "console").chain(blocks(JOB_FILES, "console")) {
        let (command, expected) = block.split_once('\n').unwrap();
        let command = words(command.strip_prefix("$ elasticjob ").unwrap());

        let output = binary().args(&command).current_dir(&folder).output().unwrap();

        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{command:?}");
        checked += 1;
    }
    assert_eq!(checked, 3);
}
