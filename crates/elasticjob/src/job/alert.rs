//! Where failures are reported: Java ElasticJob's error handlers and their settings.
//!
//! The settings are parsed when an alert is needed, not when the job is read: as in Java, a job with an incomplete alert still runs.

use std::{fmt, time::Duration};

use super::{
    bounds::MAX_TIMEOUT_MILLIS,
    error::InvalidValue,
    job::Job,
    plugins::TypeName,
    props::{Props, keys},
};

/// Where failures are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alert {
    /// The log (`LOG`).
    Log,
    /// Nowhere (`IGNORE`).
    Ignore,
    /// To the caller that started the run (`THROW`).
    Throw,
    /// By mail (`EMAIL`).
    Email(Box<Email>),
    /// To a WeChat group robot (`WECHAT`).
    Wechat(Webhook),
    /// To a DingTalk group robot (`DINGTALK`).
    Dingtalk(Dingtalk),
    /// To any URL that accepts a POST (`WEBHOOK`; not in Java, so it is stored in `elasticjob.alert`).
    Webhook(Webhook),
    /// An alert that the program registers.
    Named(TypeName),
}

/// Mail account, recipients and subject.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    pub host: String,
    pub port: u16,
    pub username: String,
    /// Never printed.
    pub password: String,
    /// Whether to use TLS from the start of the connection.
    pub use_ssl: bool,
    /// Servers whose certificate is not verified.
    pub ssl_trust: Option<String>,
    pub subject: String,
    pub from: String,
    pub to: Vec<String>,
    pub cc: Option<String>,
    pub bcc: Option<String>,
    /// Whether the SMTP dialogue is logged.
    pub debug: bool,
}

/// A URL that accepts a POST. The URL is never printed, because it contains the group's access key.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
}

/// A DingTalk robot.
#[derive(Clone, PartialEq, Eq)]
pub struct Dingtalk {
    pub webhook: Webhook,
    /// A keyword that the robot requires at the start of every message.
    pub keyword: Option<String>,
    /// Key that signs messages; never printed.
    pub secret: Option<String>,
}

impl Alert {
    /// The alert of a job. An unknown name is an [`Alert::Named`]; no name means the log.
    ///
    /// ```
    /// use elasticjob::job::{Alert, Job};
    ///
    /// let job = Job::named("settle")?.alert("WECHAT");
    /// let error = Alert::of(&job).unwrap_err();
    /// assert_eq!(error.to_string(), r#"WECHAT alert "": the property wechat.webhook is missing"#);
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn of(job: &Job) -> Result<Self, InvalidValue> {
        let chosen = job.props.policies().alert.as_ref().or(job.error_handler_type.as_ref());
        let Some(name) = chosen.filter(|name| !name.as_str().is_empty()) else {
            return Ok(Self::Log);
        };
        let props = |kind| AlertProps { kind, props: &job.props };
        Ok(match name.as_str().to_ascii_uppercase().as_str() {
            "LOG" => Self::Log,
            "IGNORE" => Self::Ignore,
            "THROW" => Self::Throw,
            "EMAIL" => Self::Email(Box::new(props("EMAIL").email()?)),
            "WECHAT" => Self::Wechat(props("WECHAT").webhook("wechat", "wechat.webhook")?),
            "DINGTALK" => Self::Dingtalk(props("DINGTALK").dingtalk()?),
            "WEBHOOK" => {
                Self::Webhook(props("WEBHOOK").webhook("elasticjob.webhook", keys::WEBHOOK_URL)?)
            }
            _ => Self::Named(name.clone()),
        })
    }
}

/// Reads the properties of one kind of alert.
struct AlertProps<'a> {
    kind: &'static str,
    props: &'a Props,
}

impl AlertProps<'_> {
    fn email(&self) -> Result<Email, InvalidValue> {
        let port = |text: String| text.parse().ok().filter(|port| *port > 0);
        Ok(Email {
            host: self.required("email.host")?,
            port: port(self.required("email.port")?)
                .ok_or_else(|| self.invalid("email.port", "a port from 1 to 65535"))?,
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

    fn dingtalk(&self) -> Result<Dingtalk, InvalidValue> {
        Ok(Dingtalk {
            webhook: self.webhook("dingtalk", "dingtalk.webhook")?,
            keyword: self.optional("dingtalk.keyword"),
            secret: self.optional("dingtalk.secret"),
        })
    }

    fn webhook(&self, prefix: &str, url: &str) -> Result<Webhook, InvalidValue> {
        Ok(Webhook {
            url: self.required(url)?,
            connect_timeout: self.millis(&format!("{prefix}.connectTimeoutMilliseconds"), 3_000)?,
            read_timeout: self.millis(&format!("{prefix}.readTimeoutMilliseconds"), 5_000)?,
        })
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.props.get(key).filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    }

    fn required(&self, key: &str) -> Result<String, InvalidValue> {
        self.optional(key).ok_or_else(|| {
            InvalidValue::new(
                format!("{} alert", self.kind),
                "",
                format!("the property {key} is missing"),
            )
        })
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.props.get(key).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    fn millis(&self, key: &str, default: u64) -> Result<Duration, InvalidValue> {
        let Some(text) = self.optional(key) else {
            return Ok(Duration::from_millis(default));
        };
        let millis = text.parse().ok().filter(|millis| (1..=MAX_TIMEOUT_MILLIS).contains(millis));
        millis.map(Duration::from_millis).ok_or_else(|| {
            self.invalid(key, &format!("milliseconds, from 1 to {MAX_TIMEOUT_MILLIS}"))
        })
    }

    fn invalid(&self, key: &str, expected: &str) -> InvalidValue {
        let text = self.props.get(key).unwrap_or_default();
        InvalidValue::new(format!("{} alert, {key}", self.kind), text, expected)
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
    fn mail_alert_has_the_defaults_of_java() {
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
    fn alert_error_names_the_property() {
        for (kind, props, problem) in [
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

            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn elasticjob_alert_overrides_the_error_handler_of_java() {
        let job =
            job("LOG", &[("elasticjob.alert", "WEBHOOK"), ("elasticjob.webhook.url", "http://x")]);

        assert!(matches!(Alert::of(&job), Ok(Alert::Webhook(_))));
        assert_eq!(Alert::of(&Job::named("j").unwrap()), Ok(Alert::Log));
    }
}
