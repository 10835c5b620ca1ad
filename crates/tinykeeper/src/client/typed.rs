//! Typed methods for common requests. [`Client::call`] sends any other request.

use bytes::Bytes;

use super::{error::Error, handle::Client};
use crate::wire::{Acl, Code, Create, CreateMode, MultiResult, Op, Request, Response, Stat};

impl Client {
    /// Creates a node; returns its path, which for a sequential node ends in the server's number, and its stat.
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

    /// Deletes a node without children if it has this version; −1 matches any version.
    pub async fn delete(&self, path: &str, version: i32) -> Result<(), Error> {
        self.call(Request::Write(Op::Delete { path: path.to_owned(), version })).await?;
        Ok(())
    }

    /// Replaces a node's data if it has this version; −1 matches any version.
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

    /// A node's stat, or `None` if the server reports that the node does not exist. A lost connection is an error, never `None`.
    pub async fn exists(&self, path: &str) -> Result<Option<Stat>, Error> {
        match self.call(Request::Exists { path: path.to_owned(), watch: false }).await {
            Ok(reply) => match reply.response {
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

    /// The names of a node's children, in no particular order, and its stat.
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

    /// Waits until the server has caught up with the leader; later reads return data at least as new as this call.
    pub async fn sync(&self) -> Result<(), Error> {
        self.call(Request::Sync { path: "/".into() }).await?;
        Ok(())
    }

    /// Performs all operations or none; returns the transaction and one result per operation. If one fails, the error has its
    /// index.
    pub async fn multi(&self, ops: Vec<Op>) -> Result<(i64, Vec<MultiResult>), Error> {
        multi_results(self.call(Request::Multi(ops)).await?)
    }

    /// Like [`Client::multi`], but in one session only, as [`Client::call_in`].
    pub async fn multi_in(
        &self,
        session: i64,
        ops: Vec<Op>,
    ) -> Result<(i64, Vec<MultiResult>), Error> {
        multi_results(self.call_in(session, Request::Multi(ops)).await?)
    }
}

/// The results of a multi. The reply to a refused multi is a success, with the refusal in its results.
fn multi_results(reply: super::Reply) -> Result<(i64, Vec<MultiResult>), Error> {
    let zxid = reply.zxid;
    let Response::Multi(results) = reply.response else {
        unreachable!("multi is decoded as results, not as {:?}", reply.response);
    };
    // Operations before the failed one have code OK, those after it an inconsistency: the first other code is the reason.
    let refused = results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Error(code) if *code != Code::OK => Some((index, *code)),
        _ => None,
    });
    match refused {
        Some((index, code)) => Err(Error::MultiRefused { index, code, zxid }),
        None => Ok((zxid, results)),
    }
}
