//! Notices that wait for their delivery, with a share for each job.
//!
//! A job whose alerts fail or hang fills only its own share, and occupies only its own deliveries: jobs take turns.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use crate::job::JobName;

/// How many notices of one job may wait.
const MAX_WAITING_PER_JOB: usize = 64;

/// How many notices may wait in all. Beyond that the job with the most loses its newest.
const MAX_WAITING: usize = 4_096;

/// How many notices are delivered at a time.
const MAX_CONCURRENT: usize = 64;

/// How many of them are of one job.
const MAX_CONCURRENT_PER_JOB: usize = 2;

/// Items by job. Every job with waiting items, and every job with deliveries under way, has an entry.
pub(super) struct AlertQueue<T> {
    jobs: BTreeMap<JobName, JobQueue<T>>,
    /// The jobs whose next item may be delivered, in the order of their turns.
    turns: VecDeque<JobName>,
    waiting: usize,
    delivering: usize,
}

struct JobQueue<T> {
    waiting: VecDeque<T>,
    delivering: usize,
    /// Whether the job is among the turns.
    has_turn: bool,
}

impl<T> AlertQueue<T> {
    pub(super) fn new() -> Self {
        Self { jobs: BTreeMap::new(), turns: VecDeque::new(), waiting: 0, delivering: 0 }
    }

    /// Adds an item. Returns the item that is dropped for it, if there is no room: this one, or one of the job with the most.
    pub(super) fn push(&mut self, job: &JobName, item: T) -> Option<(JobName, T)> {
        let waiting = |queue: &JobQueue<T>| queue.waiting.len();
        if self.jobs.get(job).map_or(0, waiting) >= MAX_WAITING_PER_JOB {
            return Some((job.clone(), item));
        }
        self.jobs.entry(job.clone()).or_default().waiting.push_back(item);
        self.waiting += 1;
        self.offer_turn(job);
        if self.waiting <= MAX_WAITING {
            return None;
        }
        let longest = self.jobs.iter().max_by_key(|(_, queue)| waiting(queue));
        let longest = longest.map(|(job, _)| job.clone())?;
        let dropped = self.jobs.get_mut(&longest)?.waiting.pop_back()?;
        self.waiting -= 1;
        Some((longest, dropped))
    }

    /// The next item to deliver; [`Self::delivered`] has to be called for its job.
    pub(super) fn next(&mut self) -> Option<(JobName, T)> {
        while self.delivering < MAX_CONCURRENT {
            let job = self.turns.pop_front()?;
            let Some(queue) = self.jobs.get_mut(&job) else { continue };
            queue.has_turn = false;
            // Its last item may have been dropped.
            let Some(item) = queue.waiting.pop_front() else {
                self.forget_if_idle(&job);
                continue;
            };
            queue.delivering += 1;
            self.waiting -= 1;
            self.delivering += 1;
            self.offer_turn(&job);
            return Some((job, item));
        }
        None
    }

    /// A delivery for this job has ended.
    pub(super) fn delivered(&mut self, job: &JobName) {
        let Some(queue) = self.jobs.get_mut(job) else { return };
        queue.delivering -= 1;
        self.delivering -= 1;
        self.offer_turn(job);
        self.forget_if_idle(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Puts the job behind the others, if its next item may be delivered.
    fn offer_turn(&mut self, job: &JobName) {
        let Some(queue) = self.jobs.get_mut(job) else { return };
        let may_deliver = !queue.waiting.is_empty() && queue.delivering < MAX_CONCURRENT_PER_JOB;
        if may_deliver && !mem::replace(&mut queue.has_turn, true) {
            self.turns.push_back(job.clone());
        }
    }

    fn forget_if_idle(&mut self, job: &JobName) {
        let is_idle = |queue: &JobQueue<T>| queue.waiting.is_empty() && queue.delivering == 0;
        if self.jobs.get(job).is_some_and(is_idle) {
            self.jobs.remove(job);
        }
    }
}

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), delivering: 0, has_turn: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(job: &str) -> JobName {
        job.parse().unwrap()
    }

    fn queue(pushed: &[(&str, usize)]) -> AlertQueue<usize> {
        let mut queue = AlertQueue::new();
        for (job, count) in pushed {
            for item in 0..*count {
                assert_eq!(queue.push(&name(job), item), None);
            }
        }
        queue
    }

    #[test]
    fn jobs_take_turns_and_each_has_few_deliveries() {
        let mut queue = queue(&[("a", 5), ("b", 1), ("c", 3)]);

        let mut order = Vec::new();
        while let Some((job, item)) = queue.next() {
            order.push(format!("{job}{item}"));
        }
        assert_eq!(order, ["a0", "b0", "c0", "a1", "c1"]);
        queue.delivered(&name("a"));
        assert_eq!(queue.next(), Some((name("a"), 2)));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn full_share_of_one_job_drops_only_its_own() {
        let mut queue = queue(&[("a", MAX_WAITING_PER_JOB)]);

        assert_eq!(queue.push(&name("a"), 99), Some((name("a"), 99)));
        assert_eq!(queue.push(&name("b"), 0), None);
    }

    #[test]
    fn full_queue_drops_from_the_job_with_the_most() {
        let jobs: Vec<String> =
            (0..MAX_WAITING / MAX_WAITING_PER_JOB).map(|index| format!("j{index}")).collect();
        let full: Vec<(&str, usize)> =
            jobs.iter().map(|job| (job.as_str(), MAX_WAITING_PER_JOB)).collect();
        let mut queue = queue(&full);

        let (loser, dropped) = queue.push(&name("bystander"), 0).unwrap();

        assert!(jobs.contains(&loser.to_string()), "{loser}");
        assert_eq!(dropped, MAX_WAITING_PER_JOB - 1, "its newest");
        assert_eq!(queue.waiting, MAX_WAITING);
    }

    #[test]
    fn delivered_job_is_forgotten() {
        let mut queue = queue(&[("a", 2)]);

        while let Some((job, _)) = queue.next() {
            queue.delivered(&job);
        }
        assert!(queue.is_empty() && queue.jobs.is_empty() && queue.turns.is_empty());
    }
}
