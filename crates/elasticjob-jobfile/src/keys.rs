//! Names as Spring relaxes them: `serverLists`, `server-lists`, `server_lists` and `SERVERLISTS` are one.

/// The form in which names are compared.
pub(super) fn relaxed(name: &str) -> String {
    name.chars().filter(|each| !matches!(each, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The known name that is meant.
pub(super) fn known<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let wanted = relaxed(name);
    names.iter().copied().find(|known| relaxed(known) == wanted)
}

/// What to do about an unknown name: the nearest one that is known, or all of them.
pub(super) fn suggestion(name: &str, names: &[&str]) -> String {
    let wanted = relaxed(name);
    match nearest(&wanted, names.iter().map(|known| (relaxed(known), *known))) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("known are {}", names.join(", ")),
    }
}

/// What is spelled most nearly like this, if anything is near enough to be meant.
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
    fn a_name_is_known_however_it_is_written_and_a_slip_finds_the_nearest() {
        let names = ["serverLists", "namespace"];

        for written in ["serverLists", "server-lists", "server_lists", "SERVERLISTS"] {
            assert_eq!(known(written, &names), Some("serverLists"));
        }
        assert_eq!(known("servers", &names), None);
        assert_eq!(suggestion("namespce", &names), "did you mean namespace?");
        assert_eq!(suggestion("digest", &names), "known are serverLists, namespace");
    }
}
