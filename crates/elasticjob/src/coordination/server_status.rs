//! The data of a node `servers/{address}`: whether instances on that server may run the job.

use super::view::CachedNode;

/// The status that a server's node stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredStatus {
    Enabled,
    Disabled,
    /// Empty, which ElasticJob 2.x writes for enabled. Java since 3.0.2 runs nothing on such a server, and neither does Rust, so instances
    /// replace it.
    Empty,
}

impl StoredStatus {
    /// As in Java since 3.0.2, only `ENABLED` itself enables.
    pub fn read(data: &[u8]) -> Self {
        match data {
            b"ENABLED" => Self::Enabled,
            data if data.trim_ascii().is_empty() => Self::Empty,
            _ => Self::Disabled,
        }
    }

    /// `None` while the node is dirty.
    pub fn of(node: &CachedNode) -> Option<Self> {
        node.document().map(|document| Self::read(&document.data))
    }
}

/// The data that enables or disables a server.
pub fn stored_data(is_enabled: bool) -> &'static str {
    if is_enabled { "ENABLED" } else { "DISABLED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_enables() {
        for data in ["", " ", "\n"] {
            assert_eq!(StoredStatus::read(data.as_bytes()), StoredStatus::Empty, "{data:?}");
        }
        for data in ["DISABLED", "enabled", "disabled", "?"] {
            assert_eq!(StoredStatus::read(data.as_bytes()), StoredStatus::Disabled, "{data:?}");
        }
        assert_eq!(StoredStatus::read(stored_data(true).as_bytes()), StoredStatus::Enabled);
        assert_eq!(StoredStatus::read(stored_data(false).as_bytes()), StoredStatus::Disabled);
    }
}
