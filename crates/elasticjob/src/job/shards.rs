//! The number of shards and their parameters.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{bounds::shorten, error::InvalidValue};

/// Bytes of an entry of the item parameters that a message quotes.
const MAX_PART: usize = 100;

/// The number of shards of a job.
///
/// Invariant: at least one, and at most [`ShardCount::MAX`]. What a process accepts is usually lower: see [`ShardLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardCount(u32);

impl ShardCount {
    /// One shard: the job is not split.
    pub const ONE: Self = Self(1);

    /// The most shards that a job can have. A node, a console and a leader spend memory and requests on every shard, so a number of 32 bits, which
    /// is what Java allows, would end them.
    pub const MAX: Self = Self(100_000);

    pub const fn get(self) -> u32 {
        self.0
    }

    /// The shard numbers: zero to one less than the count.
    pub fn items(self) -> impl Iterator<Item = u32> {
        0..self.0
    }
}

impl TryFrom<u32> for ShardCount {
    type Error = InvalidValue;

    fn try_from(count: u32) -> Result<Self, InvalidValue> {
        let invalid = |problem: &str| {
            Err(InvalidValue::new("sharding total count", count.to_string(), problem))
        };
        match count {
            0 => invalid("a job has at least one shard"),
            1..=100_000 => Ok(Self(count)),
            _ => invalid(&format!("a job has at most {} shards", Self::MAX)),
        }
    }
}

/// How many shards a job may have in this process: 10,000, unless a setting says otherwise, and never more than [`ShardCount::MAX`].
///
/// A job above the limit is invalid here: it is neither stored nor joined, and lists show it with the reason. The limit protects the other jobs
/// of the process, so every process has its own; set the same one everywhere.
///
/// ```
/// use elasticjob::job::ShardLimit;
///
/// assert_eq!(ShardLimit::default().to_string(), "10000");
/// assert!("20000".parse::<ShardLimit>().is_ok());
/// assert!("200000".parse::<ShardLimit>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardLimit(ShardCount);

impl ShardLimit {
    pub const DEFAULT: Self = Self(ShardCount(10_000));

    /// Whether a job within the limit may have a shard of this number.
    pub(crate) fn allows(self, shard: u32) -> bool {
        shard < self.0.get()
    }

    /// Refuses a number of shards above the limit.
    pub fn check(self, count: ShardCount) -> Result<(), InvalidValue> {
        if count <= self.0 {
            return Ok(());
        }
        let problem = format!("this process accepts at most {self} shards");
        let invalid = InvalidValue::new("sharding total count", count.to_string(), problem);
        Err(invalid.with_hint(format!(
            "fewer shards, or a higher limit, at most {}: --max-shards, ELASTICJOB_MAX_SHARDS or Node::max_shards",
            ShardCount::MAX
        )))
    }
}

impl Default for ShardLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl From<ShardCount> for ShardLimit {
    fn from(count: ShardCount) -> Self {
        Self(count)
    }
}

impl FromStr for ShardLimit {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let count = text.parse::<u32>().ok().and_then(|count| ShardCount::try_from(count).ok());
        count.map(Self).ok_or_else(|| {
            let problem = format!("a number from 1 to {}", ShardCount::MAX);
            InvalidValue::new("shard limit", text, problem)
        })
    }
}

impl fmt::Display for ShardLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ShardCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many shards a run should have, as the instance that claims shards for it knows: those of the run that exist and are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedShards {
    /// Shards whose attempts are recorded.
    pub tracked: u32,
    /// Shards that a Java instance owns. It records no run, so nothing is known of them.
    pub untracked: u32,
}

