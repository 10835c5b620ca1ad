//! What all lists have in common: they are read off the mirror, in an order, a page at a time.

use std::{cmp::Ordering, time::Duration};

use serde::Deserialize;
use utoipa::ToSchema;

use super::problem::{Code, Problem};
use crate::auth::who::Door;
use elasticjob::admin::mirror::Mirror;

/// How many rows a page may have.
const LARGEST_PAGE: usize = 1_000;
/// How long the first look at a registry may take before somebody who waits is told to come again.
const FIRST_LOOK: Duration = Duration::from_secs(30);

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
pub(crate) async fn ready<R>(door: &Door<R>) -> Result<&Mirror, Problem> {
    let mirror = &door.place.mirror;
    let mut changes = mirror.listen();
    let is_ready = || mirror.seen(|seen| seen.as_of.is_some());
    if is_ready() {
        return Ok(mirror);
    }
    door.admin().await?;
    // The first time it has to be read; that is told.
    let clock = &door.shared.clock;
    let deadline = clock.monotonic() + FIRST_LOOK;
    while !is_ready() {
        tokio::select! {
            _ = changes.recv() => {}
            () = clock.sleep_until(deadline) => {
                let text = format!("registry {} is still being read; hint: try again", door.place.name);
                return Err(Problem::new(Code::Unreachable, text).after(5));
            }
        }
    }
    Ok(mirror)
}

/// A page and its size, within limits.
pub(crate) fn page(page: usize, size: usize) -> Result<(usize, usize), Problem> {
    if page == 0 {
        return Err(Problem::invalid("page", "pages count from 1"));
    }
    if size == 0 || size > LARGEST_PAGE {
        return Err(Problem::invalid("pageSize", format!("a page has 1 to {LARGEST_PAGE} rows")));
    }
    Ok((page, size))
}
