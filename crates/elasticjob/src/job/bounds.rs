//! How large a configuration may be.
//!
//! Every process of a namespace reads the configurations of all its jobs, and who may write one job may store any number and any text in it.
//! So each of them has an upper bound, far beyond what a real job needs: a job that exceeds one is invalid, is joined by no instance, and costs
//! the other jobs nothing. The bounds hold when a configuration is stored and when it is read, because not every writer checks them. Those of
//! single properties are in the table of [properties](super::properties). A number that Java accepts is accepted and kept: where it
//! is used, it is limited to [`MAX_DURATION`].

use std::time::Duration;

use super::{
    error::InvalidValue,
    shards::{ShardCount, ShardLimit},
};

/// Bytes of a stored document. ZooKeeper refuses larger nodes, unless `jute.maxbuffer` is raised.
pub(super) const MAX_DOCUMENT: usize = 1 << 20;
/// Bytes of a name: of a type, a listener, the key of a property.
pub(super) const MAX_NAME: usize = 1_000;
/// Bytes of a cron expression.
pub(super) const MAX_CRON: usize = 4_000;
/// Bytes of the labels of an instance. Lists show them.
pub(super) const MAX_INSTANCE_LABELS: usize = 16 << 10;
/// Bytes of a description or label as lists show them.
pub(super) const MAX_LISTED_TEXT: usize = 1_000;
/// Bytes of a parameter, a description, a label, or of the value of a property. Linux refuses longer arguments of a program.
pub(super) const MAX_TEXT: usize = 128 << 10;
/// Entries of `props`, and of the list of Java listeners.
pub(super) const MAX_ENTRIES: usize = 1_000;
/// Ten years: longer than any wait that has an end.
pub(super) const MAX_DURATION: Duration = Duration::from_hours(10 * 365 * 24);
/// Attempts at a shard in one run.
pub(super) const MAX_ATTEMPTS: u32 = 1_000_000;
/// Timeout of a request, in milliseconds: a day.
pub(super) const MAX_TIMEOUT_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The upper bound of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// Most bytes of a text, in UTF-8.
    Bytes(usize),
    /// Most entries of a list, or of a map with free keys; and most bytes of each.
    Entries { count: usize, bytes: usize },
    /// Most shards; a process can lower it further, see [`ShardLimit`].
    Shards,
    /// Bounded by the size of the document, or by its type.
    Document,
}

impl Bound {
    pub(super) fn check_text(self, text: &str) -> Result<(), String> {
        match self {
            Self::Bytes(most) if text.len() > most => Err(too_long(text.len(), most)),
            _ => Ok(()),
        }
    }

    pub(super) fn check_entries<'a>(
        self,
        entries: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<(), String> {
        let Self::Entries { count, bytes } = self else { return Ok(()) };
        if entries.len() > count {
            return Err(format!("it has {} entries, at most {count} are allowed", entries.len()));
        }
        for text in entries {
            if text.len() > bytes {
                return Err(format!("an entry has {}", too_long(text.len(), bytes)));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(most) => write!(f, "{most} bytes"),
            Self::Entries { count, bytes } => write!(f, "{count} entries of {bytes} bytes"),
            Self::Shards => {
                write!(f, "{} shards, {} by default", ShardCount::MAX, ShardLimit::DEFAULT)
            }
            Self::Document => f.write_str("its document"),
        }
    }
}

fn too_long(bytes: usize, most: usize) -> String {
    format!("{bytes} bytes, at most {most} are allowed")
}

/// Refuses a duration that is beyond [`MAX_DURATION`].
pub(super) fn check_duration(
    what: &'static str,
    text: &str,
    duration: Duration,
) -> Result<Duration, InvalidValue> {
    if duration > MAX_DURATION {
        let days = MAX_DURATION.as_secs() / (24 * 60 * 60);
        return Err(InvalidValue::new(what, text, format!("it is longer than {days}d")));
    }
    Ok(duration)
}

/// The beginning of a text that came from outside, for messages: a message must stay readable, whatever it quotes.
pub(super) fn shorten(text: impl Into<String>, most: usize) -> String {
    let mut text = text.into();
    if text.len() > most {
        let kept = text.floor_char_boundary(most);
        text.truncate(kept);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_refuses_what_exceeds_it() {
        assert!(Bound::Bytes(3).check_text("abc").is_ok());
        assert!(Bound::Bytes(3).check_text("abcd").is_err());
        let two = Bound::Entries { count: 2, bytes: 3 };
        assert!(two.check_entries(["abc", ""].into_iter()).is_ok());
        assert!(two.check_entries(["abcd"].into_iter()).is_err());
        assert!(two.check_entries(["", "", ""].into_iter()).is_err());
    }

    #[test]
    fn quoted_text_is_shortened_between_characters() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("aüb", 2), "a…");
    }
}
