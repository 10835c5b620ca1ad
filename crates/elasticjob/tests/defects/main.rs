//! One named test for each of the forty known defects of Java ElasticJob; the test fails if this implementation has the defect.
//!
//! `docs/defects.md` describes each defect and the behaviour here. All tests use the memory registry, at the lowest level that can show the
//! defect: the transactions ([`TransactionBuilder`](elasticjob::coordination::claim::TransactionBuilder)), then one instance in a job
//! ([`Member`](elasticjob::coordination::member::Member)), then whole nodes. Time stands still unless a test advances it. Java instances are
//! represented by the registry writes that they make. Tests without a number check related promises: no due fire and no trigger is lost.

mod access_lists;
mod clocks;
mod cluster;
mod documents;
mod failover;
mod fires;
mod instance_triggers;
mod leaving;
#[path = "../backends/log.rs"]
mod log;
mod management;
mod many_shards;
mod members;
mod nodes;
mod outages;
mod runs;
mod safety;
mod sharding;
mod stopped_shards;
mod trigger_races;
mod triggers;
