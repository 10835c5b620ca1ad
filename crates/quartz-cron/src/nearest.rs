//! Finds the known name that is most similar to an unknown one.

/// `None` if no name is similar.
pub(super) fn nearest(text: &str, names: impl Iterator<Item = String>) -> Option<String> {
    // Longer than any name: not worth a comparison.
    if text.len() > 64 {
        return None;
    }
    let wanted = normalize(text);
    let max_distance = wanted.len() / 3;
    names
        .map(|name| {
            let candidate = normalize(&name);
            let city = candidate.rsplit('/').next().unwrap_or_default();
            let distance = distance(&wanted, &candidate).min(distance(&wanted, city));
            (distance, name)
        })
        .filter(|(distance, _)| *distance <= max_distance)
        .min()
        .map(|(_, name)| name)
}

fn normalize(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

/// Levenshtein distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_or_city_alone_finds_the_name() {
        let names = || ["Asia/Shanghai", "America/New_York", "Europe/Berlin"].map(String::from);
        let find = |text| nearest(text, names().into_iter());

        assert_eq!(find("Asia/Shangai").as_deref(), Some("Asia/Shanghai"));
        assert_eq!(find("america/new york").as_deref(), Some("America/New_York"));
        assert_eq!(find("berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(find("Mars/Phobos"), None);
        assert_eq!(find(""), None);
    }
}
