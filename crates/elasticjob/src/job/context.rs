//! The sharding context of scripts and HTTP jobs, as Java ElasticJob writes it with Gson.

use std::fmt::Write;

/// The sharding context: the last argument of a script, the `shardingContext` header of an HTTP job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub job_name: String,
    pub task_id: String,
    pub sharding_total_count: u32,
    pub job_parameter: Option<String>,
    pub sharding_item: u32,
    pub sharding_parameter: Option<String>,
}

impl Context {
    /// One line of JSON, byte for byte as Java passes it: keys in Java's order, absent values omitted, and `<`, `>`, `&`, `=`, `'`
    /// escaped.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{");
        write_text(&mut json, "jobName", Some(&self.job_name));
        write_text(&mut json, "taskId", Some(&self.task_id));
        write_number(&mut json, "shardingTotalCount", self.sharding_total_count);
        write_text(&mut json, "jobParameter", self.job_parameter.as_deref());
        write_number(&mut json, "shardingItem", self.sharding_item);
        write_text(&mut json, "shardingParameter", self.sharding_parameter.as_deref());
        json.push('}');
        json
    }
}

fn write_key(json: &mut String, name: &str) {
    if json.len() > 1 {
        json.push(',');
    }
    let _ = write!(json, "\"{name}\":");
}

fn write_number(json: &mut String, name: &str, value: u32) {
    write_key(json, name);
    let _ = write!(json, "{value}");
}

fn write_text(json: &mut String, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    write_key(json, name);
    json.push('"');
    for character in value.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\u{c}' => json.push_str("\\f"),
            '<' | '>' | '&' | '=' | '\'' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(character));
            }
            other => json.push(other),
        }
    }
    json.push('"');
}
