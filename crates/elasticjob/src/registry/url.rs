//! Registry URLs: `zookeeper://[user:password@]h1[:2181],h2/namespace?key=value…`, `zookeepers://…`, `memory:`.

use std::{borrow::Cow, fmt, path::PathBuf, str::FromStr, time::Duration};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::settings::{Endpoint, Retry, Tls, ZooKeeperSettings};
use crate::problem::Hint;

const DEFAULT_PORT: u16 = 2181;
const EXAMPLE: &str = "zookeeper://127.0.0.1:2181/elasticjob";
const KEYS: &str = "sessionTimeout, connectionTimeout, baseSleepTime, maxSleepTime, maxRetries, fenceFloor, tls.ca, tls.cert, tls.key";

/// A registry address with connection settings. Never prints a password.
///
/// ```
/// use elasticjob::registry::RegistryUrl;
///
/// let url: RegistryUrl = "zookeeper://jane:secret@zk1,zk2:2182/shop?sessionTimeout=30s".parse()?;
/// assert_eq!(url.to_string(), "zookeeper://jane:***@zk1:2181,zk2:2182/shop?sessionTimeout=30s");
/// # Ok::<(), elasticjob::registry::UrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryUrl {
    /// `zookeeper://` and `zookeepers://`.
    ZooKeeper(Box<ZooKeeperSettings>),
    /// `memory:` — a tree private to the node that opens it.
    Memory,
}

/// Text that is not a valid registry URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("registry URL: {problem}")]
pub struct UrlError {
    /// The invalid part, and what is invalid with it.
    pub problem: String,
    /// A valid value for that part.
    pub example: String,
}

impl Hint for UrlError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(format!("for example {}", self.example)))
    }
}

fn invalid<T>(problem: impl Into<String>, example: impl Into<String>) -> Result<T, UrlError> {
    Err(UrlError { problem: problem.into(), example: example.into() })
}

impl FromStr for RegistryUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text == "memory:" {
            return Ok(RegistryUrl::Memory);
        }
        let (is_tls, rest) = match text.split_once("://") {
            Some(("zookeeper", rest)) => (false, rest),
            Some(("zookeepers", rest)) => (true, rest),
            // The error must not quote the text: without a scheme, it may begin with a password.
            Some((scheme, _)) if is_scheme(scheme) => {
                return invalid(
                    format!(
                        "the scheme {scheme:?} is unknown; known are zookeeper, zookeepers and memory"
                    ),
                    EXAMPLE,
                );
            }
            _ => return invalid("it does not start with a scheme", EXAMPLE),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, namespace) = rest.split_once('/').unwrap_or((rest, ""));
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(user_info), hosts),
            None => (None, authority),
        };
        let servers = hosts.split(',').map(endpoint).collect::<Result<Vec<_>, _>>()?;
        if namespace.is_empty() {
            return invalid("the namespace after the hosts is missing", EXAMPLE);
        }
        let namespace = decode("namespace", namespace)?;
        let namespace = namespace
            .parse()
            .or_else(|error| invalid(format!("the namespace: {error}"), EXAMPLE))?;
        let mut settings = ZooKeeperSettings::new(servers, namespace);
        if let Some(user_info) = user_info {
            let Some((user, password)) = user_info.split_once(':') else {
                return invalid(
                    "the user has no password",
                    "zookeeper://user:password@127.0.0.1:2181/elasticjob",
                );
            };
            settings = settings.digest(decode("user", user)?, decode("password", password)?);
        }
        let mut files = TlsFiles::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            apply(&mut settings, &mut files, key, &decode(key, value)?)?;
        }
        settings.tls = files.into_tls(is_tls)?;
        Ok(RegistryUrl::ZooKeeper(Box::new(settings)))
    }
}

