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

/// Declares the query of a paged list: its own parameters with their defaults, followed by `page` and `pageSize`.
///
/// A macro, because a struct with `serde(flatten)` accepts unknown parameters and parses no numbers in a query string.
macro_rules! paged_query {
    (struct $name:ident {
        $($(#[$meta:meta])* $field:ident: $type:ident $(<$argument:ident>)? = $default:expr,)*
    }) => {
        #[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
        #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        struct $name {
            $($(#[$meta])* $field: $type $(<$argument>)?,)*
            /// Page number, starting at 1.
            #[param(minimum = 1)]
            page: usize,
            /// Rows per page.
            #[param(minimum = 1, maximum = 1000)]
            page_size: usize,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* page: 1, page_size: 50 }
            }
        }

        impl $name {
            fn requested_page(
                &self,
            ) -> Result<$crate::http::paging::PageRequest, $crate::http::problem::Problem> {
                $crate::http::paging::PageRequest::new(self.page, self.page_size)
            }
        }
    };
}
pub(crate) use paged_query;

/// The page of a list that a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest {
    /// Starts at 1.
    pub(crate) page: usize,
    pub(crate) page_size: usize,
}

impl PageRequest {
    /// Checks page number and page size.
    pub(crate) fn new(page: usize, page_size: usize) -> Result<Self, Problem> {
        if page == 0 {
            return Err(Problem::invalid("page", "pages count from 1"));
        }
        if page_size == 0 || page_size > MAX_PAGE_SIZE {
            let text = format!("a page has 1 to {MAX_PAGE_SIZE} rows");
            return Err(Problem::invalid("pageSize", text));
        }
        Ok(Self { page, page_size })
    }

    /// Number of rows before the page.
    pub(crate) fn skip(self) -> usize {
        (self.page - 1).saturating_mul(self.page_size)
    }

    /// The rows of the page.
    pub(crate) fn rows<I: IntoIterator>(self, rows: I) -> impl Iterator<Item = I::Item> {
        rows.into_iter().skip(self.skip()).take(self.page_size)
    }
}
