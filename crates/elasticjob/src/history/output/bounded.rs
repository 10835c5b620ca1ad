//! Limits what is kept of one attempt's output.
//!
//! ```text
//!   part 0 │ 1 │ 2 │ … not kept … │ 9 │ 10 │ 11
//!   ╰───── head ─────╯             ╰─── tail ───╯
//! ```
//!
//! Lines are collected into parts; a part is recorded about every second, or when it is large. The head is always kept. Of what follows, only
//! the last parts are kept: each new part cuts the oldest of them, whether it was recorded already or not. So what is recorded within a second
//! is limited, too.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::{
    history::{AttemptId, Event, Line, OutputCut, OutputPrinted},
    job::{RunId, Shard},
};

/// Longer lines are truncated to this many bytes.
const MAX_LINE: usize = 16 * 1024;

/// A part is closed before it exceeds this many bytes.
const MAX_PART: usize = 32 * 1024;

/// The output of one attempt, up to a limit.
#[derive(Debug)]
pub(crate) struct BoundedOutput {
    id: AttemptId,
    run: RunId,
    item: u32,
    /// Limit in bytes for the head, and again for the tail.
    half: usize,
    /// Lines of the part that is still open.
    lines: Vec<Line>,
    bytes: usize,
    next: u32,
    /// Size of the head so far.
    head_bytes: usize,
    /// The first part after the head.
    after_head: Option<u32>,
    /// The parts of the tail: number, bytes, and the lines unless they were recorded.
    tail: VecDeque<(u32, usize, Option<Vec<Line>>)>,
    tail_bytes: usize,
    cut_bytes: u64,
    is_cut_recorded: bool,
    ready: Vec<Event>,
}

impl BoundedOutput {
    /// Keeps at most `limit` bytes of this attempt's output.
    pub(crate) fn of(shard: &Shard, limit: usize) -> Self {
        Self {
            id: AttemptId::of(shard),
            run: shard.run.clone(),
            item: shard.item,
            half: limit / 2,
            lines: Vec::new(),
            bytes: 0,
            next: 0,
            head_bytes: 0,
            after_head: None,
            tail: VecDeque::new(),
            tail_bytes: 0,
            cut_bytes: 0,
            is_cut_recorded: true,
            ready: Vec::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn print(&mut self, at: Timestamp, stream: &'static str, text: &str) {
        let text = truncate_line(text);
        let bytes = text.len() + 1;
        let max_part = MAX_PART.min(self.half / 4);
        // Closes the last part of the head just before the head would exceed its limit.
        let exceeds_head =
            self.after_head.is_none() && self.head_bytes + self.bytes + bytes > self.half;
        if exceeds_head || self.bytes + bytes > max_part {
            self.close();
        }
        if exceeds_head {
            self.after_head = Some(self.next);
        }
        self.lines.push(Line { at, stream, text });
        self.bytes += bytes;
    }

    /// The events that are not recorded yet.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        self.close();
        let mut events = std::mem::take(&mut self.ready);
        for (part, _, lines) in &mut self.tail {
            if let Some(lines) = lines.take() {
                events.push(printed(self.id, &self.run, self.item, *part, lines));
            }
        }
        if let (false, Some(from)) = (self.is_cut_recorded, self.after_head) {
            self.is_cut_recorded = true;
            let to = self.tail.front().map_or(self.next, |(part, ..)| *part);
            let run = self.run.clone();
            let (id, item, bytes) = (self.id, self.item, self.cut_bytes);
            events.push(Event::Cut(OutputCut { id, run, item, from, to, bytes }));
        }
        events
    }

    /// Closes the open part.
    fn close(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let (lines, bytes, part) =
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.bytes), self.next);
        self.next += 1;
        if self.after_head.is_none() {
            self.head_bytes += bytes;
            self.ready.push(printed(self.id, &self.run, self.item, part, lines));
            return;
        }
        self.tail.push_back((part, bytes, Some(lines)));
        self.tail_bytes += bytes;
        while self.tail_bytes > self.half
            && self.tail.len() > 1
            && let Some((_, bytes, _)) = self.tail.pop_front()
        {
            self.tail_bytes -= bytes;
            self.cut_bytes += bytes as u64;
            self.is_cut_recorded = false;
        }
    }
}

