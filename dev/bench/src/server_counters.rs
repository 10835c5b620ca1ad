//! What a ZooKeeper server received, sent and holds, as the server itself counts it (`mntr`, `srvr`).

use testbed::ZooKeeper;

use crate::BoxError;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServerCounters {
    /// Requests that clients sent, pings included.
    pub(crate) requests: f64,
    /// Bytes of these requests.
    pub(crate) received_bytes: f64,
    /// Bytes of answers and notifications.
    pub(crate) sent_bytes: f64,
    /// A transaction is one, whatever its size; so are the beginning and the end of a session.
    pub(crate) transactions: f64,
    pub(crate) nodes: f64,
    /// Bytes of paths and data of all nodes.
    pub(crate) data_bytes: f64,
    pub(crate) watches: f64,
    pub(crate) ephemerals: f64,
}

impl ServerCounters {
    pub(crate) fn read(server: &ZooKeeper) -> Result<Self, BoxError> {
        let counters = server.four_letter("mntr");
        let number = |name: &str| -> Result<f64, BoxError> {
            let mut lines = counters.lines().filter_map(|line| line.split_once('\t'));
            let value = lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().parse());
            Ok(value.ok_or_else(|| format!("ZooKeeper's mntr has no {name}"))??)
        };
        Ok(Self {
            requests: number("zk_packets_received")?,
            received_bytes: number("zk_bytes_received_count")?,
            sent_bytes: number("zk_response_bytes")?,
            transactions: transactions(server)?,
            nodes: number("zk_znode_count")?,
            data_bytes: number("zk_approximate_data_size")?,
            watches: number("zk_watch_count")?,
            ephemerals: number("zk_ephemerals_count")?,
        })
    }

    /// The difference to an earlier reading.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            // The two questions of the later reading are requests, too.
            requests: self.requests - before.requests - QUESTIONS,
            received_bytes: self.received_bytes - before.received_bytes - QUESTIONS * 4.0,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            transactions: self.transactions - before.transactions,
            nodes: self.nodes - before.nodes,
            data_bytes: self.data_bytes - before.data_bytes,
            watches: self.watches - before.watches,
            ephemerals: self.ephemerals - before.ephemerals,
        }
    }
}

/// Four-letter words of one reading: the server counts them as requests of four bytes.
const QUESTIONS: f64 = 2.0;

/// The number of transactions since the server's first start: the lower half of the last transaction id.
fn transactions(server: &ZooKeeper) -> Result<f64, BoxError> {
    let answer = server.four_letter("srvr");
    let zxid = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    let zxid = u64::from_str_radix(zxid.ok_or("ZooKeeper's srvr has no Zxid")?.trim(), 16)?;
    Ok(f64::from(u32::try_from(zxid & 0xffff_ffff)?))
}
