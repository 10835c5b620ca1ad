//! Reads job definitions from files.
//!
//! The file extension selects the format:
//!
//! * Spring Boot's `application.yml`, unchanged; only its section `elasticjob` is read. The same as JSON, TOML or properties.
//! * Properties as in older examples (`elasticJob.dataflow.cron = …`), where the group is the job's name.
//! * Configurations of Java ElasticJob 2.1.5, for migration: the XML of Spring's namespaces, and JSON.
//!
//! ```text
//!   text ──▶ tree with lines ──▶ section ──▶ jobs, registry URL, history URL
//!     yaml | toml | properties     keys match by Spring's relaxed binding; ${PLACEHOLDERS} are resolved when a value is read
//!     xml | 2.1.5 JSON ──────────────────▶ jobs, converted from the form that 2.1.5 stores
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
//! A property that a file omits has its documented default. An unknown property is an error that names file, line and the closest known
//! name. All errors are reported at once. Other root sections (`server`, `spring`) are ignored.

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

/// The combined content of all files.
#[derive(Debug, Default)]
pub struct Jobs {
    /// Registry URL, if a file sets one, and where it is set.
    pub registry: Option<(Location, String)>,
    /// History URL, if a file sets one, and where it is set.
    pub history: Option<(Location, String)>,
    /// Jobs in file order.
    pub entries: Vec<Entry>,
    /// One sentence for each setting or job that was ignored on purpose.
    pub notes: Vec<String>,
}

/// A job defined in a file.
#[derive(Debug, Clone)]
pub struct Entry {
    pub job: Job,
    pub kind: Kind,
    pub location: Location,
}

/// What executes a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Script,
    Http,
    /// A Java class or the name of a Spring bean; this program cannot execute it.
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

/// A line in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: Arc<str>,
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// File names with their unparsed text.
pub type Sources = Vec<(String, String)>;

/// Reads and parses files. `variable` looks up an environment variable.
pub fn read(
    files: &[PathBuf],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, JobFileError> {
    parse(&load(files)?, variable)
}

/// Reads the text of files without parsing it.
pub fn load(files: &[PathBuf]) -> Result<Sources, JobFileError> {
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| {
            JobFileError::new(format!("cannot read {}: {error}", file.display()))
        })?;
        sources.push((file.display().to_string(), text));
    }
    Ok(sources)
}

