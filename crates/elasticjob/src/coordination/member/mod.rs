//! One instance in one job: joins, keeps house, claims, releases, leaves.
//!
//! A task of its own ([`actor`]) owns the watch on the job and its [`View`](super::view::View). It is the only one who writes in the
//! job's name, one thing after the other, so that after each of its own writes everything committed before is in its watch: what it decides next
//! it decides from a picture that is current as of that write. It never runs user code and never waits without an end.
//!
//! What there is to do is decided by a pure function of the view ([`duties`]), looked at again after every change, so that nothing
//! depends on having seen an edge:
//!
//! * **Nobody leads** and our server is enabled: an election, in a task beside, through the ancestor's latch.
//! * **We lead and our server is disabled**: we abdicate.
//! * **We lead and** instances, servers or the number of shards are not those the shards were dealt for, or `necessary` is set: the
//!   shards are dealt. `processing` is created first; what is seen after its answer decides; one multi commits, and checks that we
//!   are still there and still lead. If the picture changed meanwhile it is done again.
//! * **Our trigger** is there: it is taken away, and the owner is told.
//! * **Our instance node is gone**: somebody shut us down. **The configuration changed**: the owner is told.
//!
//! The handle is [`Member`]; what happens is told through [`News`].

mod actor;
mod blink;
mod claiming;
mod dealing;
mod doubt;
mod duties;
mod failover;
mod handle;
mod hold;
mod holding;
mod janitor;
mod join;
mod missing;
mod ownership;
mod pages;
mod presence;
mod releasing;

pub use self::{
    handle::{
        Claimed, ClaimedShard, Claims, Ended, Ground, Lost, Member, News, Refused, Request, Why,
    },
    hold::Hold,
    join::{Author, IfAbsent, JoinError, Joining, settle_configuration},
};
