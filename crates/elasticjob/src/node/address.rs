//! The IPv4 address under which other instances know this machine.
//!
//! It names the server in lists and when a server is enabled or disabled; it never identifies an instance. A configured address takes
//! precedence, then the environment variable, then the address from which this machine would connect to the registry.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use super::error::NodeError;
use crate::registry::RegistryUrl;

const VARIABLE: &str = "ELASTICJOB_ADDRESS";

pub(super) fn find(
    configured: Option<Ipv4Addr>,
    url: Option<&RegistryUrl>,
) -> Result<Ipv4Addr, NodeError> {
    if let Some(address) = configured {
        return Ok(address);
    }
    if let Some(text) = std::env::var_os(VARIABLE) {
        let text = text.to_string_lossy();
        return text.parse().map_err(|_| NodeError::Address {
            reason: format!("{VARIABLE}={text:?} is not an IPv4 address"),
        });
    }
    match url {
        Some(RegistryUrl::ZooKeeper(settings)) => {
            let mut reason = "the registry URL names no server".to_owned();
            for server in &settings.servers {
                match route_to(&server.host, server.port) {
                    Ok(address) => return Ok(address),
                    Err(problem) => reason = problem,
                }
            }
            Err(NodeError::Address { reason })
        }
        _ => Ok(Ipv4Addr::LOCALHOST),
    }
}

/// The local address of the route to `host`. Connecting a datagram socket sends nothing.
fn route_to(host: &str, port: u16) -> Result<Ipv4Addr, String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| error.to_string())?;
    socket.connect((host, port)).map_err(|error| format!("no route to {host:?}: {error}"))?;
    match socket.local_addr().map(|address| address.ip()) {
        Ok(IpAddr::V4(address)) if !address.is_unspecified() => Ok(address),
        Ok(address) => Err(format!("the route to {host:?} starts at {address}")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_address_wins_and_local_registry_gives_loopback() {
        let url = "zookeeper://127.0.0.1:2181/shop".parse().unwrap();

        assert_eq!(
            find(Some([10, 1, 2, 3].into()), Some(&url)).unwrap(),
            Ipv4Addr::new(10, 1, 2, 3)
        );
        assert_eq!(find(None, Some(&url)).unwrap(), Ipv4Addr::LOCALHOST);
    }
}
