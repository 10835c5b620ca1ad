//! What this node knows of a job: a mirror of its tree.
//!
//! Fed by one recursive [`Watch`](crate::registry::Watch). Most nodes say all they have to say by being there; of some the data
//! decides (configuration, servers, instances, leader, owners), and a notification does not carry it. Such a node is
//! *dirty* until it has been read, and nothing may be decided from it meanwhile: [`View::dirty`] lists what to read,
//! [`View::learn`] takes the answer. Who runs a shard matters only when somebody may have died: those nodes come and go with every
//! fire and are read when it does ([`View::unread_holders`]). What we write ourselves we need not read: [`View::expect`].
//!
//! The mirror is passive and pure: it does no I/O and takes no decisions.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::tree::{JobTree, PARENTS, Part, Place};
use crate::{
    job::Instance,
    registry::{Event, Node, Path, Stat, Version, Zxid},
};

/// What is known of a node whose data matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It is there, and has to be read (again).
    Dirty,
    /// As read. Boxed, because most nodes are known by being there and a thousand jobs have many of them.
    Read(Box<Document>),
}

/// A node as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its data.
    pub data: Bytes,
    /// Its version.
    pub version: Version,
    /// Its creation id: tells it from another one made later in the same place.
    pub created: Zxid,
    /// When it was last written, by the registry's clock in milliseconds since 1970.
    pub written_at_ms: i64,
}

impl Known {
    /// The document, if it is known.
    pub fn read(&self) -> Option<&Document> {
        if let Known::Read(document) = self { Some(document) } else { None }
    }

    /// Its data as text, if it is known and is text.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.read()?.data).ok()
    }
}

/// One shard, as the tree shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardView {
    /// Whose it is.
    pub owner: Option<Known>,
    /// Who runs it now.
    pub running: Option<Known>,
    /// Who has taken it over.
    pub failover: Option<Known>,
    /// The same, in a form that survives that instance.
    pub failovering: Option<Known>,
    /// A run of it was missed.
    pub misfire: bool,
    /// It is not to run.
    pub disabled: bool,
}

impl ShardView {
    /// The nodes that name who has the shard in hand.
    pub fn holders(&self) -> [(Part, &Option<Known>); 3] {
        [
            (Part::Running, &self.running),
            (Part::Failover, &self.failover),
            (Part::Failovering, &self.failovering),
        ]
    }
}

/// What this node knows of a job.
#[derive(Debug, Clone)]
pub struct View {
    tree: JobTree,
    /// Which parents of the tree's skeleton are there.
    parents: [bool; PARENTS],
    /// What we wrote ourselves and have not been told of yet. Boxed: a map keeps room for eleven of them, also when it is empty again.
    expected: BTreeMap<Path, Box<Document>>,
    /// Whether the picture is whole: false from a gap until the snapshot after it is complete.
    current: bool,
    /// The job's root; its data names who runs it.
    pub root: Option<Known>,
    /// The configuration.
    pub config: Option<Known>,
    /// Servers by address.
    pub servers: BTreeMap<String, Known>,
    /// Instances by id.
    pub instances: BTreeMap<String, Known>,
    /// What instances weigh that do not weigh one, `None` if the document cannot be read. Read once: it is looked at after every change.
    unusual: BTreeMap<String, Option<u32>>,
    /// Who leads.
    pub leader: Option<Known>,
    /// Shards have to be dealt anew.
    pub necessary: bool,
    /// Shards are being dealt.
    pub processing: bool,
    /// The shards, by number.
    pub shards: BTreeMap<u32, ShardView>,
    /// Shards waiting to be taken over.
    pub failover_items: BTreeSet<u32>,
    /// Whom somebody asked to run now.
    pub triggers: BTreeSet<String>,
    /// Whose turn it is, for a job with one wandering shard.
    pub next_server: Option<Known>,
}

impl View {
    /// Nothing known yet.
    pub fn new(tree: JobTree) -> Self {
        Self {
            tree,
            parents: [false; PARENTS],
            expected: BTreeMap::new(),
            current: false,
            root: None,
            config: None,
            servers: BTreeMap::new(),
            instances: BTreeMap::new(),
            unusual: BTreeMap::new(),
            leader: None,
            necessary: false,
            processing: false,
            shards: BTreeMap::new(),
            failover_items: BTreeSet::new(),
            triggers: BTreeSet::new(),
            next_server: None,
        }
    }

    /// Where everything is.
    pub fn tree(&self) -> &JobTree {
        &self.tree
    }

    /// Whether the picture is whole. Dirty nodes are a question of their own.
    pub fn is_current(&self) -> bool {
        self.current
    }

    /// What is missing of the tree's skeleton, parents first.
    pub fn missing_parents(&self) -> impl Iterator<Item = Path> {
        let parents = self.tree.skeleton().into_iter().zip(self.parents);
        parents.filter(|(_, is_there)| !is_there).map(|(path, _)| path)
    }

