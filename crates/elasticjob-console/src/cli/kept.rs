//! Where history is kept: the words of `run` and `dev`.

use std::path::PathBuf;

use elasticjob::history::{HistoryUrl, Recorder, Retention, default_path};

use crate::error::Error;

const HISTORY: &str = "Where history is kept: sqlite:FILE, postgres://…, mysql://…, or none [default: what the files say, else a file of this user's]";

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Kept {
    // The URL may hold a password, so the help does not show what the variable says.
    #[arg(long, value_name = "URL", env = "ELASTICJOB_HISTORY", hide_env_values = true, help = HISTORY)]
    history: Option<String>,
    /// Where history waits while its database is away; without, beside its file, or beside where this user's would be
    #[arg(long, value_name = "DIR", env = "ELASTICJOB_HISTORY_SPILL")]
    history_spill: Option<PathBuf>,
}

/// A history, and where it is kept, as it may be shown.
pub(super) struct History {
    pub(super) recorder: Recorder,
    pub(super) place: String,
}

impl Kept {
    /// What was said, else what a file says, else the usual place; nothing if nothing is wanted, or there is no such place.
    pub(super) fn url(&self, filed: Option<&str>) -> Option<String> {
        let given = self.history.as_deref().filter(|url| !url.is_empty());
        match given.or(filed) {
            Some("none") => None,
            Some(url) => Some(url.to_owned()),
            None => default_path().map(|path| format!("sqlite:{}", path.display())),
        }
    }

    /// How it is recorded.
    pub(super) fn history(&self, filed: Option<&str>) -> Result<Option<History>, Error> {
        let Some(url) = self.url(filed) else { return Ok(None) };
        let url: HistoryUrl =
            url.parse().map_err(|error| Error::bad_input(format!("--history: {error}")))?;
        let place = url.to_string();
        let mut recorder = Recorder::new();
        if let Some(folder) = self.history_spill.clone().or_else(|| spill(&url)) {
            recorder = recorder.spill(folder);
        }
        Ok(Some(History { recorder: recorder.database(url, Retention::default()), place }))
    }
}

/// Where events wait while the database is away: beside its file, or where this user's would be.
fn spill(url: &HistoryUrl) -> Option<PathBuf> {
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
    use super::*;

    fn said(history: Option<&str>) -> Kept {
        Kept { history: history.map(ToOwned::to_owned), history_spill: None }
    }

    #[test]
    fn what_is_said_counts_before_what_a_file_says() {
        let (said_so, filed) = ("sqlite:/tmp/a.db", "mysql://db/jobs");

        assert_eq!(said(Some(said_so)).url(Some(filed)).as_deref(), Some(said_so));
        assert_eq!(said(None).url(Some(filed)).as_deref(), Some(filed));
        assert_eq!(said(Some("")).url(Some(filed)).as_deref(), Some(filed));
        assert_eq!(said(Some("none")).url(Some(filed)), None);
        assert!(said(None).url(None).is_none_or(|url| url.ends_with("/elasticjob/history.db")));
    }

    #[test]
    fn a_wrong_url_is_told_without_its_password() {
        let error = said(Some("oracle://jane:hunter2@db/x")).history(None).err().unwrap();

        let told = format!("{error:?}");
        assert!(told.contains("--history") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn events_wait_beside_the_file() {
        let url: HistoryUrl = "sqlite:/tmp/x/history.db".parse().unwrap();

        assert_eq!(spill(&url), Some(PathBuf::from("/tmp/x/history.db.waiting")));
    }
}
