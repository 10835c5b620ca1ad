//! Ports for servers that have to be told theirs.
//!
//! Between asking the kernel for a port and the server's binding it, somebody else may be given the
//! same one. So the port is left in the state `TIME_WAIT`: for the next minute the kernel gives it to
//! nobody who asks for any port, neither a listener nor an outgoing connection, in whichever process,
//! while a server that names it may have it, given `SO_REUSEADDR`, which every server sets. That
//! needs no list of the ports handed out, and holds for tests in other processes too.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// A port on 127.0.0.1 which nobody listens on, and which nobody else is given for a minute.
pub fn free_port() -> u16 {
    reserve().expect("loopback has a free port")
}

fn reserve() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut client = TcpStream::connect(address)?;
    let (accepted, _) = listener.accept()?;

    // Whoever closes first is left in TIME_WAIT: it has to be the end that has the port.
    drop(accepted);
    client.read_to_end(&mut Vec::new())?;
    hang_up(&OwnedFd::from(listener).into());
    Ok(address.port())
}

/// Stops a listener, given a handle on it, from listening.
///
/// Closing it is not enough while another thread starts a process: until that process runs its
/// program, it has every file we have.
pub(crate) fn hang_up(listener: &TcpStream) {
    // Linux can; a system that cannot has to do with closing it.
    let _ = listener.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_handed_out_twice() {
        let ports: HashSet<u16> = (0..100).map(|_| free_port()).collect();

        assert_eq!(ports.len(), 100);
    }

    #[test]
    fn a_server_can_bind_the_port_it_was_given() {
        let port = free_port();

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();

        assert_eq!(listener.local_addr().unwrap().port(), port);
    }
}
