//! Assignment of shards to instances.

mod custom_strategies;
mod plan;
mod strategy;

pub use self::{
    custom_strategies::CustomStrategies,
    plan::{Plan, available_instances, plan},
    strategy::{Candidate, ShardingInput, ShardingStrategy},
};
