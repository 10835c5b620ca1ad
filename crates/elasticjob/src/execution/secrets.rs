//! Secrets by reference: `secret:NAME` in a configuration stands for the content of a file that only this machine has.
//!
//! A reference is resolved when it is used, for one request or one alert. What it stands for is never stored, and messages name the reference
//! instead. Two things are decided before a file is read:
//!
//! * **Whether the job may use it there.** Everyone who can write to the registry can write a reference into a job; without a check they could have any
//!   secret sent to a host of their own. The program decides ([`Secrets::new`]), from the job's configuration and the target.
//! * **Where it would go.** A reference is a part of a URL and never its host: the target is known without the secret, and a host that may not be
//!   reached is refused before a file is read. Only if a reference is all of a URL, the target is known, and checked, after that; messages do not
//!   name it.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

#[cfg(feature = "http")]
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    failure::Failure,
    outbound::{Outbound, Refusal},
};
use crate::{
    job::{Alert, Email, Job, SecretRef},
    problem::Problem,
};

#[cfg(feature = "http")]
use super::http_client;
#[cfg(feature = "http")]
use crate::job::{Dingtalk, Webhook, keys};
#[cfg(feature = "http")]
use percent_encoding::percent_decode_str;

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
    /// The secret, and as it is written in a URL, in JSON and in headers. The longest first, so that none is left in part.
    forms: Vec<String>,
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
            // Its target is a part of the secret.
            if !self.may_use(job, &secret) {
                return Err(refused(
                    key,
                    format_args!("{reference} may not be sent where it leads"),
                ));
            }
            let Some(origin) = origin else {
                return Err(Failure::new(format_args!(
                    "{key}: {reference} is not an http or https URL"
                )));
            };
            let value = hidden.add(reference, value);
            hidden.add_target(&origin);
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
        hidden.add_basic_authentication(&value);
        Ok(Resolved { value, hidden })
    }

    /// Checks that the target of an alert may be reached, as far as it is known without its secrets.
    pub(super) fn check_target(alert: &Alert, outbound: &Outbound) -> Result<(), Refusal> {
        match alert {
            Alert::Email(email) => outbound.check(&email.host, email.port),
            #[cfg(feature = "http")]
            Alert::Wechat(webhook)
            | Alert::Webhook(webhook)
            | Alert::Dingtalk(Dingtalk { webhook, .. }) => {
                let target = origin_without_references(&webhook.url);
                match target.and_then(|origin| origin.parse::<reqwest::Url>().ok()) {
                    Some(url) => http_client::check(outbound, &url),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
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
        folder.read(name).map_err(|error| {
            // The failure is recorded, and shown to people who have no business with the folders of this machine.
            let path = folder.path.display();
            tracing::error!(job = %job.name, secret = name, folder = %path, %error, "cannot read secret");
            let problem = match error.kind() {
                io::ErrorKind::NotFound => format!("{key}: this worker has no secret:{name}"),
                _ => format!("{key}: secret:{name} cannot be used: {error}"),
            };
            let hint = format!("a file {name}, readable for the worker, in its folder of secrets");
            Failure::new(Problem::new(problem).with_hint(hint))
        })
    }

    fn check(&self, job: &Job, secret: &SecretUse<'_>) -> Result<(), Failure> {
        if self.may_use(job, secret) {
            return Ok(());
        }
        let SecretUse { name, key, origin } = secret;
        Err(match origin {
            Some(origin) if !origin.is_empty() => {
                refused(key, format_args!("secret:{name} may not be sent to {origin}"))
            }
            _ => refused(key, format_args!("secret:{name} may not be used")),
        })
    }

    fn may_use(&self, job: &Job, secret: &SecretUse<'_>) -> bool {
        self.0.as_ref().is_none_or(|folder| (folder.may_use)(job, secret))
    }
}

fn refused(key: &str, problem: fmt::Arguments<'_>) -> Failure {
    let hint = "--secrets-for NAME=ORIGIN allows it to jobs of the registry; a job file may use every secret, as long as the registry does not change the request";
    let problem = Problem::new(format!("{key}: {problem} by this job"));
    Failure::new(problem.with_hint(hint)).permanent()
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
        let in_url = utf8_percent_encode(&value, URL_PART).to_string();
        self.0.push(HiddenSecret { reference: reference.to_string(), forms: Vec::new() });
        self.add_forms([in_url, unquoted, value.clone()]);
        value
    }

    /// Adds to the last secret how it may be written.
    fn add_forms(&mut self, forms: impl IntoIterator<Item = String>) {
        let Some(secret) = self.0.last_mut() else { return };
        secret.forms.extend(forms.into_iter().filter(|form| !form.is_empty()));
        secret.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// The last secret is a URL with this origin.
    #[cfg(feature = "http")]
    fn add_target(&mut self, origin: &str) {
        let Ok(url) = origin.parse::<reqwest::Url>() else { return };
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        let parts = [Some(origin), authority, url.host_str()];
        self.add_forms(parts.into_iter().flatten().map(ToOwned::to_owned));
    }

    /// User and password of a URL are sent as one encoded header, in which the secret does not occur as it is.
    #[cfg(feature = "http")]
    fn add_basic_authentication(&mut self, resolved: &str) {
        let Ok(url) = resolved.parse::<reqwest::Url>() else { return };
        if url.username().is_empty() && url.password().is_none() {
            return;
        }
        let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or("")));
        self.add_forms([STANDARD.encode(format!("{user}:{password}"))]);
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
            secret.forms.iter().fold(text, |text, form| text.replace(form, &secret.reference))
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
