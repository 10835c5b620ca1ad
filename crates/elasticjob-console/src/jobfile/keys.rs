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
    let near = names
        .iter()
        .map(|known| (strsim::osa_distance(&wanted, &relaxed(known)), *known))
        .filter(|(distance, _)| *distance <= wanted.chars().count().max(3) / 3)
        .min();
    match near {
        Some((_, known)) => format!("did you mean {known}?"),
        None => format!("known are {}", names.join(", ")),
    }
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
