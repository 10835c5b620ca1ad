//! Counts open connections, and decides which one gives way when there are too many.
//!
//! A connection either waits for its client (to complete the handshake, the head or the body, to take more of the response, to send the next
//! request) or works for it. When an address has all the connections it may have, a new one takes the place of the one that has waited longest for its
//! client. When the console has, that is one of the neighbourhood with the most connections, and there of the address with the most: an attacker who
//! has many addresses of one network pushes out its own connections. So a client that sends its request at once is served, however many others stall,
//! even behind the same address. If all of them work, the new connection is put into a small reserve, where only health probes are answered.
//!
//! A connection of a trusted proxy counts for the client whose request it carries.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{
    client_network::ClientNetwork,
    limits::{Limits, RESERVE_CONNECTIONS},
};

/// All open connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    limits: Limits,
    table: Arc<Mutex<ConnectionTable>>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    open: HashMap<ConnectionId, OpenConnection>,
    /// Those that are not in the reserve.
    regular: Group,
    reserve: Group,
    /// Regular ones by client; those of trusted proxies without a request are one group.
    by_network: HashMap<Option<ClientNetwork>, Group>,
    /// The next number for an id or a [`Ticket`].
    next_number: u64,
}

type ConnectionId = u64;
/// Orders waiting connections by the moment they began to wait.
type Ticket = u64;

#[derive(Debug)]
struct OpenConnection {
    lane: Lane,
    /// The client for which it counts; `None` for a trusted proxy without a request.
    network: Option<ClientNetwork>,
    /// A request has arrived, and its response is not sent yet.
    has_request: bool,
    /// `None` while it works.
    ticket: Option<Ticket>,
    gives_way: Arc<Notify>,
}

/// What is served on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Regular,
    /// Only health probes.
    Reserve,
}

/// Number of connections, and those of them that wait for their clients.
#[derive(Debug, Default)]
struct Group {
    count: usize,
    waiting: BTreeMap<Ticket, ConnectionId>,
}

/// One open connection; it is closed on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    table: Arc<Mutex<ConnectionTable>>,
    limits: Limits,
    id: ConnectionId,
    pub(crate) lane: Lane,
    gives_way: Arc<Notify>,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// Adds a connection, which waits for its client. `network` is `None` for a trusted proxy.
    pub(crate) fn open(&self, network: Option<ClientNetwork>) -> ConnectionSlot {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = network.is_none_or(|network| table.make_room(network, &self.limits))
            && table.make_room_for_all(&self.limits);
        let lane = if has_room { Lane::Regular } else { Lane::Reserve };
        if lane == Lane::Reserve {
            table.make_room_in_reserve();
        }
        let gives_way = Arc::new(Notify::new());
        let id = table.insert(lane, network, Arc::clone(&gives_way));
        ConnectionSlot { table: Arc::clone(&self.table), limits: self.limits, id, lane, gives_way }
    }
}

impl ConnectionSlot {
    /// Returns when another connection has taken the place of this one.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }

    /// The request on this connection of a trusted proxy belongs to this client. False if the client has too many requests in progress.
    #[must_use]
    pub(crate) fn assign_to(&self, network: ClientNetwork) -> bool {
        let mut table = self.lock();
        let Some(connection) = table.remove(self.id) else { return true };
        let is_counted = connection.network == Some(network);
        let has_room = is_counted || table.make_room(network, &self.limits);
        let network = if has_room { Some(network) } else { connection.network };
        table.put(self.id, OpenConnection { network, ..connection });
        has_room
    }

    /// The request has arrived; the connection does not give way while it works. False if it gave way already.
    #[must_use]
    pub(crate) fn begin_work(&self) -> bool {
        self.lock().update(self.id, |connection, _| {
            (connection.has_request, connection.ticket) = (true, None);
        })
    }

    /// The response is sent; the connection waits for the next request.
    pub(crate) fn end_work(&self) {
        self.lock().update(self.id, |connection, next| {
            (connection.has_request, connection.ticket) = (false, Some(next));
        });
    }

