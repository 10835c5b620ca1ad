//! Exit codes and environment variables, frozen: `tests/golden/README.md` says why.

use std::{collections::BTreeSet, fmt::Write, iter::successors, process::ExitCode};

use clap::{Command, CommandFactory};
use testbed::golden;

use super::{EXIT_CODES, Options, default_history};
use crate::error::{Code, Error};

#[test]
fn exit_codes_keep_their_numbers() {
    let codes = successors(Some(Code::Internal), |code| match code {
        Code::Internal => Some(Code::BadInput),
        Code::BadInput => Some(Code::Unreachable),
        Code::Unreachable => Some(Code::NotAuthorised),
        Code::NotAuthorised => Some(Code::NotFound),
        Code::NotFound => Some(Code::Conflict),
        Code::Conflict => Some(Code::Refused),
        Code::Refused => Some(Code::Found),
        Code::Found => Some(Code::RunFailed),
        Code::RunFailed => None,
    });
    let mut text = String::new();
    for code in codes {
        let meaning = match code {
            Code::Internal => "internal",
            Code::BadInput => "bad input",
            Code::Unreachable => "unreachable",
            Code::NotAuthorised => "not authorised",
            Code::NotFound => "not found",
            Code::Conflict => "conflict",
            Code::Refused => "refused",
            Code::Found => "something was found",
            Code::RunFailed => "the run that was waited for failed",
        };
        let number = code as u8;
        let _ = writeln!(text, "{number} {meaning}");
        let ended = format!("{:?}", Error::silent(code).report());
        assert_eq!(ended, format!("{:?}", ExitCode::from(number)));
        let told = EXIT_CODES.split([',', '\n', ':']).map(str::trim);
        let number = number.to_string();
        assert!(told.into_iter().any(|part| part.split(' ').next() == Some(&number)), "{number}");
    }

    golden!("exit-codes.txt", text);
}

fn variables(command: &Command, found: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env());
    found.extend(variables.map(|variable| format!("{}\n", variable.to_str().unwrap())));
    command.get_subcommands().for_each(|below| self::variables(below, found));
}

#[test]
fn environment_variables_of_flags_keep_their_names() {
    let mut found = BTreeSet::new();
    variables(&Options::command(), &mut found);

    golden!("environment-flags.txt", found.into_iter().collect::<String>());
}

#[test]
fn history_files_keep_their_names() {
    if elasticjob::history::default_path().is_none() {
        eprintln!("NOT RUN: this user has no home, and so no default history file");
        return;
    }
    let name = |registry: Option<&str>| {
        let file = default_history::file(registry).unwrap();
        format!("{}\n", file.file_name().unwrap().to_str().unwrap())
    };

    let names = [None, Some("zookeeper://zk1,zk2:2182/team/shop")].map(name);
    golden!("history-files.txt", names.concat());
}
