//! Configuration of others that travels along.

use std::fmt;

use super::yaml::{Kind, Node};

/// Blocks of a stored configuration that belong to somebody else, such as the ancestor's tracing with the data source it writes to.
///
/// They are not understood, only kept: what is written back is what was read, tags and types included. They may carry passwords, so
/// only their tags are printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Extra(Vec<Node>);

impl Extra {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What each of them calls itself: `!!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration`.
    pub fn tags(&self) -> Vec<String> {
        self.0.iter().map(Node::written_tag).collect()
    }

    /// None if it is not a list.
    pub(super) fn from_node(node: &Node) -> Option<Self> {
        match &node.kind {
            Kind::Sequence(items) => Some(Self(items.clone())),
            _ if node.is_null() => Some(Self::default()),
            _ => None,
        }
    }

    pub(super) fn to_node(&self) -> Node {
        Node::sequence(self.0.clone())
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tags()).finish()
    }
}
