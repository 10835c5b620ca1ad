//! The bounded queue of a sink. When it is full, the least important events are dropped.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{
    counts::Counters,
    weight::{Capacity, weight},
};
use crate::history::{Event, StatusState};

/// The importance of an event when there is no room for all. Ordered: the first is dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// Output of an attempt.
    Output,
    /// A start or a change of state. The event about the end contains it, too.
    Progress,
    /// A success. Without it, the attempt would seem to run forever, or to be lost.
    Success,
    /// A failure, or a missed fire.
    Failure,
}

impl Importance {
    /// All of them, the least important first.
    pub const ALL: [Self; 4] = [Self::Output, Self::Progress, Self::Success, Self::Failure];

    pub fn of(event: &Event) -> Self {
        match event {
            Event::Printed(_) | Event::Cut(_) => Self::Output,
            Event::Started(_) => Self::Progress,
            Event::Ended(ended) if ended.outcome.is_success() => Self::Success,
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
            Self::Success => "ending",
            Self::Failure => "failure",
        }
    }
}

/// The events that wait for one sink. `push` never waits.
#[derive(Debug)]
pub(super) struct Queue {
    capacity: Capacity,
    /// Maximum size of a batch; a full batch is taken at once.
    batch: Capacity,
    lanes: Mutex<Lanes>,
    /// Notified when the first event waits, and when a batch is full.
    pub(super) changed: Notify,
}

/// One queue for each worth, so that the least important event is found at once. Numbers restore the overall order.
#[derive(Debug, Default)]
struct Lanes {
    by_worth: [VecDeque<(u64, Event)>; Importance::ALL.len()],
    next: u64,
    length: usize,
    bytes: usize,
}

impl Queue {
    pub(super) fn new(capacity: Capacity, batch: Capacity) -> Self {
        Self { capacity, batch, lanes: Mutex::default(), changed: Notify::new() }
    }

    /// Adds an event. If there is no room, less important events are dropped; if there are none, this event is.
    pub(super) fn push(&self, event: Event, counters: &Counters) {
        let worth = Importance::of(&event);
        let weight = weight(&event);
        let mut lanes = self.lock();
        while lanes.length >= self.capacity.events || lanes.bytes + weight > self.capacity.bytes {
            if !lanes.drop_less_important(worth, counters) {
                counters.dropped(worth);
                return;
            }
        }
        let number = lanes.next;
        lanes.next += 1;
        lanes.length += 1;
        lanes.bytes += weight;
        lanes.by_worth[worth as usize].push_back((number, event));
        let is_first = lanes.length == 1;
        let is_batch = lanes.length == self.batch.events
            || (lanes.bytes >= self.batch.bytes && lanes.bytes - weight < self.batch.bytes);
        drop(lanes);
        if is_first || is_batch {
            self.changed.notify_one();
        }
    }

    /// Takes a batch, oldest first: at least one event if there is one, however large it is.
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

    /// Whether a batch is full.
    pub(super) fn has_batch(&self) -> bool {
        let lanes = self.lock();
        lanes.length >= self.batch.events || lanes.bytes >= self.batch.bytes
    }

    /// Whether the sink falls behind.
    pub(super) fn is_half_full(&self) -> bool {
        let lanes = self.lock();
        lanes.length >= self.capacity.events / 2 || lanes.bytes >= self.capacity.bytes / 2
    }

    pub(super) fn len(&self) -> usize {
        self.lock().length
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // No code under this lock panics halfway.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    /// The lane with the oldest event.
    fn oldest(&self) -> Option<usize> {
        let fronts = (0..self.by_worth.len())
            .filter_map(|lane| Some((self.by_worth[lane].front()?.0, lane)));
        fronts.min().map(|(_, lane)| lane)
    }

    fn next_weight(&self) -> Option<usize> {
        self.by_worth[self.oldest()?].front().map(|(_, event)| weight(event))
    }

    fn pop(&mut self) -> Option<Event> {
        self.pop_from(self.oldest()?)
    }

    fn pop_from(&mut self, lane: usize) -> Option<Event> {
        let (_, event) = self.by_worth[lane].pop_front()?;
        self.length -= 1;
        self.bytes -= weight(&event);
        Some(event)
    }

    /// Drops the oldest event of the least important lane below `worth`, if there is one.
    fn drop_less_important(&mut self, worth: Importance, counters: &Counters) -> bool {
        for lower in Importance::ALL.into_iter().filter(|lower| *lower < worth) {
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

    const BATCH: Capacity = Capacity { events: 10, bytes: 20_000 };

    fn queue(events: usize) -> (Queue, Counters) {
        (Queue::new(Capacity { events, bytes: 1 << 20 }, BATCH), Counters::default())
    }

    #[test]
    fn full_queue_drops_output_first_and_failures_last() {
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
        let dropped = Importance::ALL.map(|worth| counters.read(0).dropped[worth as usize]);
        assert_eq!(dropped, [2, 2, 2, 1], "no event was less important than the last failure");
    }

    #[test]
    fn batches_keep_the_order_of_events() {
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
    fn long_text_counts_as_many_events() {
        let queue = Queue::new(Capacity { events: 1000, bytes: 10_000 }, BATCH);
        let counters = Counters::default();

        queue.push(printed(1, 0, &"x".repeat(9_000)), &counters);
        queue.push(started(1), &counters);
        queue.push(started(2), &counters);

        assert_eq!(queue.take(), [started(1), started(2)]);
    }

    #[test]
    fn batch_stays_within_limit_unless_one_event_exceeds_it() {
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
