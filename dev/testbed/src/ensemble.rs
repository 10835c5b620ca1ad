//! An ensemble of three ZooKeeper servers.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::java::Main;
use crate::poll;
use crate::ports::free_port;
use crate::proxy::Proxy;
use crate::zookeeper::{PortTaken, Ports, Settings, ZooKeeper, write};

const SIZE: usize = 3;
/// How long the members may take to elect a leader.
const ELECTION_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a member may take to fetch the leader's data.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Three real `ZooKeeper` servers with one leader, which keep serving while any two of them run.
pub struct Ensemble {
    servers: Vec<ZooKeeper>,
    links: Vec<Link>,
}

/// The connection of one server to another that may lead it.
struct Link {
    from: usize,
    to: usize,
    proxy: Proxy,
}

impl Ensemble {
    /// Starts three servers and waits until all of them serve.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// An ensemble with other settings than the default.
    pub fn builder() -> EnsembleBuilder {
        EnsembleBuilder { settings: Settings::default(), sync_limit: 10 }
    }

    /// The client addresses, in the order of [`Self::server`].
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(ZooKeeper::address).collect()
    }

    /// The server at `index`, from 0 to 2: to be killed, frozen or restarted on its own.
    pub fn server(&self, index: usize) -> &ZooKeeper {
        &self.servers[index]
    }

    /// The index of the leader. Waits while there is none.
    pub fn leader(&self) -> usize {
        poll::until(ELECTION_TIMEOUT, || {
            let modes: Vec<Option<String>> = self.servers.iter().map(ZooKeeper::mode).collect();
            let all = |wanted: &str| -> Vec<usize> {
                (0..SIZE).filter(|&index| modes[index].as_deref() == Some(wanted)).collect()
            };
            // A thawed leader still calls itself leader until it learns of its successor.
            match all("leader")[..] {
                [leader] if !all("follower").is_empty() => Some(leader),
                _ => None,
            }
        })
        .unwrap_or_else(|| panic!("the ensemble has no leader after {ELECTION_TIMEOUT:?}"))
    }

    /// Holds back everything that the leader sends to a follower. What the follower sends, its clients and its votes are not affected: it keeps
    /// answering pings until the sync limit has passed. Needs [`EnsembleBuilder::start_with_links`].
    pub fn hold_leader_messages(&self, follower: usize) {
        self.links(follower).for_each(Proxy::hold_answers);
    }

    /// Delivers what was held back by [`Self::hold_leader_messages`] and everything after it.
    pub fn release_leader_messages(&self, follower: usize) {
        self.links(follower).for_each(Proxy::release_answers);
    }

    fn links(&self, from: usize) -> impl Iterator<Item = &Proxy> {
        assert!(
            !self.links.is_empty(),
            "an ensemble has links only if it is started with start_with_links()"
        );
        self.links.iter().filter(move |link| link.from == from).map(|link| &link.proxy)
    }

    /// Starts all servers again, with the same ports and data, and waits until they serve. Servers that still run are killed first.
    pub fn restart(&self) {
        self.servers.iter().for_each(ZooKeeper::stop);
        self.servers.iter().for_each(ZooKeeper::launch);
        self.servers.iter().for_each(ZooKeeper::wait_until_serving_again);
    }
}

/// Builds an [`Ensemble`]. By default the servers are those of [`ZooKeeper::start`], with a sync limit of ten ticks.
pub struct EnsembleBuilder {
    settings: Settings,
    sync_limit: u32,
}

