//! What waits to be kept: so much and no more, and what matters least makes room.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{
    counts::Counters,
    weight::{Room, weight},
};
use crate::history::{Event, StatusState};

/// What an event is worth when there is no room for all. In this order: the first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Worth {
    /// What was printed.
    Output,
    /// That something begins or goes on. Whoever tells how it ended tells this, too.
    Progress,
    /// That something ended well. Without it, it would be running for ever, or lost.
    Ending,
    /// That something went wrong, or was missed.
    Failure,
}

impl Worth {
    /// All of them, those that go first first.
    pub const ALL: [Self; 4] = [Self::Output, Self::Progress, Self::Ending, Self::Failure];

    /// What this event is worth.
    pub fn of(event: &Event) -> Self {
        match event {
            Event::Printed(_) | Event::Cut(_) => Self::Output,
            Event::Started(_) => Self::Progress,
            Event::Ended(ended) if ended.ending.is_done() => Self::Ending,
            Event::Status(status) => match status.state {
                StatusState::Error | StatusState::Killed | StatusState::Lost => Self::Failure,
                _ => Self::Progress,
            },
            Event::Ended(_) | Event::Lost(_) | Event::Missed(_) => Self::Failure,
        }
    }

    /// `output`, `progress`, `ending` or `failure`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Progress => "progress",
            Self::Ending => "ending",
            Self::Failure => "failure",
        }
    }
}

/// What waits for one sink. Putting something in never waits.
#[derive(Debug)]
pub(super) struct Queue {
    room: Room,
    /// What is taken at once. As soon as there is as much it is worth taking.
    batch: Room,
    lanes: Mutex<Lanes>,
    /// Something waits, or a batch does.
    pub(super) changed: Notify,
}

/// One lane for each worth, so that what goes first is found at once. The numbers put them together again.
#[derive(Debug, Default)]
struct Lanes {
    of: [VecDeque<(u64, Event)>; Worth::ALL.len()],
    next: u64,
    length: usize,
    bytes: usize,
}

impl Queue {
    pub(super) fn new(room: Room, batch: Room) -> Self {
        Self { room, batch, lanes: Mutex::default(), changed: Notify::new() }
    }

    /// Puts an event at the end. If there is no room, what is worth less than it goes; if nothing is, it goes itself.
    pub(super) fn push(&self, event: Event, counters: &Counters) {
        let worth = Worth::of(&event);
        let weight = weight(&event);
        let mut lanes = self.lock();
        while lanes.length >= self.room.events || lanes.bytes + weight > self.room.bytes {
            if !lanes.drop_below(worth, counters) {
                counters.dropped(worth);
                return;
            }
        }
        let number = lanes.next;
        lanes.next += 1;
        lanes.length += 1;
        lanes.bytes += weight;
        lanes.of[worth as usize].push_back((number, event));
        let is_first = lanes.length == 1;
        let is_batch = lanes.length == self.batch.events
            || (lanes.bytes >= self.batch.bytes && lanes.bytes - weight < self.batch.bytes);
        drop(lanes);
        if is_first || is_batch {
            self.changed.notify_one();
        }
    }

    /// Takes a batch, oldest first: at least one if there is one, however large it is.
    pub(super) fn take(&self) -> Vec<Event> {
        let mut lanes = self.lock();
        let mut batch = Vec::with_capacity(self.batch.events.min(lanes.length));
        let mut bytes = 0;
        while batch.len() < self.batch.events
            && let Some(next) = lanes.next_weight()
            && (batch.is_empty() || bytes + next <= self.batch.bytes)
            && let Some(event) = lanes.pop()
        {
            bytes += next;
            batch.push(event);
        }
        batch
    }

