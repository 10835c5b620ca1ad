//! `elasticjob console`

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use elasticjob_console::{self as api, Adding, First, Identity, OidcFile, OidcSettings, Proxies};
use serde::Deserialize;

use super::{
    Global,
    run::{address, block_on},
};
use crate::{error::Error, logs, output, worker::Stop};

/// Where it listens if nobody says anything.
const LISTEN: &str = "127.0.0.1:8899";
/// After how long a session that is not used is over.
const IDLE: Duration = Duration::from_hours(1);
/// How long changes that are under way may take when it is to stop.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

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
    /// What else the console is called.
    hosts: Vec<String>,
    /// Proxies that are believed about where a request comes from: addresses and nets.
    trusted_proxies: Vec<String>,
    /// Whether browsers come by HTTPS, through a proxy.
    behind_https: bool,
    /// Speaks HTTPS itself.
    tls: Option<TlsFiles>,
    session_idle_minutes: Option<u64>,
    registries: toml::Table,
    add_registries: Additions,
    histories: toml::Table,
    add_histories: Additions,
    /// Where else somebody may log in.
    oidc: Option<OidcFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsFiles {
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Additions {
    enabled: bool,
    hosts: Vec<String>,
}

impl Console {
    pub(super) fn run(self, global: &Global) -> Result<(), Error> {
        let console = self.described(global)?;
        logs::start(global.log_format, global.no_color, "info");
        block_on(serve(console))
    }

    fn described(self, global: &Global) -> Result<api::Console, Error> {
        let file = match &self.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let mut registries = texts("registries", &file.registries)?;
        registries.extend(self.registry.iter().map(|given| named(given)));
        if registries.is_empty() {
            registries.push(("default".to_owned(), global.registry(None)));
        }
        let mut histories = texts("histories", &file.histories)?;
        for given in &self.history {
            let (name, url) = named(given);
            // The only one there is needs no name here, either.
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
            (None, None) => address(LISTEN).map_err(Error::bad_input)?,
        };
        Ok(api::Console {
            registries,
            histories,
            listen,
            data: Some(
                self.data.or(file.data).unwrap_or_else(|| PathBuf::from("elasticjob-console")),
            ),
            hosts: file.hosts,
            proxies: Proxies::new(&file.trusted_proxies)
                .map_err(|error| Error::bad_input(format!("trustedProxies: {error}")))?,
            is_secure: file.behind_https,
            identity: file.tls.map(|TlsFiles { cert, key }| Identity { cert, key }),
            idle: file
                .session_idle_minutes
                .map_or(IDLE, |minutes| Duration::from_secs(minutes.saturating_mul(60))),
            adding: file.add_registries.into(),
            adding_histories: file.add_histories.into(),
            oidc: file.oidc.map(OidcSettings::try_from).transpose()?,
            first: First::Generated,
        })
    }
}

impl From<Additions> for Adding {
    fn from(Additions { enabled, hosts }: Additions) -> Self {
        Self { is_on: enabled, hosts }
    }
}

/// Names and URLs of a table.
fn texts(table: &str, entries: &toml::Table) -> Result<Vec<(String, String)>, Error> {
    let text = |(name, url): (&String, &toml::Value)| match url.as_str() {
        Some(url) => Ok((name.clone(), url.to_owned())),
        None => {
            Err(Error::bad_input(format!("{table}.{name} is not text; hint: {name} = \"a URL\"")))
        }
    };
    entries.iter().map(text).collect()
}

fn read(path: &PathBuf) -> Result<File, Error> {
    let cannot =
        |error: String| Error::bad_input(format!("cannot read {}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    toml::from_str(&text).map_err(|error| cannot(error.to_string()))
}

/// `NAME=URL`, or a URL alone.
fn named(given: &str) -> (String, String) {
    match given.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => (name.to_owned(), url.to_owned()),
        _ => ("default".to_owned(), given.to_owned()),
    }
}

async fn serve(console: api::Console) -> Result<(), Error> {
    let mut stop = Stop::new()?;
    let folder = console.data.clone();
    let is_secure = console.is_secure || console.identity.is_some();
    let listening = console.listen().await?;
    if let Some(folder) = folder {
        output::say(&format!("data      {}  (accounts, what was added, audit)", folder.display()));
    }
    if let Some(password) = &listening.password {
        output::say(&format!(
            "account   admin / {password}  (told this once: change it after you logged in)"
        ));
    }
    if !listening.address.ip().is_loopback() && !is_secure {
        output::say(
            "note: it can be reached from elsewhere, and passwords travel in clear text; [tls] in the configuration file has it speak HTTPS, or put something in front of it that does",
        );
    }
    output::say(&format!("console   {}", listening.url()));
    let errands = listening.errands.clone();
    tokio::select! {
        () = listening.serve() => {}
        () = stop.asked() => output::say("stopping"),
    }
    errands.finish(ENDED_WITHIN).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_may_have_a_name_and_its_url_an_equals_sign() {
        let url = "zookeeper://zk1/shop?sessionTimeout=30s";

        assert_eq!(named(&format!("prod={url}")), ("prod".to_owned(), url.to_owned()));
        assert_eq!(named(url), ("default".to_owned(), url.to_owned()));
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
        assert_eq!(registries, table("shop = 'zookeeper://zk1:2181/shop'"));
        assert_eq!(histories, table("shop = 'postgres://db1/jobs'"));
        for (Additions { enabled, hosts }, host) in
            [(add_registries, "zk2"), (add_histories, "db2")]
        {
            assert!(enabled && hosts == [host]);
        }
    }
}
