//! What the promises are tested on.

use std::sync::Arc;

use async_trait::async_trait;

use crate::registry::{Digest, Registry};

/// A registry that members can join, and lines that can be broken.
#[async_trait]
pub trait Ground: Send + Sync {
    /// A new member under `namespace`, as `user` if one is given.
    async fn join(&self, namespace: &str, user: Option<Digest>) -> Member;
}

/// A member and its line.
#[derive(Debug)]
pub struct Member {
    /// What is tested.
    pub registry: Arc<dyn Registry>,
    /// How it is connected.
    pub line: Box<dyn Line>,
}

/// A member's line to the registry, to be broken at will.
#[async_trait]
pub trait Line: std::fmt::Debug + Send + Sync {
    /// Breaks the line; nothing comes through until it is healed.
    async fn cut(&self);

    /// Lets requests through, but no answers, until the line is cut or healed.
    async fn lose_answers(&self);

    /// Breaks the line and makes, or lets, the registry end the session: in how much time is the registry's affair.
    async fn end_session(&self);

    /// Repairs the line.
    async fn heal(&self);
}
