//! A TCP proxy that can be told to misbehave.
//!
//! Every method takes effect before it returns, so a test needs no pause after it: the listener and
//! a second handle on each socket are kept where [`Proxy::cut`] can shut them down at once, rather
//! than in the tasks that read and write. While it is cut, the proxy keeps its port without listening
//! on it, so connections are refused and nobody else is given the port.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ports::{free_port, hang_up};

const BACKLOG: u32 = 1024;
const BUFFER: usize = 64 * 1024;
/// How often a patient proxy tries to reach its target, and how long it waits in between.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// A TCP proxy in front of a server, to cut its clients off. It ends, with all that goes through
/// it, when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Handle,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy in front of `target`, on a free port of 127.0.0.1.
    #[expect(clippy::unused_async, reason = "to say that it has to be called on a runtime")]
    pub async fn start(target: SocketAddr) -> Self {
        Self::launch(target, false)
    }

    /// As [`Self::start`], for servers that take a closed connection for more than a refused one: tries for a second to reach
    /// the target.
    #[expect(clippy::unused_async, reason = "to say that it has to be called on a runtime")]
    pub(crate) async fn start_patient(target: SocketAddr) -> Self {
        Self::launch(target, true)
    }

    fn launch(target: SocketAddr, is_patient: bool) -> Self {
        let (listener, port) = listen().expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            door: Mutex::new(Door {
                listener: Some(listener),
                port,
                acceptor: None,
                target,
                inside: HashMap::new(),
            }),
            accepted: AtomicUsize::new(0),
            holding: watch::Sender::new(false),
            is_patient,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).run());

        Self { address, shared, runtime: Handle::current(), _tasks: tasks }
    }

    /// Where clients connect instead.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections and refuses new ones. Answers that were held back are lost.
    pub fn cut(&self) {
        self.shared.door().close();
        // Only now, so that nothing held back gets through.
        self.shared.holding.send_replace(false);
    }

    /// Takes new connections again after [`Self::cut`].
    pub fn heal(&self) {
        let _runtime = self.runtime.enter();
        self.shared.door().open().expect("the proxy has its port");
    }

    /// Goes on taking what clients send to the server, and holds back what it answers, on new
    /// connections as well: the server does what it is asked to, and nobody hears of it.
    pub fn hold_answers(&self) {
        self.shared.holding.send_replace(true);
    }

    /// Delivers the answers held back so far, and no longer holds back any.
    pub fn release_answers(&self) {
        self.shared.holding.send_replace(false);
    }

    /// Leads connections made from now on to another server. Those there are stay where they are.
    pub fn retarget(&self, target: SocketAddr) {
        self.shared.door().target = target;
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.door().close();
    }
}

struct Shared {
    door: Mutex<Door>,
    accepted: AtomicUsize,
    holding: watch::Sender<bool>,
    is_patient: bool,
}

/// Who comes in, and who is in.
struct Door {
    /// Nothing while we are cut.
    listener: Option<TcpListener>,
    /// A second handle on the listener's socket, which has our port whether or not it listens.
    port: std::net::TcpStream,
    acceptor: Option<Waker>,
    target: SocketAddr,
    /// Both sockets of each connection, by its number.
    inside: HashMap<usize, Vec<std::net::TcpStream>>,
}

struct Guest {
    number: usize,
    stream: TcpStream,
    target: SocketAddr,
}

