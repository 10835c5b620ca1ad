//! The barrier of once-listeners: all shards of a fire wait for each other before the first of them runs, and after the last one has ended.
//!
//! There are two gates, Java ElasticJob's `guarantee/started` and `guarantee/completed`. An instance that is about to run (or has run) registers
//! its shards below the gate ([`Barrier::register`]) and waits until every enabled shard is registered ([`GateWaiter::wait`]). The instance that then
//! acquires the gate's latch calls the listener (the caller of this module does: no user code runs here) and clears the gate, its root included
//! ([`ListenerTurn::finish`]). The other instances, Java's too, wait for the deletion of the root.
//!
//! **Registrations of different runs.** Java's protocol does not tell runs apart: a gate consists of the same nodes for every fire. A registration
//! by a Rust instance carries its run id, so that registrations of an older run do not count and those of a newer run are not deleted. A Java
//! registration is empty. It counts unless it is older than the assignment of the shard to its present owner: then a former owner made it. The
//! same rule applies to triggered runs, for which every instance chooses a run id of its own.
//!
//! **Level-triggered.** Every decision is made from the nodes that exist. The watch only says when to decide again; nothing depends on having seen
//! a change. For an instance the wait is over when its own registrations are gone. If they are gone before every shard was seen, the gate was
//! cleared too early ([`BarrierError::ClearedEarly`]): Java does that when its own wait times out.
//!
//! **Shards that will not register.** Every wait has a deadline. It ends earlier if the ledger shows that a missing shard has finished this fire or
//! is at a later one ([`BarrierError::MovedOn`]). Disabled shards are not waited for. An instance that gives up deletes only its own registrations.
//!
//! **Java instances.** With Java registrations, a complete gate is kept for a moment before it is cleared. A Java instance registers and then polls
//! until it sees its own registration, without a timeout; then it sleeps until it is notified that the root was deleted. If the gate were cleared
//! before that, the Java instance would poll or sleep for ever.
//!
//! **Dead instances.** The registrations of an instance that dies remain; they no longer count once its shards have new owners. If the instance
//! held the latch, its latch node is deleted with its session. The next instance in the queue finds the gate still complete and calls the
//! listener again.

mod gate;
mod registrations;

pub use self::gate::{Arrival, Barrier, BarrierError, Gate, GateWaiter, ListenerTurn};
