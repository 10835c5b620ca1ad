//! Configuration of other programs, preserved unchanged.

use std::fmt;

use super::yaml::{Kind, Node};

/// Blocks of a stored configuration that belong to other programs, such as Java ElasticJob's tracing with its data source.
///
/// They are not interpreted: they are written back as they were read, including tags and types. They may contain passwords, so only
/// their tags are printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ForeignConfig(Vec<Node>);

impl ForeignConfig {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The YAML tag of each block: `!!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration`.
    pub fn tags(&self) -> Vec<String> {
        self.0.iter().map(Node::written_tag).collect()
    }

    /// `None` if the node is not a list.
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

impl fmt::Debug for ForeignConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tags()).finish()
    }
}