fn printed(id: AttemptId, run: &RunId, item: u32, part: u32, lines: Vec<Line>) -> Event {
    Event::Printed(OutputPrinted { id, run: run.clone(), item, part, lines })
}

/// Truncates a line to its maximum length.
fn truncate_line(text: &str) -> String {
    if text.len() <= MAX_LINE {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_LINE)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::job::{FencingToken, Fire, Job};

    fn output(limit: usize) -> BoundedOutput {
        let job = Job::named("settle").unwrap();
        let fire = Fire::scheduled(job.name.clone(), Timestamp::UNIX_EPOCH);
        let task = "settle@-@0@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
        BoundedOutput::of(&Shard::of(&job, &fire, task, 0, FencingToken::new(1)), limit)
    }

    /// Stores output events as a sink does.
    #[derive(Default)]
    struct StoredOutput {
        parts: BTreeMap<u32, Vec<String>>,
        cut: Option<OutputCut>,
        recorded_bytes: usize,
    }

    impl StoredOutput {
        fn keep(&mut self, events: Vec<Event>) {
            for event in events {
                match event {
                    Event::Printed(printed) => {
                        let lines: Vec<String> =
                            printed.lines.into_iter().map(|line| line.text).collect();
                        self.recorded_bytes +=
                            lines.iter().map(|line| line.len() + 1).sum::<usize>();
                        assert!(self.parts.insert(printed.part, lines).is_none(), "recorded twice");
                    }
                    Event::Cut(cut) => {
                        self.parts.retain(|part, _| *part < cut.from || *part >= cut.to);
                        self.cut = Some(cut);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }

        fn lines(&self) -> Vec<&String> {
            self.parts.values().flatten().collect()
        }
    }

    #[test]
    fn output_within_limit_is_kept_whole() {
        let (mut output, mut stored) = (output(1000), StoredOutput::default());

        output.print(Timestamp::UNIX_EPOCH, "stdout", "one");
        stored.keep(output.take_events());
        output.print(Timestamp::UNIX_EPOCH, "INFO", "two");
        output.print(Timestamp::UNIX_EPOCH, "INFO", "three");
        stored.keep(output.take_events());
        stored.keep(output.take_events());

        assert_eq!(stored.lines(), ["one", "two", "three"]);
        assert_eq!(stored.parts.keys().copied().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn excess_output_keeps_head_and_tail_and_reports_cut_bytes() {
        for every in [1, 7, 5000, usize::MAX] {
            let (mut output, mut stored) = (output(10_000), StoredOutput::default());
            let mut printed = 0;

            for number in 0..10_000_usize {
                let line = format!("line {number}");
                printed += line.len() + 1;
                output.print(Timestamp::UNIX_EPOCH, "stdout", &line);
                if number % every == every - 1 {
                    stored.keep(output.take_events());
                }
            }
            stored.keep(output.take_events());

            let lines = stored.lines();
            let kept: usize = lines.iter().map(|line| line.len() + 1).sum();
            let cut = stored.cut.clone().unwrap();
            assert_eq!((lines[0].as_str(), lines[1].as_str()), ("line 0", "line 1"));
            assert_eq!(*lines.last().unwrap(), "line 9999");
            assert!((7_000..=10_000).contains(&kept), "{kept}");
            assert_eq!(kept as u64 + cut.bytes, printed as u64);
            if every == usize::MAX {
                assert!(
                    stored.recorded_bytes <= 10_000,
                    "excess output is cut before it is recorded"
                );
            }
        }
    }

    #[test]
    fn long_line_is_truncated_between_characters() {
        let (mut output, mut stored) = (output(1 << 20), StoredOutput::default());

        output.print(Timestamp::UNIX_EPOCH, "stdout", &"报".repeat(MAX_LINE));
        stored.keep(output.take_events());

        let line = stored.lines()[0];
        assert!(line.ends_with("报…") && line.len() <= MAX_LINE + "…".len());
    }
}
