//! Settings of the OIDC provider in the configuration file.

use std::{collections::BTreeMap, env, fmt, fs, path::PathBuf};

use reqwest::Url;
use serde::Deserialize;

use crate::{auth::accounts::Roles, error::ConsoleError};

/// Environment variable with the client secret, if neither key sets it.
const SECRET_VARIABLE: &str = "ELASTICJOB_OIDC_CLIENT_SECRET";

/// The table `[oidc]` of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OidcFile {
    issuer: String,
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_file: Option<PathBuf>,
    redirect_base: Option<String>,
    scopes: Option<Vec<String>>,
    username_claim: Option<String>,
    roles_claim: Option<String>,
    /// Roles by value of the claim.
    roles: BTreeMap<String, Roles>,
    label: Option<String>,
    ca: Option<PathBuf>,
}

/// Validated settings of a provider.
#[derive(Debug)]
pub struct Settings {
    /// Exactly as the provider names itself.
    pub(super) issuer: String,
    pub(super) client_id: String,
    /// Without it the client is a public one, and PKCE alone protects the code.
    pub(super) client_secret: Option<Secret>,
    /// Base URL of this console for browsers, if it differs from where it listens.
    pub(super) redirect_base: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) username_claim: String,
    pub(super) roles_claim: String,
    /// Roles by value of the claim; `*` matches every user of the provider.
    pub(super) roles: BTreeMap<String, Roles>,
    /// Label of the login button.
    pub(super) label: String,
    /// PEM certificates that are trusted in addition to the system's.
    pub(super) ca: Option<Vec<u8>>,
}

/// A secret that `Debug` does not print.
#[derive(Clone, Deserialize)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl TryFrom<OidcFile> for Settings {
    type Error = ConsoleError;

    fn try_from(file: OidcFile) -> Result<Self, ConsoleError> {
        let read_error = |key: &str, path: &PathBuf, error: std::io::Error| {
            ConsoleError::setting(format!("oidc.{key}: cannot read {}: {error}", path.display()))
        };
        check_url("issuer", &file.issuer)?;
        if let Some(base) = &file.redirect_base {
            check_url("redirectBase", base)?;
        }
        if file.client_id.is_empty() {
            return Err(ConsoleError::setting(
                "oidc.clientId is empty; hint: the provider issues it",
            ));
        }
        if file.roles.values().all(Roles::is_empty) {
            return Err(ConsoleError::setting(
                "oidc.roles grants no role; hint: [oidc.roles] has lines like \"a-group\" = { \"*\" = \"viewer\" }",
            ));
        }
        let client_secret = match (file.client_secret, file.client_secret_file) {
            (Some(_), Some(_)) => {
                return Err(ConsoleError::setting(
                    "oidc.clientSecret and oidc.clientSecretFile are both set; hint: remove one",
                ));
            }
            (Some(secret), None) => Some(secret),
            (None, Some(path)) => {
                let text = fs::read_to_string(&path);
                let text = text.map_err(|error| read_error("clientSecretFile", &path, error))?;
                Some(Secret(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
            (None, None) => env::var(SECRET_VARIABLE).ok().map(Secret),
        };
        let mut scopes =
            file.scopes.unwrap_or_else(|| vec!["profile".to_owned(), "email".to_owned()]);
        if !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        let ca =
            file.ca.map(|path| fs::read(&path).map_err(|error| read_error("ca", &path, error)));
        Ok(Self {
            issuer: file.issuer,
            client_id: file.client_id,
            client_secret: client_secret.filter(|secret| !secret.0.is_empty()),
            redirect_base: file.redirect_base,
            scopes,
            username_claim: file.username_claim.unwrap_or_else(|| "preferred_username".to_owned()),
            roles_claim: file.roles_claim.unwrap_or_else(|| "groups".to_owned()),
            roles: file.roles,
            label: file.label.unwrap_or_else(|| "OpenID Connect".to_owned()),
            ca: ca.transpose()?,
        })
    }
}

fn check_url(key: &str, text: &str) -> Result<(), ConsoleError> {
    let invalid = |problem: &str| {
        let hint = "https://login.example.com, and http:// for this machine alone";
        ConsoleError::setting(format!("oidc.{key} {text:?}: {problem}; hint: {hint}"))
    };
    let url: Url = text.parse().map_err(|_| invalid("not a URL"))?;
    // Serving the console itself by http is the operator's decision; a warning is printed at startup.
    if key == "issuer" && !is_confidential(&url) {
        return Err(invalid("the connection would not be encrypted"));
    }
    if !matches!(url.scheme(), "http" | "https")
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return Err(invalid("not an http or https URL without query and fragment"));
    }
    Ok(())
}

/// Whether the connection is encrypted or does not leave this machine.
pub(super) fn is_confidential(url: &Url) -> bool {
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, ConsoleError> {
        let file: OidcFile =
            toml::from_str(text).map_err(|error| ConsoleError::setting(error.to_string()))?;
        file.try_into()
    }

    #[test]
    fn unset_keys_take_defaults_and_debug_hides_the_secret() {
        let settings = read(
            "issuer = 'https://login.example.com'\nclientId = 'console'\nclientSecret = 'hunter2'\n[roles]\nops = { '*' = 'operator', prod = 'admin' }",
        )
        .unwrap();

        assert_eq!(settings.scopes, ["openid", "profile", "email"]);
        let claims = (settings.username_claim.as_str(), settings.roles_claim.as_str());
        assert_eq!(claims, ("preferred_username", "groups"));
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn unusable_settings_are_rejected_with_their_key() {
        let roles = "[roles]\nops = { '*' = 'viewer' }";
        for (text, part) in [
            (
                format!("issuer = 'http://login.example.com'\nclientId = 'c'\n{roles}"),
                "oidc.issuer",
            ),
            (format!("issuer = 'login'\nclientId = 'c'\n{roles}"), "oidc.issuer"),
            (format!("issuer = 'https://l'\nclientId = ''\n{roles}"), "oidc.clientId"),
            ("issuer = 'https://l'\nclientId = 'c'\n[roles]".to_owned(), "oidc.roles"),
            (
                "issuer = 'https://l'\nclientId = 'c'\n[roles]\nops = { '*' = 'king' }".to_owned(),
                "king",
            ),
            (
                format!(
                    "issuer = 'https://l'\nclientId = 'c'\nclientSecretFile = '/nowhere/x'\n{roles}"
                ),
                "/nowhere/x",
            ),
            (
                format!("issuer = 'https://l'\nclientId = 'c'\nredirectBase = 'ftp://x'\n{roles}"),
                "oidc.redirectBase",
            ),
        ] {
            let message = format!("{:?}", read(&text).unwrap_err());
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(read(&format!("issuer = 'http://127.0.0.1:9'\nclientId = 'c'\n{roles}")).is_ok());
    }
}