    /// Whether there is a whole batch.
    pub(super) fn has_batch(&self) -> bool {
        let lanes = self.lock();
        lanes.length >= self.batch.events || lanes.bytes >= self.batch.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.lock().length
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // Nothing under this lock panics half way.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    /// The lane that the oldest is in.
    fn oldest(&self) -> Option<usize> {
        let fronts = (0..self.of.len()).filter_map(|lane| Some((self.of[lane].front()?.0, lane)));
        fronts.min().map(|(_, lane)| lane)
    }

    fn next_weight(&self) -> Option<usize> {
        self.of[self.oldest()?].front().map(|(_, event)| weight(event))
    }

    fn pop(&mut self) -> Option<Event> {
        self.pop_from(self.oldest()?)
    }

    fn pop_from(&mut self, lane: usize) -> Option<Event> {
        let (_, event) = self.of[lane].pop_front()?;
        self.length -= 1;
        self.bytes -= weight(&event);
        Some(event)
    }

    /// Drops the oldest of what is worth least, if that is less than `worth`.
    fn drop_below(&mut self, worth: Worth, counters: &Counters) -> bool {
        for lower in Worth::ALL.into_iter().filter(|lower| *lower < worth) {
            if self.pop_from(lower as usize).is_some() {
                counters.dropped(lower);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::recorder::fixture::{done, failed, printed, started};

    const BATCH: Room = Room { events: 10, bytes: 20_000 };

    fn queue(events: usize) -> (Queue, Counters) {
        (Queue::new(Room { events, bytes: 1 << 20 }, BATCH), Counters::default())
    }

    #[test]
    fn output_makes_room_first_then_beginnings_then_successes_and_failures_last() {
        let (queue, counters) = queue(4);

        for event in [printed(1, 0, "a"), started(1), done(1), failed(2)] {
            queue.push(event, &counters);
        }
        queue.push(done(3), &counters);
        queue.push(printed(3, 0, "b"), &counters);
        for number in 4..8 {
            queue.push(failed(number), &counters);
        }
        queue.push(started(9), &counters);

        assert_eq!(queue.take(), [2, 4, 5, 6].map(failed));
        let dropped = Worth::ALL.map(|worth| counters.read(0).dropped[worth as usize]);
        assert_eq!(dropped, [2, 2, 2, 1], "the last failure found nothing that is worth less");
    }

    #[test]
    fn what_is_taken_is_in_the_order_it_came() {
        let (queue, counters) = queue(20);
        let mut events = vec![started(1), printed(1, 0, "a"), failed(1), started(2), done(2)];
        events.extend((3..12).map(done));
        for event in events.clone() {
            queue.push(event, &counters);
        }

        let mut taken = queue.take();
        taken.extend(queue.take());

        assert_eq!((taken, queue.len()), (events, 0));
    }

    #[test]
    fn a_long_text_takes_the_room_of_many_events() {
        let queue = Queue::new(Room { events: 1000, bytes: 10_000 }, BATCH);
        let counters = Counters::default();

        queue.push(printed(1, 0, &"x".repeat(9_000)), &counters);
        queue.push(started(1), &counters);
        queue.push(started(2), &counters);

        assert_eq!(queue.take(), [started(1), started(2)]);
    }

    #[test]
    fn a_batch_ends_before_it_is_too_large_and_has_one_event_however_large_that_is() {
        let (queue, counters) = queue(20);
        let (large, huge) =
            (printed(1, 0, &"x".repeat(12_000)), printed(1, 1, &"x".repeat(90_000)));

        queue.push(started(1), &counters);
        queue.push(large.clone(), &counters);
        let before = queue.has_batch();
        queue.push(large.clone(), &counters);
        queue.push(huge.clone(), &counters);
        queue.push(done(1), &counters);

        assert_eq!((before, queue.has_batch()), (false, true));
        let batches: Vec<Vec<Event>> = (0..4).map(|_| queue.take()).collect();
        assert_eq!(
            batches,
            [vec![started(1), large.clone()], vec![large], vec![huge], vec![done(1)]]
        );
    }
}