    /// Takes what the watch told; says which place is not as it was.
    pub fn apply(&mut self, event: &Event) -> Option<Place> {
        match event {
            Event::Init => {
                *self = Self::new(self.tree.clone());
                None
            }
            Event::InitDone => {
                self.current = true;
                None
            }
            Event::InitApply { path, .. } | Event::Apply { path } => {
                let place = self.tree.place(path)?;
                match self.expected.remove(path) {
                    Some(document) => self.put(&place, *document),
                    None => self.appear(&place),
                }
                Some(place)
            }
            Event::Delete { path } => {
                let place = self.tree.place(path)?;
                self.vanish(&place);
                Some(place)
            }
        }
    }

    /// We created or wrote this: when the watch tells of it, it need not be read. To be called after the answer of the write and before the
    /// watch is drained; if somebody changed it since, the watch tells that after.
    pub fn expect(&mut self, path: Path, document: Document) {
        self.expected.insert(path, Box::new(document));
    }

    /// Who runs what, where that has not been read.
    pub fn unread_holders(&self) -> Vec<Path> {
        self.shards.keys().flat_map(|shard| self.unread_holders_of(*shard)).collect()
    }

    /// Who runs this one, where that has not been read.
    pub fn unread_holders_of(&self, shard: u32) -> Vec<Path> {
        let holders = self.shards.get(&shard).into_iter().flat_map(ShardView::holders);
        holders
            .filter(|(_, known)| *known == &Some(Known::Dirty))
            .map(|(part, _)| self.tree.shard(shard, part))
            .collect()
    }

    /// What has to be read before anything is decided from it.
    pub fn dirty(&self) -> Vec<Path> {
        let mut dirty = Vec::new();
        let mut look = |known: Option<&Known>, path: &dyn Fn() -> Path| {
            if known == Some(&Known::Dirty) {
                dirty.push(path());
            }
        };
        look(self.root.as_ref(), &|| self.tree.root().clone());
        look(self.config.as_ref(), &|| self.tree.config());
        look(self.leader.as_ref(), &|| self.tree.leader());
        look(self.next_server.as_ref(), &|| self.tree.next_instance_ip());
        for (address, known) in &self.servers {
            look(Some(known), &|| self.tree.server(address));
        }
        for (id, known) in &self.instances {
            look(Some(known), &|| self.tree.instance(id));
        }
        for (number, shard) in &self.shards {
            look(shard.owner.as_ref(), &|| self.tree.shard(*number, Part::Owner));
        }
        dirty
    }

    /// Takes what was read at `path`; `None` when the registry said that there is nothing.
    pub fn learn(&mut self, path: &Path, node: Option<Node>) {
        let Some(place) = self.tree.place(path) else { return };
        let Some(Node { data, stat: Stat { version, created, changed_at_ms, .. } }) = node else {
            self.vanish(&place);
            return;
        };
        self.put(&place, Document { data, version, created, written_at_ms: changed_at_ms });
    }

    /// What an instance weighs when shards are dealt. A document nobody can read is an instance nobody can rely on: it has no weight.
    pub fn weight(&self, instance: &str) -> Option<u32> {
        self.unusual.get(instance).copied().unwrap_or(Some(1))
    }

    fn read_weight(&self, id: &str, document: &[u8]) -> Option<u32> {
        let job = self.tree.root().name().parse().ok()?;
        let instance = Instance::read(&job, &id.parse().ok()?, document).ok()?;
        Some(instance.weight())
    }

    fn put(&mut self, place: &Place, document: Document) {
        if let Place::Instance(id) = place {
            match self.read_weight(id, &document.data) {
                Some(1) => drop(self.unusual.remove(id)),
                unusual => drop(self.unusual.insert(id.clone(), unusual)),
            }
        }
        let document = Known::Read(Box::new(document));
        match place {
            Place::Server(address) => drop(self.servers.insert(address.clone(), document)),
            Place::Instance(id) => drop(self.instances.insert(id.clone(), document)),
            place => match self.slot(place) {
                Some(slot) => *slot = Some(document),
                None => self.appear(place),
            },
        }
    }

    fn appear(&mut self, place: &Place) {
        match place {
            Place::Server(address) => drop(self.servers.insert(address.clone(), Known::Dirty)),
            Place::Instance(id) => drop(self.instances.insert(id.clone(), Known::Dirty)),
            Place::Necessary => self.necessary = true,
            Place::Processing => self.processing = true,
            Place::FailoverItem(shard) => drop(self.failover_items.insert(*shard)),
            Place::Trigger(id) => drop(self.triggers.insert(id.clone())),
            Place::Parent(number) => self.parents[*number] = true,
            Place::Shard(shard, Part::Itself) => drop(self.shards.entry(*shard).or_default()),
            Place::Shard(shard, Part::Misfire) => {
                self.shards.entry(*shard).or_default().misfire = true;
            }
            Place::Shard(shard, Part::Disabled) => {
                self.shards.entry(*shard).or_default().disabled = true;
            }
            place => {
                if let Some(slot) = self.slot(place) {
                    *slot = Some(Known::Dirty);
                }
            }
        }
    }

