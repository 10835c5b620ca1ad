//! Where history is kept: `sqlite:PATH`, `postgres://…`, `mysql://…`.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

#[cfg(feature = "history-mysql")]
use sqlx::mysql::MySqlConnectOptions;
#[cfg(feature = "history-postgres")]
use sqlx::postgres::PgConnectOptions;
#[cfg(feature = "history-sqlite")]
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::{super::name::hash, error::StoreError};

const EXAMPLES: &str = "for example sqlite:/var/lib/elasticjob/history.db, postgres://user:password@host:5432/database \
     or mysql://user:password@host:3306/database";

/// Where history is kept. Never prints a password.
///
/// | | |
/// |---|---|
/// | `sqlite:history.db`, `sqlite:/var/lib/history.db`, `sqlite::memory:` | a file, which is made if it is not there; `%3F` is a question mark in its name |
/// | `postgres://user:password@host:5432/database`, `postgresql://…` | `?sslmode=verify-full&sslrootcert=/ca.pem`, and what else PostgreSQL's URLs have |
/// | `mysql://user:password@host:3306/database`, `mariadb://…` | `?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca.pem` |
///
/// ```
/// use elasticjob::history::HistoryUrl;
///
/// let url: HistoryUrl = "postgres://jane:secret@db/history?sslmode=require".parse()?;
/// assert_eq!(url.to_string(), "postgres://jane:***@db/history");
/// # Ok::<(), elasticjob::history::StoreError>(())
/// ```
#[derive(Clone)]
pub struct HistoryUrl {
    pub(super) options: Options,
    shown: String,
}

#[derive(Clone)]
pub(super) enum Options {
    #[cfg(feature = "history-sqlite")]
    Sqlite(Box<SqliteConnectOptions>),
    #[cfg(feature = "history-postgres")]
    Postgres(Box<PgConnectOptions>),
    #[cfg(feature = "history-mysql")]
    Mysql(Box<MySqlConnectOptions>),
}

impl HistoryUrl {
    /// A file of SQLite's.
    #[cfg(feature = "history-sqlite")]
    pub fn sqlite(path: impl AsRef<Path>) -> Self {
        let options = SqliteConnectOptions::new().filename(path.as_ref());
        Self { options: prepared(options), shown: format!("sqlite:{}", path.as_ref().display()) }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.options {
            #[cfg(feature = "history-sqlite")]
            Options::Sqlite(options) if self.shown != "sqlite::memory:" => {
                Some(options.get_filename())
            }
            _ => None,
        }
    }

    /// Which database it is, as a name for files: the same for everybody who means the same one, whoever they are and however they are let in.
    pub(in crate::history) fn key(&self) -> String {
        let place = match &self.options {
            #[cfg(feature = "history-sqlite")]
            Options::Sqlite(options) => {
                let file = options.get_filename();
                let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
                format!("sqlite {}", file.display())
            }
            #[cfg(feature = "history-postgres")]
            Options::Postgres(options) => format!(
                "postgres {} {} {:?} {} {:?}",
                options.get_host(),
                options.get_port(),
                options.get_socket(),
                options.get_database().unwrap_or(options.get_username()),
                options.get_options(),
            ),
            #[cfg(feature = "history-mysql")]
            Options::Mysql(options) => format!(
                "mysql {} {} {:?} {:?}",
                options.get_host(),
                options.get_port(),
                options.get_socket(),
                options.get_database(),
            ),
        };
        format!("{:016x}", hash(&place) as u64)
    }
}

/// What every file is opened with: others read while one writes, and whoever finds it busy waits a while.
#[cfg(feature = "history-sqlite")]
fn prepared(options: SqliteConnectOptions) -> Options {
    Options::Sqlite(Box::new(
        options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(std::time::Duration::from_secs(10)),
    ))
}

/// Where history is kept if nobody says anything: `/var/lib/elasticjob/history.db` for root, `$XDG_STATE_HOME/elasticjob/history.db` for
/// everybody else, where `$XDG_STATE_HOME` is `~/.local/state` unless it says something else.
///
/// Nothing for somebody who has no home.
pub fn default_path() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/elasticjob/history.db"));
    }
    let said = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = said("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| said("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("elasticjob").join("history.db"))
}

impl FromStr for HistoryUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(wrong("sqlite: without a file".to_owned()));
            }
            return sqlite(path);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            // The text is not repeated here: it may hold a password.
            return Err(wrong("no scheme; known are sqlite, postgres and mysql".to_owned()));
        };
        let shown = format!("{scheme}://{}", without_password(rest));
        match scheme {
            "postgres" | "postgresql" => postgres(rest, shown),
            "mysql" | "mariadb" => mysql(rest, shown),
            other => {
                let scheme = if other.contains('@') { "that scheme" } else { other };
                Err(wrong(format!("{scheme} is unknown; known are sqlite, postgres and mysql")))
            }
        }
    }
}

fn wrong(problem: String) -> StoreError {
    StoreError::Url { problem, hint: EXAMPLES.to_owned() }
}

#[cfg(feature = "history-sqlite")]
fn sqlite(path: &str) -> Result<HistoryUrl, StoreError> {
    let options = format!("sqlite:{path}").parse::<SqliteConnectOptions>();
    let options = options.map_err(|error| wrong(error.to_string()))?;
    Ok(HistoryUrl { options: prepared(options), shown: format!("sqlite:{path}") })
}

