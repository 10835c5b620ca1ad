//! What a worker has under way and what is still to be done, over as many sessions as it takes.

use std::ops::ControlFlow;

use jiff::Timestamp;
use tokio::task::{self, JoinSet};

use super::{
    run::End,
    todo::{Task, Todo},
};
use crate::{
    coordination::{member::BusyShards, trigger::Ask},
    runtime::Cancel,
};

/// What outlives a session.
pub(super) struct Life {
    /// From when on fires are ours to make up for.
    pub(super) since: Timestamp,
    /// What was missed while nobody was there has been looked after.
    pub(super) is_caught_up: bool,
    pub(super) busy: BusyShards,
    /// What is to be done: what somebody asked for is, whatever becomes of the session.
    pub(super) todo: Todo,
    /// Runs, those of earlier sessions among them.
    pub(super) runs: JoinSet<End>,
    /// What all of them are told to end by.
    pub(super) cancel: Cancel,
    /// What the runs of this session are for, and those of earlier ones that somebody asked for: it may turn out that they never began.
    tasks: Vec<(task::Id, Task)>,
    /// The own run of this session. What the dead left behind is work of its own: it waits for no run, and no run for it.
    active: Option<task::Id>,
}

impl Life {
    pub(super) fn new(since: Timestamp, busy: BusyShards) -> Self {
        Self {
            since,
            is_caught_up: false,
            busy,
            todo: Todo::default(),
            runs: JoinSet::new(),
            cancel: Cancel::new(),
            tasks: Vec::new(),
            active: None,
        }
    }

    /// Another session: what runs goes on, and holds up nothing.
    pub(super) fn renew(&mut self) -> Cancel {
        self.tasks.retain(|(_, task)| matches!(task, Task::Ask(_)));
        self.active = None;
        self.cancel.child()
    }

    /// What is to be done next, and can be.
    pub(super) fn next(&mut self) -> Option<Task> {
        if self.active.is_some() { None } else { self.todo.next() }
    }

    /// This is under way.
    pub(super) fn began(&mut self, id: task::Id, task: Task) {
        if !matches!(task, Task::TakeOver) {
            self.active = Some(id);
        }
        self.tasks.push((id, task));
    }

    /// Whether what is due has to wait: an own run has shards in hand. What only waits for its turn, or looks whether there is anything to do,
    /// holds nothing up.
    pub(super) fn is_occupied(&self) -> bool {
        self.active.is_some() && !self.busy.shards().is_empty()
    }

    /// A run has ended: what follows from that. Breaks if nothing more can be done for a moment.
    pub(super) fn ended(&mut self, id: task::Id, end: End) -> ControlFlow<()> {
        self.active.take_if(|active| *active == id);
        let place = self.tasks.iter().position(|(known, _)| *known == id);
        let task = place.map(|place| self.tasks.swap_remove(place).1);
        let is_behind = matches!(end, End::StillBehind | End::OutOfReach);
        if matches!(task, Some(Task::CatchUp)) && !is_behind {
            self.is_caught_up = true;
            self.todo.is_behind = false;
        }
        match (end, task) {
            // What was due meanwhile is late.
            (End::Ran { left }, task) => {
                self.todo.may_be_late = true;
                if let (Some(Task::Ask(ask)), false) = (task, left.is_empty()) {
                    self.todo.again(Task::Ask(Ask { shards: left, ..ask }));
                }
            }
            (End::OutOfReach, Some(task)) => {
                self.todo.again(task);
                return ControlFlow::Break(());
            }
            // If the owners of before are still written there: when shards are dealt we are told again.
            (End::Nothing | End::StillBehind | End::OutOfReach, _) => {}
        }
        ControlFlow::Continue(())
    }
}