impl Shared {
    async fn run(self: Arc<Self>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                guest = poll_fn(|context| self.poll_accept(context)) => {
                    connections.spawn(Arc::clone(&self).serve(guest));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<Guest> {
        let mut door = self.door();
        door.acceptor = Some(context.waker().clone());
        loop {
            let Some(listener) = &door.listener else {
                return Poll::Pending;
            };
            let stream = match ready!(listener.poll_accept(context)) {
                Ok((stream, _)) => stream,
                // A client that gave up before it was accepted is nobody's concern.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => panic!("the proxy cannot accept connections: {error}"),
            };
            let handle = second_handle(&stream).expect("a socket can have a second handle");
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            door.inside.insert(number, vec![handle]);
            return Poll::Ready(Guest { number, stream, target: door.target });
        }
    }

    async fn serve(self: Arc<Self>, guest: Guest) {
        let number = guest.number;
        // If either end is gone there is nobody left to tell.
        let _ = self.carry(guest).await;
        self.door().inside.remove(&number);
    }

    async fn carry(&self, guest: Guest) -> io::Result<()> {
        let mut tries = if self.is_patient { TRIES } else { 1 };
        let server = loop {
            tries -= 1;
            match TcpStream::connect(guest.target).await {
                Ok(server) => break server,
                Err(error) if tries == 0 => return Err(error),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        server.set_nodelay(true)?;
        guest.stream.set_nodelay(true)?;
        match self.door().inside.get_mut(&guest.number) {
            Some(sockets) => sockets.push(second_handle(&server)?),
            None => return Ok(()), // We were cut while we connected.
        }
        let (from_client, to_client) = guest.stream.into_split();
        let (from_server, to_server) = server.into_split();
        let questions = forward(from_client, to_server, None);
        let answers = forward(from_server, to_client, Some(self.holding.subscribe()));
        tokio::try_join!(questions, answers).map(|_| ())
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    fn open(&mut self) -> io::Result<()> {
        if self.listener.is_none() {
            let socket = TcpSocket::from_std_stream(self.port.try_clone()?);
            self.listener = Some(socket.listen(BACKLOG)?);
        }
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.wake();
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.listener.take().is_some() {
            hang_up(&self.port);
        }
        for socket in self.inside.drain().flat_map(|(_, sockets)| sockets) {
            // Fails on what the other end has closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Carries bytes until the end of `from`, each time waiting while they are held back.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut holding: Option<watch::Receiver<bool>>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if let Some(holding) = &mut holding {
            holding.wait_for(|holding| !holding).await.map_err(io::Error::other)?;
        }
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}

/// Listens on a free port. The port is named to the kernel, so that it stays with the socket when
/// that no longer listens.
fn listen() -> io::Result<(TcpListener, std::net::TcpStream)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, free_port()).into())?;
    let listener = socket.listen(BACKLOG)?;
    let port = second_handle(&listener)?;
    Ok((listener, port))
}

fn second_handle(socket: &impl AsFd) -> io::Result<std::net::TcpStream> {
    Ok(socket.as_fd().try_clone_to_owned()?.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);
    /// Long enough for what should not happen to happen.
    const A_WHILE: Duration = Duration::from_millis(100);

    /// A server that sends back what it gets, after a greeting.
    struct Echo {
        address: SocketAddr,
        heard: watch::Receiver<usize>,
        _tasks: JoinSet<()>,
    }

    impl Echo {
        async fn start(greeting: u8) -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let (count, heard) = watch::channel(0);
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                let mut connections = JoinSet::new();
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let count = count.clone();
                    connections.spawn(async move {
                        stream.write_all(&[greeting]).await.unwrap();
                        while let Ok(byte) = stream.read_u8().await {
                            count.send_modify(|count| *count += 1);
                            if stream.write_all(&[byte]).await.is_err() {
                                break;
                            }
                        }
                    });
                }
            });
            Self { address, heard, _tasks: tasks }
        }
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }

    async fn next(stream: &mut TcpStream) -> io::Result<u8> {
        timeout(PATIENCE, stream.read_u8()).await.expect("an answer in time")
    }

    #[tokio::test]
    async fn bytes_go_through_both_ways() {
        let echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;

        let mut client = connect(proxy.address()).await;
        client.write_all(b"!").await.unwrap();

        assert_eq!(next(&mut client).await.unwrap(), b'a');
        assert_eq!(next(&mut client).await.unwrap(), b'!');
        assert_eq!(proxy.connections(), 1);
    }

    #[tokio::test]
    async fn a_cut_proxy_closes_what_there_is_and_refuses_the_rest() {
        let echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(next(&mut client).await.unwrap(), b'a');

        proxy.cut();

        assert!(next(&mut client).await.is_err());
        let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(proxy.connections(), 1);
    }

    #[tokio::test]
    async fn a_healed_proxy_takes_new_connections_however_often_it_is_cut() {
        let echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;

        for round in 1..=20 {
            let mut client = connect(proxy.address()).await;
            assert_eq!(next(&mut client).await.unwrap(), b'a');
            assert_eq!(proxy.connections(), round);
            proxy.cut();
            proxy.cut();
            assert!(TcpStream::connect(proxy.address()).await.is_err());
            proxy.heal();
            proxy.heal();
        }
    }

    #[tokio::test]
    async fn held_answers_come_once_they_are_released() {
        let mut echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(next(&mut client).await.unwrap(), b'a');

        proxy.hold_answers();
        client.write_all(b"!").await.unwrap();
        timeout(PATIENCE, echo.heard.wait_for(|heard| *heard == 1)).await.unwrap().unwrap();
        assert!(timeout(A_WHILE, client.read_u8()).await.is_err());
        proxy.release_answers();

        assert_eq!(next(&mut client).await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn held_answers_are_lost_in_a_cut() {
        let mut echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(next(&mut client).await.unwrap(), b'a');
        proxy.hold_answers();
        client.write_all(b"!").await.unwrap();
        timeout(PATIENCE, echo.heard.wait_for(|heard| *heard == 1)).await.unwrap().unwrap();

        proxy.cut();
        proxy.heal();

        assert!(next(&mut client).await.is_err());
        let mut another = connect(proxy.address()).await;
        assert_eq!(next(&mut another).await.unwrap(), b'a');
    }

    #[tokio::test]
    async fn a_retargeted_proxy_leads_new_connections_elsewhere() {
        let (first, second) = (Echo::start(b'a').await, Echo::start(b'b').await);
        let proxy = Proxy::start(first.address).await;
        let mut old = connect(proxy.address()).await;
        assert_eq!(next(&mut old).await.unwrap(), b'a');

        proxy.retarget(second.address);
        let mut new = connect(proxy.address()).await;
        old.write_all(b"!").await.unwrap();

        assert_eq!(next(&mut new).await.unwrap(), b'b');
        assert_eq!(next(&mut old).await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_reached_closes_the_connection() {
        let nowhere = (Ipv4Addr::LOCALHOST, free_port()).into();
        let proxy = Proxy::start(nowhere).await;

        let mut client = connect(proxy.address()).await;

        assert!(next(&mut client).await.is_err());
    }

    #[tokio::test]
    async fn a_dropped_proxy_is_gone_with_its_connections() {
        let echo = Echo::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let address = proxy.address();
        let mut client = connect(address).await;
        assert_eq!(next(&mut client).await.unwrap(), b'a');

        drop(proxy);

        assert!(next(&mut client).await.is_err());
        assert!(TcpStream::connect(address).await.is_err());
    }
}
