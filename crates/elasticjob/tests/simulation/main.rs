//! The seeded simulation: does the cluster keep its promises, whatever happens?
//!
//! One seed is one story ([`story::simulate`]): three to seven nodes with one to three jobs of all policies, in one thread, on the model of
//! the tree that the registry in memory and tinykeeper share, in virtual time. For one to three minutes they are harmed ([`mischief`]): killed
//! at any request, before it or after it; cut off, one or several; frozen for shorter and for longer than a session; slow; late in
//! hearing; without an answer to what was done; with clocks that are wrong and are set. Meanwhile people configure, disable, enable,
//! trigger and shut down, nodes leave and come, and in every fifth story a Java instance takes part ([`java`]). Then nothing is wrong any more,
//! and everybody has a minute and a half.
//!
//! What holds on a real line holds here ([`line`]): a session ends only when the server has not heard of it for its timeout, and its
//! deadline counts from when the newest answered request was sent; every answer comes after the notifications of what was committed
//! before.
//!
//! # What is checked, at every step ([`book`])
//!
//! * **No two executions of a shard hold a valid lease at the same time.** When a handler begins, nobody else runs the shard in a
//!   session its process still believes in, and no other task of the process runs it at all. With policy `cancel` nothing is polled
//!   after its lease has ended.
//! * **Nothing runs unclaimed**: when a handler begins, the ledger says that its instance runs this run of the shard; whoever runs a
//!   fire owned the shard when it claimed it or when it began; nobody was dealing then and still is.
//! * **No run that was written down as ended runs again**, and nobody claims or buries what a live instance holds.
//! * **Fencing tokens only grow**, from claim to claim.
//! * **Once per death**: whoever takes over takes what somebody died with, and nobody ran since. With failover and monitoring, what was
//!   lost does not wait longer than half a minute in which nothing is wrong.
//! * **A claim that was taken away is noticed**: with policy `cancel` its handler is not polled three seconds later, if nothing is wrong.
//!
//! # In the end ([`verdict`])
//!
//! * **Everything came to rest**: every shard has a live owner, shards are dealt evenly, and no `running`, `failover`, `failovering`,
//!   `misfire`, `items`, `trigger`, `necessary`, `processing` or place in a latch is left behind.
//! * **Every shard runs every fire once** in the last minute.
//! * **No due fire vanished**: a fire of a job that is due every half minute or less often ran, for every shard, if some node was a
//!   member all the time until the next one, the job and the shard were enabled and not changed, and nothing was wrong for the last 28 seconds
//!   before the next one. (What is due more often may be made up for by what is due next; a job may also ask that nothing is made up for.)
//! * **Everybody leaves in time**, and nobody asks without ever waiting.
//!
//! `make test` lives through 2,000 seeds, `make sim SEEDS=20000` through as many as asked for, `SEED=7 make sim` through one, and shows it.
//! What it found in the protocol is kept as scenarios in `tests/membership`.

mod agenda;
mod book;
mod dice;
mod java;
mod jobs;
mod line;
mod mischief;
mod process;
mod simulated;
mod story;
mod verdict;
mod world;