/// Whether text may be the scheme of a URL; other text may hold a password.
fn is_scheme(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn endpoint(text: &str) -> Result<Endpoint, UrlError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((host, rest)) = rest.split_once(']') else {
            return invalid(format!("the bracket of host {text:?} is not closed"), "[::1]:2181");
        };
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return invalid(format!("{host:?} in brackets is not an IPv6 address"), "[::1]:2181");
        }
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => {
                return invalid(format!("{rest:?} after the bracket is not a port"), "[::1]:2181");
            }
        }
    } else {
        match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return invalid(format!("the IPv6 address {text:?} needs brackets"), "[::1]:2181");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return invalid("a host is missing", EXAMPLE);
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => {
                return invalid(
                    format!("{port:?} is not a valid port for {host:?}"),
                    format!("{host}:{DEFAULT_PORT}"),
                );
            }
        },
    };
    let host = decode("host", host)?;
    // After decoding it may hold what separates the parts of a URL, and would be shown as another one.
    let is_separator = |c: char| c.is_control() || c.is_whitespace() || "/?#@,[]%".contains(c);
    let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
    if host.contains(is_separator) || host.contains(':') && !is_address {
        return invalid(format!("{host:?} is not a host name"), EXAMPLE);
    }
    Ok(Endpoint::new(host, port))
}

fn apply(
    settings: &mut ZooKeeperSettings,
    files: &mut TlsFiles,
    key: &str,
    value: &str,
) -> Result<(), UrlError> {
    match key {
        "sessionTimeout" => settings.session_timeout = duration(key, value)?,
        "connectionTimeout" => settings.connection_timeout = duration(key, value)?,
        "baseSleepTime" => settings.retry.base_sleep = duration(key, value)?,
        "maxSleepTime" => settings.retry.max_sleep = duration(key, value)?,
        "maxRetries" => settings.retry.max_retries = number(key, value, "maxRetries=3")?,
        "fenceFloor" => {
            settings.fence_floor = number(key, value, "fenceFloor=1000000")?;
            if settings.fence_floor < 0 {
                return invalid("fenceFloor must not be negative", "fenceFloor=1000000");
            }
        }
        "tls.ca" => files.ca = Some(value.into()),
        "tls.cert" => files.cert = Some(value.into()),
        "tls.key" => files.key = Some(value.into()),
        key => {
            return invalid(
                format!("the key {key:?} is unknown; known are {KEYS}"),
                "sessionTimeout=60s",
            );
        }
    }
    Ok(())
}

fn duration(key: &str, value: &str) -> Result<Duration, UrlError> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => 0,
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis)) {
        // The protocol counts milliseconds in 32 bits.
        Some(millis) if (1..=i32::MAX as u64).contains(&millis) => {
            Ok(Duration::from_millis(millis))
        }
        _ => invalid(
            format!("{key}: {value:?} is not a duration above zero in ms, s or m"),
            format!("{key}=60s"),
        ),
    }
}

fn number<T: FromStr>(key: &str, value: &str, example: &str) -> Result<T, UrlError> {
    value.parse().or_else(|_| invalid(format!("{key}: {value:?} is not a whole number"), example))
}

fn decode(part: &str, text: &str) -> Result<String, UrlError> {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => invalid(format!("the {part} is not UTF-8 after percent-decoding"), EXAMPLE),
    }
}

#[derive(Default)]
struct TlsFiles {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsFiles {
    fn into_tls(self, is_tls: bool) -> Result<Option<Tls>, UrlError> {
        let example =
            "zookeepers://zk1:2281/elasticjob?tls.ca=ca.pem&tls.cert=me.pem&tls.key=me.key";
        match (is_tls, self.ca, self.cert, self.key) {
            (false, None, None, None) => Ok(None),
            (false, ..) => invalid("tls.* keys require zookeepers://", example),
            (true, ..) if cfg!(not(feature = "tls")) => invalid(
                "this program was built without TLS: build it with the feature tls of elasticjob",
                "zookeeper://zk1:2181/elasticjob",
            ),
            (true, None, ..) => {
                invalid("zookeepers:// needs tls.ca, the certificate authority's PEM file", example)
            }
            (true, Some(ca), None, None) => Ok(Some(Tls { ca, identity: None })),
            (true, Some(ca), Some(cert), Some(key)) => {
                Ok(Some(Tls { ca, identity: Some((cert, key)) }))
            }
            (true, ..) => invalid("tls.cert and tls.key must be given together", example),
        }
    }
}

impl fmt::Display for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryUrl::ZooKeeper(settings) => settings.fmt(f),
            RegistryUrl::Memory => f.write_str("memory:"),
        }
    }
}

