//! What a worker has to do when it is idle.

use std::collections::VecDeque;

use crate::{coordination::trigger::Ask, job::Fire};

/// More than this many triggers at once are somebody's mistake.
const ASKS: usize = 1_000;

/// What a worker has to do when it is idle. Most of it is a question — is something late — whose answer is looked up when it is asked, so
/// that nothing has to be remembered right.
#[derive(Debug, Default)]
pub(super) struct Todo {
    due: Option<Fire>,
    asks: VecDeque<Ask>,
    pub(super) is_behind: bool,
    pub(super) may_be_late: bool,
}

/// The next thing to do.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Fire(Fire),
    Ask(Ask),
    CatchUp,
    Late,
    TakeOver,
}

impl Todo {
    /// It is due. One that was due before and has not begun is made up for by this one.
    pub(super) fn due(&mut self, fire: Fire) {
        self.due = Some(fire);
    }

    /// It could not be done: it is still to be done. A fire only if no other is due by now, which makes up for it.
    pub(super) fn again(&mut self, task: Task) {
        match task {
            Task::Fire(fire) => drop(self.due.get_or_insert(fire)),
            Task::Ask(ask) => self.asks.push_front(ask),
            Task::CatchUp => self.is_behind = true,
            Task::Late => self.may_be_late = true,
            // Its claim was withdrawn: the member takes the shards over again.
            Task::TakeOver => {}
        }
    }

    /// Somebody wants it to run now. Triggers that say nothing are all the same.
    pub(super) fn ask(&mut self, ask: Ask) {
        if self.asks.back() == Some(&ask) && ask == Ask::default() {
            return;
        }
        if self.asks.len() < ASKS {
            self.asks.push_back(ask);
        } else {
            tracing::error!("too many triggers wait: one is left out");
        }
    }

    pub(super) fn next(&mut self) -> Option<Task> {
        if let Some(fire) = self.due.take() {
            return Some(Task::Fire(fire));
        }
        if let Some(ask) = self.asks.pop_front() {
            return Some(Task::Ask(ask));
        }
        if std::mem::take(&mut self.is_behind) {
            return Some(Task::CatchUp);
        }
        std::mem::take(&mut self.may_be_late).then_some(Task::Late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RunId;

    #[test]
    fn own_shards_come_before_those_of_others_and_no_trigger_is_lost() {
        let fire = Fire::scheduled("j".parse().unwrap(), jiff::Timestamp::UNIX_EPOCH);
        let asked = Ask { run: Some(RunId::triggered(1)), ..Ask::default() };
        let mut todo = Todo { may_be_late: true, ..Todo::default() };
        for ask in [Ask::default(), Ask::default(), asked.clone(), asked] {
            todo.ask(ask);
        }
        todo.due(fire);

        let order: Vec<String> = std::iter::from_fn(|| todo.next())
            .map(|task| format!("{task:?}").split(['(', ' ']).next().unwrap().to_owned())
            .collect();

        assert_eq!(order, ["Fire", "Ask", "Ask", "Ask", "Late"]);
    }
}
