//! Shared test fixtures of this module.

use jiff::Timestamp;

use crate::job::{FencingToken, Fire, Job, Shard};

pub(super) fn job(name: &str) -> Job {
    Job::named(name).unwrap().shards(4).items("0=Beijing,1=Shanghai").unwrap().parameter("all")
}

pub(super) fn shard(name: &str, item: u32) -> Shard {
    let due_at: Timestamp = "2026-03-29T02:00:00Z".parse().unwrap();
    let fire = Fire::scheduled(name.parse().unwrap(), due_at);
    let task = format!("{name}@-@0,1,2,3@-@READY@-@10.0.0.7@-@4711-9f86d081").parse().unwrap();
    Shard::of(&job(name), &fire, task, item, FencingToken::new(77))
}
