//! Runs commands in ZooKeeper's own shell, a Java client.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use crate::java;

/// Runs `commands` in ZooKeeper's own shell, connected to `server`, and returns its output.
pub fn zookeeper_shell(server: SocketAddr, commands: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Log to stderr, so that stdout holds only the answers of the shell.
    let log = java::LOG4J.replace(
        "ConsoleAppender\n",
        "ConsoleAppender\nlog4j.appender.console.target=System.err\n",
    );
    fs::write(folder.path().join("log4j.properties"), log)
        .expect("a temporary folder can be written to");
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
        writeln!(input, "{command}").expect("the shell reads its input");
    }
    writeln!(input, "quit").expect("the shell reads its input");
    drop(input);
    let output = shell.wait_with_output().expect("the shell exits");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