impl EnsembleBuilder {
    /// The servers' unit of time. Sessions last at least two ticks and are checked once per tick.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.settings.tick = tick;
        self
    }

    /// For how many ticks the leader and a follower may be out of contact before they disconnect.
    #[must_use]
    pub fn sync_limit(mut self, ticks: u32) -> Self {
        self.sync_limit = ticks;
        self
    }

    /// Whether a write is on disk before it is answered.
    #[must_use]
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.settings.fsync = fsync;
        self
    }

    /// For benchmarks: keeps the JVMs' default compiler and garbage collector and gives each 1 GiB.
    #[must_use]
    pub fn full_speed(mut self) -> Self {
        self.settings.full_speed = true;
        self
    }

    /// Starts the servers and waits until all of them serve.
    pub fn start(&self) -> Ensemble {
        loop {
            let servers = self.prepare(&Peers::find(), &[]);
            if launch(&servers) {
                return Ensemble { servers, links: Vec::new() };
            }
        }
    }

    /// Like [`Self::start`], with a proxy between every two servers: see [`Ensemble::hold_leader_messages`]. The proxies need a runtime with a second
    /// thread, since this function blocks until the servers serve.
    pub async fn start_with_links(&self) -> Ensemble {
        loop {
            let peers = Peers::find();
            let mut links = Vec::new();
            for (from, to) in (0..SIZE).flat_map(|from| (0..SIZE).map(move |to| (from, to))) {
                if from != to {
                    let proxy =
                        Proxy::start_with_retries((Ipv4Addr::LOCALHOST, peers.quorum[to]).into())
                            .await;
                    links.push(Link { from, to, proxy });
                }
            }
            let servers = self.prepare(&peers, &links);
            if launch(&servers) {
                return Ensemble { servers, links };
            }
        }
    }

    fn prepare(&self, peers: &Peers, links: &[Link]) -> Vec<ZooKeeper> {
        (1..=SIZE)
            .map(|id| {
                let zoo_cfg = self.zoo_cfg(peers, links, id - 1);
                let ports = Ports { client: free_port(), secure: None };
                ZooKeeper::prepare(Main::EnsembleMember, &self.settings, ports, |folder| {
                    let data = folder.join("data");
                    fs::create_dir(&data).expect("a temporary folder can be written to");
                    write(&data, "myid", &id.to_string());
                    zoo_cfg
                })
            })
            .collect()
    }

    /// The part of `zoo.cfg` that lists all members, for the member at `own_index`.
    fn zoo_cfg(&self, peers: &Peers, links: &[Link], own_index: usize) -> String {
        let init_limit = INIT_TIMEOUT.as_millis().div_ceil(self.settings.tick.as_millis()).max(10);
        let mut zoo_cfg = format!("initLimit={init_limit}\nsyncLimit={}\n", self.sync_limit);
        for index in 0..SIZE {
            let link = links.iter().find(|link| link.from == own_index && link.to == index);
            let quorum = link.map_or(peers.quorum[index], |link| link.proxy.address().port());
            let _ = writeln!(
                zoo_cfg,
                "server.{}=127.0.0.1:{quorum}:{}",
                index + 1,
                peers.election[index]
            );
        }
        zoo_cfg
    }
}

/// The ports on which the servers reach each other: as leader and followers, and for elections.
struct Peers {
    quorum: [u16; SIZE],
    election: [u16; SIZE],
}

impl Peers {
    fn find() -> Self {
        Self {
            quorum: [(); SIZE].map(|()| free_port()),
            election: [(); SIZE].map(|()| free_port()),
        }
    }
}

/// Starts all servers and waits until they serve; `false` if another process has one of their ports.
fn launch(servers: &[ZooKeeper]) -> bool {
    servers.iter().for_each(ZooKeeper::launch);
    let served: Result<(), PortTaken> = servers.iter().try_for_each(ZooKeeper::wait_until_serving);
    served.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn ensemble_elects_another_leader_when_the_leader_is_killed() {
        let ensemble = Ensemble::start();
        let first = ensemble.leader();

        ensemble.server(first).stop();
        let second = ensemble.leader();

        assert_ne!(first, second);
        ensemble.server(first).restart();
        assert_eq!(ensemble.leader(), second);
        assert_eq!(ensemble.server(first).mode().as_deref(), Some("follower"));
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn ensemble_elects_another_leader_when_the_leader_freezes() {
        let ensemble = Ensemble::builder().sync_limit(5).start();
        let first = ensemble.leader();

        ensemble.server(first).freeze();
        let second = ensemble.leader();
        ensemble.server(first).thaw();

        assert_ne!(first, second);
        assert_eq!(ensemble.leader(), second);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs a real ZooKeeper: make test"]
    async fn follower_keeps_serving_while_leader_messages_are_held() {
        let ensemble = Ensemble::builder().sync_limit(500).start_with_links().await;
        let follower = (ensemble.leader() + 1) % SIZE;

        ensemble.hold_leader_messages(follower);
        let mode = ensemble.server(follower).mode();
        ensemble.release_leader_messages(follower);

        assert_eq!(mode.as_deref(), Some("follower"));
        assert_eq!(ensemble.server(follower).mode().as_deref(), Some("follower"));
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn ensemble_restarts_after_all_its_servers_were_killed() {
        let ensemble = Ensemble::start();
        let addresses = ensemble.addresses();
        (0..SIZE).for_each(|index| ensemble.server(index).stop());

        ensemble.restart();

        assert_eq!(ensemble.addresses(), addresses);
        assert!(ensemble.leader() < SIZE);
    }
}
