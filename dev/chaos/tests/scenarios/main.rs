//! Injects one fault at a time into worker processes on a real ZooKeeper.

mod connections;
mod registry;
mod scenario;
mod scheduling;
mod worker_failures;
