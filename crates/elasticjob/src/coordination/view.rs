//! A local mirror of a job's tree.
//!
//! One recursive [`Watch`](crate::registry::Watch) feeds the mirror. Most nodes matter only by their existence. Of some the data matters, too
//! (configuration, servers, instances, leader, owners). A snapshot carries it, a notification does not. Such a node is *dirty* until it has been read, and
//! nothing may be decided from it meanwhile: [`View::dirty_paths`] lists the paths to read, [`View::record_read`] takes the result. The data of a holder node
//! matters only when the holder may be dead. Holder nodes change with every fire, so they are read only then ([`View::dirty_holders`]).
//! A member's own writes need not be read: [`View::expect_echo`].
//!
//! The mirror is passive and pure: it does no I/O and takes no decisions.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::tree::{JobTree, SKELETON_SIZE, ShardNode, TreeNode};
use crate::{
    job::{Instance, is_instance_trigger},
    registry::{Event, Node, Path, Stat, Version, Zxid},
};

/// An existing node whose data matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedNode {
    /// The node was created or changed and must be read before anything is decided from it.
    Dirty,
    /// The node exists, and we may not read it: its access list is another user's.
    Denied,
    /// The node as last read. Boxed, because most nodes are never read and a process with a thousand jobs mirrors many of them.
    Read(Box<Document>),
}

/// Data and metadata of a node as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub data: Bytes,
    pub version: Version,
    /// Creation zxid. It distinguishes this node from a later one at the same path.
    pub created: Zxid,
    /// Time of the last write by the registry's clock, in milliseconds since 1970.
    pub written_at_ms: i64,
}

impl Document {
    fn of(data: Bytes, stat: &Stat) -> Self {
        let Stat { version, created, changed_at_ms, .. } = *stat;
        Self { data, version, created, written_at_ms: changed_at_ms }
    }
}

impl CachedNode {
    /// The document, unless the node is dirty or may not be read.
    pub fn document(&self) -> Option<&Document> {
        if let CachedNode::Read(document) = self { Some(document) } else { None }
    }

    /// The data as text, unless the node is dirty or its data is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.document()?.data).ok()
    }
}

/// The nodes below one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardView {
    /// The instance that the shard is assigned to.
    pub owner: Option<CachedNode>,
    /// The instance that runs the shard now.
    pub running: Option<CachedNode>,
    /// The instance that has taken the shard over. Ephemeral.
    pub failover: Option<CachedNode>,
    /// The same instance, in a persistent node that survives it.
    pub failovering: Option<CachedNode>,
    /// The misfire mark: a fire of the shard was not started and has to be compensated.
    pub misfire: bool,
    /// The shard must not run.
    pub disabled: bool,
}

impl ShardView {
    /// The nodes that name the holder of the shard.
    pub fn holders(&self) -> [(ShardNode, &Option<CachedNode>); 3] {
        [
            (ShardNode::Running, &self.running),
            (ShardNode::Failover, &self.failover),
            (ShardNode::Failovering, &self.failovering),
        ]
    }
}

/// A local mirror of a job's tree.
#[derive(Debug, Clone)]
pub struct View {
    tree: JobTree,
    /// Which nodes of [`JobTree::skeleton`] exist, by index.
    parents: [bool; SKELETON_SIZE],
    /// The member's own writes that the watch has not reported yet. Boxed: a map keeps room for eleven values even when it is empty again.
    pending_echoes: BTreeMap<Path, Box<Document>>,
    /// Whether the mirror is complete: false from a gap in the watch until the next snapshot is complete.
    current: bool,
    /// The job's root. Its data names the class or type that runs the job.
    pub root: Option<CachedNode>,
    pub config: Option<CachedNode>,
    pub servers: BTreeMap<String, CachedNode>,
    pub instances: BTreeMap<String, CachedNode>,
    /// Weights other than one, by instance; `None` if the instance's document is invalid. Parsed once, because weights are needed after every
    /// change.
    non_default_weights: BTreeMap<String, Option<u32>>,
    pub leader: Option<CachedNode>,
    /// Shards have to be reassigned.
    pub necessary: bool,
    /// The leader is assigning shards.
    pub processing: bool,
    pub shards: BTreeMap<u32, ShardView>,
    /// Shards that are flagged for failover.
    pub failover_items: BTreeSet<u32>,
    /// Ids of the instances that have a trigger.
    pub triggers: BTreeSet<String>,
    /// Address of the server that runs next, for a job whose single shard rotates.
    pub next_server: Option<CachedNode>,
}

