//! Secrets by reference: `secret:NAME` in a configuration stands for the content of a file that only this machine has.
//!
//! A reference is resolved when it is used, for one request or one alert. What it stands for is never stored, and messages name the reference
//! instead. Two things are decided before a file is read:
//!
//! * **Whether the job may use it there.** Everyone who can write to the registry can write a reference into a job; without a check they could have any
//!   secret sent to a host of their own. The program decides ([`Secrets::new`]), from the job's configuration and the target.
//! * **Where it would go.** A reference is a part of a URL, or all of it, and never its host: the target is known without the secret.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::failure::Failure;
use crate::{
    job::{Alert, Email, Job, SecretRef},
    problem::Problem,
};

#[cfg(feature = "http")]
use crate::job::{Dingtalk, Webhook, keys};

/// Largest secret.
const MAX_BYTES: u64 = 64 * 1024;

/// References in one text.
const MAX_REFERENCES: usize = 16;

/// A part of a URL: everything but the characters that never have a meaning there.
const URL_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The secrets that jobs may refer to: a folder with one file for each. Without a folder, a job with a reference fails.
///
/// ```no_run
/// use elasticjob::{Node, execution::Secrets};
///
/// // Only requests to the shop may use secrets, whatever the registry says.
/// let secrets = Secrets::new("/etc/shop/secrets", |_, secret| secret.origin == Some("https://shop.example"))?;
/// let node = Node::join("zookeeper://127.0.0.1:2181/shop").secrets(secrets);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<SecretFolder>>);

struct SecretFolder {
    /// Canonical.
    path: PathBuf,
    may_use: Box<MayUse>,
}

type MayUse = dyn Fn(&Job, &SecretUse<'_>) -> bool + Send + Sync;

/// What a job wants a secret for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretUse<'a> {
    pub name: &'a str,
    /// The property that refers to it: `http.uri`, `email.password`.
    pub key: &'a str,
    /// Where it would be sent: `https://shop.example`, `smtps://mail.example:465`. `None` before a secret is read that is a whole URL; then the check
    /// is made again with its origin.
    pub origin: Option<&'a str>,
}

/// A text in which references are replaced.
pub(crate) struct Resolved<T> {
    pub(crate) value: T,
    pub(crate) hidden: Hidden,
}

/// Secrets that were used, and must not get into a message.
#[derive(Clone, Default)]
pub(crate) struct Hidden(Vec<HiddenSecret>);

#[derive(Clone)]
struct HiddenSecret {
    reference: String,
    value: String,
    /// As in a URL, and as in JSON.
    encoded: [String; 2],
}

