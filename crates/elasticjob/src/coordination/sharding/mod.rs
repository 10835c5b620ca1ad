//! Who runs which shard.

mod dealers;
mod plan;
mod strategy;

pub use self::{
    dealers::Dealers,
    plan::{Plan, available, plan},
    strategy::{Candidate, Dealer, Situation},
};
