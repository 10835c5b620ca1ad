//! Assignment of shards to instances.

mod custom_strategies;
mod plan;
mod strategy;

pub use self::{
    custom_strategies::Dealers,
    plan::{Plan, available, plan},
    strategy::{Candidate, Dealer, Situation},
};
