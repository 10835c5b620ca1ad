//! Which hosts requests and alerts may reach.
//!
//! The targets of a job's requests and alerts are part of its configuration, and everyone who can write to the registry can change that. So a
//! program limits them: to hosts that its operator named, also after redirects. A host name is not enough, because its DNS entry may belong to another
//! party. A connection goes only to an address that was resolved and checked here:
//!
//! * **Never** to link-local and multicast addresses and to those at which clouds serve credentials, unless the operator named the address itself, for
//!   every port for which the name is allowed. An IPv6 address that leads to an IPv4 address (NAT64, SIIT, 6to4, Teredo) is where that one is.
//! * **In the same network as before**: a name that was first found on the internet does not lead into a private network or to this machine later
//!   (DNS rebinding). Within its network the address of a name may change, as it does at a failover.

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use super::secrets::Hidden;
use crate::{job::Job, problem::Problem};

/// Which hosts requests and alerts may reach: any, or only some. Clones share what is known about names.
///
/// ```
/// use elasticjob::execution::Outbound;
///
/// let outbound = Outbound::only(["shop.example", "127.0.0.1:8080"]);
/// assert!(outbound.allows("shop.example", 443) && outbound.allows("127.0.0.1", 8080));
/// assert!(!outbound.allows("127.0.0.1", 80));
/// assert!(Outbound::any().allows("elsewhere.example", 80));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Outbound(Option<Arc<AllowedHosts>>);

/// What a job sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outgoing {
    /// The request of an HTTP job.
    Request,
    /// A notice about a failure: a mail, or a post to a chat robot or a webhook.
    Alert,
}

/// Chooses which hosts a job may reach with its current configuration.
pub(crate) type OutboundPolicy = Arc<dyn Fn(&Job, Outgoing) -> Outbound + Send + Sync>;

#[derive(Debug, Default)]
struct AllowedHosts {
    hosts: Vec<AllowedHost>,
    hint: Option<String>,
    /// The networks in which each name was first found.
    networks: Mutex<HashMap<String, BTreeSet<Network>>>,
}

#[derive(Debug, PartialEq, Eq)]
struct AllowedHost {
    /// In lower case, an IPv6 address without brackets.
    host: String,
    /// Every port if `None`.
    port: Option<u16>,
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Network {
    ThisMachine,
    Private,
    Internet,
    /// Link-local, multicast, or an address at which a cloud serves credentials.
    Special,
}

/// A connection that is not allowed. It is about the host alone: the rest of a URL can be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(Problem);

impl Outbound {
    /// Any host.
    pub fn any() -> Self {
        Self(None)
    }

    /// Only these hosts: a name or an address, with a port for one port only: `example.org`, `example.org:8080`, `[::1]:8080`.
    pub fn only(hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let hosts = hosts.into_iter().map(|host| AllowedHost::parse(host.as_ref())).collect();
        Self(Some(Arc::new(AllowedHosts { hosts, ..AllowedHosts::default() })))
    }

    /// Adds to refusals how an operator allows a host. Call it before this is cloned.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(allowed) = self.0.as_mut().and_then(Arc::get_mut) {
            allowed.hint = Some(hint.into());
        }
        self
    }

    /// Whether a request may go to this host and port. Which address the name has is checked when the connection is made.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let Some(allowed) = &self.0 else { return true };
        let host = normal(host);
        allowed
            .hosts
            .iter()
            .any(|known| known.host == host && known.port.is_none_or(|known| known == port))
    }

    /// Whether no host may be reached at all.
    pub fn is_none(&self) -> bool {
        self.0.as_ref().is_some_and(|allowed| allowed.hosts.is_empty())
    }

    pub(super) fn is_any(&self) -> bool {
        self.0.is_none()
    }

    /// Tells instances with different hosts apart, for as long as they live.
    #[cfg(feature = "http")]
    pub(super) fn identity(&self) -> usize {
        self.0.as_ref().map_or(0, |allowed| Arc::as_ptr(allowed).addr())
    }

    pub(super) fn check(&self, host: &str, port: u16) -> Result<(), Refusal> {
        if self.allows(host, port) {
            return Ok(());
        }
        let host = normal(host);
        let colon = if host.contains(':') { format!("[{host}]") } else { host };
        Err(self.refusal(format!("{colon}:{port} is not among the allowed hosts")))
    }

    /// Resolves a host that is allowed; returns the addresses that may be connected to, at least one.
    pub(super) async fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, LookupError> {
        let found: Vec<IpAddr> = tokio::net::lookup_host((normal(host), port))
            .await
            .map_err(LookupError::Failed)?
            .map(|address| address.ip())
            .collect();
        let admitted = self.admit(host, &found).map_err(LookupError::Refused)?;
        Ok(admitted.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    /// The addresses of a name that may be connected to.
    pub(super) fn admit(&self, name: &str, found: &[IpAddr]) -> Result<Vec<IpAddr>, Refusal> {
        let Some(allowed) = &self.0 else { return Ok(found.to_vec()) };
        let name = normal(name);
        let usable: Vec<IpAddr> = found
            .iter()
            .copied()
            .filter(|address| {
                Network::of(*address) != Network::Special || allowed.has_named(&name, *address)
            })
            .collect();
        if usable.is_empty() {
            let found = found.first().map_or("nothing".to_owned(), ToString::to_string);
            let problem = "a link-local or metadata address, which has to be allowed by itself and for the same ports";
            return Err(self.refusal(format!("{name} resolves to {found}, {problem}")));
        }
        let mut networks = allowed.networks.lock().unwrap_or_else(PoisonError::into_inner);
        let first = networks
            .entry(name.clone())
            .or_insert_with(|| usable.iter().copied().map(Network::of).collect());
        let (same, other): (Vec<IpAddr>, Vec<IpAddr>) =
            usable.into_iter().partition(|address| first.contains(&Network::of(*address)));
        match other.first() {
            Some(moved) if same.is_empty() => {
                let problem = "which is in another network than before: restart this process if that is right";
                Err(self.refusal(format!("{name} resolves to {moved}, {problem}")))
            }
            _ => Ok(same),
        }
    }

    fn refusal(&self, problem: String) -> Refusal {
        let hint = self.0.as_ref().and_then(|allowed| allowed.hint.clone());
        Refusal(Problem { message: problem, hint })
    }
}

impl AllowedHosts {
    /// Whether the address itself is allowed, for every port for which this name is: a name is resolved for any of them.
    fn has_named(&self, name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical().to_string();
        let covers = |named: &AllowedHost, right: &AllowedHost| {
            named.host == address && (named.port.is_none() || named.port == right.port)
        };
        let mut rights = self.hosts.iter().filter(|known| known.host == name);
        rights.all(|right| self.hosts.iter().any(|named| covers(named, right)))
    }
}

impl AllowedHost {
    fn parse(text: &str) -> Self {
        let every_port = |host: &str| Self { host: normal(host), port: None };
        if text.parse::<IpAddr>().is_ok() {
            return every_port(text);
        }
        match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) => Self { host: normal(host), port: Some(port) },
            _ => every_port(text),
        }
    }
}