#[cfg(feature = "history-postgres")]
fn postgres(rest: &str, shown: String) -> Result<HistoryUrl, StoreError> {
    let options = format!("postgres://{rest}").parse::<PgConnectOptions>();
    let options = options.map_err(|error| wrong(format!("{shown}: {error}")))?;
    let options = Options::Postgres(Box::new(options.application_name("elasticjob")));
    Ok(HistoryUrl { options, shown })
}

#[cfg(feature = "history-mysql")]
fn mysql(rest: &str, shown: String) -> Result<HistoryUrl, StoreError> {
    let options = format!("mysql://{rest}").parse::<MySqlConnectOptions>();
    let options = options.map_err(|error| wrong(format!("{shown}: {error}")))?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(wrong(format!("{shown} names no database")));
    }
    Ok(HistoryUrl { options: Options::Mysql(Box::new(options)), shown })
}

#[cfg(not(feature = "history-sqlite"))]
fn sqlite(_: &str) -> Result<HistoryUrl, StoreError> {
    Err(not_built("sqlite"))
}

#[cfg(not(feature = "history-postgres"))]
fn postgres(_: &str, _: String) -> Result<HistoryUrl, StoreError> {
    Err(not_built("postgres"))
}

#[cfg(not(feature = "history-mysql"))]
fn mysql(_: &str, _: String) -> Result<HistoryUrl, StoreError> {
    Err(not_built("mysql"))
}

#[cfg(not(all(
    feature = "history-sqlite",
    feature = "history-postgres",
    feature = "history-mysql"
)))]
fn not_built(database: &str) -> StoreError {
    StoreError::Url {
        problem: format!("this program was built without {database}"),
        hint: format!("build it with the feature history-{database} of elasticjob"),
    }
}

/// `user:***@host/database`, without what follows: a parameter may be a secret, too.
fn without_password(rest: &str) -> String {
    // The last of all, as a password may have anything in it, also what begins the parameters elsewhere.
    let (credentials, place) =
        rest.rsplit_once('@').map_or((None, rest), |(before, after)| (Some(before), after));
    let place = place.split(['?', '#']).next().unwrap_or_default();
    match credentials.map(|credentials| credentials.split_once(':').ok_or(credentials)) {
        Some(Ok((user, _))) => format!("{user}:***@{place}"),
        Some(Err(user)) => format!("{}@{place}", user.split(['?', '#']).next().unwrap_or_default()),
        None => match place.split_once(':') {
            // No port: a password, of somebody who forgot the host.
            Some((host, port)) if !port.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("{host}:***")
            }
            _ => place.to_owned(),
        },
    }
}

impl fmt::Display for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://jane:hunter2@db:5432/history?password=hunter2",
            "mysql://jane:hunter2@db/history",
            "mariadb://jane:hunter2@db/history",
            "postgres://jane:a@hunter2?b@db/history",
            "postgres://jane@db/history?password=hunter2",
        ] {
            let url: HistoryUrl = text.parse().unwrap();

            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
        }
        for text in [
            "jane:hunter2@db/history",
            "jane:hunter2@db://x",
            "mysql://jane:hunter2@db",
            "postgres://jane:hunter2?more@db/history",
            "mysql://jane:hunter2#more@db/history",
            "mysql://jane:more/hunter2?more@db/history",
            "postgres://jane:hunter2",
        ] {
            let error = text.parse::<HistoryUrl>().unwrap_err().to_string();

            assert!(!error.contains("hunter2") && error.contains("hint: for example"), "{error}");
        }
    }

    #[test]
    fn a_database_has_one_key_whoever_asks_and_another_one_has_another() {
        let key = |text: &str| text.parse::<HistoryUrl>().unwrap().key();

        assert_eq!(
            key("postgres://jane:a@db/h"),
            key("postgresql://joe:b@db:5432/h?sslmode=require")
        );
        assert_eq!(key("mysql://jane:a@db/h"), key("mariadb://joe@db:3306/h"));
        assert_eq!(key("sqlite:/tmp/h.db"), key("sqlite:///tmp/h.db"));
        let all = [
            "postgres://db/h",
            "postgres://db/i",
            "postgres://other/h",
            "postgres://db:5433/h",
            "postgres://db/h?options=-csearch_path%3Dother",
            "mysql://db/h",
            "mysql://db/i",
            "sqlite:/tmp/h.db",
            "sqlite:/tmp/i.db",
        ];
        let keys: std::collections::BTreeSet<String> = all.into_iter().map(key).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn a_file_is_named_with_and_without_slashes() {
        for (text, path) in [
            ("sqlite:history.db", "history.db"),
            ("sqlite:/var/lib/history.db", "/var/lib/history.db"),
            ("sqlite:///var/lib/history.db", "/var/lib/history.db"),
        ] {
            let url: HistoryUrl = text.parse().unwrap();

            assert_eq!(url.file(), Some(Path::new(path)));
        }
        assert!("sqlite:".parse::<HistoryUrl>().is_err());
        assert_eq!("sqlite::memory:".parse::<HistoryUrl>().unwrap().file(), None);
    }
}
