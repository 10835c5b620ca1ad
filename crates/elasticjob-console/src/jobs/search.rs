//! What somebody types to find jobs: words, and `key:value`; a dash before one means not.

use std::str::FromStr;

use elasticjob::admin::JobStatus;

use super::routes::{Glance, handler_word};
use crate::http::problem::Problem;
use elasticjob::admin::mirror::Bustle;

const KEYS: &str = "status, label, handler, server, instance, cron, is";

/// All of these.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Search(Vec<Term>);

#[derive(Debug, PartialEq, Eq)]
struct Term {
    is_not: bool,
    means: Means,
}

#[derive(Debug, PartialEq, Eq)]
enum Means {
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
            let (is_not, word) = match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                Some(rest) => (true, rest.to_owned()),
                None => (false, word),
            };
            terms.push(Term { is_not, means: means(&word)? });
        }
        Ok(Self(terms))
    }
}

fn means(word: &str) -> Result<Means, Problem> {
    let Some((key, value)) = word.split_once(':') else {
        return Ok(Means::Word(word.to_lowercase()));
    };
    let low = value.to_lowercase();
    let wrong = |text: String| Err(Problem::invalid("search", text));
    Ok(match key {
        "status" => match status(value) {
            Some(status) => Means::Status(status),
            None => {
                return wrong(format!(
                    "{value:?} is no status; hint: OK, DISABLED, CRASHED, SHARDING_FLAG"
                ));
            }
        },
        "label" => Means::Label(low),
        "handler" => Means::Handler(low),
        "server" => Means::Server(value.to_owned()),
        "instance" => Means::Instance(value.to_owned()),
        "cron" => Means::Cron(low),
        "is" => match low.as_str() {
            "running" => Means::Running,
            "disabled" => Means::Disabled,
            "waiting" => Means::Waiting,
            "misfired" => Means::Misfired,
            "unreadable" => Means::Unreadable,
            "oneoff" | "one-off" => Means::OneOff,
            _ => {
                return wrong(format!(
                    "is:{value} is not known; hint: running, disabled, waiting, misfired, unreadable, oneoff"
                ));
            }
        },
        _ => {
            return wrong(format!(
                "{key:?} cannot be searched for; hint: {KEYS}; a word with a colon stands in quotes"
            ));
        }
    })
}

/// Words between blanks; quotes hold blanks and colons together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted) = (String::new(), false);
    for each in text.chars() {
        match each {
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

/// A status as the ancestor spells it, in any case.
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
    /// Whether a job is meant.
    pub(crate) fn fits(&self, glance: &Glance<'_>) -> bool {
        self.0.iter().all(|term| term.means.fits(glance) != term.is_not)
    }
}

impl Means {
    fn fits(&self, glance: &Glance<'_>) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
        let (outline, summary) = (glance.outline, &glance.outline.summary);
        let job = outline.job.as_ref();
        let bustles = |is_idle: fn(&Bustle) -> bool| glance.bustle.is_some_and(|it| !is_idle(it));
        match self {
            Self::Word(word) => has(&summary.name, word) || has(&summary.description, word),
            Self::Status(status) => summary.status == *status,
            Self::Label(label) => {
                job.and_then(|job| job.label.as_deref()).is_some_and(|text| has(text, label))
            }
            Self::Handler(handler) => has(&handler_word(&summary.runs_with), handler),
            Self::Server(server) => outline.servers.contains_key(server),
            Self::Instance(id) => outline.instances.iter().any(|known| known.contains(id.as_str())),
            Self::Cron(cron) => summary.cron.as_deref().is_some_and(|text| has(text, cron)),
            Self::Running => bustles(|bustle| bustle.running.is_empty()),
            Self::Disabled => {
                job.is_some_and(|job| job.disabled) || summary.status == JobStatus::Disabled
            }
            Self::Waiting => bustles(|bustle| bustle.waiting.is_empty()),
            Self::Misfired => bustles(|bustle| bustle.misfired.is_empty()),
            Self::Unreadable => summary.problem.is_some(),
            Self::OneOff => summary.cron.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_keys_are_told_apart_and_mistakes_named() {
        let search: Search = "  Settle -status:ok \"label:a b\" is:running".parse().unwrap();

        let term = |is_not, means| Term { is_not, means };
        assert_eq!(
            search,
            Search(vec![
                term(false, Means::Word("settle".to_owned())),
                term(true, Means::Status(JobStatus::Ok)),
                term(false, Means::Label("a b".to_owned())),
                term(false, Means::Running),
            ])
        );
        for wrong in ["status:fine", "is:good", "colour:red"] {
            assert_eq!(
                wrong.parse::<Search>().unwrap_err().field.as_deref(),
                Some("search"),
                "{wrong}"
            );
        }
    }
}
