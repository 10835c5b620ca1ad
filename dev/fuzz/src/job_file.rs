//! Job files in each format. A job that was read is stored and read again as the same job; a problem names a line that the file has.

use elasticjob::job::Job;
use elasticjob_jobfile::parse;
use libfuzzer_sys::Corpus;

use crate::limits::Limits;

/// The parsers keep a tree with a line for each value, and the placeholders' values beside it.
const LIMITS: Limits = Limits { fixed: 1 << 20, per_byte: 512 };

pub fn check(extension: &str, bytes: &[u8]) -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    let file = format!("a.{extension}");
    let sources = vec![(file.clone(), text.to_owned())];
    let variable = |name: &str| match name {
        "HOST" => Some("zk1".to_owned()),
        "SPRING_PROFILES_ACTIVE" => Some("test".to_owned()),
        _ => None,
    };
    match LIMITS.check(text.len(), || parse(&sources, &variable)) {
        Ok(jobs) => {
            for entry in jobs.entries {
                let yaml = entry.job.to_yaml();
                let again = Job::read(&entry.job.name, yaml.as_bytes());
                assert_eq!(again.as_ref().ok(), Some(&entry.job), "{again:?} from {yaml}");
            }
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            for problem in error.problems {
                // Every problem begins with `file:line: `.
                let rest = problem.message.strip_prefix(&format!("{file}:"));
                let line = rest.and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
                let lines = 1 + text.matches(['\n', '\r']).count();
                assert!(
                    line.is_some_and(|line| (1..=lines).contains(&line)),
                    "{problem} of {lines} lines"
                );
            }
        }
    }
    Corpus::Keep
}
