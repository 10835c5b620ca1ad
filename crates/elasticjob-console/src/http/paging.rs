//! Shared by all lists: they read the mirror, sort, and return one page.

use std::{cmp::Ordering, time::Duration};

use serde::Deserialize;
use utoipa::ToSchema;

use super::problem::{Code, Problem};
use crate::auth::caller::Authorized;
use elasticjob::admin::mirror::Mirror;

const MAX_PAGE_SIZE: usize = 1_000;
/// How long a request waits for the first read of a registry before the client is told to retry.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Order {
    Asc,
    Desc,
}

impl Order {
    /// Sorts rows; the sort is stable.
    pub(crate) fn sort<T>(self, rows: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
        match self {
            Self::Asc => rows.sort_by(compare),
            Self::Desc => rows.sort_by(|one, other| compare(other, one)),
        }
    }
}

/// Returns the mirror after its first complete read of the registry.
pub(crate) async fn loaded_mirror<R>(access: &Authorized<R>) -> Result<&Mirror, Problem> {
    let mirror = &access.registry.mirror;
    let mut changes = mirror.subscribe();
    let is_loaded = || mirror.read(|seen| seen.as_of.is_some());
    if is_loaded() {
        return Ok(mirror);
    }
    access.admin().await?;
    // The mirror notifies its listeners when the first read is complete.
    let clock = &access.app.clock;
    let deadline = clock.monotonic() + FIRST_READ_TIMEOUT;
    while !is_loaded() {
        tokio::select! {
            _ = changes.recv() => {}
            () = clock.sleep_until(deadline) => {
                let text = format!("registry {} is still being read", access.registry.name);
                return Err(Problem::new(Code::Unreachable, text).with_hint("try again").with_retry_after(5));
            }
        }
    }
    Ok(mirror)
}

/// Checks page number and page size.
pub(crate) fn check_page(page: usize, size: usize) -> Result<(usize, usize), Problem> {
    if page == 0 {
        return Err(Problem::invalid("page", "pages count from 1"));
    }
    if size == 0 || size > MAX_PAGE_SIZE {
        return Err(Problem::invalid("pageSize", format!("a page has 1 to {MAX_PAGE_SIZE} rows")));
    }
    Ok((page, size))
}
