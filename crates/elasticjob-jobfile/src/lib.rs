//! Jobs as people write them down.
//!
//! A file is Spring Boot's `application.yml` as it is, of which the section `elasticjob` counts; the same as JSON, TOML or properties; the
//! properties of older examples (`elasticJob.dataflow.cron = …`, where the group names the job); the XML of Spring's namespaces and the
//! JSON of 2.1.5, to be carried over. Which one it is, the extension says.
//!
//! ```text
//!   text ──▶ tree with lines ──▶ section ──▶ jobs, and where the registry is
//!     yaml | toml | properties     names are relaxed as Spring relaxes them, ${PLACEHOLDERS} are filled in when a value is taken
//!     xml | 2.1.5 ─────────────────────────▶ jobs, by way of what 2.1.5 stored
//! ```
//!
//! ```no_run
//! use elasticjob::{Node, node::NodeJob};
//! use elasticjob_jobfile::{JobFileError, Kind, read};
//!
//! # fn node() -> Result<Node, JobFileError> {
//! let jobs = read(&["jobs.yml".into()], &|name| std::env::var(name).ok())?;
//! let mut node = Node::join("zookeeper://127.0.0.1:2181/shop");
//! for entry in jobs.entries.into_iter().filter(|entry| entry.kind == Kind::Script) {
//!     node = node.with(NodeJob::script(entry.job));
//! }
//! # Ok(node)
//! # }
//! ```
//!
//! What a file does not say has the documented default. What it says and nobody knows is a mistake, told with file, line and the
//! nearest name that is known; all mistakes are told at once. Roots of others (`server`, `spring`) are none of our business.

mod error;
#[cfg(all(test, feature = "toml", feature = "properties", feature = "xml", feature = "history"))]
mod golden;
mod history;
mod keys;
mod legacy;
mod placeholder;
#[cfg(feature = "properties")]
mod properties;
mod registry;
mod section;
#[cfg(feature = "toml")]
mod toml;
mod tree;
#[cfg(feature = "xml")]
mod xml;
mod yaml;

use std::{collections::BTreeMap, fmt, fs, path::PathBuf, sync::Arc};

use elasticjob::{
    execution::Script,
    job::{Job, JobName},
    problem::Problem,
    schedule::Zone,
};
use jiff::{Timestamp, tz::TimeZone};

pub use self::{error::JobFileError, keys::nearest};
use self::{
    placeholder::Resolver,
    tree::{Node, Roots, Value},
};

/// What files say, all together.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Where the instances meet, if a file says so: a registry URL.
    pub registry: Option<(Place, String)>,
    /// Where history is kept, if a file says so: a history URL.
    pub history: Option<(Place, String)>,
    /// The jobs, in the order of the files.
    pub entries: Vec<Entry>,
    /// What was left out on purpose, one sentence each.
    pub notes: Vec<String>,
}

/// A job in a file.
#[derive(Debug, Clone)]
pub struct Entry {
    pub job: Job,
    pub kind: Kind,
    pub place: Place,
}

/// What runs a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Script,
    Http,
    /// A Java class, or the name of a bean. Nothing here can run it.
    Java(String),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Script => "SCRIPT",
            Self::Http => "HTTP",
            Self::Java(class) => class,
        })
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Files as they are: what each is called, and what stands in it.
pub type Texts = Vec<(String, String)>;

/// Reads these files. `variable` is how the environment answers.
pub fn read(
    files: &[PathBuf],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, JobFileError> {
    understand(&load(files)?, variable)
}

/// What stands in these files.
pub fn load(files: &[PathBuf]) -> Result<Texts, JobFileError> {
    let mut texts = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| {
            JobFileError::new(format!("cannot read {}: {error}", file.display()))
        })?;
        texts.push((file.display().to_string(), text));
    }
    Ok(texts)
}

/// What it means.
pub fn understand(
    texts: &Texts,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, JobFileError> {
    parse(texts, variable).map_err(|problems| JobFileError { problems })
}

/// What one file is, before anything in it is believed.
enum Document {
    Sections {
        file: Arc<str>,
        roots: Roots,
        style: Style,
    },
    #[cfg(feature = "xml")]
    Xml {
        file: Arc<str>,
        text: String,
    },
    Legacy {
        file: Arc<str>,
        text: String,
    },
}

/// Whether a group directly below the section names a job, as in older examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Sections,
    Groups,
}

