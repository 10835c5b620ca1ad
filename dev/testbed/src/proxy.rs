//! A TCP proxy that can cut connections and hold back answers.
//!
//! Every method takes effect before it returns, so that a test needs no pause after it: the listener and a second handle on each socket are kept in
//! `State`, where [`Proxy::cut`] can shut them down at once, rather than only in the tasks that read and write. While the proxy is cut, it keeps its
//! port without listening on it: connections are refused, and the port is given to no other process.

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

use crate::ports::{free_port, stop_listening};

const BACKLOG: u32 = 1024;
const BUFFER: usize = 64 * 1024;
/// How often a proxy with retries tries to reach its target, and how long it waits in between.
const CONNECT_TRIES: usize = 50;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// A TCP proxy in front of a server. Dropping it closes all its connections.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Handle,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy in front of `target`, on a free port of 127.0.0.1.
    #[expect(clippy::unused_async, reason = "shows that it has to be called on a runtime")]
    pub async fn start(target: SocketAddr) -> Self {
        Self::launch(target, false)
    }

    /// Like [`Self::start`], but tries for a second to reach the target: for clients that take a closed connection more seriously than a refused one.
    #[expect(clippy::unused_async, reason = "shows that it has to be called on a runtime")]
    pub(crate) async fn start_with_retries(target: SocketAddr) -> Self {
        Self::launch(target, true)
    }

    fn launch(target: SocketAddr, has_retries: bool) -> Self {
        let (listener, port) = listen().expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                listener: Some(listener),
                port,
                acceptor: None,
                target,
                connections: HashMap::new(),
            }),
            accepted: AtomicUsize::new(0),
            holding: watch::Sender::new(false),
            has_retries,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).run());

        Self { address, shared, runtime: Handle::current(), _tasks: tasks }
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections and refuses new ones. Answers that are held back are lost.
    pub fn cut(&self) {
        self.shared.state().close();
        // Only now, so that no held answer gets through.
        self.shared.holding.send_replace(false);
    }

    /// Accepts new connections again after [`Self::cut`].
    pub fn heal(&self) {
        let _runtime = self.runtime.enter();
        self.shared.state().open().expect("the proxy has its port");
    }

    /// Holds back the answers of the server, on new connections too. Requests are still forwarded: the server executes them, but the clients do not
    /// learn of it.
    pub fn hold_answers(&self) {
        self.shared.holding.send_replace(true);
    }

    /// Delivers the held answers and stops holding answers back.
    pub fn release_answers(&self) {
        self.shared.holding.send_replace(false);
    }

    /// Forwards new connections to another server. Existing connections are not affected.
    pub fn retarget(&self, target: SocketAddr) {
        self.shared.state().target = target;
    }

    /// The number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().close();
    }
}

struct Shared {
    state: Mutex<State>,
    accepted: AtomicUsize,
    holding: watch::Sender<bool>,
    has_retries: bool,
}

/// The listener and the open connections.
struct State {
    /// `None` while the proxy is cut.
    listener: Option<TcpListener>,
    /// A second handle on the listener's socket, which keeps the port while the proxy does not listen.
    port: std::net::TcpStream,
    acceptor: Option<Waker>,
    target: SocketAddr,
    /// Both sockets of each connection, by its number.
    connections: HashMap<usize, Vec<std::net::TcpStream>>,
}

struct ClientConnection {
    number: usize,
    stream: TcpStream,
    target: SocketAddr,
}

