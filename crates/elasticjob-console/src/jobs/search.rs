//! The search syntax of job lists: words, and `key:value`; a leading dash negates a term.

use std::str::FromStr;

use elasticjob::{admin::JobStatus, job::mask_text};

use super::routes::{JobView, handler_word};
use crate::http::problem::Problem;
use elasticjob::admin::mirror::Activity;

const KEYS: &str = "status, label, handler, server, instance, cron, is";

/// Terms that must all match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Search(Vec<Term>);

#[derive(Debug, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    predicate: Predicate,
}

#[derive(Debug, PartialEq, Eq)]
enum Predicate {
    Word(String),
    Status(JobStatus),
    Label(String),
    Handler(String),
    Server(String),
    Instance(String),
    Cron(String),
    Running,
    Disabled,
    Waiting,
    Misfired,
    Unreadable,
    OneOff,
}

impl FromStr for Search {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut terms = Vec::new();
        for word in words(text) {
            let (is_negated, word) = match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                Some(rest) => (true, rest.to_owned()),
                None => (false, word),
            };
            terms.push(Term { is_negated, predicate: parse_predicate(&word)? });
        }
        Ok(Self(terms))
    }
}

fn parse_predicate(word: &str) -> Result<Predicate, Problem> {
    let Some((key, value)) = word.split_once(':') else {
        return Ok(Predicate::Word(word.to_lowercase()));
    };
    let lower = value.to_lowercase();
    let invalid = |text: String, hint: &str| Err(Problem::invalid("search", text).with_hint(hint));
    Ok(match key {
        "status" => {
            let Some(status) = status(value) else {
                let hint = "OK, DISABLED, CRASHED, SHARDING_FLAG";
                return invalid(format!("{value:?} is not a status"), hint);
            };
            Predicate::Status(status)
        }
        "label" => Predicate::Label(lower),
        "handler" => Predicate::Handler(lower),
        "server" => Predicate::Server(value.to_owned()),
        "instance" => Predicate::Instance(value.to_owned()),
        "cron" => Predicate::Cron(lower),
        "is" => match lower.as_str() {
            "running" => Predicate::Running,
            "disabled" => Predicate::Disabled,
            "waiting" => Predicate::Waiting,
            "misfired" => Predicate::Misfired,
            "unreadable" => Predicate::Unreadable,
            "oneoff" | "one-off" => Predicate::OneOff,
            _ => {
                let hint = "running, disabled, waiting, misfired, unreadable, oneoff";
                return invalid(format!("is:{value} is unknown"), hint);
            }
        },
        _ => {
            let hint = format!("{KEYS}; quote a word that contains a colon");
            return invalid(format!("{key:?} is not a search key"), &hint);
        }
    })
}

/// Splits at whitespace; quotes keep whitespace and colons together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted) = (String::new(), false);
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            blank if blank.is_whitespace() && !is_quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Parses a status in Java ElasticJob's spelling, case-insensitive.
pub(crate) fn status(word: &str) -> Option<JobStatus> {
    match word.to_ascii_uppercase().as_str() {
        "OK" => Some(JobStatus::Ok),
        "DISABLED" => Some(JobStatus::Disabled),
        "CRASHED" => Some(JobStatus::Crashed),
        "SHARDING_FLAG" => Some(JobStatus::ShardingFlag),
        _ => None,
    }
}

impl Search {
    /// Whether a job matches.
    pub(crate) fn matches(&self, view: &JobView<'_>) -> bool {
        self.0.iter().all(|term| term.predicate.matches(view) != term.is_negated)
    }
}

impl Predicate {
    fn matches(&self, view: &JobView<'_>) -> bool {
        let contains = |text: &str, part: &str| text.to_lowercase().contains(part);
        let (outline, summary) = (view.outline, &view.outline.summary);
        let job = outline.job.as_ref();
        let has_activity =
            |is_idle: fn(&Activity) -> bool| view.activity.is_some_and(|it| !is_idle(it));
        match self {
            Self::Word(word) => {
                contains(&summary.name, word) || contains(&summary.description, word)
            }
            Self::Status(status) => summary.status == *status,
            // What is not shown must not be found, or it could be guessed letter by letter.
            Self::Label(label) => job
                .and_then(|job| job.label.as_deref())
                .is_some_and(|text| contains(&mask_text(text), label)),
            Self::Handler(handler) => contains(&handler_word(&summary.handler), handler),
            Self::Server(server) => outline.servers.contains_key(server),
            Self::Instance(id) => outline.instances.iter().any(|known| known.contains(id.as_str())),
            Self::Cron(cron) => summary.cron.as_deref().is_some_and(|text| contains(text, cron)),
            Self::Running => has_activity(|activity| activity.running.is_empty()),
            Self::Disabled => {
                job.is_some_and(|job| job.disabled) || summary.status == JobStatus::Disabled
            }
            Self::Waiting => has_activity(|activity| activity.waiting.is_empty()),
            Self::Misfired => has_activity(|activity| activity.misfired.is_empty()),
            Self::Unreadable => summary.problem.is_some(),
            Self::OneOff => summary.cron.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_keys_are_distinguished_and_errors_name_the_field() {
        let search: Search = "  Settle -status:ok \"label:a b\" is:running".parse().unwrap();

        let term = |is_negated, predicate| Term { is_negated, predicate };
        assert_eq!(
            search,
            Search(vec![
                term(false, Predicate::Word("settle".to_owned())),
                term(true, Predicate::Status(JobStatus::Ok)),
                term(false, Predicate::Label("a b".to_owned())),
                term(false, Predicate::Running),
            ])
        );
        for invalid in ["status:fine", "is:good", "colour:red"] {
            assert_eq!(
                invalid.parse::<Search>().unwrap_err().field.as_deref(),
                Some("search"),
                "{invalid}"
            );
        }
    }
}