fn parse(
    texts: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut documents = Vec::new();
    for (file, text) in texts {
        match document(file, text, variable) {
            Ok(document) => documents.push(document),
            Err(problem) => problems.push(problem),
        }
    }
    let mut known = BTreeMap::new();
    for document in &documents {
        if let Document::Sections { roots, .. } = document {
            roots.flatten(&mut known);
        }
    }
    let resolver = Resolver::new(variable, known);
    let mut jobs = Jobs::default();
    for document in &documents {
        match document {
            Document::Sections { file, roots, style } => {
                section::read(file, roots, *style, &resolver, &mut jobs, &mut problems);
            }
            #[cfg(feature = "xml")]
            Document::Xml { file, text } => {
                xml::read(file, text, &resolver, &mut jobs, &mut problems);
            }
            Document::Legacy { file, text } => {
                legacy::read_json(file, text, &mut jobs, &mut problems);
            }
        }
    }
    unrunnable(&jobs, &mut problems);
    twice(&jobs, &mut problems);
    if problems.is_empty() { Ok(jobs) } else { Err(problems) }
}

fn document(
    file: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Document, Problem> {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let file: Arc<str> = file.into();
    let wrong =
        |(line, problem): (usize, String)| Problem::new(format!("{file}:{line}: {problem}"));
    let extension = extension.to_ascii_lowercase();
    let style = if extension == "properties" { Style::Groups } else { Style::Sections };
    let trees = match extension.as_str() {
        "yml" | "yaml" => yaml::read(text).map_err(wrong)?,
        "json" => {
            if legacy::is_legacy(text) {
                return Ok(Document::Legacy { file, text: text.to_owned() });
            }
            yaml::read_json(text).map_err(wrong)?
        }
        #[cfg(feature = "toml")]
        "toml" => vec![toml::read(text).map_err(wrong)?],
        #[cfg(feature = "properties")]
        "properties" => vec![properties::read(text).map_err(wrong)?],
        #[cfg(feature = "xml")]
        "xml" => return Ok(Document::Xml { file, text: text.to_owned() }),
        #[cfg(not(all(feature = "toml", feature = "properties", feature = "xml")))]
        format @ ("toml" | "properties" | "xml") => {
            return Err(Problem::new(format!(
                "{file}: this program was built without reading .{format}; hint: build it with the feature {format} of elasticjob-jobfile"
            )));
        }
        _ => {
            return Err(Problem::new(format!(
                "{file}: the extension does not say what it is; hint: .yml, .yaml, .json, .toml, .properties or .xml"
            )));
        }
    };
    let mut roots = Roots::default();
    for tree in trees.iter().filter(|tree| is_active(tree, variable)) {
        roots.add(tree).map_err(wrong)?;
    }
    Ok(Document::Sections { file, roots, style })
}

/// A document of several that is meant for a profile counts only when the profile is active.
fn is_active(tree: &Node, variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let wanted = [
        tree.find(&["spring", "config", "activate", "on-profile"]),
        tree.find(&["spring", "profiles"]),
    ];
    let wanted = wanted.into_iter().flatten().find_map(|node| match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let Some(wanted) = wanted else { return true };
    let active = variable("SPRING_PROFILES_ACTIVE").unwrap_or_default();
    wanted.split(',').any(|wanted| active.split(',').any(|active| active.trim() == wanted.trim()))
}

/// What can be said about a job without running it.
fn unrunnable(jobs: &Jobs, problems: &mut Vec<Problem>) {
    for Entry { job, kind, place } in &jobs.entries {
        let checked = match kind {
            Kind::Script => Script::of(job).map(drop),
            #[cfg(feature = "http")]
            Kind::Http => elasticjob::execution::Http::of(job).map(drop),
            #[cfg(not(feature = "http"))]
            Kind::Http => Ok(()),
            Kind::Java(_) => Ok(()),
        };
        if let Err(failure) = checked {
            problems.push(Problem::new(format!("{place}: job {}: {failure}", job.name)));
        }
        let schedule = job.schedule(&Zone::from(TimeZone::UTC));
        if schedule.is_some_and(|schedule| schedule.next_after(Timestamp::UNIX_EPOCH).is_none()) {
            let cron = job.cron.as_ref().map(ToString::to_string).unwrap_or_default();
            problems.push(Problem::new(format!(
                "{place}: job {}: cron {cron:?} never fires; hint: a job without cron runs when somebody asks for it",
                job.name
            )));
        }
    }
}

fn twice(jobs: &Jobs, problems: &mut Vec<Problem>) {
    let mut places: BTreeMap<&JobName, &Place> = BTreeMap::new();
    for entry in &jobs.entries {
        if let Some(first) = places.insert(&entry.job.name, &entry.place) {
            problems.push(Problem::new(format!(
                "{}: job {} is described already at {first}; hint: a job is described once, with as many shards as it needs",
                entry.place, entry.job.name
            )));
        }
    }
}

#[cfg(test)]
mod tests;