    /// The client does not take what is sent to it: the connection waits for that.
    pub(crate) fn block_write(&self) {
        self.lock().update(self.id, |connection, next| {
            connection.ticket.get_or_insert(next);
        });
    }

    /// The client has taken something.
    pub(crate) fn resume_write(&self) {
        self.lock().update(self.id, |connection, _| {
            connection.ticket = connection.ticket.filter(|_| !connection.has_request);
        });
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        // No code panics while holding this lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.lock().remove(self.id);
    }
}

impl ConnectionTable {
    /// Whether the client may have another connection; the one that has waited longest gives way if necessary.
    fn make_room(&mut self, network: ClientNetwork, limits: &Limits) -> bool {
        let Some(group) = self.by_network.get(&Some(network)) else { return true };
        if group.count < limits.connections_per_address {
            return true;
        }
        let longest = group.longest_waiting();
        self.give_way(longest)
    }

    fn make_room_for_all(&mut self, limits: &Limits) -> bool {
        if self.regular.count < limits.connections {
            return true;
        }
        let longest = self.longest_waiting_of_busiest();
        self.give_way(longest)
    }

    /// Of the clients with waiting connections the one with the most gives one up, in the neighbourhood with the most, so that a client with many
    /// does not push out one with few. Each connection of a trusted proxy may be another client's.
    fn longest_waiting_of_busiest(&self) -> Option<ConnectionId> {
        let mut by_neighbourhood: HashMap<ClientNetwork, usize> = HashMap::new();
        for (network, group) in &self.by_network {
            if let Some(network) = network {
                *by_neighbourhood.entry(network.neighbourhood()).or_default() += group.count;
            }
        }
        let counts = |network: ClientNetwork, group: &Group| {
            let nearby = by_neighbourhood.get(&network.neighbourhood());
            (nearby.copied().unwrap_or(group.count), group.count)
        };
        let waiting = self.by_network.iter().filter_map(|(network, group)| {
            let counts = network.map_or((1, 1), |network| counts(network, group));
            Some((counts, group.waiting.first_key_value()?))
        });
        let busiest = waiting.max_by_key(|(counts, (ticket, _))| (*counts, Reverse(**ticket)));
        busiest.map(|(_, (_, id))| *id)
    }

    fn make_room_in_reserve(&mut self) {
        if self.reserve.count < RESERVE_CONNECTIONS {
            return;
        }
        let in_reserve = self.open.iter().filter(|(_, open)| open.lane == Lane::Reserve);
        let oldest = in_reserve.map(|(id, _)| *id).min();
        let longest = self.reserve.longest_waiting();
        self.give_way(longest.or(oldest));
    }

    fn give_way(&mut self, id: Option<ConnectionId>) -> bool {
        let Some(connection) = id.and_then(|id| self.remove(id)) else { return false };
        connection.gives_way.notify_one();
        true
    }

    fn insert(
        &mut self,
        lane: Lane,
        network: Option<ClientNetwork>,
        gives_way: Arc<Notify>,
    ) -> ConnectionId {
        let (id, ticket) = (self.number(), self.number());
        let (has_request, ticket) = (false, Some(ticket));
        self.put(id, OpenConnection { lane, network, has_request, ticket, gives_way });
        id
    }

    /// Changes a connection, given the next ticket. False if it gave way.
    fn update(
        &mut self,
        id: ConnectionId,
        change: impl FnOnce(&mut OpenConnection, Ticket),
    ) -> bool {
        let next = self.number();
        let Some(mut connection) = self.remove(id) else { return false };
        change(&mut connection, next);
        self.put(id, connection);
        true
    }

    fn put(&mut self, id: ConnectionId, connection: OpenConnection) {
        let OpenConnection { lane, network, ticket, .. } = &connection;
        match lane {
            Lane::Regular => {
                self.regular.add(id, *ticket);
                self.by_network.entry(*network).or_default().add(id, *ticket);
            }
            Lane::Reserve => self.reserve.add(id, *ticket),
        }
        self.open.insert(id, connection);
    }