const RESERVED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'@').add(b':').add(b'/').add(b'?').add(b'#').add(b'&');
const RESERVED_IN_PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#');
const RESERVED_IN_QUERY: &AsciiSet = &RESERVED_IN_PATH.add(b'&');

/// Formats the settings as a URL without the password; settings with default values are omitted.
impl fmt::Display for ZooKeeperSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "zookeepers://" } else { "zookeeper://" })?;
        if let Some(digest) = &self.digest {
            write!(f, "{}:***@", utf8_percent_encode(&digest.user, RESERVED))?;
        }
        let namespace = self.namespace.to_string();
        write!(f, "{}{}", self.endpoints(), utf8_percent_encode(&namespace, RESERVED_IN_PATH))?;
        let defaults = Self::new([], self.namespace.clone());
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let mut push_duration = |key, value: Duration, default: Duration| {
            if value != default {
                pairs.push((key, format_duration(value)));
            }
        };
        push_duration("sessionTimeout", self.session_timeout, defaults.session_timeout);
        push_duration("connectionTimeout", self.connection_timeout, defaults.connection_timeout);
        push_duration("baseSleepTime", self.retry.base_sleep, defaults.retry.base_sleep);
        push_duration("maxSleepTime", self.retry.max_sleep, defaults.retry.max_sleep);
        if self.retry.max_retries != Retry::default().max_retries {
            pairs.push(("maxRetries", self.retry.max_retries.to_string()));
        }
        if self.fence_floor != 0 {
            pairs.push(("fenceFloor", self.fence_floor.to_string()));
        }
        if let Some(Tls { ca, identity }) = &self.tls {
            pairs.push(("tls.ca", ca.display().to_string()));
            if let Some((cert, key)) = identity {
                pairs.push(("tls.cert", cert.display().to_string()));
                pairs.push(("tls.key", key.display().to_string()));
            }
        }
        for (index, (key, value)) in pairs.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            write!(f, "{mark}{key}={}", utf8_percent_encode(value, RESERVED_IN_QUERY))?;
        }
        Ok(())
    }
}

