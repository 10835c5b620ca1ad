//! Where the shards of a fire meet: before the first runs, and after the last has ended.
//!
//! Two gates, the ancestor's `guarantee/started` and `guarantee/completed`. Whoever is about to run (has run) registers its shards below the
//! gate ([`Barrier::register`]) and waits until every enabled shard is there ([`Round::all`]). One of them then gets the turn in the gate's latch, calls
//! the listener (not here: no user code runs in this room) and clears the gate, root and all ([`Last::finish`]). That the root goes is what the
//! others wait for, Java instances too.
//!
//! **Which round.** The wire has no word for it: a gate is the same nodes fire after fire. A registration of ours carries the
//! id of its run, so those of an older run do not count and those of a newer one are not wiped. One of Java's is empty; it counts unless it is older than
//! the shard's present owner, for then a former owner made it. So is one of a triggered run, which every instance names by itself.
//!
//! **Level-triggered.** What is decided is decided from what is there: the watch says when to look again, and nothing depends on having seen
//! an edge. A round is over for me when my registrations are gone. If that happens before every shard was seen, somebody cleared the gate who
//! should not have ([`BarrierError::Cleared`]): Java does when it loses patience.
//!
//! **Who will not come.** Every wait has a deadline. It ends sooner when the ledger says that a missing shard is through with this fire, or at a later one
//! ([`BarrierError::GoneOn`]). A shard that is disabled is not waited for. Giving up takes only one's own registrations away.
//!
//! **Beside Java** a full gate stands for a moment before it is cleared. Java registers, then looks until it sees that it is registered, without
//! end; then it goes to sleep until it is told that the root is gone. Whoever clears the gate before that leaves it looking, or asleep, for ever.
//!
//! **When somebody dies.** Its registrations stay, and are stale as soon as the shards have new owners. If it had the turn, its latch node goes with its
//! session, and the next in the queue finds the gate still full: the listener is called again.

mod gathering;
mod meeting;

pub use self::meeting::{Arrival, Barrier, BarrierError, Gate, Last, Round};
