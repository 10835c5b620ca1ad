//! Who is told when something fails: the ancestor's error handlers and what each of them has to know.
//!
//! Read when somebody asks, not when the job is: as with the ancestor, a job whose alert is not set up still runs.

use std::{fmt, time::Duration};

use super::{
    error::Invalid,
    job::Job,
    kinds::TypeName,
    props::{Props, keys},
};

/// Who is told when something fails.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alert {
    /// The log (`LOG`).
    Log,
    /// Nobody (`IGNORE`).
    Ignore,
    /// Whoever started the run (`THROW`).
    Throw,
    /// Somebody with a mailbox (`EMAIL`).
    Email(Box<Email>),
    /// A WeChat group's robot (`WECHAT`).
    Wechat(Webhook),
    /// A DingTalk group's robot (`DINGTALK`).
    Dingtalk(Dingtalk),
    /// Any address that takes a POST (`WEBHOOK`; ours, so it stands in `elasticjob.alert`).
    Webhook(Webhook),
    /// One that the program brings along.
    Named(TypeName),
}

/// An account to send mail from, and whom to.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    /// The mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The account.
    pub username: String,
    /// Its password; never printed.
    pub password: String,
    /// Whether to speak TLS from the start.
    pub use_ssl: bool,
    /// Servers whose certificate is trusted unseen.
    pub ssl_trust: Option<String>,
    /// The subject line.
    pub subject: String,
    /// The sender's address.
    pub from: String,
    /// The receivers' addresses.
    pub to: Vec<String>,
    /// Who gets a copy.
    pub cc: Option<String>,
    /// Who gets a copy that the others do not see.
    pub bcc: Option<String>,
    /// Whether the conversation with the server is logged.
    pub debug: bool,
}

/// An address that takes a POST. The address is never printed: it carries the key to the group.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the answer may take.
    pub read_timeout: Duration,
}

/// A DingTalk robot.
#[derive(Clone, PartialEq, Eq)]
pub struct Dingtalk {
    /// Where it listens.
    pub webhook: Webhook,
    /// A word it wants to see at the start of every message.
    pub keyword: Option<String>,
    /// What messages are signed with; never printed.
    pub secret: Option<String>,
}

impl Alert {
    /// Who is told about this job. An unknown name is a [`Alert::Named`], no name is the log.
    ///
    /// ```
    /// use elasticjob::job::{Alert, Job};
    ///
    /// let job = Job::named("settle")?.alert("WECHAT");
    /// let error = Alert::of(&job).unwrap_err();
    /// assert_eq!(error.to_string(), r#"WECHAT alert "": the property wechat.webhook is missing"#);
    /// # Ok::<(), elasticjob::job::Invalid>(())
    /// ```
    pub fn of(job: &Job) -> Result<Self, Invalid> {
        let chosen = job.props.policies().alert.as_ref().or(job.error_handler_type.as_ref());
        let Some(name) = chosen.filter(|name| !name.as_str().is_empty()) else {
            return Ok(Self::Log);
        };
        let settings = |kind| Settings { kind, props: &job.props };
        Ok(match name.as_str().to_ascii_uppercase().as_str() {
            "LOG" => Self::Log,
            "IGNORE" => Self::Ignore,
            "THROW" => Self::Throw,
            "EMAIL" => Self::Email(Box::new(settings("EMAIL").email()?)),
            "WECHAT" => Self::Wechat(settings("WECHAT").webhook("wechat", "wechat.webhook")?),
            "DINGTALK" => Self::Dingtalk(settings("DINGTALK").dingtalk()?),
            "WEBHOOK" => {
                Self::Webhook(settings("WEBHOOK").webhook("elasticjob.webhook", keys::WEBHOOK_URL)?)
            }
            _ => Self::Named(name.clone()),
        })
    }
}

/// The properties as one kind of alert sees them.
struct Settings<'a> {
    kind: &'static str,
    props: &'a Props,
}

