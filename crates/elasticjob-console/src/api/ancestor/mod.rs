//! The ancestor's paths.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use axum::Router;

use super::state::Shared;

/// Which registry each user has chosen; the ancestor has one for all.
#[derive(Debug, Default)]
pub(crate) struct Choices(Mutex<HashMap<String, String>>);

impl Choices {
    pub(crate) fn choose(&self, username: &str, registry: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(username.to_owned(), registry.to_owned());
    }

    pub(crate) fn of(&self, username: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(username).cloned()
    }
}

pub(crate) fn router() -> Router<Shared> {
    Router::new()
}
