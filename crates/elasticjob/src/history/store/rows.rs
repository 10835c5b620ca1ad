//! Converts events to rows, and truncates values to the size of their columns.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::super::event::{
    AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Event, FiresMissed, OutputCut,
    OutputPrinted, Status,
};
use super::super::stored_reason::stored_reason;
use crate::job::{FencingToken, Outcome, RunId, RunReason};

/// Size of Java ElasticJob's columns for messages, in characters.
const MESSAGE: usize = 4000;
/// Size of the column for failure groups.
const GROUP: usize = 200;

/// The rows of a batch by table. Events that were recorded twice give one row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) runs: BTreeMap<String, RunRow>,
    pub(super) attempts: BTreeMap<String, AttemptRow>,
    /// The first token that is not lost, by run and shard.
    pub(super) lost: BTreeMap<(String, u32), i64>,
    pub(super) traces: BTreeMap<String, TraceRow>,
    pub(super) missed: BTreeMap<String, MissedRow>,
    pub(super) output: BTreeMap<(String, u32), OutputRow>,
    pub(super) cuts: BTreeMap<String, CutRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct RunRow {
    run_id: String,
    job_name: String,
    due_ms: i64,
    source: &'static str,
    triggered_by: Option<String>,
    total: u32,
    expected: Option<u32>,
    untracked: Option<u32>,
    started_ms: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct AttemptRow {
    id: String,
    job_name: String,
    task_id: String,
    hostname: String,
    ip: String,
    sharding_item: u32,
    execution_source: &'static str,
    failure_cause: Option<String>,
    is_success: u8,
    run_id: String,
    due_ms: i64,
    attempt: u32,
    reason: &'static str,
    token: i64,
    source: &'static str,
    triggered_by: Option<String>,
    outcome: Option<&'static str>,
    started_ms: i64,
    ended_ms: Option<i64>,
    duration_ms: Option<i64>,
    lateness_ms: Option<i64>,
    total: u32,
    instance: String,
    trace_id: Option<String>,
    failure_group: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct TraceRow {
    id: String,
    job_name: String,
    task_id: String,
    slave_id: String,
    sharding_item: String,
    state: &'static str,
    message: String,
    at_ms: i64,
    run_id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct MissedRow {
    id: String,
    job_name: String,
    first_ms: i64,
    last_ms: i64,
    fires: i64,
    why: &'static str,
    noticed_ms: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct OutputRow {
    attempt_id: String,
    part: u32,
    run_id: String,
    sharding_item: u32,
    at_ms: i64,
    /// Lines as JSON: `[[milliseconds, stream, text], …]`.
    content: String,
}

#[derive(Debug, Serialize)]
pub(super) struct CutRow {
    attempt_id: String,
    run_id: String,
    sharding_item: u32,
    from_part: u32,
    to_part: u32,
    bytes: i64,
}

impl Rows {
    pub(super) fn of(batch: &[Event]) -> Self {
        let mut rows = Self::default();
        for event in batch {
            match event {
                Event::Started(started) => rows.started(started),
                Event::Ended(ended) => rows.ended(ended),
                Event::Lost(lost) => rows.lost(lost),
                Event::Status(status) => rows.status(status),
                Event::Missed(missed) => rows.missed(missed),
                Event::Printed(printed) => rows.printed(printed),
                Event::Cut(cut) => rows.cut(cut),
            }
        }
        rows
    }

    /// A failover attempt implies that the previous holder of the shard is gone.
    fn note_takeover(&mut self, started: &AttemptStarted) {
        if started.attempt.reason == RunReason::Failover {
            self.mark_lost(&started.run, started.item, started.token);
        }
    }

    fn lost(&mut self, lost: &AttemptLost) {
        self.mark_lost(&lost.run, lost.item, lost.token);
    }

    fn mark_lost(&mut self, run: &RunId, item: u32, token: FencingToken) {
        let first = self.lost.entry((truncate_distinct(&run.to_string(), 150), item)).or_default();
        *first = (*first).max(token.get());
    }

    fn started(&mut self, started: &AttemptStarted) {
        self.run(started);
        self.note_takeover(started);
        let row = attempt(started);
        self.attempts.entry(row.id.clone()).or_insert(row);
    }

    fn ended(&mut self, ended: &AttemptEnded) {
        self.run(&ended.started);
        self.note_takeover(&ended.started);
        let mut row = attempt(&ended.started);
        let message = ended.message.as_deref();
        row.is_success = u8::from(ended.outcome.is_success());
        row.outcome = Some(ended.outcome.as_str());
        row.failure_cause = message.map(|message| truncate(message, MESSAGE));
        // A cancelled attempt did not fail.
        if !matches!(ended.outcome, Outcome::Succeeded | Outcome::Cancelled) {
            row.failure_group = message.map(failure_group);
        }
        row.ended_ms = Some(millis(ended.at));
        row.duration_ms = Some((millis(ended.at) - row.started_ms).max(0));
        self.attempts.insert(row.id.clone(), row);
    }

    fn run(&mut self, started: &AttemptStarted) {
        let at = millis(started.at);
        let run = self.runs.entry(truncate_distinct(&started.run.to_string(), 150)).or_insert_with(
            || RunRow {
                run_id: truncate_distinct(&started.run.to_string(), 150),
                job_name: truncate_distinct(started.job.as_str(), 100),
                due_ms: millis(started.due_at),
                source: source(&started.run),
                triggered_by: triggered_by(started),
                total: started.total.get(),
                expected: None,
                untracked: None,
                started_ms: at,
            },
        );
        run.started_ms = run.started_ms.min(at);
        // A part of a triggered run that had to wait expects only what is left, so the largest number counts.
        run.expected = run.expected.max(started.expected.map(|expected| expected.tracked));
        run.untracked = run.untracked.max(started.expected.map(|expected| expected.untracked));
    }

    fn status(&mut self, status: &Status) {
        let (run, task) = (status.run.to_string(), status.task.to_string());
        let at_ms = millis(status.at);
        let id = derived_uuid(&format!("{run}#{task}#{}#{at_ms}", status.state.as_str()));
        let items: Vec<String> = status.task.items.iter().map(u32::to_string).collect();
        let row = TraceRow {
            id: id.clone(),
            job_name: truncate_distinct(status.task.job.as_str(), 100),
            task_id: truncate_distinct(&task, 255),
            slave_id: truncate(status.task.instance.server(), 50),
            sharding_item: java_list(&items, 100),
            state: status.state.as_str(),
            message: truncate(&status.message, MESSAGE),
            at_ms,
            run_id: truncate_distinct(&run, 150),
        };
        self.traces.insert(id, row);
    }

    fn missed(&mut self, missed: &FiresMissed) {
        let (first_ms, last_ms) = (millis(missed.first), millis(missed.last));
        let why = missed.reason.as_str();
        // Every instance reports the gap, each up to the time of its check, so the id does not contain its end.
        let id = derived_uuid(&format!("{}#{first_ms}#{why}", missed.job));
        let row = MissedRow {
            id: id.clone(),
            job_name: truncate_distinct(missed.job.as_str(), 100),
            first_ms,
            last_ms,
            fires: i64::try_from(missed.count).unwrap_or(i64::MAX),
            why,
            noticed_ms: millis(missed.at),
        };
        let longer = self.missed.get(&id).is_none_or(|known| known.last_ms < row.last_ms);
        if longer {
            self.missed.insert(id, row);
        }
    }

    fn printed(&mut self, printed: &OutputPrinted) {
        let lines: Vec<(i64, &str, String)> = printed
            .lines
            .iter()
            .map(|line| (millis(line.at), line.stream, without_nul(&line.text)))
            .collect();
        let row = OutputRow {
            attempt_id: printed.id.to_string(),
            part: printed.part,
            run_id: truncate_distinct(&printed.run.to_string(), 150),
            sharding_item: printed.item,
            at_ms: lines.first().map_or(0, |(at, ..)| *at),
            content: serde_json::to_string(&lines).unwrap_or_else(|_| "[]".to_owned()),
        };
        self.output.insert((row.attempt_id.clone(), row.part), row);
    }

    fn cut(&mut self, cut: &OutputCut) {
        let row = CutRow {
            attempt_id: cut.id.to_string(),
            run_id: truncate_distinct(&cut.run.to_string(), 150),
            sharding_item: cut.item,
            from_part: cut.from,
            to_part: cut.to,
            bytes: i64::try_from(cut.bytes).unwrap_or(i64::MAX),
        };
        let larger = self.cuts.get(&row.attempt_id).is_none_or(|known| known.bytes <= row.bytes);
        if larger {
            self.cuts.insert(row.attempt_id.clone(), row);
        }
    }
}

fn attempt(started: &AttemptStarted) -> AttemptRow {
    let (started_ms, due_ms) = (millis(started.at), millis(started.due_at));
    AttemptRow {
        id: started.id.to_string(),
        job_name: truncate_distinct(started.job.as_str(), 100),
        task_id: truncate_distinct(&started.task.to_string(), 255),
        hostname: truncate(&started.host, 255),
        ip: truncate(started.task.instance.server(), 50),
        sharding_item: started.item,
        execution_source: execution_source(started.attempt.reason),
        failure_cause: None,
        is_success: 0,
        run_id: truncate_distinct(&started.run.to_string(), 150),
        due_ms,
        attempt: started.attempt.number.get(),
        reason: stored_reason(started.attempt.reason),
        token: started.token.get(),
        source: source(&started.run),
        triggered_by: triggered_by(started),
        outcome: None,
        started_ms,
        ended_ms: None,
        duration_ms: None,
        lateness_ms: started.run.is_scheduled().then_some((started_ms - due_ms).max(0)),
        total: started.total.get(),
        instance: truncate_distinct(started.task.instance.as_str(), 100),
        trace_id: started.trace.as_deref().map(|trace| truncate(trace, 32)),
        failure_group: None,
    }
}

/// Java ElasticJob's words, and two in its style for reasons that it does not have.
fn execution_source(reason: RunReason) -> &'static str {
    match reason {
        RunReason::Schedule | RunReason::Trigger => "NORMAL_TRIGGER",
        RunReason::Misfire => "MISFIRE",
        RunReason::Failover => "FAILOVER",
        RunReason::Retry => "RETRY",
        RunReason::CatchUp => "CATCH_UP",
    }
}

fn source(run: &RunId) -> &'static str {
    if run.is_scheduled() { "schedule" } else { "trigger" }
}

fn triggered_by(started: &AttemptStarted) -> Option<String> {
    started.triggered_by.as_deref().map(|by| truncate(by, 100))
}

/// Clamped to MySQL's TIMESTAMP range, which begins one second after the epoch and ends in 2038.
fn millis(at: Timestamp) -> i64 {
    at.as_millisecond().clamp(1000, 2_147_483_647_000)
}

/// Replaces NUL characters, which PostgreSQL does not support.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Truncates a text to `most` characters, with an ellipsis.
fn truncate(text: &str, most: usize) -> String {
    let text = without_nul(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Truncates a text to `most` characters and appends an id, so that different texts stay different.
pub(super) fn truncate_distinct(text: &str, most: usize) -> String {
    let text = without_nul(text);
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most - 37).collect();
    format!("{kept}~{}", derived_uuid(&text))
}

/// Formats a list as Java does: `[0, 1, 2]`; a long one ends in `…]`.
fn java_list(items: &[String], most: usize) -> String {
    let text = format!("[{}]", items.join(", "));
    if text.chars().count() <= most {
        return text;
    }
    let kept: String = text.chars().take(most - 2).collect();
    let whole = kept.rsplit_once(", ").map_or(kept.as_str(), |(whole, _)| whole);
    format!("{whole}, …]")
}

/// A UUID that is derived from the text and never changes.
fn derived_uuid(text: &str) -> String {
    AttemptId::from_text(text).to_string()
}

/// The common form of similar messages: the first line, with placeholders for numbers, hexadecimal words and UUIDs.
pub(super) fn failure_group(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut grouped = String::new();
    let mut word = String::new();
    for character in line.chars().chain(['\n']) {
        if character.is_ascii_alphanumeric() || (character == '-' && is_hex(&word)) {
            word.push(character);
            continue;
        }
        push_masked(&mut grouped, &word);
        word.clear();
        if character != '\n' {
            grouped.push(character);
        }
    }
    truncate(&grouped, GROUP)
}

fn is_hex(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Appends a word, or a placeholder if it is a number, a hexadecimal word or a UUID.
fn push_masked(grouped: &mut String, word: &str) {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    if is_hex(word) && parts == [8, 4, 4, 4, 12] {
        grouped.push_str("<uuid>");
        return;
    }
    for (number, part) in word.split('-').enumerate() {
        if number > 0 {
            grouped.push('-');
        }
        let hex = part.strip_prefix("0x").unwrap_or(part);
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        if has_digit && !digits && hex.len() >= 8 && is_hex(hex)
            || part.starts_with("0x") && is_hex(hex)
        {
            grouped.push_str("<hex>");
            continue;
        }
        let mut in_number = false;
        for character in part.chars() {
            if character.is_ascii_digit() {
                if !in_number {
                    grouped.push_str("<n>");
                }
                in_number = true;
            } else {
                in_number = false;
                grouped.push(character);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_messages_share_a_group() {
        for (message, expected) in [
            ("order 4711 not found\nat line 3", "order <n> not found"),
            ("  \n user 0f8fad5b-d9cb-469f-a165-70867728950e is gone", "user <uuid> is gone"),
            ("commit deadbeef01 failed", "commit <hex> failed"),
            ("at 0x7ffe: bad", "at <hex>: bad"),
            ("exit code: 1", "exit code: <n>"),
            ("feed a face", "feed a face"),
            ("host db-2 took 15ms", "host db-<n> took <n>ms"),
            ("", ""),
        ] {
            assert_eq!(failure_group(message), expected);
        }
    }

    #[test]
    fn long_values_are_truncated_and_stay_distinct() {
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("报报报报", 3), "报报…");
        assert_eq!(truncate("a\0b", 3), "a\u{fffd}b");

        let (one, other) = (format!("{}1", "x".repeat(200)), format!("{}2", "x".repeat(200)));
        assert_eq!(truncate_distinct(&one, 100).chars().count(), 100);
        assert_ne!(truncate_distinct(&one, 100), truncate_distinct(&other, 100));

        let items: Vec<String> = (0..100).map(|item: u32| item.to_string()).collect();
        let java_list = java_list(&items, 100);
        assert!(
            java_list.len() <= 102
                && java_list.starts_with("[0, 1, 2")
                && java_list.ends_with(", …]")
        );
    }
}
