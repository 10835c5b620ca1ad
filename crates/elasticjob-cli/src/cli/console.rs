//! `elasticjob console`

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use elasticjob_console::{
    self as api, AdditionPolicy, FirstAccount, Limits, OidcFile, OidcSettings, TlsIdentity,
    TrustedProxies,
};
use serde::Deserialize;

use super::{
    Global,
    run::{address, block_on},
};
use crate::{error::Error, file_limit, logs, output, stop_signals::StopSignals};

const DEFAULT_LISTEN: &str = "127.0.0.1:8899";
/// Sessions expire after being unused for this long.
const SESSION_IDLE: Duration = Duration::from_hours(1);
/// How long a shutdown waits for running changes.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(super) struct Console {
    /// Registries to look at; one alone needs no name
    #[arg(long, value_name = "NAME=URL", num_args = 1..)]
    registry: Vec<String>,
    /// Where the history of a registry is kept: sqlite:FILE, postgres://… or mysql://…; a registry alone needs no name
    #[arg(long, value_name = "NAME=URL", num_args = 1..)]
    history: Vec<String>,
    /// What else there is to say, in TOML: docs/console-api.md has every key
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where it listens: an address, or a port of this machine alone [default: 127.0.0.1:8899]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Where accounts, added registries and the audit are kept [default: elasticjob-console, here]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct File {
    listen: Option<String>,
    data: Option<PathBuf>,
    /// Additional host names under which the console is reachable.
    hosts: Vec<String>,
    /// Addresses and networks of proxies whose `X-Forwarded-For` is trusted.
    trusted_proxies: Vec<String>,
    /// Browsers reach the console by HTTPS, through a proxy.
    behind_https: bool,
    /// Certificate and key, if the console terminates TLS itself.
    tls: Option<TlsFiles>,
    session_idle_minutes: Option<u64>,
    limits: LimitsTable,
    registries: toml::Table,
    add_registries: Additions,
    histories: toml::Table,
    add_histories: Additions,
    /// OpenID Connect provider.
    oidc: Option<OidcFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsFiles {
    cert: PathBuf,
    key: PathBuf,
}

/// How much one client, one user, and all of them may take.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct LimitsTable {
    connections: Option<usize>,
    connections_per_address: Option<usize>,
    streams: Option<usize>,
    streams_per_address: Option<usize>,
    streams_per_user: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Additions {
    enabled: bool,
    hosts: Vec<String>,
}

impl Console {
    pub(super) fn run(self, global: &Global) -> Result<(), Error> {
        let console = self.settings(global)?;
        logs::start(global.log_format, global.no_color, "info");
        block_on(serve(console))
    }

    fn settings(self, global: &Global) -> Result<api::Console, Error> {
        let file = match &self.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let mut registries = named_urls("registries", &file.registries)?;
        registries.extend(self.registry.iter().map(|given| parse_named(given)));
        if registries.is_empty() {
            let mut global = global.clone();
            global.load_registry()?;
            registries.push(("default".to_owned(), global.registry(None)));
        }
        let mut histories = named_urls("histories", &file.histories)?;
        for given in &self.history {
            let (name, url) = parse_named(given);
            // A single registry needs no name here, either.
            let name = match registries.as_slice() {
                [(only, _)] if name == "default" => only.clone(),
                _ => name,
            };
            histories.retain(|(known, _)| *known != name);
            histories.push((name, url));
        }
        let listen = match (self.listen, &file.listen) {
            (Some(listen), _) => listen,
            (None, Some(text)) => {
                address(text).map_err(|error| Error::bad_input(format!("listen: {error}")))?
            }
            (None, None) => address(DEFAULT_LISTEN).map_err(Error::bad_input)?,
        };
        Ok(api::Console {
            registries,
            histories,
            listen,
            data_dir: Some(
                self.data.or(file.data).unwrap_or_else(|| PathBuf::from("elasticjob-console")),
            ),
            hosts: file.hosts,
            proxies: TrustedProxies::new(&file.trusted_proxies)
                .map_err(|problem| Error::bad_input(problem.at("trustedProxies")))?,
            is_https: file.behind_https,
            tls: file.tls.map(|TlsFiles { cert, key }| TlsIdentity { cert, key }),
            session_idle: file
                .session_idle_minutes
                .map_or(SESSION_IDLE, |minutes| Duration::from_secs(minutes.saturating_mul(60))),
            limits: file.limits.into(),
            registry_additions: file.add_registries.into(),
            history_additions: file.add_histories.into(),
            oidc: file.oidc.map(OidcSettings::try_from).transpose()?,
            first_account: FirstAccount::Generated,
            max_shards: global.max_shards,
        })
    }
}

impl From<LimitsTable> for Limits {
    fn from(given: LimitsTable) -> Self {
        let usual = given.connections.map_or_else(Self::default, Self::of);
        Self {
            connections: usual.connections,
            connections_per_address: given
                .connections_per_address
                .unwrap_or(usual.connections_per_address),
            streams: given.streams.unwrap_or(usual.streams),
            streams_per_address: given.streams_per_address.unwrap_or(usual.streams_per_address),
            streams_per_user: given.streams_per_user.unwrap_or(usual.streams_per_user),
        }
    }
}

impl From<Additions> for AdditionPolicy {
    fn from(Additions { enabled, hosts }: Additions) -> Self {
        Self { is_enabled: enabled, allowed_hosts: hosts }
    }
}

/// Names and URLs of a table of the configuration file.
fn named_urls(table: &str, entries: &toml::Table) -> Result<Vec<(String, String)>, Error> {
    let text = |(name, url): (&String, &toml::Value)| match url.as_str() {
        Some(url) => Ok((name.clone(), url.to_owned())),
        None => Err(Error::bad_input(format!("{table}.{name} is not a string"))
            .with_hint(format!("{name} = \"a URL\""))),
    };
    entries.iter().map(text).collect()
}

fn read(path: &PathBuf) -> Result<File, Error> {
    let read_error =
        |error: String| Error::bad_input(format!("cannot read {}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| read_error(error.to_string()))?;
    parse(path, &text)
}

/// An error names file and line. It does not quote the line, as the parser's own text does: it may be a secret.
fn parse(path: &Path, text: &str) -> Result<File, Error> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
        let message = without_value(error.message());
        Error::bad_input(format!("{}:{line}: {message}", path.display()))
    })
}

