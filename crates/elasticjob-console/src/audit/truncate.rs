//! Truncates long values of an audit entry, so that large requests of one user do not push out the entries of others.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::trail::Entry;

const MAX_TEXT_CHARS: usize = 256;
/// Items of a list.
const MAX_ITEMS: usize = 100;
/// Bytes of a request or result as a whole.
const MAX_VALUE_BYTES: usize = 8 * 1024;

pub(super) fn truncate_entry(entry: &mut Entry) {
    shorten(&mut entry.username, MAX_TEXT_CHARS);
    shorten(&mut entry.action, MAX_TEXT_CHARS);
    for text in [&mut entry.target, &mut entry.problem].into_iter().flatten() {
        shorten(text, MAX_TEXT_CHARS * 4);
    }
    for value in [&mut entry.request, &mut entry.result] {
        truncate_value(value);
        let whole = value.to_string();
        if whole.len() > MAX_VALUE_BYTES {
            *value = Value::String(shortened(&whole, MAX_TEXT_CHARS * 4));
        }
    }
}

fn truncate_value(value: &mut Value) {
    match value {
        Value::String(text) => shorten(text, MAX_TEXT_CHARS),
        Value::Array(parts) => {
            let more = parts.len().saturating_sub(MAX_ITEMS);
            if more > 0 {
                parts.truncate(MAX_ITEMS);
                parts.push(format!("… and {more} more").into());
            }
            parts.iter_mut().for_each(truncate_value);
        }
        Value::Object(parts) => parts.values_mut().for_each(truncate_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shorten(text: &mut String, longest: usize) {
    if text.len() > longest && text.chars().count() > longest {
        *text = shortened(text, longest);
    }
}

/// The beginning of a text, its length, and its SHA-256 to identify it.
fn shortened(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).collect();
    // Writing to a string never fails.
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
    fn long_values_are_truncated_with_length_and_digest() {
        let mut entry = Entry::login("2026-11-15T06:36:07Z".parse().unwrap(), "ann", "x", None);
        let many: Vec<u32> = (0..1_000).collect();
        entry.request = json!({ "parameter": "x".repeat(65_536), "short": "y", "shards": many });
        entry.result =
            json!((0..90).map(|number| format!("{number}{}", "z".repeat(200))).collect::<Vec<_>>());

        truncate_entry(&mut entry);

        let shown = entry.request["parameter"].as_str().unwrap();
        assert!(shown.starts_with("xxx") && shown.chars().count() < 400, "{shown}");
        assert!(shown.contains("(65536 bytes, SHA-256 1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3)"), "{shown}");
        assert_eq!(entry.request["short"], "y");
        assert_eq!(entry.request["shards"][100], "… and 900 more");
        assert!(serde_json::to_vec(&entry).unwrap().len() < 12_000);
        assert!(entry.result.as_str().unwrap().contains("SHA-256"), "too long as a whole");
    }
}
