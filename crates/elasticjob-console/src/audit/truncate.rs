//! What is long in an entry of the audit is cut: who asks for something large is not to push out what others did.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::trail::Entry;

/// How many characters of a text are kept.
const LONGEST: usize = 256;
/// How many parts a list or an object may have.
const MOST: usize = 100;
/// How many bytes what was asked for, or what came of it, may have as a whole.
const LARGEST: usize = 8 * 1024;

/// Cuts whatever is long.
pub(super) fn cut(entry: &mut Entry) {
    shorten(&mut entry.username, LONGEST);
    shorten(&mut entry.action, LONGEST);
    for text in [&mut entry.target, &mut entry.problem].into_iter().flatten() {
        shorten(text, LONGEST * 4);
    }
    for value in [&mut entry.asked, &mut entry.result] {
        cut_value(value);
        let whole = value.to_string();
        if whole.len() > LARGEST {
            *value = Value::String(shortened(&whole, LONGEST * 4));
        }
    }
}

fn cut_value(value: &mut Value) {
    match value {
        Value::String(text) => shorten(text, LONGEST),
        Value::Array(parts) => {
            let more = parts.len().saturating_sub(MOST);
            if more > 0 {
                parts.truncate(MOST);
                parts.push(format!("… and {more} more").into());
            }
            parts.iter_mut().for_each(cut_value);
        }
        Value::Object(parts) => parts.values_mut().for_each(cut_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shorten(text: &mut String, longest: usize) {
    if text.len() > longest && text.chars().count() > longest {
        *text = shortened(text, longest);
    }
}

/// Its beginning, how long it is, and by what it can be recognised.
fn shortened(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).collect();
    // Writing to a string does not fail.
    let _ = write!(short, "… ({} bytes, SHA-256 ", text.len());
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        let _ = write!(short, "{byte:02x}");
    }
    short.push(')');
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_long_is_cut_and_can_still_be_recognised() {
        let mut entry = Entry::of_login("2026-11-15T06:36:07Z".parse().unwrap(), "ann", "x", None);
        let many: Vec<u32> = (0..1_000).collect();
        entry.asked = json!({ "parameter": "x".repeat(65_536), "short": "y", "shards": many });
        entry.result =
            json!((0..90).map(|each| format!("{each}{}", "z".repeat(200))).collect::<Vec<_>>());

        cut(&mut entry);

        let told = entry.asked["parameter"].as_str().unwrap();
        assert!(told.starts_with("xxx") && told.chars().count() < 400, "{told}");
        assert!(told.contains("(65536 bytes, SHA-256 1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3)"), "{told}");
        assert_eq!(entry.asked["short"], "y");
        assert_eq!(entry.asked["shards"][100], "… and 900 more");
        assert!(serde_json::to_vec(&entry).unwrap().len() < 12_000);
        assert!(entry.result.as_str().unwrap().contains("SHA-256"), "it is too long as a whole");
    }
}