/// serde repeats a text that it did not expect, which may be a URL with a password.
fn without_value(message: &str) -> String {
    match (message.split_once(": string \""), message.rsplit_once(", expected ")) {
        (Some((what, _)), Some((_, expected))) => format!("{what}: a string, expected {expected}"),
        _ => message.to_owned(),
    }
}

/// Parses `NAME=URL`, or a URL alone.
fn parse_named(given: &str) -> (String, String) {
    match given.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => (name.to_owned(), url.to_owned()),
        _ => ("default".to_owned(), given.to_owned()),
    }
}

async fn serve(mut console: api::Console) -> Result<(), Error> {
    let mut stop = StopSignals::new()?;
    let wanted = console.limits;
    console.limits = wanted.fit_into(file_limit::raise_to(wanted.files()));
    if console.limits != wanted {
        let files = wanted.files();
        let (connections, wanted) = (console.limits.connections, wanted.connections);
        output::print_message(&format!(
            "note: it serves {connections} connections at a time instead of {wanted}, because it may not open as many files; start it with `ulimit -n {files}` (systemd: LimitNOFILE={files})",
        ));
    }
    let folder = console.data_dir.clone();
    let is_https = console.is_https || console.tls.is_some();
    let server = console.listen().await?;
    if let Some(folder) = folder {
        output::print_message(&format!(
            "data      {}  (accounts, what was added, audit)",
            folder.display()
        ));
    }
    if let Some(password) = &server.password {
        output::print_message(&format!(
            "account   admin / {password}  (told this once: change it after you logged in)"
        ));
    }
    if !server.address.ip().is_loopback() && !is_https {
        output::print_message(
            "note: it can be reached from elsewhere, and passwords travel in clear text; [tls] in the configuration file has it speak HTTPS, or put something in front of it that does",
        );
    }
    output::print_message(&format!("console   {}", server.url()));
    let detached_changes = server.detached_changes.clone();
    tokio::select! {
        () = server.serve() => {}
        () = stop.next() => output::print_message("stopping"),
    }
    detached_changes.finish(CHANGES_TIMEOUT).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn registry_argument_may_have_a_name_and_an_equals_sign_in_its_url() {
        let url = "zookeeper://zk1/shop?sessionTimeout=30s";

        assert_eq!(parse_named(&format!("prod={url}")), ("prod".to_owned(), url.to_owned()));
        assert_eq!(parse_named(url), ("default".to_owned(), url.to_owned()));
    }

    #[test]
    fn configuration_error_names_file_and_line_and_no_secret() {
        for (text, problem) in [
            ("hosts = []\nlisten 8899\n", "console.toml:2: "),
            ("[oidc]\nissuer = 'https://a'\nclientSecret = 'hunter2' x\n", "console.toml:3: "),
            ("[oidc]\nissuer = 'https://a'\nclientSecret = 7\n", "console.toml:3: "),
            ("hosts = []\n[tls]\ncert = 'a'\nkeys = 'b'\n", "console.toml:4: unknown field"),
            (
                "registries = 'zookeeper://jane:hunter2@zk1/shop'\n",
                "console.toml:1: invalid type: a string, expected",
            ),
        ] {
            let error = parse(Path::new("console.toml"), text).unwrap_err();

            assert_eq!(error.code, Code::BadInput);
            assert!(error.line().starts_with(problem), "{error:?}");
            assert!(!error.line().contains("hunter2"), "{error:?}");
        }
    }
}

