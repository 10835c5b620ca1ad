//! URLs that may hold a password, from a file.
//!
//! Every user of a machine can see command lines, and a process shows its environment to every program of the same user. So a URL may be in a file: one
//! that a flag or a variable names, or a credential of systemd.

use std::{env, ffi::OsStr, fs, io, path::Path};

use crate::error::Error;

/// Where systemd puts the credentials of a service (`LoadCredential=`).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// The URL of the flag `--NAME`, else of the file of `--NAME-file`, else of the credential `elasticjob.NAME`. A flag includes its variable.
pub(super) fn url(
    name: &str,
    given: Option<&str>,
    file: Option<&OsStr>,
) -> Result<Option<String>, Error> {
    let given = given.filter(|url| !url.is_empty());
    match (given, file.filter(|file| !file.is_empty())) {
        (Some(_), Some(_)) => {
            let variable = name.to_uppercase();
            Err(Error::bad_input(format!("both --{name} and --{name}-file are set")).with_hint(
                format!("use one of them; ELASTICJOB_{variable} and ELASTICJOB_{variable}_FILE count, too"),
            ))
        }
        (Some(url), None) => Ok(Some(url.to_owned())),
        (None, Some(file)) => {
            let file = Path::new(file);
            let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
            one_line(file, &text).map(Some)
        }
        (None, None) => credential(name),
    }
}

fn credential(name: &str) -> Result<Option<String>, Error> {
    let Some(folder) = env::var_os(CREDENTIALS).filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let file = Path::new(&folder).join(format!("elasticjob.{name}"));
    match fs::read_to_string(&file) {
        Ok(text) => one_line(&file, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&file, &error)),
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    Error::bad_input(format!("cannot read {}: {error}", file.display()))
}

/// The only line of the file. Errors do not repeat it: it may hold a password.
fn one_line(file: &Path, text: &str) -> Result<String, Error> {
    let line = text.trim();
    if line.is_empty() || line.contains(['\r', '\n']) {
        let problem = if line.is_empty() { "is empty" } else { "has several lines" };
        return Err(Error::bad_input(format!("{} {problem}", file.display()))
            .with_hint("it has one line, the URL"));
    }
    Ok(line.to_owned())
}
