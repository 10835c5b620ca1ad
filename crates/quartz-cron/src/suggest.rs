//! Suggests a valid expression for an invalid one.

use super::parse::{parse_without_suggestion, split_fields};

/// A valid expression that probably means the same, from classic cron syntax or with the day fields corrected.
pub(super) fn correction(text: &str) -> Option<String> {
    let words = split_fields(text);
    let corrected = match words[..] {
        [word] if word.starts_with('@') => expand_macro(word)?.to_owned(),
        [minute, hour, day, month, weekday] => {
            let (day, weekday) = leave_one_unspecified(day, &weekday_names(weekday));
            format!("0 {minute} {hour} {day} {month} {weekday}")
        }
        [second, minute, hour, day, month, weekday, ref rest @ ..] => {
            let (day, weekday) = leave_one_unspecified(day, weekday);
            let year = rest.first().map(|year| format!(" {year}")).unwrap_or_default();
            format!("{second} {minute} {hour} {day} {month} {weekday}{year}")
        }
        _ => return None,
    };
    let (_, warnings) = parse_without_suggestion(&corrected).ok()?;
    warnings.is_empty().then_some(corrected)
}

fn expand_macro(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 0 1 1 ?",
        "@monthly" => "0 0 0 1 * ?",
        "@weekly" => "0 0 0 ? * SUN",
        "@daily" | "@midnight" => "0 0 0 * * ?",
        "@hourly" => "0 0 * * * ?",
        _ => return None,
    })
}

/// Replaces one of the two day fields with `?` if either means every day.
fn leave_one_unspecified(day: &str, weekday: &str) -> (String, String) {
    match (day, weekday) {
        ("?", "?") => ("*".to_owned(), "?".to_owned()),
        (_, "*") if day != "?" => (day.to_owned(), "?".to_owned()),
        ("*", _) if weekday != "?" => ("?".to_owned(), weekday.to_owned()),
        _ => (day.to_owned(), weekday.to_owned()),
    }
}

/// Replaces numbers by names: in five-field cron Sunday is 0 or 7, in Quartz it is 1.
fn weekday_names(weekday: &str) -> String {
    const NAMES: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
    let has_numbers_only =
        !weekday.contains(['/', '#']) && weekday.bytes().all(|b| !b.is_ascii_alphabetic());
    let name = |c: char| c.to_digit(8).map_or(c.to_string(), |n| NAMES[n as usize].to_owned());
    if has_numbers_only { weekday.chars().map(name).collect() } else { weekday.to_owned() }
}