/// A host as it is compared: in lower case, an address without brackets and in its shortest form.
fn normal(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => bare.to_ascii_lowercase(),
    }
}

impl Network {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        // Where Alibaba Cloud, Azure and Oracle Cloud serve credentials of a machine; the others use a link-local address.
        const METADATA: [Ipv4Addr; 3] = [
            Ipv4Addr::new(100, 100, 100, 200),
            Ipv4Addr::new(168, 63, 129, 16),
            Ipv4Addr::new(192, 0, 0, 192),
        ];
        let [first, second, ..] = address.octets();
        // Shared by the customers of a provider, and for measurements within a network.
        let is_internal = (first == 100 && (64..128).contains(&second))
            || (first == 198 && (18..20).contains(&second));
        if address.is_link_local()
            || address.is_multicast()
            // Reserved, and the broadcast.
            || first >= 240
            || first == 0
            || METADATA.contains(&address)
        {
            Self::Special
        } else if address.is_loopback() {
            Self::ThisMachine
        } else if address.is_private() || is_internal {
            Self::Private
        } else {
            Self::Internet
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        // Where Google Cloud and Scaleway serve credentials of a machine; AWS has a network for it.
        const METADATA: [Ipv6Addr; 2] = [
            Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
            Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
        ];
        if address.is_loopback() {
            return Self::ThisMachine;
        }
        let segments = address.segments();
        let v4 = |high: u16, low: u16| Self::of_v4((u32::from(high) << 16 | u32::from(low)).into());
        match segments {
            // An IPv4 address in the old form (`::` is among them), and of a translator (SIIT, NAT64), or of one for local use.
            [0, 0, 0, 0, 0 | 0xffff, 0, high, low] | [0x64, 0xff9b, 0..=1, 0, 0, 0, high, low] => {
                return v4(high, low);
            }
            // A translator for local use with another form, of which it is not known where it leads; and the network of AWS.
            [0x64, 0xff9b, 1, ..] | [0xfd00, 0xec2, ..] => return Self::Special,
            // 6to4.
            [0x2002, high, low, ..] => return v4(high, low),
            // Teredo, which has the address inverted.
            [0x2001, 0, .., high, low] => return v4(!high, !low),
            _ => {}
        }
        let is_site_local = segments[0] & 0xffc0 == 0xfec0;
        if address.is_unicast_link_local() || address.is_multicast() || METADATA.contains(&address)
        {
            Self::Special
        } else if address.is_unique_local() || is_site_local {
            Self::Private
        } else {
            Self::Internet
        }
    }
}

