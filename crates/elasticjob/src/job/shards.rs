//! How many shards a job has, and what each of them is given.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::error::Invalid;

/// How many shards a job has.
///
/// Invariant: at least one, and no more than the ancestor can count (2³¹ − 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardCount(u32);

impl ShardCount {
    /// A job that is not split.
    pub const ONE: Self = Self(1);

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The shards: zero to one less than the count.
    pub fn items(self) -> impl Iterator<Item = u32> {
        0..self.0
    }
}

impl TryFrom<u32> for ShardCount {
    type Error = Invalid;

    fn try_from(count: u32) -> Result<Self, Invalid> {
        let wrong =
            |problem: &str| Err(Invalid::new("sharding total count", count.to_string(), problem));
        match i32::try_from(count) {
            Ok(0) => wrong("a job has at least one shard"),
            Ok(_) => Ok(Self(count)),
            Err(_) => wrong("at most 2147483647 shards can be counted"),
        }
    }
}

impl fmt::Display for ShardCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What each shard is given: `0=Beijing,1=Shanghai`.
///
/// Read as the ancestor reads it: spaces around are nothing, commas at the end are nothing, the last of two for the same shard counts.
/// Invariant: the text it was read from means exactly this map.
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
/// # Ok::<(), elasticjob::job::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ItemParameters {
    text: String,
    // Keyed as the ancestor keys it: any integer, even one that no shard has.
    by_item: BTreeMap<i32, String>,
}

impl ItemParameters {
    /// What this shard is given, if anything.
    pub fn get(&self, item: u32) -> Option<&str> {
        self.by_item.get(&i32::try_from(item).ok()?).map(String::as_str)
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether no shard is given anything.
    pub fn is_empty(&self) -> bool {
        self.by_item.is_empty()
    }
}

impl FromStr for ItemParameters {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let mut by_item = BTreeMap::new();
        let parts = text.trim_end_matches(',');
        for (index, part) in parts.split(',').enumerate().filter(|_| !parts.is_empty()) {
            let (item, parameter) = pair(part).map_err(|problem| {
                let problem = format!(
                    "part {}, {part:?}, {problem}; for example 0=Beijing,1=Shanghai",
                    index + 1
                );
                Invalid::new("sharding item parameters", text, problem)
            })?;
            by_item.insert(item, parameter);
        }
        Ok(Self { text: text.to_owned(), by_item })
    }
}

/// One `number=text`. As in Java, `=` at the end is nothing and white is everything up to the space.
fn pair(part: &str) -> Result<(i32, String), &'static str> {
    let white = |c: char| c <= ' ';
    let part = part.trim_matches(white).trim_end_matches('=');
    let (item, parameter) = part.split_once('=').ok_or("is not number=text")?;
    if parameter.contains('=') {
        return Err("has more than one `=`");
    }
    let item = item.trim_matches(white).parse().map_err(|_| "does not start with a number")?;
    Ok((item, parameter.trim_matches(white).to_owned()))
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
    fn a_job_has_at_least_one_shard() {
        assert_eq!(ShardCount::try_from(4).unwrap().items().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(ShardCount::try_from(0).is_err());
        assert!(ShardCount::try_from(u32::MAX).is_err());
    }

    #[test]
    fn what_is_wrong_with_item_parameters_is_named_by_its_part() {
        for (text, why) in [
            ("0=a,,1=b", r#"part 2, "", is not"#),
            ("0=a=b", "more than one"),
            ("x=a", "start with a number"),
            ("0=", "is not number=text"),
            (" ", r#"part 1, " ""#),
        ] {
            let error = text.parse::<ItemParameters>().unwrap_err();

            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn javas_way_of_splitting_is_kept() {
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