fn format_duration(span: Duration) -> String {
    let millis = span.as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    fn settings(text: &str) -> ZooKeeperSettings {
        match text.parse() {
            Ok(RegistryUrl::ZooKeeper(settings)) => *settings,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn omitted_settings_have_the_defaults_of_java() {
        let settings = settings("zookeeper://zk1/shop");

        assert_eq!(settings.servers, [Endpoint::new("zk1", 2181)]);
        assert_eq!(settings.session_timeout, Duration::from_mins(1));
        assert_eq!(settings.connection_timeout, Duration::from_secs(15));
        assert_eq!(settings.retry, Retry::default());
        assert_eq!((settings.digest, settings.tls, settings.fence_floor), (None, None, 0));
    }

    #[test]
    fn url_can_express_every_setting() {
        let settings = settings(
            "zookeepers://ja%3Ane:p%40ss:word@zk1,[::1]:2182,10.0.0.7/team/shop?sessionTimeout=1500ms&connectionTimeout=2s\
             &baseSleepTime=5ms&maxSleepTime=1m&maxRetries=7&fenceFloor=42&tls.ca=/a%20b/ca.pem&tls.cert=c&tls.key=k",
        );

        assert_eq!(
            settings.servers,
            [
                Endpoint::new("zk1", 2181),
                Endpoint::new("::1", 2182),
                Endpoint::new("10.0.0.7", 2181)
            ]
        );
        assert_eq!(settings.namespace.to_string(), "/team/shop");
        let digest = settings.digest.as_ref().unwrap();
        assert_eq!((&*digest.user, &*digest.password), ("ja:ne", "p@ss:word"));
        assert_eq!(settings.session_timeout, Duration::from_millis(1500));
        assert_eq!(settings.retry.max_sleep, Duration::from_mins(1));
        assert_eq!((settings.retry.max_retries, settings.fence_floor), (7, 42));
        let tls = settings.tls.as_ref().unwrap();
        assert_eq!(tls.ca, PathBuf::from("/a b/ca.pem"));
        assert_eq!(tls.identity, Some(("c".into(), "k".into())));
    }

    #[test]
    fn url_error_names_the_part_and_shows_an_example() {
        for (text, part) in [
            ("127.0.0.1:2181/x", "scheme"),
            ("redis://h/x", "\"redis\" is unknown"),
            ("zookeeper:///x", "host is missing"),
            ("zookeeper://a,,b/x", "host is missing"),
            ("zookeeper://h:0/x", "\"0\" is not a valid port"),
            ("zookeeper://h:port/x", "\"port\" is not a valid port"),
            ("zookeeper://h:70000/x", "\"70000\" is not a valid port"),
            ("zookeeper://::1/x", "brackets"),
            ("zookeeper://[::1/x", "bracket"),
            ("zookeeper://[zk1]:1/x", "IPv6"),
            ("zookeeper://h", "namespace"),
            ("zookeeper://h/", "namespace"),
            ("zookeeper://h/a//b", "namespace"),
            ("zookeeper://jane@h/x", "password"),
            ("zookeeper://h/x?sessionTimeout=soon", "sessionTimeout"),
            ("zookeeper://h/x?sessionTimeout=0s", "sessionTimeout"),
            ("zookeeper://h/x?sessionTimeout=5", "sessionTimeout"),
            ("zookeeper://h/x?sessionTimeout=99999999999999999999s", "sessionTimeout"),
            ("zookeeper://h/x?maxRetries=-1", "maxRetries"),
            ("zookeeper://h/x?fenceFloor=-1", "fenceFloor"),
            ("zookeeper://h/x?timeout=5s", "\"timeout\" is unknown"),
            ("zookeeper://h/x?tls.ca=ca.pem", "zookeepers://"),
            ("zookeepers://h/x", "tls.ca"),
            ("zookeepers://h/x?tls.ca=a&tls.cert=b", "tls.key"),
            ("zookeeper://h/%ff", "UTF-8"),
            ("zookeeper://a%2Cb/x", "\"a,b\" is not a host name"),
            ("zookeeper://a%3Ab/x", "\"a:b\" is not a host name"),
            ("zookeeper://%0d%0a/x", "is not a host name"),
        ] {
            let error = Problem::of(&text.parse::<RegistryUrl>().expect_err(text)).to_string();

            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains("for example"), "{text}: {error}");
        }
    }

    #[test]
    fn password_is_never_printed() {
        let url: RegistryUrl = "zookeeper://jane:secret@h/x".parse().unwrap();
        let error = |text: &str| text.parse::<RegistryUrl>().unwrap_err().to_string();
        let no_scheme = [error("jane:secret@h://x"), error("jane:secret://x")];

        for printed in [url.to_string(), format!("{url:?}")].into_iter().chain(no_scheme) {
            assert!(!printed.contains("secret"), "{printed}");
        }
    }

    #[test]
    fn printed_url_parses_back_except_for_the_password() {
        for text in [
            "zookeeper://zk1:2181/shop",
            "zookeeper://zk1:2181,[::1]:2182/team/shop?sessionTimeout=1500ms&maxRetries=0&fenceFloor=7",
            "zookeepers://zk1:2181/shop?tls.ca=/a%20b.pem&tls.cert=c&tls.key=k",
            "zookeepers://zk1:2181/shop?tls.ca=/a%26b%3F.pem",
            "memory:",
        ] {
            assert_eq!(text.parse::<RegistryUrl>().unwrap().to_string(), text);
        }
    }
}