/// Why a host has no address to connect to.
#[derive(Debug)]
pub(super) enum LookupError {
    Failed(io::Error),
    Refused(Refusal),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "cannot resolve the host: {error}"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl Error for LookupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

impl Refusal {
    /// The refusal that an error is or was caused by.
    pub(super) fn in_chain<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |&error| error.source())
            .find_map(|error| error.downcast_ref())
    }

    pub(super) fn problem(&self) -> &Problem {
        &self.0
    }

    /// The same without these secrets.
    pub(super) fn hiding(&self, hidden: &Hidden) -> Self {
        let Problem { message, hint } = self.0.clone();
        Self(Problem { message: hidden.hide(message), hint })
    }

    /// The same with a reason in front.
    #[cfg(feature = "http")]
    pub(super) fn at(self, location: impl fmt::Display) -> Self {
        Self(self.0.at(location))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn host_without_port_allows_every_port() {
        let outbound = Outbound::only(["Example.org", "localhost:8080", "::1", "[fd00::2]:80"]);

        for (host, port) in [
            ("EXAMPLE.org", 443),
            ("example.org", 81),
            ("localhost", 8080),
            ("[::1]", 1),
            ("[fd00::2]", 80),
        ] {
            assert!(outbound.allows(host, port), "{host}:{port}");
        }
        for (host, port) in
            [("localhost", 80), ("example.org.evil", 80), ("[fd00::2]", 81), ("evil", 80)]
        {
            assert!(!outbound.allows(host, port), "{host}:{port}");
        }
        assert!(Outbound::any().allows("evil", 80) && Outbound::only([""; 0]).is_none());
    }

    #[test]
    fn name_never_leads_to_link_local_and_metadata_addresses() {
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fe80::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
            "::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::ffff:0:a9fe:a9fe",
            "2001:0:4136:e378:8000:63bf:5601:5601",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "240.0.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "0.0.0.0",
            "::",
            "224.0.0.1",
        ] {
            let outbound = Outbound::only(["shop.example"]);

            let refused = outbound.admit("shop.example", &addresses(&[address])).unwrap_err();

            assert!(refused.to_string().contains("has to be allowed by itself"), "{refused}");
            let mixed = addresses(&[address, "93.184.216.34"]);
            assert_eq!(outbound.admit("shop.example", &mixed), Ok(addresses(&["93.184.216.34"])));
        }
        let named = Outbound::only(["shop.example", "169.254.169.254"]);
        let metadata = addresses(&["169.254.169.254"]);
        assert_eq!(named.admit("shop.example", &metadata), Ok(metadata));
    }

    #[test]
    fn address_with_a_port_is_named_for_that_port_only() {
        let metadata = addresses(&["169.254.169.254"]);

        let every_port = Outbound::only(["shop.example", "169.254.169.254:80"]);
        let refused = every_port.admit("shop.example", &metadata).unwrap_err();
        assert!(refused.to_string().contains("for the same ports"), "{refused}");
        let other_port = Outbound::only(["shop.example:81", "169.254.169.254:80"]);
        assert!(other_port.admit("shop.example", &metadata).is_err());

        for hosts in [
            &["shop.example:80", "169.254.169.254:80"][..],
            &["shop.example:80", "shop.example:81", "169.254.169.254"],
            &["169.254.169.254:80"],
        ] {
            let name = hosts[0].trim_end_matches(":80");
            assert_eq!(
                Outbound::only(hosts).admit(name, &metadata).as_ref(),
                Ok(&metadata),
                "{hosts:?}"
            );
        }
    }

    #[test]
    fn name_does_not_move_to_another_network() {
        for (first, rebound) in [
            ("93.184.216.34", "127.0.0.1"),
            ("93.184.216.34", "10.0.0.1"),
            ("2606:2800::1", "fd00::1"),
            ("10.0.0.1", "::1"),
            ("127.0.0.1", "192.168.0.1"),
            ("2606:2800::1", "fec0::1"),
            ("93.184.216.34", "2002:a00:1::1"),
            ("93.184.216.34", "64:ff9b::a00:1"),
            ("93.184.216.34", "64:ff9b:1::7f00:1"),
            ("93.184.216.34", "198.18.0.1"),
        ] {
            let outbound = Outbound::only(["shop.example"]);
            let (first, rebound) = (addresses(&[first]), addresses(&[rebound]));
            assert_eq!(outbound.admit("shop.example", &first).as_ref(), Ok(&first));

            let refused = outbound.clone().admit("SHOP.example", &rebound).unwrap_err();

            assert!(refused.to_string().contains("another network"), "{refused}");
            let both = [rebound, first.clone()].concat();
            assert_eq!(outbound.admit("shop.example", &both), Ok(first));
        }
    }

    #[test]
    fn address_may_change_within_its_network() {
        let outbound = Outbound::only(["shop.example"]);

        for address in ["10.0.0.1", "10.0.0.2", "192.168.7.7"] {
            assert!(outbound.admit("shop.example", &addresses(&[address])).is_ok(), "{address}");
        }
    }

    #[test]
    fn refusal_names_host_and_hint_and_is_found_among_causes() {
        let outbound = Outbound::only(["shop.example"]).with_hint("--http-allow HOST");

        let refusal = outbound.check("fd00::1", 443).unwrap_err();
        let wrapped = io::Error::other(LookupError::Refused(refusal.clone()));

        assert_eq!(
            refusal.to_string(),
            "[fd00::1]:443 is not among the allowed hosts; hint: --http-allow HOST"
        );
        assert_eq!(Refusal::in_chain(&wrapped), Some(&refusal));
        assert_eq!(Refusal::in_chain(&io::Error::other("x")), None);
    }
}
