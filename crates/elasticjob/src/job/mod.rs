//! What is to be done: a job, its policies, and the words in which it travels. Plain data; nothing here waits or asks anybody.
//!
//! * A [`Job`] is built by whoever writes the program, or read from the registry, where the ancestor left it as YAML.
//! * A [`Fire`] says that it is due; a [`Shard`] is the part of that which one instance runs.
//! * [`settle`] says what counts when the program says one thing and the registry another.
//!
//! **Who is authoritative.** Once a configuration is stored, the stored one counts, for Rust and Java alike, until somebody changes it
//! there or a program that says [`Overwrite::LocalWins`] starts. A document that cannot be read is nobody's to overwrite: it is an
//! [`Unreadable`] that names job, line and key.
//!
//! **What travels.** Java stops at a key it does not know, so a stored configuration has exactly the ancestor's keys, byte for byte as the
//! ancestor writes them. What is ours stands in [`props`](Props) below `elasticjob.`, where Java does not look. What belongs to others
//! ([`Extra`]) is kept as it is.

mod alert;
mod context;
mod duration;
mod error;
mod extra;
mod fire;
#[cfg(test)]
mod golden;
mod instance;
#[expect(clippy::module_inception, reason = "the job is what this room is about")]
mod job;
mod kinds;
mod legacy;
mod name;
mod policy;
mod props;
mod shards;
mod stored;
mod wire;
mod yaml;

pub use self::{
    alert::{Alert, Dingtalk, Email, Webhook},
    context::Context,
    error::{Invalid, Unreadable},
    extra::Extra,
    fire::{Attempt, FencingToken, Fire, Reason, RunId, Shard, TaskId},
    instance::{Instance, InstanceId, server_of},
    job::{Job, Spelling},
    kinds::{Strategy, ThreadPool, TypeName},
    legacy::{Legacy, LegacyKind},
    name::JobName,
    policy::{
        Backoff, CatchUp, Failover, LeaseLoss, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile,
        Resharding, Retry,
    },
    props::{Policies, Props, keys},
    shards::{ItemParameters, ShardCount},
    stored::{Conflict, Difference, Handler, Settled, drift, in_place_of, settle},
};