impl Settings<'_> {
    fn email(&self) -> Result<Email, Invalid> {
        let port = |text: String| text.parse().ok().filter(|port| *port > 0);
        Ok(Email {
            host: self.required("email.host")?,
            port: port(self.required("email.port")?)
                .ok_or_else(|| self.wrong("email.port", "a port from 1 to 65535"))?,
            username: self.required("email.username")?,
            password: self.required("email.password")?,
            use_ssl: self.flag("email.useSsl", true),
            ssl_trust: self.optional("email.ssl.trust"),
            subject: self
                .optional("email.subject")
                .unwrap_or_else(|| "ElasticJob error message".to_owned()),
            from: self.required("email.from")?,
            to: self.required("email.to")?.split(',').map(|to| to.trim().to_owned()).collect(),
            cc: self.optional("email.cc"),
            bcc: self.optional("email.bcc"),
            debug: self.flag("email.debug", false),
        })
    }

    fn dingtalk(&self) -> Result<Dingtalk, Invalid> {
        Ok(Dingtalk {
            webhook: self.webhook("dingtalk", "dingtalk.webhook")?,
            keyword: self.optional("dingtalk.keyword"),
            secret: self.optional("dingtalk.secret"),
        })
    }

    fn webhook(&self, prefix: &str, url: &str) -> Result<Webhook, Invalid> {
        Ok(Webhook {
            url: self.required(url)?,
            connect_timeout: self.millis(&format!("{prefix}.connectTimeoutMilliseconds"), 3_000)?,
            read_timeout: self.millis(&format!("{prefix}.readTimeoutMilliseconds"), 5_000)?,
        })
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.props.get(key).filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    }

    fn required(&self, key: &str) -> Result<String, Invalid> {
        self.optional(key).ok_or_else(|| {
            Invalid::new(
                format!("{} alert", self.kind),
                "",
                format!("the property {key} is missing"),
            )
        })
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.props.get(key).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    fn millis(&self, key: &str, default: u64) -> Result<Duration, Invalid> {
        let Some(text) = self.optional(key) else {
            return Ok(Duration::from_millis(default));
        };
        let millis = text.parse().ok().filter(|millis| *millis > 0);
        millis.map(Duration::from_millis).ok_or_else(|| self.wrong(key, "milliseconds, from 1"))
    }

    fn wrong(&self, key: &str, right: &str) -> Invalid {
        let text = self.props.get(key).unwrap_or_default();
        Invalid::new(format!("{} alert, {key}", self.kind), text, right)
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Email({}@{}:{} to {})", self.username, self.host, self.port, self.to.join(","))
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(***)")
    }
}

impl fmt::Debug for Dingtalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dingtalk(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: &str, props: &[(&str, &str)]) -> Job {
        props.iter().fold(Job::named("j").unwrap().alert(kind), |job, (key, value)| {
            job.prop(*key, *value).unwrap()
        })
    }

    #[test]
    fn a_mail_alert_has_the_ancestors_defaults() {
        let job = job(
            "email",
            &[
                ("email.host", "mail"),
                ("email.port", "465"),
                ("email.username", "u"),
                ("email.password", "hunter2"),
                ("email.from", "a@x"),
                ("email.to", "b@x, c@x"),
            ],
        );

        let Ok(Alert::Email(email)) = Alert::of(&job) else { panic!() };

        assert!(email.use_ssl && !email.debug);
        assert_eq!(email.subject, "ElasticJob error message");
        assert_eq!(email.to, ["b@x", "c@x"]);
        assert!(!format!("{email:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (kind, props, why) in [
            ("EMAIL", &[("email.host", "h"), ("email.port", "0")][..], "email.port \"0\""),
            ("EMAIL", &[("email.host", "h")], "email.port is missing"),
            ("DINGTALK", &[], "dingtalk.webhook is missing"),
            (
                "WECHAT",
                &[("wechat.webhook", "x"), ("wechat.readTimeoutMilliseconds", "soon")],
                "milliseconds",
            ),
        ] {
            let error = Alert::of(&job(kind, props)).unwrap_err();

            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn our_own_alert_overrules_the_one_java_sees() {
        let job =
            job("LOG", &[("elasticjob.alert", "WEBHOOK"), ("elasticjob.webhook.url", "http://x")]);

        assert!(matches!(Alert::of(&job), Ok(Alert::Webhook(_))));
        assert_eq!(Alert::of(&Job::named("j").unwrap()), Ok(Alert::Log));
    }
}
