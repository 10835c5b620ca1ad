//! The history options of `run` and `dev`.

use std::{ffi::OsString, num::NonZeroU32, path::PathBuf, time::Duration};

use elasticjob::{
    history::{HistoryUrl, Recorder, Retention, StoreError, default_path},
    problem::Problem,
};

use super::{default_history, history::parse_age, secret_file};
use crate::error::Error;

const HISTORY_HELP: &str = "History store: sqlite:FILE, postgres://…, mysql://…, or none [default: the one of the files, else a file in the user's state folder]";

const AGE_VARIABLE: &str = "ELASTICJOB_HISTORY_AGE";
const FAILURES_AGE_VARIABLE: &str = "ELASTICJOB_HISTORY_FAILURES_AGE";
const RUNS_VARIABLE: &str = "ELASTICJOB_HISTORY_RUNS";

#[derive(Debug, Clone, clap::Args)]
pub(super) struct HistoryArgs {
    // The URL may hold a password, so the help does not show the value of the variable.
    #[arg(long, value_name = "URL", env = "ELASTICJOB_HISTORY", hide_env_values = true, help = HISTORY_HELP)]
    history: Option<String>,
    /// File with the URL of the history store, which may hold a password
    #[arg(long, value_name = "FILE", env = "ELASTICJOB_HISTORY_FILE")]
    history_file: Option<OsString>,
    /// Folder for history while its database is unreachable [default: beside the SQLite file, or beside the default one]
    #[arg(long, value_name = "DIR", env = "ELASTICJOB_HISTORY_SPILL")]
    history_spill: Option<PathBuf>,
    /// Delete runs that started longer ago
    #[arg(long, value_name = "DURATION", env = AGE_VARIABLE, default_value = "30d", value_parser = parse_age)]
    history_age: Duration,
    /// Delete failed runs that started longer ago
    #[arg(long, value_name = "DURATION", env = FAILURES_AGE_VARIABLE, default_value = "90d", value_parser = parse_age)]
    history_failures_age: Duration,
    /// Number of runs to keep for each job, and number of failed ones
    #[arg(long, value_name = "COUNT", env = RUNS_VARIABLE, default_value = "1000")]
    history_runs: NonZeroU32,
}

/// A recorder and the URL of its store.
pub(super) struct HistoryTarget {
    pub(super) recorder: Recorder,
    /// Without password.
    pub(super) display_url: String,
}

impl HistoryArgs {
    /// The history URL of flag, environment or credential, else of a job file, else the default file of this registry. `None` if the URL is `none`, or
    /// if there is no home directory for a default file.
    pub(super) fn url(
        &self,
        file_url: Option<&str>,
        registry: Option<&str>,
    ) -> Result<Option<String>, Error> {
        let given =
            secret_file::url("history", self.history.as_deref(), self.history_file.as_deref())?;
        Ok(match given.as_deref().or(file_url) {
            Some("none") => None,
            Some(url) => Some(url.to_owned()),
            None => {
                default_history::file(registry).map(|path| format!("sqlite:{}", path.display()))
            }
        })
    }

    /// The recorder for this history; `None` if there is none.
    pub(super) fn history(
        &self,
        file_url: Option<&str>,
        registry: Option<&str>,
    ) -> Result<Option<HistoryTarget>, Error> {
        let Some(url) = self.url(file_url, registry)? else { return Ok(None) };
        let url: HistoryUrl = url
            .parse()
            .map_err(|error: StoreError| Error::bad_input(Problem::of(&error).at("--history")))?;
        let display_url = url.to_string();
        let mut recorder = Recorder::new();
        if let Some(folder) = self.history_spill.clone().or_else(|| default_spill_folder(&url)) {
            recorder = recorder.spill(folder);
        }
        Ok(Some(HistoryTarget { recorder: recorder.database(url, self.retention()), display_url }))
    }

    fn retention(&self) -> Retention {
        let mut retention = Retention::default();
        retention.age = self.history_age;
        retention.failures_age = self.history_failures_age;
        retention.runs_per_job = self.history_runs;
        retention
    }

    /// The retention as environment variables for a child process.
    pub(super) fn retention_env(&self) -> Vec<(&'static str, String)> {
        let seconds = |age: Duration| format!("{}s", age.as_secs());
        vec![
            (AGE_VARIABLE, seconds(self.history_age)),
            (FAILURES_AGE_VARIABLE, seconds(self.history_failures_age)),
            (RUNS_VARIABLE, self.history_runs.to_string()),
        ]
    }
}

/// Where events are spilled while the database is unreachable: beside the SQLite file, or beside the user's default one.
fn default_spill_folder(url: &HistoryUrl) -> Option<PathBuf> {
    match url.file() {
        Some(file) => {
            let mut folder = file.as_os_str().to_owned();
            folder.push(".waiting");
            Some(folder.into())
        }
        None => Some(default_path()?.with_file_name("history.waiting")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct TestArgs {
        #[command(flatten)]
        args: HistoryArgs,
    }

    fn parse_args(arguments: &[&str]) -> HistoryArgs {
        let arguments = ["run"].iter().chain(arguments);
        TestArgs::try_parse_from(arguments).unwrap().args
    }

    fn with_history(history: Option<&str>) -> HistoryArgs {
        HistoryArgs { history: history.map(ToOwned::to_owned), ..parse_args(&[]) }
    }

    #[test]
    fn retention_flags_are_parsed_and_passed_to_a_child() {
        let args = parse_args(&[
            "--history-age",
            "12h",
            "--history-failures-age",
            "7d",
            "--history-runs",
            "50",
        ]);

        let retention = args.retention();
        assert_eq!(retention.age, Duration::from_hours(12));
        assert_eq!(retention.failures_age, Duration::from_hours(7 * 24));
        assert_eq!(retention.runs_per_job.get(), 50);
        assert_eq!(parse_args(&[]).retention(), Retention::default());
        for (name, value) in args.retention_env() {
            let flag = name.replace("ELASTICJOB_", "--").to_lowercase().replace('_', "-");
            assert!(parse_args(&[&flag, &value]).retention_env().contains(&(name, value)));
        }
        assert!(TestArgs::try_parse_from(["run", "--history-runs", "0"]).is_err());
        assert!(TestArgs::try_parse_from(["run", "--history-age", "soon"]).is_err());
    }

    #[test]
    fn flag_precedes_the_file_and_none_disables_history() {
        let (flag_url, file_url) = ("sqlite:/tmp/a.db", "mysql://db/jobs");

        let url =
            |history: Option<&str>, file_url| with_history(history).url(file_url, None).unwrap();
        assert_eq!(url(Some(flag_url), Some(file_url)).as_deref(), Some(flag_url));
        assert_eq!(url(None, Some(file_url)).as_deref(), Some(file_url));
        assert_eq!(url(Some(""), Some(file_url)).as_deref(), Some(file_url));
        assert_eq!(url(Some("none"), Some(file_url)), None);
        assert!(url(None, None).is_none_or(|url| url.ends_with("/elasticjob/history.db")));
    }

    #[test]
    fn invalid_url_is_reported_without_its_password() {
        let error =
            with_history(Some("oracle://jane:hunter2@db/x")).history(None, None).err().unwrap();

        let text = format!("{error:?}");
        assert!(text.contains("--history") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn default_spill_folder_is_beside_the_file() {
        let url: HistoryUrl = "sqlite:/tmp/x/history.db".parse().unwrap();

        assert_eq!(default_spill_folder(&url), Some(PathBuf::from("/tmp/x/history.db.waiting")));
    }
}
