//! Free ports for servers that cannot choose their own.
//!
//! Between the moment the kernel reports a port as free and the moment the server binds it, another process may be given the same port. Therefore the
//! port is left in the state `TIME_WAIT`: for the next minute the kernel does not choose it for any listener or outgoing connection of any process,
//! but a server that names it can bind it with `SO_REUSEADDR`, which every server sets. This needs no list of reserved ports, and it holds for tests
//! in other processes too.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// A port on 127.0.0.1 without a listener, which the kernel gives to no other process for a minute.
pub fn free_port() -> u16 {
    reserve().expect("loopback has a free port")
}

fn reserve() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut client = TcpStream::connect(address)?;
    let (accepted, _) = listener.accept()?;

    // The end that closes first stays in TIME_WAIT: it has to be the end that has the port.
    drop(accepted);
    client.read_to_end(&mut Vec::new())?;
    stop_listening(&OwnedFd::from(listener).into());
    Ok(address.port())
}

/// Stops a listener from listening, given a second handle on its socket.
///
/// Closing the listener is not enough while another thread starts a process: until the new process executes its program, it shares all our open
/// files.
pub(crate) fn stop_listening(listener: &TcpStream) {
    // Linux supports this; other systems have to rely on closing the socket.
    let _ = listener.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn free_ports_are_distinct() {
        let ports: HashSet<u16> = (0..100).map(|_| free_port()).collect();

        assert_eq!(ports.len(), 100);
    }

    #[test]
    fn server_can_bind_a_free_port() {
        let port = free_port();

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();

        assert_eq!(listener.local_addr().unwrap().port(), port);
    }
}
