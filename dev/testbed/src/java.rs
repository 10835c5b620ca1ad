//! The command lines that run ZooKeeper servers: finds Java and the jars, and configures the JVM.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const JARS: &str = "/usr/share/java";

/// The manifest of `zookeeper.jar` names the jars for plain connections; the others are for logging, and for TLS with Netty.
const CLASS_PATH: [&str; 6] = [
    "zookeeper.jar",
    "slf4j-log4j12.jar",
    "log4j-1.2.jar",
    "netty-codec.jar",
    "netty-resolver.jar",
    "netty-transport-native-unix-common.jar",
];

pub(crate) const LOG4J: &str = "\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p %c{1} - %m%n
";

/// The main class.
#[derive(Clone, Copy)]
pub(crate) enum Main {
    Standalone,
    EnsembleMember,
    /// Not a server: the command-line client.
    Shell,
}

/// Settings of the JVM.
#[derive(Clone)]
pub(crate) struct Jvm {
    pub(crate) full_speed: bool,
    pub(crate) properties: Vec<(String, String)>,
}

/// The command that runs a server with the `zoo.cfg` in `folder`.
pub(crate) fn command(main: Main, jvm: &Jvm, folder: &Path) -> Vec<OsString> {
    let properties = jvm.properties.iter().map(|(name, value)| format!("-D{name}={value}").into());
    let mut command = java(main, jvm.full_speed, properties, folder);
    command.push(folder.join("zoo.cfg").into());
    command
}

/// The command that runs ZooKeeper's own shell; `folder` holds its `log4j.properties`.
pub(crate) fn shell(server: &str, folder: &Path) -> Vec<OsString> {
    let mut command = java(Main::Shell, false, std::iter::empty(), folder);
    command.extend(["-server", server].map(OsString::from));
    command
}

fn java(
    main: Main,
    full_speed: bool,
    properties: impl Iterator<Item = OsString>,
    folder: &Path,
) -> Vec<OsString> {
    let jars = Path::new(JARS);
    let (Some(java), true) = (find_java(), jars.join("zookeeper.jar").exists()) else {
        panic!(
            "no Java or no {JARS}/zookeeper.jar; hint: apt-get install zookeeper (make test does it)"
        );
    };
    let class_path = env::join_paths(
        [folder.to_owned()].into_iter().chain(CLASS_PATH.map(|jar| jars.join(jar))),
    )
    .expect("a temporary folder has no `:` in its name");

    let mut command: Vec<OsString> = vec![java.into()];
    command.extend(flags(full_speed).iter().map(OsString::from));
    command.extend(properties);
    command.extend(["-cp".into(), class_path, class(main).into()]);
    command
}

fn find_java() -> Option<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("java"))
        .find(|java| java.is_file())
}

fn flags(full_speed: bool) -> &'static [&'static str] {
    if full_speed {
        &["-Xmx1g"]
    } else {
        // Start fast and use little memory: a test server lives for seconds.
        &["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
    }
}

fn class(main: Main) -> &'static str {
    match main {
        Main::Standalone => "org.apache.zookeeper.server.ZooKeeperServerMain",
        Main::EnsembleMember => "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        Main::Shell => "org.apache.zookeeper.ZooKeeperMain",
    }
}
