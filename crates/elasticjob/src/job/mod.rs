//! Jobs, their policies, and the formats they are stored in. Plain data without I/O.
//!
//! * A program builds a [`Job`], or reads it from the registry, where Java ElasticJob and this library store it as YAML.
//! * A [`Fire`] is one moment at which a job is due; a [`Shard`] is the part of the resulting run that a handler gets.
//! * [`resolve_config`] decides which configuration is used if the program's and the stored one differ.
//!
//! **Which configuration is used.** Once a configuration is stored, it is used by Rust and Java alike, until it is changed in the
//! registry or a program with [`Overwrite::LocalWins`] starts. A stored document that cannot be read is never overwritten: reading it
//! returns [`UnreadableDocument`], which names job, line and key.
//!
//! **What is stored.** Java ElasticJob rejects documents with unknown keys, so a stored configuration has exactly Java's keys, byte for
//! byte as Java writes them. Settings that only this library has are stored in [`props`](Props) under `elasticjob.`, which Java
//! ignores. Configuration of other programs ([`ForeignConfig`]) is preserved unchanged.

mod alert;
mod bounds;
mod context;
mod duration;
mod error;
mod fire;
mod foreign_config;
#[cfg(test)]
mod golden;
mod instance;
#[expect(clippy::module_inception, reason = "the module's central type")]
mod job;
mod legacy;
mod mask;
mod name;
mod outcome;
mod plugins;
mod policy;
mod precedence;
mod properties;
mod props;
mod secret_ref;
mod shard_selection;
mod shards;
mod wire;
mod yaml;

pub(crate) use self::instance::{INSTANCE_TRIGGER, is_instance_trigger, is_legacy_document};
pub use self::{
    alert::{Alert, Dingtalk, Email, Webhook},
    bounds::Bound,
    context::Context,
    error::{InvalidValue, UnreadableDocument},
    fire::{Attempt, FencingToken, Fire, RunId, RunReason, Shard, TaskId},
    foreign_config::ForeignConfig,
    instance::{Instance, InstanceId, process_of, server_of},
    job::{Job, KeySpelling},
    legacy::{LegacyJob, LegacyKind},
    mask::{MASK, mask_for_list, mask_text, mask_value, restore_masked},
    name::JobName,
    outcome::Outcome,
    plugins::{Strategy, ThreadPool, TypeName},
    policy::{
        Backoff, CatchUp, Failover, LeaseLoss, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile,
        Resharding, Retry,
    },
    precedence::{ConfigDecision, Conflict, Difference, Handler, drift, replacing, resolve_config},
    properties::{Missing, Property, PropertyKind},
    props::{Policies, Props, keys},
    secret_ref::SecretRef,
    shard_selection::{ShardItems, ShardSelection},
    shards::{ExpectedShards, ItemParameters, ShardCount, ShardLimit},
};
