//! Converts JDBC URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The history URL of the database that a JDBC URL names; if history does not support it, the kind of database.
pub fn from_jdbc(jdbc: &str, user: Option<&str>, password: Option<&str>) -> Result<String, String> {
    let rest = jdbc.strip_prefix("jdbc:").unwrap_or(jdbc);
    let (kind, location) = rest
        .split_once("://")
        .ok_or_else(|| rest.split(':').next().unwrap_or_default().to_owned())?;
    let scheme = match kind {
        "mysql" | "mariadb" => "mysql",
        "postgresql" => "postgres",
        other => return Err(other.to_owned()),
    };
    let (location, query) = location.split_once('?').unwrap_or((location, ""));
    let parameters: Vec<(&str, &str)> =
        query.split('&').filter_map(|parameter| parameter.split_once('=')).collect();
    let parameter_of = |names: &[&str]| {
        let found = parameters.iter().find(|(name, _)| names.contains(name));
        found.map(|(_, value)| *value)
    };
    let encoded = |text: &str| utf8_percent_encode(text, SAFE).to_string();
    let user = user.map(encoded).or_else(|| parameter_of(&["user"]).map(ToOwned::to_owned));
    let password =
        password.map(encoded).or_else(|| parameter_of(&["password"]).map(ToOwned::to_owned));
    let credentials = match (user, password) {
        (Some(user), Some(password)) => format!("{user}:{password}@"),
        (Some(user), None) => format!("{user}@"),
        (None, _) => String::new(),
    };
    // All other parameters are for the JDBC driver only.
    let tls = match scheme {
        "postgres" => parameter_of(&["sslmode"]).map(|mode| format!("?sslmode={mode}")),
        _ => parameter_of(&["sslMode"]).map(|mode| format!("?ssl-mode={mode}")),
    };
    Ok(format!("{scheme}://{credentials}{location}{}", tls.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jdbc_url_becomes_history_url() {
        let cases = [
            (
                "jdbc:mysql://db:3306/jobs?useSSL=false&serverTimezone=UTC",
                "mysql://root:p%40ss%2F@db:3306/jobs",
            ),
            (
                "jdbc:mariadb://db/jobs?sslMode=VERIFY_CA",
                "mysql://root:p%40ss%2F@db/jobs?ssl-mode=VERIFY_CA",
            ),
            (
                "jdbc:postgresql://db:5432/jobs?currentSchema=x&sslmode=require",
                "postgres://root:p%40ss%2F@db:5432/jobs?sslmode=require",
            ),
        ];

        for (jdbc, expected) in cases {
            let url = from_jdbc(jdbc, Some("root"), Some("p@ss/")).unwrap();

            assert_eq!(url, expected);
            #[cfg(feature = "history")]
            assert!(url.parse::<crate::history::HistoryUrl>().is_ok(), "{url}");
        }
        assert_eq!(
            from_jdbc("jdbc:postgresql://db/jobs?user=jane&password=x", None, None).unwrap(),
            "postgres://jane:x@db/jobs"
        );
    }

    #[test]
    fn unsupported_database_is_named() {
        for (jdbc, kind) in [
            ("jdbc:h2:mem:job_event_storage;DB_CLOSE_DELAY=-1", "h2"),
            ("jdbc:sqlserver://db:1433;databaseName=x", "sqlserver"),
            ("jdbc:oracle:thin:@db:1521:x", "oracle"),
        ] {
            assert_eq!(from_jdbc(jdbc, None, None), Err(kind.to_owned()));
        }
    }
}
