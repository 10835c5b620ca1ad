//! The usual requests, with the usual answers taken out of their envelopes. Anything else goes through [`Client::call`].

use bytes::Bytes;

use super::{error::Error, handle::Client};
use crate::wire::{Acl, Code, Create, CreateMode, MultiResult, Op, Request, Response, Stat};

impl Client {
    /// Creates a node; gives its path, which for a sequential one ends in the server's number, and its stat.
    pub async fn create(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        mode: CreateMode,
        acl: Vec<Acl>,
    ) -> Result<(String, Stat), Error> {
        let create =
            Create { path: path.to_owned(), data: Some(data.into()), acl, mode, with_stat: true };
        match self.call(Request::Write(Op::Create(create))).await?.response {
            Response::Create2 { path, stat } => Ok((path, stat)),
            other => unreachable!("create2 is decoded as such, not as {other:?}"),
        }
    }

    /// Deletes a node without children, if its version is this one; −1 is any.
    pub async fn delete(&self, path: &str, version: i32) -> Result<(), Error> {
        self.call(Request::Write(Op::Delete { path: path.to_owned(), version })).await?;
        Ok(())
    }

    /// Replaces a node's data, if its version is this one; −1 is any.
    pub async fn set(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        version: i32,
    ) -> Result<Stat, Error> {
        let set = Op::SetData { path: path.to_owned(), data: Some(data.into()), version };
        match self.call(Request::Write(set)).await?.response {
            Response::Stat(stat) => Ok(stat),
            other => unreachable!("setData is decoded as a stat, not as {other:?}"),
        }
    }

    /// A node's stat, or `None` if the server says that there is no such node. A lost connection is an error, never `None`.
    pub async fn exists(&self, path: &str) -> Result<Option<Stat>, Error> {
        match self.call(Request::Exists { path: path.to_owned(), watch: false }).await {
            Ok(answer) => match answer.response {
                Response::Stat(stat) => Ok(Some(stat)),
                other => unreachable!("exists is decoded as a stat, not as {other:?}"),
            },
            Err(Error::Refused { code: Code::NO_NODE, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A node's data and stat; null data reads as empty.
    pub async fn get(&self, path: &str) -> Result<(Bytes, Stat), Error> {
        match self.call(Request::GetData { path: path.to_owned(), watch: false }).await?.response {
            Response::Data { data, stat } => Ok((data.unwrap_or_default(), stat)),
            other => unreachable!("getData is decoded as data, not as {other:?}"),
        }
    }

    /// The names of a node's children, in no order, and its stat.
    pub async fn children(&self, path: &str) -> Result<(Vec<String>, Stat), Error> {
        let request = Request::GetChildrenStat { path: path.to_owned(), watch: false };
        match self.call(request).await?.response {
            Response::ChildrenStat { children, stat } => Ok((children, stat)),
            other => unreachable!("getChildren2 is decoded as children, not as {other:?}"),
        }
    }

    /// A node's access list and stat.
    pub async fn acl(&self, path: &str) -> Result<(Vec<Acl>, Stat), Error> {
        match self.call(Request::GetAcl { path: path.to_owned() }).await?.response {
            Response::Acl { acl, stat } => Ok((acl, stat)),
            other => unreachable!("getACL is decoded as an access list, not as {other:?}"),
        }
    }

    /// Waits until the server has caught up with the leader; what is read after is not older than this call.
    pub async fn sync(&self) -> Result<(), Error> {
        self.call(Request::Sync { path: "/".into() }).await?;
        Ok(())
    }

    /// Does all of these or none. Gives the transaction and a result for each; one that fails fails all, with its index.
    pub async fn multi(&self, ops: Vec<Op>) -> Result<(i64, Vec<MultiResult>), Error> {
        settled(self.call(Request::Multi(ops)).await?)
    }

    /// [`Client::multi`] in one session only, as [`Client::call_in`].
    pub async fn multi_in(
        &self,
        session: i64,
        ops: Vec<Op>,
    ) -> Result<(i64, Vec<MultiResult>), Error> {
        settled(self.call_in(session, Request::Multi(ops)).await?)
    }
}

/// A refused multi is answered well, with the refusal inside.
fn settled(answer: super::Answer) -> Result<(i64, Vec<MultiResult>), Error> {
    let zxid = answer.zxid;
    let Response::Multi(results) = answer.response else {
        unreachable!("multi is decoded as results, not as {:?}", answer.response);
    };
    // Members before the one that failed say ok, members after it that they are inconsistent: the first complaint counts.
    let refused = results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Error(code) if *code != Code::OK => Some((index, *code)),
        _ => None,
    });
    match refused {
        Some((index, code)) => Err(Error::MultiRefused { index, code, zxid }),
        None => Ok((zxid, results)),
    }
}