impl Shared {
    async fn run(self: Arc<Self>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                client = poll_fn(|context| self.poll_accept(context)) => {
                    connections.spawn(Arc::clone(&self).serve(client));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<ClientConnection> {
        let mut state = self.state();
        state.acceptor = Some(context.waker().clone());
        loop {
            let Some(listener) = &state.listener else {
                return Poll::Pending;
            };
            let stream = match ready!(listener.poll_accept(context)) {
                Ok((stream, _)) => stream,
                // The client gave up before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => panic!("the proxy cannot accept connections: {error}"),
            };
            let handle = second_handle(&stream).expect("a socket can have a second handle");
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            state.connections.insert(number, vec![handle]);
            return Poll::Ready(ClientConnection { number, stream, target: state.target });
        }
    }

    async fn serve(self: Arc<Self>, client: ClientConnection) {
        let number = client.number;
        // An error means that one end is gone, so there is no one to report it to.
        let _ = self.forward_connection(client).await;
        self.state().connections.remove(&number);
    }

    async fn forward_connection(&self, client: ClientConnection) -> io::Result<()> {
        let mut tries = if self.has_retries { CONNECT_TRIES } else { 1 };
        let server = loop {
            tries -= 1;
            match TcpStream::connect(client.target).await {
                Ok(server) => break server,
                Err(error) if tries == 0 => return Err(error),
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        };
        server.set_nodelay(true)?;
        client.stream.set_nodelay(true)?;
        match self.state().connections.get_mut(&client.number) {
            Some(sockets) => sockets.push(second_handle(&server)?),
            None => return Ok(()), // The proxy was cut while it connected.
        }
        let (from_client, to_client) = client.stream.into_split();
        let (from_server, to_server) = server.into_split();
        let requests = forward(from_client, to_server, None);
        let answers = forward(from_server, to_client, Some(self.holding.subscribe()));
        tokio::try_join!(requests, answers).map(|_| ())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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
            stop_listening(&self.port);
        }
        for socket in self.connections.drain().flat_map(|(_, sockets)| sockets) {
            // Fails if the other end has closed the connection already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards bytes until the end of `from`; before each write it waits while `holding` is true.
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

/// Listens on a free port. The socket is bound to it explicitly, so that it keeps the port when it no longer listens.
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

    const TIMEOUT: Duration = Duration::from_secs(30);
    /// How long a test waits for an answer that must not come.
    const QUIET_PERIOD: Duration = Duration::from_millis(100);

    /// A server that sends a greeting and then echoes every byte.
    struct EchoServer {
        address: SocketAddr,
        received: watch::Receiver<usize>,
        _tasks: JoinSet<()>,
    }

    impl EchoServer {
        async fn start(greeting: u8) -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let (count, received) = watch::channel(0);
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
            Self { address, received, _tasks: tasks }
        }
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }

    async fn read_byte(stream: &mut TcpStream) -> io::Result<u8> {
        timeout(TIMEOUT, stream.read_u8()).await.expect("an answer in time")
    }

    #[tokio::test]
    async fn bytes_are_forwarded_in_both_directions() {
        let echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;

        let mut client = connect(proxy.address()).await;
        client.write_all(b"!").await.unwrap();

        assert_eq!(read_byte(&mut client).await.unwrap(), b'a');
        assert_eq!(read_byte(&mut client).await.unwrap(), b'!');
        assert_eq!(proxy.connections(), 1);
    }

    #[tokio::test]
    async fn cut_proxy_closes_connections_and_refuses_new_ones() {
        let echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(read_byte(&mut client).await.unwrap(), b'a');

        proxy.cut();

        assert!(read_byte(&mut client).await.is_err());
        let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(proxy.connections(), 1);
    }

    #[tokio::test]
    async fn healed_proxy_accepts_connections_after_any_number_of_cuts() {
        let echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;

        for count in 1..=20 {
            let mut client = connect(proxy.address()).await;
            assert_eq!(read_byte(&mut client).await.unwrap(), b'a');
            assert_eq!(proxy.connections(), count);
            proxy.cut();
            proxy.cut();
            assert!(TcpStream::connect(proxy.address()).await.is_err());
            proxy.heal();
            proxy.heal();
        }
    }

    #[tokio::test]
    async fn held_answers_arrive_once_released() {
        let mut echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(read_byte(&mut client).await.unwrap(), b'a');

        proxy.hold_answers();
        client.write_all(b"!").await.unwrap();
        timeout(TIMEOUT, echo.received.wait_for(|count| *count == 1)).await.unwrap().unwrap();
        assert!(timeout(QUIET_PERIOD, client.read_u8()).await.is_err());
        proxy.release_answers();

        assert_eq!(read_byte(&mut client).await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn held_answers_are_lost_in_a_cut() {
        let mut echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let mut client = connect(proxy.address()).await;
        assert_eq!(read_byte(&mut client).await.unwrap(), b'a');
        proxy.hold_answers();
        client.write_all(b"!").await.unwrap();
        timeout(TIMEOUT, echo.received.wait_for(|count| *count == 1)).await.unwrap().unwrap();

        proxy.cut();
        proxy.heal();

        assert!(read_byte(&mut client).await.is_err());
        let mut another = connect(proxy.address()).await;
        assert_eq!(read_byte(&mut another).await.unwrap(), b'a');
    }

    #[tokio::test]
    async fn retargeted_proxy_forwards_new_connections_to_the_new_target() {
        let (first, second) = (EchoServer::start(b'a').await, EchoServer::start(b'b').await);
        let proxy = Proxy::start(first.address).await;
        let mut old = connect(proxy.address()).await;
        assert_eq!(read_byte(&mut old).await.unwrap(), b'a');

        proxy.retarget(second.address);
        let mut new = connect(proxy.address()).await;
        old.write_all(b"!").await.unwrap();

        assert_eq!(read_byte(&mut new).await.unwrap(), b'b');
        assert_eq!(read_byte(&mut old).await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn unreachable_server_closes_the_connection() {
        let nowhere = (Ipv4Addr::LOCALHOST, free_port()).into();
        let proxy = Proxy::start(nowhere).await;

        let mut client = connect(proxy.address()).await;

        assert!(read_byte(&mut client).await.is_err());
    }

    #[tokio::test]
    async fn dropped_proxy_closes_its_connections() {
        let echo = EchoServer::start(b'a').await;
        let proxy = Proxy::start(echo.address).await;
        let address = proxy.address();
        let mut client = connect(address).await;
        assert_eq!(read_byte(&mut client).await.unwrap(), b'a');

        drop(proxy);

        assert!(read_byte(&mut client).await.is_err());
        assert!(TcpStream::connect(address).await.is_err());
    }
}
