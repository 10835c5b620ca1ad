//! What one attempt prints, within bounds.
//!
//! ```text
//!   part 0 │ 1 │ 2 │ … left out … │ 9 │ 10 │ 11
//!   ╰── the beginning ──╯          ╰── the end ──╯
//! ```
//!
//! Lines are gathered into parts; a part is told about every second, or when it is large. The beginning stays. Of what follows only the last parts stay:
//! when a new one comes the oldest of them is cut, wherever it is: told already, or not yet. So what is told in a second is bounded, too.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::{
    history::{AttemptId, Cut, Event, Line, Printed},
    job::{RunId, Shard},
};

/// A line is cut after this many bytes.
const LONGEST: usize = 16 * 1024;

/// A part is closed when it has this many bytes.
const LARGE: usize = 32 * 1024;

/// What one attempt prints.
#[derive(Debug)]
pub(crate) struct Page {
    id: AttemptId,
    run: RunId,
    item: u32,
    /// How many bytes of the beginning are kept, and how many of the end.
    half: usize,
    /// What is not in a part yet.
    lines: Vec<Line>,
    bytes: usize,
    next: u32,
    /// How many bytes of the beginning there are.
    beginning: usize,
    /// The first part that is not of the beginning.
    middle: Option<u32>,
    /// The parts of the end: number, bytes, and the lines unless they were told.
    end: VecDeque<(u32, usize, Option<Vec<Line>>)>,
    end_bytes: usize,
    cut_bytes: u64,
    is_cut_told: bool,
    ready: Vec<Event>,
}

impl Page {
    /// For this shard, with at most this many bytes.
    pub(crate) fn of(shard: &Shard, limit: usize) -> Self {
        Self {
            id: AttemptId::of(shard),
            run: shard.run.clone(),
            item: shard.item,
            half: limit / 2,
            lines: Vec::new(),
            bytes: 0,
            next: 0,
            beginning: 0,
            middle: None,
            end: VecDeque::new(),
            end_bytes: 0,
            cut_bytes: 0,
            is_cut_told: true,
            ready: Vec::new(),
        }
    }

    /// A line was printed.
    pub(crate) fn print(&mut self, at: Timestamp, stream: &'static str, text: &str) {
        let text = shorten(text);
        let bytes = text.len() + 1;
        let large = LARGE.min(self.half / 4);
        // The last part of the beginning is closed just before it would be too much.
        let is_over = self.middle.is_none() && self.beginning + self.bytes + bytes > self.half;
        if is_over || self.bytes + bytes > large {
            self.close();
        }
        if is_over {
            self.middle = Some(self.next);
        }
        self.lines.push(Line { at, stream, text });
        self.bytes += bytes;
    }

    /// What there is to tell by now.
    pub(crate) fn tell(&mut self) -> Vec<Event> {
        self.close();
        let mut events = std::mem::take(&mut self.ready);
        for (part, _, lines) in &mut self.end {
            if let Some(lines) = lines.take() {
                events.push(printed(self.id, &self.run, self.item, *part, lines));
            }
        }
        if let (false, Some(from)) = (self.is_cut_told, self.middle) {
            self.is_cut_told = true;
            let to = self.end.front().map_or(self.next, |(part, ..)| *part);
            let run = self.run.clone();
            let (id, item, bytes) = (self.id, self.item, self.cut_bytes);
            events.push(Event::Cut(Cut { id, run, item, from, to, bytes }));
        }
        events
    }

    /// Makes a part of the lines that are in none.
    fn close(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let (lines, bytes, part) =
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.bytes), self.next);
        self.next += 1;
        if self.middle.is_none() {
            self.beginning += bytes;
            self.ready.push(printed(self.id, &self.run, self.item, part, lines));
            return;
        }
        self.end.push_back((part, bytes, Some(lines)));
        self.end_bytes += bytes;
        while self.end_bytes > self.half
            && self.end.len() > 1
            && let Some((_, bytes, _)) = self.end.pop_front()
        {
            self.end_bytes -= bytes;
            self.cut_bytes += bytes as u64;
            self.is_cut_told = false;
        }
    }
}

fn printed(id: AttemptId, run: &RunId, item: u32, part: u32, lines: Vec<Line>) -> Event {
    Event::Printed(Printed { id, run: run.clone(), item, part, lines })
}

/// Not longer than a line may be.
fn shorten(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::job::{FencingToken, Fire, Job};

    fn page(limit: usize) -> Page {
        let job = Job::named("settle").unwrap();
        let fire = Fire::scheduled(job.name.clone(), Timestamp::UNIX_EPOCH);
        let task = "settle@-@0@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
        Page::of(&Shard::of(&job, &fire, task, 0, FencingToken::new(1)), limit)
    }

    /// What somebody who keeps these has in the end, and how much of it was cut.
    #[derive(Default)]
    struct Shelf {
        parts: BTreeMap<u32, Vec<String>>,
        cut: Option<Cut>,
        told: usize,
    }

    impl Shelf {
        fn keep(&mut self, events: Vec<Event>) {
            for event in events {
                match event {
                    Event::Printed(printed) => {
                        let lines: Vec<String> =
                            printed.lines.into_iter().map(|line| line.text).collect();
                        self.told += lines.iter().map(|line| line.len() + 1).sum::<usize>();
                        assert!(self.parts.insert(printed.part, lines).is_none(), "told twice");
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
    fn what_fits_is_told_as_it_was_printed() {
        let (mut page, mut shelf) = (page(1000), Shelf::default());

        page.print(Timestamp::UNIX_EPOCH, "stdout", "one");
        shelf.keep(page.tell());
        page.print(Timestamp::UNIX_EPOCH, "INFO", "two");
        page.print(Timestamp::UNIX_EPOCH, "INFO", "three");
        shelf.keep(page.tell());
        shelf.keep(page.tell());

        assert_eq!(shelf.lines(), ["one", "two", "three"]);
        assert_eq!(shelf.parts.keys().copied().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn of_too_much_the_beginning_and_the_end_are_kept_and_the_cut_says_how_much_is_gone() {
        for every in [1, 7, 5000, usize::MAX] {
            let (mut page, mut shelf) = (page(10_000), Shelf::default());
            let mut printed = 0;

            for number in 0..10_000_usize {
                let line = format!("line {number}");
                printed += line.len() + 1;
                page.print(Timestamp::UNIX_EPOCH, "stdout", &line);
                if number % every == every - 1 {
                    shelf.keep(page.tell());
                }
            }
            shelf.keep(page.tell());

            let lines = shelf.lines();
            let kept: usize = lines.iter().map(|line| line.len() + 1).sum();
            let cut = shelf.cut.clone().unwrap();
            assert_eq!((lines[0].as_str(), lines[1].as_str()), ("line 0", "line 1"));
            assert_eq!(*lines.last().unwrap(), "line 9999");
            assert!((7_000..=10_000).contains(&kept), "{kept}");
            assert_eq!(kept as u64 + cut.bytes, printed as u64);
            if every == usize::MAX {
                assert!(shelf.told <= 10_000, "a flood is cut before it is told");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        let (mut page, mut shelf) = (page(1 << 20), Shelf::default());

        page.print(Timestamp::UNIX_EPOCH, "stdout", &"报".repeat(LONGEST));
        shelf.keep(page.tell());

        let line = shelf.lines()[0];
        assert!(line.ends_with("报…") && line.len() <= LONGEST + "…".len());
    }
}
