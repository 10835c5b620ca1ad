//! The server behind a real socket: handshake, four-letter commands, requests, in any order and damaged in any way. It answers others afterwards.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use libfuzzer_sys::Corpus;
use tinykeeper::server::{Config, Server};

use crate::limits::Limits;

/// The server has its answers in memory as well, and a read may return what was written before.
const LIMITS: Limits = Limits { fixed: 8 << 20, per_byte: 4 << 10 };
const TIMEOUT: Duration = Duration::from_secs(20);

static INPUTS: AtomicUsize = AtomicUsize::new(0);

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
    let (sender, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::start(config()).await.expect("the server starts");
            sender.send(server.address()).expect("the address is awaited");
            std::future::pending::<()>().await;
        });
    });
    address.recv().expect("the server starts")
});

/// Sessions end soon, so that the tree does not fill up.
fn config() -> Config {
    let mut config = Config::in_memory();
    config.max_session_timeout = config.min_session_timeout;
    config.max_frame = 64 << 10;
    config
}

pub fn check(bytes: &[u8]) -> Corpus {
    LazyLock::force(&ADDRESS);
    LIMITS.check(bytes.len(), || exchange(bytes));
    if INPUTS.fetch_add(1, Relaxed).is_multiple_of(64) {
        assert_eq!(exchange(b"ruok"), b"imok", "the server answers others");
    }
    Corpus::Keep
}

/// Sends everything and reads until the server closes the connection.
fn exchange(bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(*ADDRESS).expect("the server accepts connections");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    let mut answer = Vec::new();
    // The server may hang up before everything is sent.
    if socket.write_all(bytes).is_ok() && socket.shutdown(Shutdown::Write).is_ok() {
        if let Err(error) = socket.read_to_end(&mut answer) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the server hangs");
        }
    }
    answer
}
