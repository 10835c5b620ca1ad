//! What all lists have in common: they are read off the mirror, in an order, a page at a time.

use std::{cmp::Ordering, time::Duration};

use serde::Deserialize;
use utoipa::ToSchema;

use super::problem::{Code, Problem};
use crate::auth::caller::Authorized;
use elasticjob::admin::mirror::Mirror;

/// How many rows a page may have.
const MAX_PAGE_SIZE: usize = 1_000;
/// How long the first look at a registry may take before somebody who waits is told to come again.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Which way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Order {
    Asc,
    Desc,
}

impl Order {
    /// Puts rows in order; those that are the same stay as they were.
    pub(crate) fn sort<T>(self, rows: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
        match self {
            Self::Asc => rows.sort_by(compare),
            Self::Desc => rows.sort_by(|one, other| compare(other, one)),
        }
    }
}

/// The mirror, once it has seen everything.
pub(crate) async fn loaded_mirror<R>(access: &Authorized<R>) -> Result<&Mirror, Problem> {
    let mirror = &access.registry.mirror;
    let mut changes = mirror.listen();
    let is_loaded = || mirror.seen(|seen| seen.as_of.is_some());
    if is_loaded() {
        return Ok(mirror);
    }
    access.admin().await?;
    // The first time it has to be read; that is told.
    let clock = &access.app.clock;
    let deadline = clock.monotonic() + FIRST_READ_TIMEOUT;
    while !is_loaded() {
        tokio::select! {
            _ = changes.recv() => {}
            () = clock.sleep_until(deadline) => {
                let text = format!("registry {} is still being read; hint: try again", access.registry.name);
                return Err(Problem::new(Code::Unreachable, text).with_retry_after(5));
            }
        }
    }
    Ok(mirror)
}

/// A page and its size, within limits.
pub(crate) fn check_page(page: usize, size: usize) -> Result<(usize, usize), Problem> {
    if page == 0 {
        return Err(Problem::invalid("page", "pages count from 1"));
    }
    if size == 0 || size > MAX_PAGE_SIZE {
        return Err(Problem::invalid("pageSize", format!("a page has 1 to {MAX_PAGE_SIZE} rows")));
    }
    Ok((page, size))
}
