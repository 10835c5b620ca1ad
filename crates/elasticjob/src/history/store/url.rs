//! URLs of history databases: `sqlite:PATH`, `postgres://…`, `mysql://…`.

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

use super::{super::stable_hash::stable_hash, error::StoreError};

const EXAMPLES: &str = "for example sqlite:/var/lib/elasticjob/history.db, postgres://user:password@host:5432/database \
     or mysql://user:password@host:3306/database";

/// The URL of a history database. Never prints a password.
///
/// | | |
/// |---|---|
/// | `sqlite:history.db`, `sqlite:/var/lib/history.db`, `sqlite::memory:` | a file, which is created if missing; `%3F` is a question mark in its name |
/// | `postgres://user:password@host:5432/database`, `postgresql://…` | `?sslmode=verify-full&sslrootcert=/ca.pem`, and other parameters of PostgreSQL URLs |
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
    display: String,
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
    /// An SQLite file.
    #[cfg(feature = "history-sqlite")]
    pub fn sqlite(path: impl AsRef<Path>) -> Self {
        let options = SqliteConnectOptions::new().filename(path.as_ref());
        Self {
            options: with_defaults(options),
            display: format!("sqlite:{}", path.as_ref().display()),
        }
    }

    /// The path of an SQLite file; `None` for other databases.
    pub fn file(&self) -> Option<&Path> {
        match &self.options {
            #[cfg(feature = "history-sqlite")]
            Options::Sqlite(options) if self.display != "sqlite::memory:" => {
                Some(options.get_filename())
            }
            _ => None,
        }
    }

    /// A key for file names that identifies the database: the same for every user, password and TLS setting.
    pub(in crate::history) fn key(&self) -> String {
        let location = match &self.options {
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
        format!("{:016x}", stable_hash(&location) as u64)
    }
}

/// Options for all SQLite files: readers do not block the writer, and a busy database is waited for.
#[cfg(feature = "history-sqlite")]
fn with_defaults(options: SqliteConnectOptions) -> Options {
    Options::Sqlite(Box::new(
        options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(std::time::Duration::from_secs(10)),
    ))
}

/// The default SQLite file: `/var/lib/elasticjob/history.db` for root, `$XDG_STATE_HOME/elasticjob/history.db` for other users, where
/// `$XDG_STATE_HOME` defaults to `~/.local/state`.
///
/// `None` for a user without a home directory.
pub fn default_path() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/elasticjob/history.db"));
    }
    let env_path =
        |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = env_path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| env_path("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("elasticjob").join("history.db"))
}

impl FromStr for HistoryUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(invalid("sqlite: needs a file".to_owned()));
            }
            return sqlite(path);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            // The message does not repeat the text: it may contain a password.
            return Err(invalid("no scheme; known are sqlite, postgres and mysql".to_owned()));
        };
        let display = format!("{scheme}://{}", without_password(rest));
        match scheme {
            "postgres" | "postgresql" => postgres(rest, display),
            "mysql" | "mariadb" => mysql(rest, display),
            other => {
                // Other text may hold a password.
                let is_scheme =
                    other.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
                let scheme = if is_scheme { other } else { "that scheme" };
                Err(invalid(format!("{scheme} is unknown; known are sqlite, postgres and mysql")))
            }
        }
    }
}

fn invalid(problem: String) -> StoreError {
    StoreError::Url { problem, hint: EXAMPLES.to_owned() }
}

#[cfg(feature = "history-sqlite")]
fn sqlite(path: &str) -> Result<HistoryUrl, StoreError> {
    let options = format!("sqlite:{path}").parse::<SqliteConnectOptions>();
    let options = options.map_err(|error| invalid(error.to_string()))?;
    Ok(HistoryUrl { options: with_defaults(options), display: format!("sqlite:{path}") })
}

#[cfg(feature = "history-postgres")]
fn postgres(rest: &str, display: String) -> Result<HistoryUrl, StoreError> {
    let options = format!("postgres://{rest}").parse::<PgConnectOptions>();
    let options = options.map_err(|error| invalid(format!("{display}: {error}")))?;
    let options = Options::Postgres(Box::new(options.application_name("elasticjob")));
    Ok(HistoryUrl { options, display })
}

#[cfg(feature = "history-mysql")]
fn mysql(rest: &str, display: String) -> Result<HistoryUrl, StoreError> {
    let options = format!("mysql://{rest}").parse::<MySqlConnectOptions>();
    let options = options.map_err(|error| invalid(format!("{display}: {error}")))?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(invalid(format!("{display} has no database")));
    }
    Ok(HistoryUrl { options: Options::Mysql(Box::new(options)), display })
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

/// `user:***@host/database`, without parameters, which may be secrets, too.
fn without_password(rest: &str) -> String {
    // Split at the last `@`, because a password may contain any character, even `?`.
    let (credentials, location) =
        rest.rsplit_once('@').map_or((None, rest), |(before, after)| (Some(before), after));
    let location = location.split(['?', '#']).next().unwrap_or_default();
    match credentials.map(|credentials| credentials.split_once(':').ok_or(credentials)) {
        Some(Ok((user, _))) => format!("{user}:***@{location}"),
        Some(Err(user)) => {
            format!("{}@{location}", user.split(['?', '#']).next().unwrap_or_default())
        }
        None => match location.split_once(':') {
            // Not a port: the host was forgotten, and this is a password.
            Some((host, port)) if !port.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("{host}:***")
            }
            _ => location.to_owned(),
        },
    }
}

impl fmt::Display for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display)
    }
}

impl fmt::Debug for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn password_is_never_shown() {
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
            "jane:hunter2://x",
            "mysql://jane:hunter2@db",
            "postgres://jane:hunter2?more@db/history",
            "mysql://jane:hunter2#more@db/history",
            "mysql://jane:more/hunter2?more@db/history",
            "postgres://jane:hunter2",
        ] {
            let error = Problem::of(&text.parse::<HistoryUrl>().unwrap_err()).to_string();

            assert!(!error.contains("hunter2") && error.contains("hint: for example"), "{error}");
        }
    }

    #[test]
    fn key_depends_on_the_database_only() {
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
    fn sqlite_url_accepts_paths_with_and_without_slashes() {
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