    fn vanish(&mut self, place: &Place) {
        match place {
            Place::Server(address) => drop(self.servers.remove(address)),
            Place::Instance(id) => {
                self.instances.remove(id);
                self.unusual.remove(id);
            }
            Place::Necessary => self.necessary = false,
            Place::Processing => self.processing = false,
            Place::FailoverItem(shard) => drop(self.failover_items.remove(shard)),
            Place::Trigger(id) => drop(self.triggers.remove(id)),
            Place::Parent(number) => self.parents[*number] = false,
            Place::Shard(shard, Part::Itself) => drop(self.shards.remove(shard)),
            Place::Shard(shard, part) => {
                let Some(shard) = self.shards.get_mut(shard) else { return };
                match part {
                    Part::Itself => {}
                    Part::Owner => shard.owner = None,
                    Part::Running => shard.running = None,
                    Part::Failover => shard.failover = None,
                    Part::Failovering => shard.failovering = None,
                    Part::Misfire => shard.misfire = false,
                    Part::Disabled => shard.disabled = false,
                }
            }
            place => {
                if let Some(slot) = self.slot(place) {
                    *slot = None;
                }
            }
        }
    }

    /// Where a single document is kept; those that there are several of have a map.
    fn slot(&mut self, place: &Place) -> Option<&mut Option<Known>> {
        match place {
            Place::Root => Some(&mut self.root),
            Place::Config => Some(&mut self.config),
            Place::Leader => Some(&mut self.leader),
            Place::NextInstanceIp => Some(&mut self.next_server),
            Place::Shard(shard, part) => {
                let shard = self.shards.entry(*shard).or_default();
                match part {
                    Part::Owner => Some(&mut shard.owner),
                    Part::Running => Some(&mut shard.running),
                    Part::Failover => Some(&mut shard.failover),
                    Part::Failovering => Some(&mut shard.failovering),
                    Part::Itself | Part::Misfire | Part::Disabled => None,
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
    fn a_node_whose_data_decides_is_dirty_until_it_is_read_and_again_after_every_change() {
        let mut view = view();
        let config = view.tree().config();

        assert_eq!(view.apply(&apply(&config)), Some(Place::Config));
        assert_eq!(view.dirty(), std::slice::from_ref(&config));
        view.learn(&config, Some(node("cron: x")));
        assert_eq!(view.config.as_ref().and_then(Known::text), Some("cron: x"));
        assert!(view.dirty().is_empty());
        view.apply(&apply(&config));

        assert_eq!(view.dirty(), std::slice::from_ref(&config));
        assert_eq!(
            view.config.as_ref().and_then(Known::text),
            None,
            "nothing is decided from a dirty node"
        );
        view.learn(&config, None);
        assert_eq!(view.config, None);
    }

    #[test]
    fn what_we_wrote_ourselves_is_known_until_somebody_else_changes_it() {
        let mut view = view();
        let running = view.tree().shard(0, Part::Running);
        let ours =
            Document { data: "me".into(), version: Version(0), created: Zxid(9), written_at_ms: 0 };

        view.expect(running.clone(), ours.clone());
        view.apply(&apply(&running));
        assert_eq!(view.shards[&0].running, Some(Known::Read(Box::new(ours))));
        view.apply(&Event::Delete { path: running.clone() });
        view.apply(&apply(&running));

        assert_eq!(view.shards[&0].running, Some(Known::Dirty), "it is a stranger's now");
        assert_eq!(view.unread_holders(), [running]);
        assert!(view.dirty().is_empty(), "it is read only when it matters");
    }

    #[test]
    fn flags_say_all_by_being_there() {
        let mut view = view();
        let paths = [
            view.tree().necessary(),
            view.tree().processing(),
            view.tree().shard(1, Part::Misfire),
            view.tree().shard(1, Part::Disabled),
            view.tree().failover_item(1),
            view.tree().trigger("me"),
        ];
        for path in &paths {
            view.apply(&apply(path));
        }

        assert!(view.dirty().is_empty());
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
    fn a_gap_forgets_everything_and_a_snapshot_restores_it() {
        let mut view = view();
        let stale = view.tree().instance("gone@-@1");
        view.apply(&apply(&stale));

        view.apply(&Event::Init);
        assert!(!view.is_current() && view.instances.is_empty());
        let here = view.tree().instance("here@-@1");
        let stat = node("").stat;
        view.apply(&Event::InitApply { path: here, stat });
        view.apply(&Event::InitDone);

        assert!(view.is_current());
        assert_eq!(view.instances.keys().collect::<Vec<_>>(), ["here@-@1"]);
    }
}
