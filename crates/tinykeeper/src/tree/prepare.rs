//! From what a client asks to what will change, or the protocol's reason why not. Looks, changes nothing.
//!
//! The order of the checks is ZooKeeper's: a request that is wrong in two ways gets the same answer there and here.

use super::{
    access,
    lifetime::Lifetime,
    model::{Caller, Node, Tree},
    path,
    transaction::Change,
};
use crate::wire::{Code, Create, Op, Perms};

impl Tree {
    pub(super) fn prepare(&self, caller: Caller<'_>, op: &Op) -> Result<Change, Code> {
        match op {
            Op::Create(create) => self.prepare_create(caller, create),
            Op::Delete { path, version } => self.prepare_delete(caller, path, *version),
            Op::SetData { path, data, version } => {
                let node = self.node_for(caller, path, Perms::WRITE)?;
                Ok(Change::SetData {
                    path: path.clone(),
                    data: data.clone(),
                    version: next_version(node.meta.version, *version)?,
                })
            }
            Op::SetAcl { path, acl, version } => {
                if !path::is_valid(path) {
                    return Err(Code::BAD_ARGUMENTS);
                }
                let acl = access::resolve(acl, caller.ids)?;
                let node = self.node_for(caller, path, Perms::ADMIN)?;
                Ok(Change::SetAcl {
                    path: path.clone(),
                    acl,
                    version: next_version(node.meta.aversion, *version)?,
                })
            }
            Op::Check { path, version } => {
                let node = self.node_for(caller, path, Perms::READ)?;
                next_version(node.meta.version, *version)?;
                Ok(Change::Check)
            }
        }
    }

    fn prepare_create(&self, caller: Caller<'_>, create: &Create) -> Result<Change, Code> {
        let lifetime = Lifetime::of(create.mode, caller.session).ok_or(Code::BAD_ARGUMENTS)?;
        if !self.sessions.contains_key(&caller.session) {
            return Err(Code::SESSION_EXPIRED);
        }
        let slash = create.path.rfind('/').ok_or(Code::BAD_ARGUMENTS)?;
        if create.path.contains('\0') {
            return Err(Code::BAD_ARGUMENTS);
        }
        let acl = access::resolve(&create.acl, caller.ids)?;
        let parent_path = if slash == 0 { "/" } else { &create.path[..slash] };
        let parent = self.nodes.get(parent_path).ok_or(Code::NO_NODE)?;
        allow(parent, Perms::CREATE, caller)?;
        let path = if create.mode.is_sequential() {
            format!("{}{:010}", create.path, parent.meta.creates)
        } else {
            create.path.clone()
        };
        if !path::is_valid(&path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        if self.nodes.contains_key(&*path) {
            return Err(Code::NODE_EXISTS);
        }
        if Lifetime::from_owner(parent.meta.owner).session().is_some() {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        Ok(Change::Create { path, data: create.data.clone(), acl, lifetime })
    }

    fn prepare_delete(&self, caller: Caller<'_>, path: &str, version: i32) -> Result<Change, Code> {
        let slash = path.rfind('/').ok_or(Code::BAD_ARGUMENTS)?;
        if path.contains('\0') || is_special(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent =
            self.nodes.get(if slash == 0 { "/" } else { &path[..slash] }).ok_or(Code::NO_NODE)?;
        allow(parent, Perms::DELETE, caller)?;
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        next_version(node.meta.version, version)?;
        if node.children.is_empty() {
            Ok(Change::Delete { path: path.to_owned() })
        } else {
            Err(Code::NOT_EMPTY)
        }
    }

    fn node_for(&self, caller: Caller<'_>, path: &str, perms: Perms) -> Result<&Node, Code> {
        if !path::is_valid(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        allow(node, perms, caller)?;
        Ok(node)
    }
}

pub(super) fn allow(node: &Node, perms: Perms, caller: Caller<'_>) -> Result<(), Code> {
    if access::is_allowed(&node.acl, perms, caller.ids) { Ok(()) } else { Err(Code::NO_AUTH) }
}

/// The version after this change, if the one expected is the one found; −1 expects nothing.
fn next_version(found: i32, expected: i32) -> Result<i32, Code> {
    if expected == -1 || expected == found {
        Ok(found.wrapping_add(1))
    } else {
        Err(Code::BAD_VERSION)
    }
}

fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config")
}
