//! Spring's relaxed binding of names: `serverLists`, `server-lists`, `server_lists` and `SERVERLISTS` are the same.

/// The form in which names are compared.
pub(super) fn normalize(name: &str) -> String {
    name.chars().filter(|each| !matches!(each, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The entry of `names` that matches `name` by relaxed binding.
pub(super) fn find_name<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let normalized = normalize(name);
    names.iter().copied().find(|known| normalize(known) == normalized)
}

/// A hint for an unknown name: the closest known name, or else all of them.
pub(super) fn suggestion(name: &str, names: &[&str]) -> String {
    let normalized = normalize(name);
    match nearest(&normalized, names.iter().map(|known| (normalize(known), *known))) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("known names: {}", names.join(", ")),
    }
}

/// The name with the most similar spelling, if one is close enough to be a likely typo.
pub fn nearest<T: Ord>(wanted: &str, names: impl IntoIterator<Item = (String, T)>) -> Option<T> {
    names
        .into_iter()
        .map(|(spelled, name)| (strsim::osa_distance(wanted, &spelled), name))
        .filter(|(distance, _)| *distance <= wanted.chars().count().max(3) / 3)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_in_any_spelling_and_typos_get_a_suggestion() {
        let names = ["serverLists", "namespace"];

        for written in ["serverLists", "server-lists", "server_lists", "SERVERLISTS"] {
            assert_eq!(find_name(written, &names), Some("serverLists"));
        }
        assert_eq!(find_name("servers", &names), None);
        assert_eq!(suggestion("namespce", &names), "did you mean namespace?");
        assert_eq!(suggestion("digest", &names), "known names: serverLists, namespace");
    }
}