impl Secrets {
    /// The secrets in this folder. `may_use` decides for each reference whether the job, with its configuration at that time, may send the secret
    /// there.
    pub fn new(
        folder: impl AsRef<Path>,
        may_use: impl Fn(&Job, &SecretUse<'_>) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let path = folder.as_ref().canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Self(Some(Arc::new(SecretFolder { path, may_use: Box::new(may_use) }))))
    }

    /// Replaces the references in a text that is sent to `origin`.
    pub(crate) fn text(
        &self,
        job: &Job,
        key: &str,
        text: &str,
        origin: &str,
    ) -> Result<Resolved<String>, Failure> {
        check_number(key, text)?;
        let mut hidden = Hidden::default();
        let value = SecretRef::replace_all(text, |reference| {
            let secret = SecretUse { name: reference.name(), key, origin: Some(origin) };
            Ok::<_, Failure>(hidden.add(reference, self.read(job, &secret)?))
        })?;
        Ok(Resolved { value, hidden })
    }

    /// Replaces the references in a URL. In a part of it the secret is encoded, so that it cannot change the rest.
    #[cfg(feature = "http")]
    pub(crate) fn url(
        &self,
        job: &Job,
        key: &str,
        text: &str,
    ) -> Result<Resolved<String>, Failure> {
        check_number(key, text)?;
        let mut hidden = Hidden::default();
        if let Some(reference) = SecretRef::find_all(text).next()
            && reference.to_string() == text.trim()
        {
            let mut secret = SecretUse { name: reference.name(), key, origin: None };
            let value = self.read(job, &secret)?;
            let origin = origin(&value);
            secret.origin = Some(origin.as_deref().unwrap_or_default());
            self.check(job, &secret)?;
            if origin.is_none() {
                return Err(Failure::new(format_args!(
                    "{key}: {reference} is not an http or https URL"
                )));
            }
            let value = hidden.add(reference, value);
            return Ok(Resolved { value, hidden });
        }
        if SecretRef::find_all(text).next().is_none() {
            return Ok(Resolved { value: text.to_owned(), hidden });
        }
        let Some(origin) = origin_without_references(text) else {
            let problem = format!("{key}: not an http or https URL, or one whose host is a secret");
            let hint = "refer to a secret in the user, the path or the query, or store the whole URL as a secret";
            return Err(Failure::new(Problem::new(problem).with_hint(hint)).permanent());
        };
        let value = SecretRef::replace_all(text, |reference| {
            let secret = SecretUse { name: reference.name(), key, origin: Some(&origin) };
            let value = hidden.add(reference, self.read(job, &secret)?);
            Ok::<_, Failure>(utf8_percent_encode(&value, URL_PART).to_string())
        })?;
        Ok(Resolved { value, hidden })
    }

    /// Replaces the references of an alert: in its URL, its password and its key.
    pub(crate) fn alert(&self, job: &Job, alert: Alert) -> Result<Resolved<Alert>, Failure> {
        let mut hidden = Hidden::default();
        let value = match alert {
            Alert::Email(mut email) => {
                let origin = mail_origin(&email);
                let username = self.text(job, "email.username", &email.username, &origin)?;
                let password = self.text(job, "email.password", &email.password, &origin)?;
                email.username = hidden.keep(username);
                email.password = hidden.keep(password);
                Alert::Email(email)
            }
            #[cfg(feature = "http")]
            Alert::Wechat(webhook) => {
                Alert::Wechat(self.webhook(job, "wechat.webhook", webhook, &mut hidden)?)
            }
            #[cfg(feature = "http")]
            Alert::Webhook(webhook) => {
                Alert::Webhook(self.webhook(job, keys::WEBHOOK_URL, webhook, &mut hidden)?)
            }
            #[cfg(feature = "http")]
            Alert::Dingtalk(Dingtalk { webhook, keyword, secret }) => {
                let webhook = self.webhook(job, "dingtalk.webhook", webhook, &mut hidden)?;
                let origin = origin(&webhook.url).unwrap_or_default();
                let secret = match secret {
                    Some(text) => {
                        Some(hidden.keep(self.text(job, "dingtalk.secret", &text, &origin)?))
                    }
                    None => None,
                };
                Alert::Dingtalk(Dingtalk { webhook, keyword, secret })
            }
            alert => alert,
        };
        Ok(Resolved { value, hidden })
    }

    #[cfg(feature = "http")]
    fn webhook(
        &self,
        job: &Job,
        key: &str,
        mut webhook: Webhook,
        hidden: &mut Hidden,
    ) -> Result<Webhook, Failure> {
        webhook.url = hidden.keep(self.url(job, key, &webhook.url)?);
        Ok(webhook)
    }

    fn read(&self, job: &Job, secret: &SecretUse<'_>) -> Result<String, Failure> {
        self.check(job, secret)?;
        let (name, key) = (secret.name, secret.key);
        let Some(folder) = &self.0 else {
            let problem = format!("{key}: this worker has no folder for secret:{name}");
            let hint = "--secrets-dir DIR names it; a program calls Node::secrets";
            return Err(Failure::new(Problem::new(problem).with_hint(hint)));
        };
        let path = folder.path.display();
        folder.read(name).map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::NotFound => format!("{key}: there is no secret:{name} in {path}"),
                _ => format!("{key}: secret:{name} in {path} cannot be used: {error}"),
            };
            let hint = format!("a file {name} in that folder, readable for this worker");
            Failure::new(Problem::new(problem).with_hint(hint))
        })
    }

    fn check(&self, job: &Job, secret: &SecretUse<'_>) -> Result<(), Failure> {
        let Some(folder) = &self.0 else { return Ok(()) };
        if (folder.may_use)(job, secret) {
            return Ok(());
        }
        let SecretUse { name, key, origin } = secret;
        let target = match origin {
            Some(origin) if !origin.is_empty() => format!(" sent to {origin}"),
            _ => " used".to_owned(),
        };
        let problem = format!("{key}: secret:{name} may not be{target} by this job");
        let hint = "--secrets-for NAME=ORIGIN allows it to jobs of the registry; a job file may use every secret, as long as the registry does not change the request";
        Err(Failure::new(Problem::new(problem).with_hint(hint)).permanent())
    }
}

