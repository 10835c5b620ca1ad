//! The group `tracing`: converts Java ElasticJob's JDBC data source to a history URL.
//!
//! Java reads `tracing.dataSource`, and without it Spring's `spring.datasource`.

use elasticjob::history::from_jdbc;
#[cfg(feature = "history")]
use elasticjob::{history::HistoryUrl, problem::Problem};

use super::{
    section::Reader,
    tree::{Node, Roots},
};

/// Reads the history URL.
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
        return reader.note(tracing.line, "neither tracing nor spring.datasource names a data source: history goes to the store of --history");
    };
    let mut text = |key: &str| {
        let node = source.find(&[key])?;
        reader.text(&format!("tracing.dataSource.{key}"), node)
    };
    let url = text("url").or_else(|| text("jdbcUrl"));
    let (user, password) = (text("username"), text("password"));
    let Some(url) = url else {
        return reader.report(source.line, "the data source of tracing has no url");
    };
    match from_jdbc(url.trim(), user.as_deref(), password.as_deref()) {
        Ok(url) => {
            #[cfg(feature = "history")]
            if let Err(error) = url.parse::<HistoryUrl>() {
                return reader.report(source.line, Problem::of(&error));
            }
            reader.jobs.history = Some((reader.location(source.line), url));
        }
        Err(kind) => reader.note(
            source.line,
            &format!("tracing uses {kind}, which is not supported: history goes to the store of --history"),
        ),
    }
}
