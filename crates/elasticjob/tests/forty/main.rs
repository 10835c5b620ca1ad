//! The ancestor's forty defects: one named test for each, that fails if we had it.
//!
//! `docs/defects.md` says what each of them is and what happens here instead. All of it is shown on the memory registry, at the lowest
//! level that can show it: what is written ([`Claimant`](elasticjob::coordination::claim::Claimant)), then one instance in a job
//! ([`Member`](elasticjob::coordination::member::Member)), then whole nodes. Time stands still unless a test lets it pass; Java instances
//! are what they write.

mod asks;
mod dealing;
mod deaths;
mod documents;
mod fires;
#[path = "../ground/log.rs"]
mod log;
mod management;
mod members;
mod nodes;
mod outages;
mod runs;
mod safety;
mod stage;