/// Everyone who can write to the registry chooses how many references a text has, and each reads a file.
fn check_number(key: &str, text: &str) -> Result<(), Failure> {
    if SecretRef::find_all(text).nth(MAX_REFERENCES).is_none() {
        return Ok(());
    }
    let problem = format!("{key}: a text has at most {MAX_REFERENCES} references to secrets");
    Err(Failure::new(problem).permanent())
}

impl SecretFolder {
    /// Reads a secret. Without the line feed that editors add at the end.
    fn read(&self, name: &str) -> io::Result<String> {
        let refused = |problem| Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        // Kubernetes mounts secrets as links within the folder.
        let path = self.path.join(name).canonicalize()?;
        if !path.starts_with(&self.path) {
            return refused("it is a link to another folder");
        }
        if !path.metadata()?.is_file() {
            return refused("it is not a file");
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return refused("it has more than 64 KiB");
        }
        let Ok(text) = String::from_utf8(bytes) else { return refused("it is not UTF-8") };
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() { refused("it is empty") } else { Ok(line.to_owned()) }
    }
}

impl Hidden {
    fn add(&mut self, reference: SecretRef<'_>, value: String) -> String {
        let json = serde_json::Value::from(value.as_str()).to_string();
        let unquoted = json.get(1..json.len() - 1).unwrap_or_default().to_owned();
        let encoded = [utf8_percent_encode(&value, URL_PART).to_string(), unquoted];
        let reference = reference.to_string();
        self.0.push(HiddenSecret { reference, value: value.clone(), encoded });
        value
    }

    /// Hides the secrets of another text as well, and returns the text.
    pub(crate) fn keep<T>(&mut self, resolved: Resolved<T>) -> T {
        self.0.extend(resolved.hidden.0);
        resolved.value
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(feature = "http")]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A message with every secret replaced by its reference: a server may repeat what it was sent.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let forms = secret.encoded.iter().chain([&secret.value]);
            forms.fold(text, |text, form| text.replace(form, &secret.reference))
        })
    }
}

/// The origin of an http or https URL.
#[cfg(feature = "http")]
fn origin(url: &str) -> Option<String> {
    let url: reqwest::Url = url.parse().ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

/// The origin of a URL with references, if it does not depend on what they stand for.
#[cfg(feature = "http")]
fn origin_without_references(text: &str) -> Option<String> {
    let with = |part: &str| {
        let replaced = SecretRef::replace_all(text, |_| Ok::<_, ()>(part.to_owned()));
        replaced.ok().and_then(|url| origin(&url))
    };
    // A digit could be a port, a letter a name: with both the target has to be the same.
    let found = with("1")?;
    (with("2").as_ref() == Some(&found) && with("x").as_ref() == Some(&found)).then_some(found)
}

/// Where a mail is sent. `smtps` only if the connection is encrypted for certain and the certificate of the server is verified.
fn mail_origin(email: &Email) -> String {
    let trusted = email.ssl_trust.as_deref().unwrap_or_default();
    let is_verified = trusted.trim().is_empty();
    let scheme = if email.use_ssl && is_verified { "smtps" } else { "smtp" };
    format!("{scheme}://{}:{}", email.host.to_ascii_lowercase(), email.port)
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.0.as_ref().map(|folder| &folder.path);
        f.debug_struct("Secrets").field("folder", &folder).finish_non_exhaustive()
    }
}