    fn remove(&mut self, id: ConnectionId) -> Option<OpenConnection> {
        let connection = self.open.remove(&id)?;
        let OpenConnection { lane, network, ticket, .. } = &connection;
        match lane {
            Lane::Regular => {
                self.regular.subtract(*ticket);
                if let Some(group) = self.by_network.get_mut(network) {
                    group.subtract(*ticket);
                    if group.count == 0 {
                        self.by_network.remove(network);
                    }
                }
            }
            Lane::Reserve => self.reserve.subtract(*ticket),
        }
        Some(connection)
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

impl Group {
    fn add(&mut self, id: ConnectionId, ticket: Option<Ticket>) {
        self.count += 1;
        self.waiting.extend(ticket.map(|ticket| (ticket, id)));
    }

    fn subtract(&mut self, ticket: Option<Ticket>) {
        self.count -= 1;
        if let Some(ticket) = ticket {
            self.waiting.remove(&ticket);
        }
    }

    fn longest_waiting(&self) -> Option<ConnectionId> {
        self.waiting.first_key_value().map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::FutureExt;

    use super::*;

    fn network(last: u8) -> ClientNetwork {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// Four connections, two of one address.
    fn connections() -> Connections {
        Connections::new(Limits::of(4)).with_per_address(2)
    }

    impl Connections {
        fn with_per_address(mut self, connections_per_address: usize) -> Self {
            self.limits.connections_per_address = connections_per_address;
            self
        }
    }

    fn gave_way(slot: &ConnectionSlot) -> bool {
        slot.gives_way().now_or_never().is_some()
    }

    #[test]
    fn connection_that_waits_longest_gives_way_to_one_of_its_address() {
        let connections = connections();
        let bystander = connections.open(Some(network(2)));
        let [first, second] = [1, 1].map(|last| connections.open(Some(network(last))));
        assert!(first.begin_work());
        first.end_work();

        let third = connections.open(Some(network(1)));

        assert_eq!(third.lane, Lane::Regular);
        assert_eq!(
            [&bystander, &first, &second, &third].map(gave_way),
            [false, false, true, false]
        );
        assert!(!second.begin_work(), "no request is handled on a connection that is being closed");
    }

    #[test]
    fn connection_that_works_never_gives_way() {
        let connections = connections();
        let working = [1, 1].map(|last| connections.open(Some(network(last))));
        assert!(working.iter().all(ConnectionSlot::begin_work));

        let beyond = connections.open(Some(network(1)));
        let other = connections.open(Some(network(2)));

        assert_eq!((beyond.lane, other.lane), (Lane::Reserve, Lane::Regular));
        assert!(!working.iter().any(gave_way));
        drop(working);
        assert_eq!(connections.open(Some(network(1))).lane, Lane::Regular);
    }

    #[test]
    fn connection_whose_client_takes_nothing_gives_way() {
        let connections = connections();
        let [reads_slowly, reads_nothing] =
            [1, 1].map(|last| connections.open(Some(network(last))));
        for slot in [&reads_slowly, &reads_nothing] {
            assert!(slot.begin_work());
            slot.block_write();
        }
        reads_slowly.resume_write();
        reads_slowly.block_write();

        let another = connections.open(Some(network(1)));

        assert_eq!([&reads_slowly, &reads_nothing].map(gave_way), [false, true]);
        assert!(another.begin_work());
        reads_slowly.resume_write();
        assert_eq!(connections.open(Some(network(1))).lane, Lane::Reserve, "both work");
        reads_slowly.end_work();
        reads_slowly.resume_write();
        assert_eq!(connections.open(Some(network(1))).lane, Lane::Regular);
    }

    #[test]
    fn connection_beyond_the_total_takes_the_place_of_a_waiting_one() {
        let connections = connections();
        let all = [1, 1, 2, 2].map(|last| connections.open(Some(network(last))));
        let newcomer = connections.open(Some(network(3)));
        assert_eq!(newcomer.lane, Lane::Regular);
        assert_eq!(all.each_ref().map(gave_way), [true, false, false, false]);

        assert!(newcomer.begin_work() && all[1..].iter().all(ConnectionSlot::begin_work));

        assert_eq!(connections.open(Some(network(4))).lane, Lane::Reserve);
    }

    #[test]
    fn address_with_the_most_connections_gives_one_up() {
        let connections = Connections::new(Limits::of(8)).with_per_address(3);
        let of_proxy = [(); 3].map(|()| connections.open(None));
        let few = [2, 3].map(|last| connections.open(Some(network(last))));
        let many = [1, 1, 1].map(|last| connections.open(Some(network(last))));
        assert!(many[0].begin_work());

        let newcomers = [4, 5].map(|last| connections.open(Some(network(last))));

        assert_eq!(newcomers.each_ref().map(|slot| slot.lane), [Lane::Regular; 2]);
        assert_eq!(many.each_ref().map(gave_way), [false, true, true]);
        assert_eq!(few.each_ref().map(gave_way), [false, false]);
        assert_eq!(of_proxy.each_ref().map(gave_way), [false; 3], "it may forward three clients");
    }

    #[test]
    fn attacker_with_many_addresses_of_a_network_evicts_no_other_client() {
        let connections = Connections::new(Limits::of(64));
        let office = [(); 4].map(|()| connections.open(Some(network(1))));
        let attacker = |last: u8| connections.open(Some(IpAddr::from([203, 0, 113, last]).into()));
        let stalled: Vec<_> = (0..=255).map(attacker).collect();

        assert_eq!(office.each_ref().map(gave_way), [false; 4]);
        let newcomer = connections.open(Some(network(2)));
        assert_eq!(newcomer.lane, Lane::Regular);
        assert!(newcomer.begin_work() && office.iter().all(ConnectionSlot::begin_work));
        assert_eq!(stalled.iter().filter(|slot| gave_way(slot)).count(), 256 - 59);
    }

    #[test]
    fn reserve_always_admits_the_newest_connection() {
        let connections = Connections::new(Limits::of(1));
        let working = connections.open(None);
        assert!(working.begin_work());
        let reserve: Vec<_> = (0..RESERVE_CONNECTIONS).map(|_| connections.open(None)).collect();
        assert!(reserve[1..].iter().all(ConnectionSlot::begin_work));
        let newest = [connections.open(None), connections.open(None)];

        assert!(gave_way(&reserve[0]), "the one that waits");
        assert!(gave_way(&newest[0]), "the one that waits");
        assert!(!gave_way(&newest[1]) && !gave_way(&working));
        assert!(newest[1].begin_work());
        let last = connections.open(None);
        assert!(gave_way(&reserve[1]), "the oldest, if all of them work");
        assert_eq!(last.lane, Lane::Reserve);
    }

    #[test]
    fn connection_of_a_proxy_counts_for_the_client_it_forwards() {
        let connections = connections();
        let [one, two, three] = [(); 3].map(|()| connections.open(None));
        assert!(one.assign_to(network(1)) && two.assign_to(network(1)));
        assert!(two.assign_to(network(1)), "the next request of the same client");

        assert!(three.assign_to(network(1)), "the request that waits longest gives way");
        assert_eq!([&one, &two, &three].map(gave_way), [true, false, false]);

        assert!(two.begin_work() && three.begin_work());
        let four = connections.open(None);
        assert!(!four.assign_to(network(1)), "all requests of this client are being answered");
        assert!(four.assign_to(network(2)), "another client of the same proxy is served");
        two.end_work();
        assert!(two.assign_to(network(2)) && four.assign_to(network(1)));
    }

    #[test]
    fn closed_connections_take_no_memory() {
        let connections = connections();
        let all: Vec<_> = (0..100).map(|last| connections.open(Some(network(last)))).collect();
        drop(all);

        let table = connections.table.lock().unwrap();
        assert!(table.open.is_empty() && table.by_network.is_empty());
        let groups = [&table.regular, &table.reserve];
        assert!(groups.iter().all(|group| group.count == 0 && group.waiting.is_empty()));
    }
}