impl View {
    /// An empty view, not current before the first snapshot is complete.
    pub fn new(tree: JobTree) -> Self {
        Self {
            tree,
            parents: [false; SKELETON_SIZE],
            pending_echoes: BTreeMap::new(),
            current: false,
            root: None,
            config: None,
            servers: BTreeMap::new(),
            instances: BTreeMap::new(),
            non_default_weights: BTreeMap::new(),
            leader: None,
            necessary: false,
            processing: false,
            shards: BTreeMap::new(),
            failover_items: BTreeSet::new(),
            triggers: BTreeSet::new(),
            next_server: None,
        }
    }

    pub fn tree(&self) -> &JobTree {
        &self.tree
    }

    /// Whether the mirror is complete. Nodes may still be [dirty](View::dirty_paths).
    pub fn is_current(&self) -> bool {
        self.current
    }

    /// The nodes of [`JobTree::skeleton`] that do not exist, each after its parent.
    pub fn missing_parents(&self) -> impl Iterator<Item = Path> {
        let parents = self.tree.skeleton().into_iter().zip(self.parents);
        parents.filter(|(_, exists)| !exists).map(|(path, _)| path)
    }

    /// Applies an event of the watch and returns the node that it changed.
    pub fn apply(&mut self, event: &Event) -> Option<TreeNode> {
        match event {
            Event::Init => {
                *self = Self::new(self.tree.clone());
                None
            }
            Event::InitDone => {
                self.current = true;
                None
            }
            Event::InitApply { path, stat, data: Some(data) } => {
                let tree_node = self.tree.node_at(path)?;
                self.store(&tree_node, Document::of(data.clone(), stat));
                Some(tree_node)
            }
            Event::InitApply { path, data: None, .. } | Event::Apply { path } => {
                let tree_node = self.tree.node_at(path)?;
                match self.pending_echoes.remove(path) {
                    Some(document) => self.store(&tree_node, *document),
                    None => self.mark_present(&tree_node),
                }
                Some(tree_node)
            }
            Event::Delete { path } => {
                let tree_node = self.tree.node_at(path)?;
                self.mark_absent(&tree_node);
                Some(tree_node)
            }
        }
    }

    /// Announces one of the member's own writes, so that the node is not read when the watch reports it. Call this after the write was answered
    /// and before the watch is drained. If another client changed the node since, the watch reports that change afterwards.
    pub fn expect_echo(&mut self, path: Path, document: Document) {
        self.pending_echoes.insert(path, Box::new(document));
    }

    /// The paths of all dirty holder nodes.
    pub fn dirty_holders(&self) -> Vec<Path> {
        self.shards.keys().flat_map(|shard| self.dirty_holders_of(*shard)).collect()
    }

    /// The paths of the dirty holder nodes of one shard.
    pub fn dirty_holders_of(&self, shard: u32) -> Vec<Path> {
        let holders = self.shards.get(&shard).into_iter().flat_map(ShardView::holders);
        holders
            .filter(|(_, known)| *known == &Some(CachedNode::Dirty))
            .map(|(shard_node, _)| self.tree.shard(shard, shard_node))
            .collect()
    }

    /// The paths of all dirty nodes other than holder nodes: they must be read before anything is decided from them.
    pub fn dirty_paths(&self) -> Vec<Path> {
        let mut dirty = Vec::new();
        let mut add_if_dirty = |known: Option<&CachedNode>, path: &dyn Fn() -> Path| {
            if known == Some(&CachedNode::Dirty) {
                dirty.push(path());
            }
        };
        add_if_dirty(self.root.as_ref(), &|| self.tree.root().clone());
        add_if_dirty(self.config.as_ref(), &|| self.tree.config());
        add_if_dirty(self.leader.as_ref(), &|| self.tree.leader());
        add_if_dirty(self.next_server.as_ref(), &|| self.tree.next_instance_ip());
        for (address, known) in &self.servers {
            add_if_dirty(Some(known), &|| self.tree.server(address));
        }
        for (id, known) in &self.instances {
            add_if_dirty(Some(known), &|| self.tree.instance(id));
        }
        for (number, shard) in &self.shards {
            add_if_dirty(shard.owner.as_ref(), &|| self.tree.shard(*number, ShardNode::Owner));
        }
        dirty
    }

    /// Stores the result of reading `path`; `None` if the node does not exist.
    pub fn record_read(&mut self, path: &Path, node: Option<Node>) {
        let Some(tree_node) = self.tree.node_at(path) else { return };
        match node {
            Some(Node { data, stat }) => self.store(&tree_node, Document::of(data, &stat)),
            None => self.mark_absent(&tree_node),
        }
    }

    /// The registry does not let us read `path`. The node exists, so it is neither dirty nor absent.
    pub fn record_denied(&mut self, path: &Path) {
        match self.tree.node_at(path) {
            Some(TreeNode::Server(address)) => {
                drop(self.servers.insert(address, CachedNode::Denied));
            }
            Some(TreeNode::Instance(id)) => drop(self.instances.insert(id, CachedNode::Denied)),
            Some(tree_node) => {
                if let Some(slot) = self.slot(&tree_node) {
                    *slot = Some(CachedNode::Denied);
                }
            }
            None => {}
        }
    }

