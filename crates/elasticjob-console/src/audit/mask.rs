//! Masks secrets of an audit entry: a trigger's parameter, a URL in a problem. What a configuration change stores is masked before.

use elasticjob::job::{mask_text, mask_value};
use serde_json::Value;

use super::trail::Entry;

pub(super) fn mask_entry(entry: &mut Entry) {
    for text in [&mut entry.target, &mut entry.problem].into_iter().flatten() {
        *text = mask_text(text).into_owned();
    }
    mask_json("", &mut entry.request);
    mask_json("", &mut entry.result);
}

/// `key` is the name of the value in the object it is part of.
fn mask_json(key: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = mask_value(key, text).into_owned(),
        Value::Array(parts) => parts.iter_mut().for_each(|part| mask_json(key, part)),
        Value::Object(parts) => parts.iter_mut().for_each(|(key, part)| mask_json(key, part)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_a_request_are_masked_by_name_and_by_form() {
        let mut entry = Entry::login("2026-11-15T06:36:07Z".parse().unwrap(), "ann", "x", None);
        entry.request = json!({ "parameter": "https://u:hunter2@shop", "list": [{ "apiKey": "hunter2" }], "at": "now" });
        entry.problem = Some("cannot call https://shop/?key=hunter2 in time".to_owned());

        mask_entry(&mut entry);

        assert_eq!(
            entry.request,
            json!({ "parameter": "https://u:***@shop", "list": [{ "apiKey": "***" }], "at": "now" })
        );
        assert_eq!(entry.problem.unwrap(), "cannot call https://shop/?key=*** in time");
    }
}
