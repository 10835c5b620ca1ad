//! What scripts and HTTP jobs are told, as the ancestor writes it (Gson).

use std::fmt::Write;

/// The sharding context: the last argument of a script, the `shardingContext` header of an HTTP job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The job.
    pub job_name: String,
    /// The shards of this run on this instance.
    pub task_id: String,
    /// How many shards the job has.
    pub sharding_total_count: u32,
    /// What every shard is given.
    pub job_parameter: Option<String>,
    /// Which shard this is.
    pub sharding_item: u32,
    /// What this shard is given.
    pub sharding_parameter: Option<String>,
}

impl Context {
    /// One line of JSON, byte for byte what the ancestor passes: keys in its order, what is not there left out, and
    /// `<`, `>`, `&`, `=`, `'` escaped.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{");
        text(&mut json, "jobName", Some(&self.job_name));
        text(&mut json, "taskId", Some(&self.task_id));
        number(&mut json, "shardingTotalCount", self.sharding_total_count);
        text(&mut json, "jobParameter", self.job_parameter.as_deref());
        number(&mut json, "shardingItem", self.sharding_item);
        text(&mut json, "shardingParameter", self.sharding_parameter.as_deref());
        json.push('}');
        json
    }
}

fn key(json: &mut String, name: &str) {
    if json.len() > 1 {
        json.push(',');
    }
    let _ = write!(json, "\"{name}\":");
}

fn number(json: &mut String, name: &str, value: u32) {
    key(json, name);
    let _ = write!(json, "{value}");
}

fn text(json: &mut String, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    key(json, name);
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