/// The parameter of each shard: `0=Beijing,1=Shanghai`.
///
/// Parsed as Java ElasticJob does: entries are separated by commas; surrounding spaces and trailing commas are ignored; if a shard
/// appears twice, the last entry wins. Invariant: `by_item` is what `text` parses to.
///
/// ```
/// use elasticjob::job::ItemParameters;
///
/// let items: ItemParameters = "0=Beijing, 1=Shanghai".parse()?;
/// assert_eq!(items.get(1), Some("Shanghai"));
/// assert_eq!(items.get(2), None);
///
/// let error = "0=Beijing,Shanghai".parse::<ItemParameters>().unwrap_err();
/// assert!(error.to_string().contains(r#"part 2, "Shanghai""#));
/// # Ok::<(), elasticjob::job::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ItemParameters {
    text: String,
    // As in Java, the key is any integer, even one that is not the number of a shard.
    by_item: BTreeMap<i32, String>,
}

impl ItemParameters {
    /// The parameter of a shard, if it has one.
    pub fn get(&self, item: u32) -> Option<&str> {
        self.by_item.get(&i32::try_from(item).ok()?).map(String::as_str)
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether no shard has a parameter.
    pub fn is_empty(&self) -> bool {
        self.by_item.is_empty()
    }
}

impl FromStr for ItemParameters {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let mut by_item = BTreeMap::new();
        let parts = text.trim_end_matches(',');
        for (index, part) in parts.split(',').enumerate().filter(|_| !parts.is_empty()) {
            let (item, parameter) = parse_entry(part).map_err(|problem| {
                let (number, part) = (index + 1, shorten(part, MAX_PART));
                let problem =
                    format!("part {number}, {part:?}, {problem}; for example 0=Beijing,1=Shanghai");
                InvalidValue::new("sharding item parameters", text, problem)
            })?;
            by_item.insert(item, parameter);
        }
        Ok(Self { text: text.to_owned(), by_item })
    }
}

/// Parses one `number=text`. As in Java, trailing `=` are ignored and every character up to the space is whitespace.
fn parse_entry(part: &str) -> Result<(i32, String), &'static str> {
    let is_whitespace = |c: char| c <= ' ';
    let part = part.trim_matches(is_whitespace).trim_end_matches('=');
    let (item, parameter) = part.split_once('=').ok_or("is not number=text")?;
    if parameter.contains('=') {
        return Err("has more than one `=`");
    }
    let item =
        item.trim_matches(is_whitespace).parse().map_err(|_| "does not start with a number")?;
    Ok((item, parameter.trim_matches(is_whitespace).to_owned()))
}

impl fmt::Display for ItemParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ItemParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_count_is_at_least_one_and_at_most_a_hundred_thousand() {
        assert_eq!(ShardCount::try_from(4).unwrap().items().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(ShardCount::try_from(100_000), Ok(ShardCount::MAX));
        for count in [0, 100_001, i32::MAX.unsigned_abs(), u32::MAX] {
            assert!(ShardCount::try_from(count).is_err(), "{count}");
        }
    }

    #[test]
    fn shard_limit_is_ten_thousand_unless_set() {
        let count = |count| ShardCount::try_from(count).unwrap();
        let raised: ShardLimit = "20000".parse().unwrap();

        assert!(ShardLimit::default().check(count(10_000)).is_ok());
        let error = ShardLimit::default().check(count(10_001)).unwrap_err();
        assert!(error.hint.unwrap().contains("--max-shards"));
        assert!(raised.check(count(10_001)).is_ok());
        for text in ["0", "-1", "100001", "many", ""] {
            assert!(text.parse::<ShardLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn item_parameters_error_names_the_entry() {
        for (text, problem) in [
            ("0=a,,1=b", r#"part 2, "", is not"#),
            ("0=a=b", "more than one"),
            ("x=a", "start with a number"),
            ("0=", "is not number=text"),
            (" ", r#"part 1, " ""#),
        ] {
            let error = text.parse::<ItemParameters>().unwrap_err();

            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn item_parameters_are_split_as_java_does() {
        for (text, item, parameter) in
            [("0=a,1=b,,", 1, "b"), ("0=a=", 0, "a"), ("+1= x y ", 1, "x y"), ("0=a,0=b", 0, "b")]
        {
            assert_eq!(
                text.parse::<ItemParameters>().unwrap().get(item),
                Some(parameter),
                "{text}"
            );
        }
        assert!(",".parse::<ItemParameters>().unwrap().is_empty());
    }
}
