//! Help, completions, manual pages and other behaviour that all commands share.

use std::{io::Read, process::Stdio};

use crate::process::{binary, elasticjob};

#[test]
fn help_lists_the_public_commands_on_standard_output() {
    let help = elasticjob(&["--help"]);

    assert_eq!((help.code, &*help.stderr), (Some(0), ""));
    let commands = [
        "run",
        "dev",
        "console",
        "job",
        "shard",
        "server",
        "history",
        "doctor",
        "cron",
        "completions",
        "man",
    ];
    for command in commands {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{}", help.stdout);
    }
    assert!(!help.stdout.contains("demo-worker"), "{}", help.stdout);
    assert!(help.stdout.contains("ELASTICJOB_REGISTRY"), "{}", help.stdout);
}

#[test]
fn help_hides_the_password_in_the_environment() {
    let output = binary()
        .arg("--help")
        .env("ELASTICJOB_REGISTRY", "zookeeper://jane:hunter2@zk/shop")
        .output()
        .unwrap();

    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("ELASTICJOB_REGISTRY") && !help.contains("hunter2"), "{help}");
}

#[test]
fn unknown_flags_and_commands_are_bad_input() {
    for arguments in [&["cron", "next", "--frob", "x"][..], &["frob"], &[], &["cron"]] {
        let output = elasticjob(arguments);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = elasticjob(&["completions", shell]);

        assert_eq!((output.code, &*output.stderr), (Some(0), ""), "{shell}");
        assert!(output.stdout.contains("elasticjob"), "{shell}");
    }
    assert_eq!(elasticjob(&["completions", "dos"]).code, Some(2));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let mut child = binary()
        .args(["cron", "next", "-n", "100000", "* * * * * ?"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());

    let output = child.wait_with_output().unwrap();

    assert_eq!(&first, b"FIRE");
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

#[test]
fn every_command_has_a_manual_page() {
    for (command, title) in [
        (&[][..], ".TH elasticjob 1"),
        (&["run"], ".TH elasticjob-run 1"),
        (&["job", "apply"], ".TH elasticjob-job-apply 1"),
    ] {
        let output = elasticjob(&[&["man"], command].concat());

        assert_eq!((output.code, &*output.stderr), (Some(0), ""), "{command:?}");
        assert!(output.stdout.contains(title), "{}", output.stdout);
        assert!(output.stdout.contains(".SH SYNOPSIS"), "{}", output.stdout);
    }
    let output = elasticjob(&["man", "job", "aply"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(output.stderr, "error: job has no command \"aply\"\nhint: did you mean apply?\n");
}
