//! One instance in one job: joins, assigns or is assigned shards, claims and releases them, takes over lost ones, leaves.
//!
//! Every member has one task ([`actor`]). It owns the watch on the job, and it alone writes in the member's name, one write after the other.
//! So after each of its writes, everything that was committed before is in its watch, and it decides its next step from a view that is
//! current as of that write. The task never runs user code and never waits without a deadline.
//!
//! # Components
//!
//! ```text
//!   registry ──watch──► mirror ──view──► leadership   elections, assignments                    ──writes──► registry
//!      ▲                  │              claims       waiting, held, unresolved, releasing
//!      └──── reads ───────┘              recovery     dead holders, orphaned shards, takeovers
//!                                        janitor      what everything else missed
//!                                        triggers     requests to run or to cancel
//!   owner ──commands──► actor ────────────────────────────────────────────────────────────────events──► owner
//! ```
//!
//! Each component keeps its state to itself. It derives what it has to do from the view and the time, again after every change, so that
//! nothing depends on having seen a transition; then it acts through the [`mirror`], which reads, writes, and catches up. No component sees
//! another one: the actor passes values between them, such as the shards that are claimed, or that holders have to be checked.
//!
//! # What is authoritative
//!
//! | question | answered by |
//! |---|---|
//! | which instances there are | `instances/`; for a Rust instance that was shut down and still runs something, also its process node |
//! | which instance leads | `leader/election/instance`, created inside the latch |
//! | which instance owns a shard | `sharding/{n}/instance`, unless `necessary` or `processing` exists: then no instance starts anything |
//! | which instance holds a shard, and which run it is | the ledger page: every transaction that changes the holder writes it by version |
//! | whether a shard awaits failover, or misfired | `leader/failover/items/{n}`, `sharding/{n}/misfire` |
//! | how long a claim may be trusted | the session's deadline, and [`ClaimStatus`]: whether the claim was overwritten |
//!
//! # What holds when an instance fails
//!
//! * **Stalls.** Its claims stay, and no other instance starts its shards before its session has ended. Its owner stops what runs before that
//!   ([`Session::deadline`](crate::registry::Session::deadline)). After it resumes, every write that names the old session is refused.
//! * **Dies.** Its ephemeral nodes vanish with the session. Any other instance finds `running` nodes or ledger pages that name it, marks the
//!   shards as lost, and flags them if the job wants failover. The leader reassigns what it owned; shards it was running keep their owner until
//!   it is known that they are lost.
//! * **Dies as leader.** Another instance is elected. An unfinished assignment is not visible as a state of its own: the next leader sees that
//!   `necessary` exists and assigns again.
//! * **Returns in the same session.** It takes a new snapshot and compares the creation ids of its claims; everything else is unchanged.
//! * **Returns in a new session.** It joins under a new id. Shards that its process still runs ([`BusyShards`]) are not claimed a second time.
//! * **A write gets no answer.** A claim is undone if it was committed, an assignment is ended, a release is repeated. Nothing that depends on such a write happens before.
//!
//! The owner uses [`Member`] and [`ClaimHandle`] and receives [`MemberEvent`]s.

mod actor;
mod announcements;
mod assignment;
mod busy_shards;
mod claim_status;
mod claims;
mod context;
mod handle;
mod instance_trigger;
mod janitor;
mod join;
mod leadership;
mod ledger_pages;
mod mirror;
mod recovery;
mod refusals;
mod reshard_signal;
mod server_repair;
mod skip_conditions;
mod sole_entry;
#[cfg(test)]
mod test_view;
mod triggers;

pub use self::{
    busy_shards::BusyShards,
    claim_status::ClaimStatus,
    handle::{
        ClaimError, ClaimHandle, ClaimRequest, ClaimScope, ClaimedShard, LostShard, Member,
        MemberEvent, MemberResources, Release, ShardClaim,
    },
    join::{IfAbsent, JobSource, JoinError, JoinRequest, settle_configuration, undo_join},
};