    /// Nodes that we may not read have to be read again. A change of an access list is not reported, nor any change of such a node.
    pub fn retry_denied(&mut self) {
        let shards = self.shards.values_mut().flat_map(|shard| {
            [&mut shard.owner, &mut shard.running, &mut shard.failover, &mut shard.failovering]
        });
        let single =
            [&mut self.root, &mut self.config, &mut self.leader, &mut self.next_server].into_iter();
        let in_maps = self.servers.values_mut().chain(self.instances.values_mut());
        for node in single.chain(shards).flatten().chain(in_maps) {
            if *node == CachedNode::Denied {
                *node = CachedNode::Dirty;
            }
        }
    }

    /// The weight of an instance in shard assignment; `None` if its document is invalid, because such an instance cannot be relied on.
    pub fn weight(&self, instance: &str) -> Option<u32> {
        self.non_default_weights.get(instance).copied().unwrap_or(Some(1))
    }

    fn parse_weight(&self, id: &str, document: &[u8]) -> Option<u32> {
        let job = self.tree.root().name().parse().ok()?;
        let instance = Instance::read(&job, &id.parse().ok()?, document).ok()?;
        Some(instance.weight())
    }

    fn store(&mut self, tree_node: &TreeNode, document: Document) {
        // A trigger of ElasticJob 2.x replaces the document for a moment, and says nothing about the weight.
        if let TreeNode::Instance(id) = tree_node
            && !is_instance_trigger(&document.data)
        {
            match self.parse_weight(id, &document.data) {
                Some(1) => drop(self.non_default_weights.remove(id)),
                weight => drop(self.non_default_weights.insert(id.clone(), weight)),
            }
        }
        let document = CachedNode::Read(Box::new(document));
        match tree_node {
            TreeNode::Server(address) => drop(self.servers.insert(address.clone(), document)),
            TreeNode::Instance(id) => drop(self.instances.insert(id.clone(), document)),
            tree_node => match self.slot(tree_node) {
                Some(slot) => *slot = Some(document),
                None => self.mark_present(tree_node),
            },
        }
    }

    fn mark_present(&mut self, tree_node: &TreeNode) {
        match tree_node {
            TreeNode::Server(address) => {
                drop(self.servers.insert(address.clone(), CachedNode::Dirty));
            }
            TreeNode::Instance(id) => drop(self.instances.insert(id.clone(), CachedNode::Dirty)),
            TreeNode::Necessary => self.necessary = true,
            TreeNode::Processing => self.processing = true,
            TreeNode::FailoverItem(shard) => drop(self.failover_items.insert(*shard)),
            TreeNode::Trigger(id) => drop(self.triggers.insert(id.clone())),
            TreeNode::Parent(number) => self.parents[*number] = true,
            TreeNode::Shard(shard, ShardNode::Root) => drop(self.shards.entry(*shard).or_default()),
            TreeNode::Shard(shard, ShardNode::Misfire) => {
                self.shards.entry(*shard).or_default().misfire = true;
            }
            TreeNode::Shard(shard, ShardNode::Disabled) => {
                self.shards.entry(*shard).or_default().disabled = true;
            }
            tree_node => {
                if let Some(slot) = self.slot(tree_node) {
                    *slot = Some(CachedNode::Dirty);
                }
            }
        }
    }

    fn mark_absent(&mut self, tree_node: &TreeNode) {
        match tree_node {
            TreeNode::Server(address) => drop(self.servers.remove(address)),
            TreeNode::Instance(id) => {
                self.instances.remove(id);
                self.non_default_weights.remove(id);
            }
            TreeNode::Necessary => self.necessary = false,
            TreeNode::Processing => self.processing = false,
            TreeNode::FailoverItem(shard) => drop(self.failover_items.remove(shard)),
            TreeNode::Trigger(id) => drop(self.triggers.remove(id)),
            TreeNode::Parent(number) => self.parents[*number] = false,
            TreeNode::Shard(shard, ShardNode::Root) => drop(self.shards.remove(shard)),
            TreeNode::Shard(shard, shard_node) => {
                let Some(shard) = self.shards.get_mut(shard) else { return };
                match shard_node {
                    ShardNode::Root => {}
                    ShardNode::Owner => shard.owner = None,
                    ShardNode::Running => shard.running = None,
                    ShardNode::Failover => shard.failover = None,
                    ShardNode::Failovering => shard.failovering = None,
                    ShardNode::Misfire => shard.misfire = false,
                    ShardNode::Disabled => shard.disabled = false,
                }
            }
            tree_node => {
                if let Some(slot) = self.slot(tree_node) {
                    *slot = None;
                }
            }
        }
    }

