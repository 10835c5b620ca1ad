//! What consoles and other programs do to the tree although they should not.

use std::{net::Ipv4Addr, sync::atomic::Ordering, time::Duration};

use elasticjob::{
    coordination::tree::ShardNode,
    registry::{Create, ExpectedVersion, Path, Registry},
    runtime::Clock,
};

use super::{
    rng::Rng,
    schedule::Action,
    world::{World, lock, tree_of},
};

/// Has its own random numbers, so that seeds in which none of this happens stay what they are.
pub(super) fn rng_of(seed: u64) -> Rng {
    Rng::new(seed ^ 0x636f_6e73_6f6c_6521)
}

impl World {
    pub(super) fn schedule_console(&mut self) {
        if self.console_rng.percent(30) {
            let pause = Duration::from_millis(self.console_rng.between(8_000, 30_000));
            self.schedule.add(self.time.monotonic() + pause, Action::MisuseConsole);
        }
    }

    pub(super) async fn misuse_console(&mut self) {
        if self.is_fault_free.load(Ordering::Relaxed) {
            return;
        }
        let now = self.time.monotonic();
        let again = Duration::from_millis(self.console_rng.between(10_000, 40_000));
        self.schedule.add(now + again, Action::MisuseConsole);
        let job = self.console_rng.between(0, self.plans.len() as u64 - 1) as usize;
        let tree = tree_of(&self.plans[job]);
        if self.console_rng.percent(50) {
            let running = self.running_slots();
            if running.is_empty() {
                return;
            }
            let slot = self.console_rng.pick(&running);
            // A server that an operator has disabled would be enabled.
            if lock(&self.plans[job]).disabled_servers.contains(&slot) {
                return;
            }
            self.oracle.log(format_args!("the server of slot {slot} is deleted in job{job}"));
            let path = tree.server(Ipv4Addr::new(10, 0, 0, slot as u8 + 1));
            let _ = self.observer.delete(&path, ExpectedVersion::Any).await;
            return;
        }
        let total = lock(&self.plans[job]).job.shards.get();
        let shard = self.console_rng.between(0, u64::from(total) - 1) as u32;
        let path = tree.shard(shard, ShardNode::Running).join("note").expect("a valid name");
        if self.observer.create(Create::persistent(&path, "")).await.is_ok() {
            self.oracle.log(format_args!("{path} is created"));
            let pause = Duration::from_millis(self.console_rng.between(1_000, 20_000));
            self.notes.push(path.clone());
            self.schedule.add(now + pause, Action::DeleteNote { path });
        }
    }

    pub(super) async fn delete_note(&mut self, path: &Path) {
        if self.notes.contains(path) {
            self.oracle.log(format_args!("{path} is deleted"));
            self.notes.retain(|note| note != path);
            let _ = self.observer.delete(path, ExpectedVersion::Any).await;
        }
    }

    /// The fault phase ends.
    pub(super) async fn delete_notes(&mut self) {
        for path in self.notes.clone() {
            self.delete_note(&path).await;
        }
    }
}