/// The words of the configuration file, frozen: `tests/golden/README.md` says why.
#[cfg(test)]
mod golden {
    use testbed::golden_input;

    use super::*;

    fn table(text: &str) -> toml::Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn configuration_file_is_read_by_the_same_words() {
        let file: File = toml::from_str(&golden_input!("console.toml")).unwrap();

        let File {
            listen,
            data,
            hosts,
            trusted_proxies,
            behind_https,
            tls,
            session_idle_minutes,
            limits,
            registries,
            add_registries,
            histories,
            add_histories,
            oidc,
        } = file;

        assert_eq!(listen.as_deref(), Some("0.0.0.0:8899"));
        assert_eq!(data, Some("/var/lib/elasticjob-console".into()));
        assert_eq!(hosts, ["jobs.example.com"]);
        assert_eq!(trusted_proxies, ["10.0.0.0/8"]);
        assert!(behind_https && oidc.is_some());
        let TlsFiles { cert, key } = tls.unwrap();
        assert_eq!((cert, key), ("/tls/cert.pem".into(), "/tls/key.pem".into()));
        assert_eq!(session_idle_minutes, Some(30));
        let LimitsTable {
            connections,
            connections_per_address,
            streams,
            streams_per_address,
            streams_per_user,
        } = limits;
        assert_eq!((connections, connections_per_address), (Some(2_000), Some(400)));
        let streams = (streams, streams_per_address, streams_per_user);
        assert_eq!(streams, (Some(1_000), Some(200), Some(30)));
        assert_eq!(registries, table("shop = 'zookeeper://zk1:2181/shop'"));
        assert_eq!(histories, table("shop = 'postgres://db1/jobs'"));
        for (Additions { enabled, hosts }, host) in
            [(add_registries, "zk2"), (add_histories, "db2")]
        {
            assert!(enabled && hosts == [host]);
        }
    }
}