    /// The field of a node that has one of its own; servers and instances are in maps.
    fn slot(&mut self, tree_node: &TreeNode) -> Option<&mut Option<CachedNode>> {
        match tree_node {
            TreeNode::Root => Some(&mut self.root),
            TreeNode::Config => Some(&mut self.config),
            TreeNode::Leader => Some(&mut self.leader),
            TreeNode::NextInstanceIp => Some(&mut self.next_server),
            TreeNode::Shard(shard, shard_node) => {
                let shard = self.shards.entry(*shard).or_default();
                match shard_node {
                    ShardNode::Owner => Some(&mut shard.owner),
                    ShardNode::Running => Some(&mut shard.running),
                    ShardNode::Failover => Some(&mut shard.failover),
                    ShardNode::Failovering => Some(&mut shard.failovering),
                    ShardNode::Root | ShardNode::Misfire | ShardNode::Disabled => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::new(JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap())
    }

    fn apply(path: &Path) -> Event {
        Event::Apply { path: path.clone() }
    }

    fn node(data: &'static str) -> Node {
        let stat = Stat {
            created: Zxid(1),
            changed: Zxid(1),
            changed_at_ms: 0,
            version: Version(3),
            owner: None,
            children: 0,
        };
        Node { data: data.into(), stat }
    }

    #[test]
    fn node_is_dirty_until_read_and_again_after_every_change() {
        let mut view = view();
        let config = view.tree().config();

        assert_eq!(view.apply(&apply(&config)), Some(TreeNode::Config));
        assert_eq!(view.dirty_paths(), std::slice::from_ref(&config));
        view.record_read(&config, Some(node("cron: x")));
        assert_eq!(view.config.as_ref().and_then(CachedNode::text), Some("cron: x"));
        assert!(view.dirty_paths().is_empty());
        view.apply(&apply(&config));

        assert_eq!(view.dirty_paths(), std::slice::from_ref(&config));
        assert_eq!(
            view.config.as_ref().and_then(CachedNode::text),
            None,
            "a dirty node has no data to decide from"
        );
        view.record_read(&config, None);
        assert_eq!(view.config, None);
    }

    #[test]
    fn own_write_needs_no_read_until_another_client_changes_it() {
        let mut view = view();
        let running = view.tree().shard(0, ShardNode::Running);
        let own_write =
            Document { data: "me".into(), version: Version(0), created: Zxid(9), written_at_ms: 0 };

        view.expect_echo(running.clone(), own_write.clone());
        view.apply(&apply(&running));
        assert_eq!(view.shards[&0].running, Some(CachedNode::Read(Box::new(own_write))));
        view.apply(&Event::Delete { path: running.clone() });
        view.apply(&apply(&running));

        assert_eq!(view.shards[&0].running, Some(CachedNode::Dirty), "another client created it");
        assert_eq!(view.dirty_holders(), [running]);
        assert!(view.dirty_paths().is_empty(), "holder nodes are read only when needed");
    }

    #[test]
    fn flag_nodes_need_no_read() {
        let mut view = view();
        let paths = [
            view.tree().necessary(),
            view.tree().processing(),
            view.tree().shard(1, ShardNode::Misfire),
            view.tree().shard(1, ShardNode::Disabled),
            view.tree().failover_item(1),
            view.tree().trigger("me"),
        ];
        for path in &paths {
            view.apply(&apply(path));
        }

        assert!(view.dirty_paths().is_empty());
        assert!(
            view.necessary
                && view.processing
                && view.shards[&1].misfire
                && view.shards[&1].disabled
        );
        assert!(view.failover_items.contains(&1) && view.triggers.contains("me"));
        for path in &paths {
            view.apply(&Event::Delete { path: path.clone() });
        }
        assert!(
            !view.necessary
                && !view.processing
                && !view.shards[&1].misfire
                && !view.shards[&1].disabled
        );
        assert!(view.failover_items.is_empty() && view.triggers.is_empty());
    }

    #[test]
    fn gap_clears_the_view_and_snapshot_restores_it() {
        let mut view = view();
        let stale = view.tree().instance("gone@-@1");
        view.apply(&apply(&stale));

        view.apply(&Event::Init);
        assert!(!view.is_current() && view.instances.is_empty());
        let here = view.tree().instance("here@-@1");
        let stat = node("").stat;
        view.apply(&Event::InitApply { path: here, stat, data: Some("here".into()) });
        let denied = view.tree().config();
        view.apply(&Event::InitApply { path: denied.clone(), stat, data: None });
        view.apply(&Event::InitDone);

        assert!(view.is_current());
        assert_eq!(view.instances["here@-@1"].text(), Some("here"), "it needs no read");
        assert_eq!(view.dirty_paths(), [denied], "it came without its data");
    }
}
