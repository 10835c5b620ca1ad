//! Tests of the core without sockets.

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{fairness::MAX_SLICE, *};
use crate::{
    server::{
        four_letter::FourLetterWords,
        outbox::{self, OutboxReceiver},
    },
    wire::xid,
};

fn core() -> Core {
    let words = FourLetterWords::all();
    let config = Config { four_letter_words: words, ..Config::in_memory() };
    let address = SocketAddr::from(([127, 0, 0, 1], 2181));
    Core::new(Arc::new(config), address, Tree::new(), None, 0, ClientWarnings::default())
}

/// Opens a session on a new connection.
fn connect(core: &mut Core, connection: ConnectionId) -> OutboxReceiver {
    let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
    let (outbox, receiver) = outbox::channel(1 << 20, &outbox::QueuedTotal::default());
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: 4000,
        session_id: 0,
        password: Bytes::new(),
        read_only: None,
    };
    core.handle(Inbound::Connect { connection, peer, request, outbox });
    receiver
}

fn pings(connection: ConnectionId, count: usize) -> Inbound {
    let requests = vec![(xid::PING, Request::Ping); count];
    Inbound::Requests { connection, requests, arrived: clock::now(), permit: None }
}

#[tokio::test(start_paused = true)]
async fn connection_with_many_requests_lets_others_have_their_turn() {
    let mut core = core();
    let _receivers = [connect(&mut core, 1), connect(&mut core, 2)];
    let waiting = |core: &Core, id| core.connections[&id].pending.len();

    core.handle(pings(1, 2 * MAX_SLICE));
    core.handle(pings(1, 1));
    core.handle(pings(2, 1));

    assert_eq!((waiting(&core, 1), waiting(&core, 2)), (MAX_SLICE + 1, 0));
    for left in [1, 0] {
        assert!(core.continue_unfinished().await);
        assert_eq!((waiting(&core, 1), core.unfinished.len()), (left, left));
    }
}

#[tokio::test(start_paused = true)]
async fn session_with_requests_waiting_does_not_expire() {
    let mut core = core();
    let _receiver = connect(&mut core, 1);
    let (sender, inbox) = mpsc::channel(8);
    let (_stop, stopped) = watch::channel(false);

    tokio::time::advance(Duration::from_secs(10)).await;
    sender.send(pings(1, 1)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(core.run(inbox, stopped));
    yield_now().await;

    let (reply, response) = oneshot::channel();
    sender.send(Inbound::Command { command: Command::Dump, reply }).await.unwrap();
    let dump = response.await.unwrap();
    assert!(dump.contains("Sessions (1)"), "{dump}");
}
