//! Who runs which shard.

mod plan;
mod strategy;

pub use self::{
    plan::{Plan, available, plan},
    strategy::{Candidate, Dealer, Situation},
};
