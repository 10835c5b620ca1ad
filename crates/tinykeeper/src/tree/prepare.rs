//! Turns an operation into the change it makes, or into the protocol code that refuses it. Reads the tree, changes nothing.
//!
//! The checks run in ZooKeeper's order, so that a request with two errors gets the same code from both servers.

use super::{
    access::{self, AccessChecks},
    lifetime::Lifetime,
    model::{Node, Tree},
    path,
    transaction::Change,
};
use crate::wire::{Code, Create, Op, Perms};

impl Tree {
    pub(super) fn prepare(&self, access: &mut AccessChecks<'_>, op: &Op) -> Result<Change, Code> {
        match op {
            Op::Create(create) => self.prepare_create(access, create),
            Op::Delete { path, version } => self.prepare_delete(access, path, *version),
            Op::SetData { path, data, version } => {
                let node = self.authorized_node(access, path, Perms::WRITE)?;
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
                let acl = access::resolve(acl, access.caller.ids)?;
                let node = self.authorized_node(access, path, Perms::ADMIN)?;
                Ok(Change::SetAcl {
                    path: path.clone(),
                    acl,
                    version: next_version(node.meta.aversion, *version)?,
                })
            }
            Op::Check { path, version } => {
                let node = self.authorized_node(access, path, Perms::READ)?;
                next_version(node.meta.version, *version)?;
                Ok(Change::Check)
            }
        }
    }

    fn prepare_create(
        &self,
        access: &mut AccessChecks<'_>,
        create: &Create,
    ) -> Result<Change, Code> {
        let caller = access.caller;
        let lifetime =
            Lifetime::from_mode(create.mode, caller.session).ok_or(Code::BAD_ARGUMENTS)?;
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
        access.check(&parent.acl, Perms::CREATE)?;
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

    fn prepare_delete(
        &self,
        access: &mut AccessChecks<'_>,
        path: &str,
        version: i32,
    ) -> Result<Change, Code> {
        let slash = path.rfind('/').ok_or(Code::BAD_ARGUMENTS)?;
        if path.contains('\0') || is_reserved(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent =
            self.nodes.get(if slash == 0 { "/" } else { &path[..slash] }).ok_or(Code::NO_NODE)?;
        access.check(&parent.acl, Perms::DELETE)?;
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        next_version(node.meta.version, version)?;
        if node.children.is_empty() {
            Ok(Change::Delete { path: path.to_owned() })
        } else {
            Err(Code::NOT_EMPTY)
        }
    }

    fn authorized_node(
        &self,
        access: &mut AccessChecks<'_>,
        path: &str,
        perms: Perms,
    ) -> Result<&Node, Code> {
        if !path::is_valid(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        access.check(&node.acl, perms)?;
        Ok(node)
    }
}

/// Returns the version after this change if `found` is the expected one; −1 matches any version.
fn next_version(found: i32, expected: i32) -> Result<i32, Code> {
    if expected == -1 || expected == found {
        Ok(found.wrapping_add(1))
    } else {
        Err(Code::BAD_VERSION)
    }
}

fn is_reserved(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config")
}
