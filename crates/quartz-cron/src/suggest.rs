//! What somebody may have meant who wrote something Quartz does not read.

use super::parse::{parse_strictly, words};

/// An expression that is right and looks like the wrong one.
pub(super) fn instead_of(text: &str) -> Option<String> {
    let words = words(text);
    let meant = match words[..] {
        [word] if word.starts_with('@') => of_macro(word)?.to_owned(),
        [minute, hour, day, month, weekday] => {
            let (day, weekday) = one_open(day, &named(weekday));
            format!("0 {minute} {hour} {day} {month} {weekday}")
        }
        [second, minute, hour, day, month, weekday, ref rest @ ..] => {
            let (day, weekday) = one_open(day, weekday);
            let year = rest.first().map(|year| format!(" {year}")).unwrap_or_default();
            format!("{second} {minute} {hour} {day} {month} {weekday}{year}")
        }
        _ => return None,
    };
    let (_, warnings) = parse_strictly(&meant).ok()?;
    warnings.is_empty().then_some(meant)
}

fn of_macro(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 0 1 1 ?",
        "@monthly" => "0 0 0 1 * ?",
        "@weekly" => "0 0 0 ? * SUN",
        "@daily" | "@midnight" => "0 0 0 * * ?",
        "@hourly" => "0 0 * * * ?",
        _ => return None,
    })
}

/// Leaves one of the two days open if either says every day.
fn one_open(day: &str, weekday: &str) -> (String, String) {
    match (day, weekday) {
        ("?", "?") => ("*".to_owned(), "?".to_owned()),
        (_, "*") if day != "?" => (day.to_owned(), "?".to_owned()),
        ("*", _) if weekday != "?" => ("?".to_owned(), weekday.to_owned()),
        _ => (day.to_owned(), weekday.to_owned()),
    }
}

/// Days of the week by name: in five fields Sunday is 0 or 7, in Quartz it is 1.
fn named(weekday: &str) -> String {
    const NAMES: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
    let plain = !weekday.contains(['/', '#']) && weekday.bytes().all(|b| !b.is_ascii_alphabetic());
    let name = |c: char| c.to_digit(8).map_or(c.to_string(), |n| NAMES[n as usize].to_owned());
    if plain { weekday.chars().map(name).collect() } else { weekday.to_owned() }
}
