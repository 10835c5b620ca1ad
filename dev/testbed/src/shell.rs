//! The Java client: ZooKeeper's own shell, with somebody typing into it.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use crate::java;

/// Types `commands` into ZooKeeper's own shell, connected to `server`, and returns what it prints. It ends with its input.
pub fn zookeeper_shell(server: SocketAddr, commands: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // To stderr, so that what is returned is the shell's word alone.
    let log = java::LOG4J.replace(
        "ConsoleAppender\n",
        "ConsoleAppender\nlog4j.appender.console.target=System.err\n",
    );
    fs::write(folder.path().join("log4j.properties"), log).expect("the settings of the log");
    let command = java::shell(&server.to_string(), folder.path());
    let mut shell = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("java starts");
    let mut input = shell.stdin.take().expect("piped");
    for command in commands {
        writeln!(input, "{command}").expect("the shell listens");
    }
    writeln!(input, "quit").expect("the shell listens");
    drop(input);
    let output = shell.wait_with_output().expect("the shell ends");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
