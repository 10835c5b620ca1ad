//! The group `tracing`: a database as the ancestor describes it becomes a history URL.
//!
//! The ancestor's own data source stands in `tracing.dataSource`; without one it takes Spring's, `spring.datasource`. Both are JDBC's.

use elasticjob::history::HistoryUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    section::Reader,
    tree::{Node, Roots},
};

const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reads where history is kept.
pub(super) fn read(reader: &mut Reader<'_>, roots: &Roots) {
    for (_, section) in roots.named("elasticjob") {
        let Some(tracing) = section.find(&["tracing"]) else { continue };
        let spring = roots.named("spring").find_map(|(_, spring)| spring.find(&["datasource"]));
        let source = tracing.find(&["dataSource"]).or(spring);
        tracing_section(reader, tracing, source);
    }
}

fn tracing_section(reader: &mut Reader<'_>, tracing: &Node, source: Option<&Node>) {
    let Some(kind) = tracing.find(&["type"]) else { return };
    let Some(kind) = reader.text("tracing.type", kind) else { return };
    if !kind.trim().eq_ignore_ascii_case("RDB") {
        let note = format!(
            "tracing.type {:?} has no effect here: history goes to a database (RDB)",
            kind.trim()
        );
        return reader.note(tracing.line, &note);
    }
    for names in ["includeJobNames", "excludeJobNames"] {
        if let Some(node) = tracing.find(&[names]) {
            reader.note(
                node.line,
                &format!("tracing.{names} has no effect here: every job has a history"),
            );
        }
    }
    let Some(source) = source else {
        return reader.note(tracing.line, "tracing names no data source, and neither does spring.datasource: history is kept where --history says");
    };
    let mut text = |key: &str| {
        let node = source.find(&[key])?;
        reader.text(&format!("tracing.dataSource.{key}"), node)
    };
    let url = text("url").or_else(|| text("jdbcUrl"));
    let (user, password) = (text("username"), text("password"));
    let Some(url) = url else {
        return reader.wrong(source.line, "the data source of tracing has no url");
    };
    match translated(url.trim(), user.as_deref(), password.as_deref()) {
        Ok(url) => match url.parse::<HistoryUrl>() {
            Ok(_) => reader.jobs.history = Some((reader.place(source.line), url)),
            Err(error) => reader.wrong(source.line, error.to_string()),
        },
        Err(kind) => reader.note(
            source.line,
            &format!("tracing keeps its history in {kind}, which is not known here: history is kept where --history says"),
        ),
    }
}

/// A JDBC URL as one of ours; the kind of database if it is none that can be used here.
pub(crate) fn translated(
    jdbc: &str,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<String, String> {
    let rest = jdbc.strip_prefix("jdbc:").unwrap_or(jdbc);
    let (kind, place) = rest
        .split_once("://")
        .ok_or_else(|| rest.split(':').next().unwrap_or_default().to_owned())?;
    let scheme = match kind {
        "mysql" | "mariadb" => "mysql",
        "postgresql" => "postgres",
        other => return Err(other.to_owned()),
    };
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let parameters: Vec<(&str, &str)> =
        query.split('&').filter_map(|parameter| parameter.split_once('=')).collect();
    let said = |names: &[&str]| {
        let found = parameters.iter().find(|(name, _)| names.contains(name));
        found.map(|(_, value)| *value)
    };
    let encoded = |text: &str| utf8_percent_encode(text, SAFE).to_string();
    let user = user.map(encoded).or_else(|| said(&["user"]).map(ToOwned::to_owned));
    let password = password.map(encoded).or_else(|| said(&["password"]).map(ToOwned::to_owned));
    let credentials = match (user, password) {
        (Some(user), Some(password)) => format!("{user}:{password}@"),
        (Some(user), None) => format!("{user}@"),
        (None, _) => String::new(),
    };
    // Everything else in the query is the driver's own affair.
    let tls = match scheme {
        "postgres" => said(&["sslmode"]).map(|mode| format!("?sslmode={mode}")),
        _ => said(&["sslMode"]).map(|mode| format!("?ssl-mode={mode}")),
    };
    Ok(format!("{scheme}://{credentials}{place}{}", tls.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jdbc_url_becomes_one_of_ours() {
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

        for (jdbc, ours) in cases {
            let url = translated(jdbc, Some("root"), Some("p@ss/")).unwrap();

            assert_eq!(url, ours);
            assert!(url.parse::<HistoryUrl>().is_ok(), "{url}");
        }
        assert_eq!(
            translated("jdbc:postgresql://db/jobs?user=jane&password=x", None, None).unwrap(),
            "postgres://jane:x@db/jobs"
        );
    }

    #[test]
    fn a_database_that_is_not_known_is_named() {
        for (jdbc, kind) in [
            ("jdbc:h2:mem:job_event_storage;DB_CLOSE_DELAY=-1", "h2"),
            ("jdbc:sqlserver://db:1433;databaseName=x", "sqlserver"),
            ("jdbc:oracle:thin:@db:1521:x", "oracle"),
        ] {
            assert_eq!(translated(jdbc, None, None), Err(kind.to_owned()));
        }
    }
}
