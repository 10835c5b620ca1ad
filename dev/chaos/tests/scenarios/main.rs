//! One thing goes wrong at a time: what happens to workers in the world, each a process, on a real ZooKeeper.

mod connections;
mod deaths;
mod life;
mod registry;
mod scene;
