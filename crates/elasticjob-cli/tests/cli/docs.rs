//! The commands in the documentation print the output that is shown there.

use std::fs;

use jiff::Timestamp;
use tempfile::TempDir;

use crate::{
    process::binary,
    scene::{Scene, settle},
};

const COMMAND_LINE: &str = include_str!("../../../../docs/command-line.md");
const JOB_FILES: &str = include_str!("../../../../docs/job-files.md");

/// The code blocks of a page in this language.
fn blocks<'a>(page: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!("```{language}\n");
    let blocks: Vec<&str> = page.split(opening.as_str()).skip(1).collect();
    blocks.into_iter().filter_map(|block| block.split("```").next())
}

/// The arguments of a command; text in single quotes is one argument.
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

/// Replaces the parts of a text that vary: ids, instants, runs, ports, versions, and the spaces around them.
fn normalize(text: &str) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| {
            let is_port =
                word.strip_prefix("127.0.0.1:").is_some_and(|port| port.parse::<u16>().is_ok());
            if word.contains("@-@") {
                "INSTANCE"
            } else if word.parse::<Timestamp>().is_ok() {
                "INSTANT"
            } else if word.len() == 36 && word.matches('-').count() == 4 {
                "RUN"
            } else if word.contains("-tinykeeper-") {
                "VERSION"
            } else if is_port {
                "SERVER"
            } else {
                word
            }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        // The clock difference varies, too, and the names of ephemeral nodes contain the id of a process.
        match line.split_once(" ok ").map(|(check, _)| check) {
            Some("clock") => "CLOCK".to_owned(),
            Some("session") => "SESSION".to_owned(),
            _ => line,
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_the_docs_print_the_documented_output() {
    let folder = TempDir::new().unwrap();
    let described = blocks(JOB_FILES, "yaml").next().unwrap();
    fs::write(folder.path().join("application.yml"), described).unwrap();
    let scene = Scene::with("").await;
    let _node = scene.node(settle().cron("0 0 2 * * ?").unwrap()).await;
    let mut checked = 0;

    for block in blocks(COMMAND_LINE, "console").chain(blocks(JOB_FILES, "console")) {
        let (line, expected) = block.split_once('\n').unwrap();
        let command = words(line.strip_prefix("$ elasticjob ").unwrap());
        let needs_registry = !["cron", "run"].contains(&&*command[0])
            && command.get(1).is_none_or(|word| word != "plan");

        let mut process = binary();
        if needs_registry {
            process.env("ELASTICJOB_REGISTRY", &scene.url);
        }
        let output = process.args(&command).current_dir(&folder).output().unwrap();

        let stdout = String::from_utf8(output.stdout).unwrap();
        if needs_registry {
            let printed = stdout + &String::from_utf8(output.stderr).unwrap();
            assert_eq!(normalize(&printed), normalize(expected), "{line}");
        } else {
            assert_eq!(stdout, expected, "{line}");
        }
        checked += 1;
    }
    assert_eq!(checked, 9);
}
