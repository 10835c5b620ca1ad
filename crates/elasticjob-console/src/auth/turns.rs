//! Decides whose turn it is at an account that is under attack.
//!
//! The lane of a name admits one attempt in ten seconds. If the first to ask got it, a program that asks all the time would get every one, and the
//! owner of the account none. So an attempt that is refused waits in a queue. When the lane opens, the first in the queue has [`FIRST_PICK`] to come
//! back; after that the turn is free for all, because most guesses never come back.
//!
//! The queue is ordered by how often a site asked in the last hours, then by the time of its request; coming back when it was told to does not count.
//! The sites of an attacker ask again and again, or too early, and the owner does not. So only sites that have hardly asked before delay the owner, ten
//! seconds each. Against hundreds of those nothing but a familiar address helps.

use std::{collections::HashMap, time::Duration};

use elasticjob::runtime::Monotonic;

use super::lane::{Key, Lane, MAX_ENTRIES, Rule};

/// How long the first in the queue is waited for: a person needs a moment.
const FIRST_PICK: Duration = Duration::from_secs(5);
/// Requests of a site.
const ASKED: Rule =
    Rule { free: 0, max_wait: Duration::ZERO, forgiven_after: Duration::from_hours(1) };
/// One that did not ask again for this long is not waiting any more.
const WAITS_FOR: Duration = Duration::from_mins(2);
const MAX_WAITING_PER_NAME: usize = 100;

/// The queues of all names.
#[derive(Debug)]
pub(super) struct Turns {
    asked: Lane,
    queues: HashMap<Key, Vec<Waiting>>,
}

/// Who asks for a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    pub(super) name: Key,
    /// `None` for all clients that are not known: together they have one place.
    pub(super) site: Option<Key>,
    /// Of the name and the site.
    pub(super) name_and_site: Key,
}

#[derive(Debug)]
struct Waiting {
    site: Option<Key>,
    /// How often the site had asked before.
    rank: u32,
    last_asked: Monotonic,
    /// When it was told to come back.
    comes_at: Monotonic,
}

impl Default for Turns {
    fn default() -> Self {
        Self { asked: Lane::new(ASKED), queues: HashMap::new() }
    }
}

impl Turns {
    /// Whether it is this one's turn in a lane that opens at `opens_at`; otherwise how long to wait before asking again.
    pub(super) fn ask(
        &mut self,
        asking: &Asking,
        opens_at: Monotonic,
        now: Monotonic,
    ) -> Result<(), Duration> {
        let mut queue = self.queues.remove(&asking.name).unwrap_or_default();
        queue.retain(|waiting| waiting.is_waiting(now));
        let turn = self.ask_in(&mut queue, asking, opens_at, now);
        if !queue.is_empty() {
            self.queues.insert(asking.name, queue);
        }
        turn
    }

    fn ask_in(
        &mut self,
        queue: &mut Vec<Waiting>,
        asking: &Asking,
        opens_at: Monotonic,
        now: Monotonic,
    ) -> Result<(), Duration> {
        if queue.is_empty() && now >= opens_at {
            return Ok(());
        }
        self.enqueue(queue, asking, now);
        let is_first = queue.first().is_none_or(|first| first.site == asking.site);
        let turn_at = if is_first { opens_at } else { opens_at + FIRST_PICK };
        if now < turn_at {
            if let Some(waiting) = queue.iter_mut().find(|waiting| waiting.site == asking.site) {
                waiting.comes_at = turn_at;
            }
            return Err(turn_at.saturating_since(now));
        }
        if !is_first {
            // The first one missed its turn.
            queue.remove(0);
        }
        queue.retain(|waiting| waiting.site != asking.site);
        Ok(())
    }

    fn enqueue(&mut self, queue: &mut Vec<Waiting>, asking: &Asking, now: Monotonic) {
        if let Some(place) = queue.iter().position(|waiting| waiting.site == asking.site) {
            if now >= queue[place].comes_at {
                queue[place].last_asked = now;
                return;
            }
            queue.remove(place);
        }
        let rank = self.asked.count(&asking.name_and_site, now);
        self.asked.add(asking.name_and_site, now);
        if queue.len() >= MAX_WAITING_PER_NAME || self.is_full(now) {
            if queue.last().is_none_or(|last| last.rank <= rank) {
                return;
            }
            queue.pop();
        }
        let place = queue.partition_point(|waiting| waiting.rank <= rank);
        let (last_asked, comes_at) = (now, now);
        queue.insert(place, Waiting { site: asking.site, rank, last_asked, comes_at });
    }

    /// Whether too many wait in other queues.
    fn is_full(&mut self, now: Monotonic) -> bool {
        let count =
            |queues: &HashMap<Key, Vec<Waiting>>| queues.values().map(Vec::len).sum::<usize>();
        if count(&self.queues) < MAX_ENTRIES {
            return false;
        }
        self.queues.retain(|_, queue| {
            queue.retain(|waiting| waiting.is_waiting(now));
            !queue.is_empty()
        });
        count(&self.queues) >= MAX_ENTRIES
    }
}

impl Waiting {
    fn is_waiting(&self, now: Monotonic) -> bool {
        now.saturating_since(self.last_asked) < WAITS_FOR
    }
}

#[cfg(test)]
impl Turns {
    /// How many wait in all queues.
    pub(super) fn waiting(&self) -> usize {
        self.queues.values().map(Vec::len).sum()
    }
}
