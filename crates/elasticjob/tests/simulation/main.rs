//! The seeded simulation: checks the guarantees of the cluster under random faults.
//!
//! One seed is one simulation ([`simulate::simulate`]): three to seven nodes with one to three jobs of all policies, in one thread, in virtual
//! time, on the tree that the memory registry and tinykeeper share. For one to three minutes there are [`faults`]: nodes are killed at any
//! request, before or after it is performed; nodes are cut off, one or several; nodes freeze for less and for more than a session; requests are
//! slow, notifications late, responses lost, also those that answer many jobs at once; clocks are wrong and are set. Meanwhile operators configure, disable, enable, trigger and shut down,
//! nodes leave and join, in every third simulation also single jobs ([`leaving`]), other programs write into the nodes of a job,
//! also a hostile configuration ([`foreign_writes`]), or delete them ([`console`]), and in every fifth simulation a Java instance takes part ([`java`]). Then the faults end, and the cluster has a minute
//! and a half to settle.
//!
//! The simulated [`network`] gives the guarantees of a real one: a session ends only when the server has not heard from the process for the
//! session timeout; the deadline of a session counts from the moment at which the newest answered request was sent; every response comes after
//! the notifications of everything that was committed before it.
//!
//! # Checked at every step ([`oracle`])
//!
//! * **No two executions of a shard hold a valid lease at the same time.** When a handler starts, no other process runs the shard in a session
//!   that it still trusts, and no other task of the same process runs it at all. With policy `cancel` no handler is polled after its lease has
//!   ended.
//! * **No shard runs unclaimed.** When a handler starts, the ledger says that its instance runs this run of the shard; an instance that runs a
//!   fire owned the shard when it claimed it or when the handler started; and the shard was not claimed during a resharding that is still going
//!   on.
//! * **No run that the ledger records as ended runs again**, and no instance claims a shard, or marks it as lost, that a live instance holds.
//! * **A shard that has ended is released**: it does not run again because its instance dies later, while other shards of the run go on.
//! * **Fencing tokens grow** with every claim of a shard.
//! * **One failover per death**: a failover run takes over a shard whose instance died while running it, if no instance has run it since. With
//!   failover and monitoring, a lost shard waits for no more than half a minute without a fault.
//! * **An instance notices that its claim was deleted**: with policy `cancel` its handler is not polled three seconds later, if there is no fault.
//! * **A node that has left a job leaves nothing behind**, even if it was cut off then or a run of it never ends: after twenty seconds without a fault
//!   its instance, its leadership and its assignment are gone. The fires of all other shards are checked as ever.
//!
//! # Checked at the end ([`final_checks`])
//!
//! * **The cluster has settled**: every shard has a live owner, shards are assigned evenly, and no `running`, `failover`, `failovering`, `misfire`,
//!   `items`, `trigger`, `necessary`, `processing` or latch node is left behind.
//! * **Every server of a running node is enabled**, also if another program emptied its status.
//! * **A hostile configuration of a job stops no other job**: the fires of all other jobs are checked as ever, and its own when it is mended.
//! * **Every shard runs every fire once** in the last minute.
//! * **Every accepted trigger is accounted for** ([`triggers`]): each of its shards has an outcome and ran, or has a reason and did not run; none ran
//!   twice because of it. Operators trigger and cancel during every fault.
//! * **No due fire vanished.** A fire of a job that fires every half minute or less often ran, for every shard, if a node was a member all the
//!   time until the next fire, the job and the shard were enabled and not changed, and there was no fault for the last 28 seconds before the next
//!   fire. (Misfires of jobs that fire more often may be answered by the next fire; and a job can be configured not to compensate misfires.)
//! * **Every fire is accounted for** ([`fire_reports`]): it ran, or a node recorded it as coalesced, skipped or missed. A fire between two claims of
//!   a shard was recorded by the process of the later claim, if it was a member when the fire was due and lived on. Of a job with one shard, no fire
//!   that ran is recorded as coalesced.
//! * **Every node stops in time**, and no loop sends requests without ever waiting.
//!
//! `make test` simulates 2,000 seeds, `make sim SEEDS=20000` as many as requested, and `SEED=7 make sim` one, with its timeline. Defects of the
//! protocol that the simulation found are kept as scenarios in `tests/membership`.

mod console;
mod faults;
mod final_checks;
mod fire_reports;
mod foreign_writes;
mod java;
mod jobs;
mod leaving;
mod network;
mod oracle;
mod process;
mod rng;
mod schedule;
mod seeds;
mod simulate;
mod triggers;
mod world;