/// Parses the text of files. `variable` looks up an environment variable.
pub fn parse(
    sources: &Sources,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, JobFileError> {
    parse_sources(sources, variable).map_err(|problems| JobFileError { problems })
}

/// One file, its format known and its content not yet validated.
enum Document {
    Sections {
        file: Arc<str>,
        roots: Roots,
        layout: Layout,
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

/// How jobs are laid out below the section `elasticjob`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Jobs are below `elasticjob.jobs`.
    Standard,
    /// A group directly below the section is a job, as in older `.properties` examples.
    JobPerGroup,
}

fn parse_sources(
    sources: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Jobs, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut documents = Vec::new();
    for (file, text) in sources {
        match document(file, text, variable) {
            Ok(document) => documents.push(document),
            Err(problem) => problems.push(problem),
        }
    }
    let mut properties = BTreeMap::new();
    for document in &documents {
        if let Document::Sections { roots, .. } = document {
            roots.flatten(&mut properties);
        }
    }
    let resolver = Resolver::new(variable, properties);
    let mut jobs = Jobs::default();
    for document in &documents {
        match document {
            Document::Sections { file, roots, layout } => {
                section::read(file, roots, *layout, &resolver, &mut jobs, &mut problems);
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
    check_runnable(&jobs, &mut problems);
    check_duplicates(&jobs, &mut problems);
    if problems.is_empty() { Ok(jobs) } else { Err(problems) }
}

fn document(
    file: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Document, Problem> {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let file: Arc<str> = file.into();
    let locate = |(line, problem): (usize, Problem)| problem.at(format_args!("{file}:{line}"));
    #[cfg(any(feature = "toml", feature = "properties"))]
    let locate_text = |(line, problem): (usize, String)| locate((line, problem.into()));
    let extension = extension.to_ascii_lowercase();
    let layout = if extension == "properties" { Layout::JobPerGroup } else { Layout::Standard };
    let trees = match extension.as_str() {
        "yml" | "yaml" => yaml::read(text).map_err(locate)?,
        "json" => {
            if legacy::is_legacy(text) {
                return Ok(Document::Legacy { file, text: text.to_owned() });
            }
            yaml::read_json(text).map_err(locate)?
        }
        #[cfg(feature = "toml")]
        "toml" => vec![toml::read(text).map_err(locate_text)?],
        #[cfg(feature = "properties")]
        "properties" => vec![properties::read(text).map_err(locate_text)?],
        #[cfg(feature = "xml")]
        "xml" => return Ok(Document::Xml { file, text: text.to_owned() }),
        #[cfg(not(all(feature = "toml", feature = "properties", feature = "xml")))]
        format @ ("toml" | "properties" | "xml") => {
            let problem =
                format!("{file}: this program was built without support for .{format} files");
            let hint = format!("build it with the feature {format} of elasticjob-jobfile");
            return Err(Problem::new(problem).with_hint(hint));
        }
        _ => {
            return Err(Problem::new(format!("{file}: unknown file extension"))
                .with_hint(".yml, .yaml, .json, .toml, .properties or .xml"));
        }
    };
    let mut roots = Roots::default();
    for tree in trees.iter().filter(|tree| is_active(tree, variable)) {
        roots.merge_document(tree).map_err(|(line, problem)| locate((line, problem.into())))?;
    }
    Ok(Document::Sections { file, roots, layout })
}

/// A document that is limited to a Spring profile is read only if the profile is active.
fn is_active(tree: &Node, variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let profiles = [
        tree.find(&["spring", "config", "activate", "on-profile"]),
        tree.find(&["spring", "profiles"]),
    ];
    let profiles = profiles.into_iter().flatten().find_map(|node| match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let Some(profiles) = profiles else { return true };
    let active = variable("SPRING_PROFILES_ACTIVE").unwrap_or_default();
    profiles
        .split(',')
        .any(|profile| active.split(',').any(|active| active.trim() == profile.trim()))
}

/// Reports jobs that could never run: an invalid script or request, or a cron expression that never fires.
fn check_runnable(jobs: &Jobs, problems: &mut Vec<Problem>) {
    for Entry { job, kind, location } in &jobs.entries {
        let checked = match kind {
            Kind::Script => Script::of(job).map(drop),
            #[cfg(feature = "http")]
            Kind::Http => elasticjob::execution::Http::of(job).map(drop),
            #[cfg(not(feature = "http"))]
            Kind::Http => Ok(()),
            Kind::Java(_) => Ok(()),
        };
        if let Err(failure) = checked {
            problems.push(Problem::new(format!("{location}: job {}: {failure}", job.name)));
        }
        let schedule = job.schedule(&Zone::from(TimeZone::UTC));
        if schedule.is_some_and(|schedule| schedule.next_after(Timestamp::UNIX_EPOCH).is_none()) {
            let cron = job.cron.as_ref().map(ToString::to_string).unwrap_or_default();
            let problem = format!("{location}: job {}: cron {cron:?} never fires", job.name);
            let hint = "a job without cron runs only when it is triggered";
            problems.push(Problem::new(problem).with_hint(hint));
        }
    }
}

fn check_duplicates(jobs: &Jobs, problems: &mut Vec<Problem>) {
    let mut locations: BTreeMap<&JobName, &Location> = BTreeMap::new();
    for entry in &jobs.entries {
        if let Some(first) = locations.insert(&entry.job.name, &entry.location) {
            let Entry { job, location, .. } = entry;
            let problem = format!("{location}: job {} is already defined at {first}", job.name);
            let hint = "define a job once, with as many shards as it needs";
            problems.push(Problem::new(problem).with_hint(hint));
        }
    }
}

#[cfg(test)]
mod tests;
