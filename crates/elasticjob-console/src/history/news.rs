//! Runs that are new or changed: looked for once a second, by one task for each database, as long as somebody listens.

use std::sync::Arc;
use std::{collections::HashMap, sync::Weak, time::Duration};

use elasticjob::{
    history::{Run, RunFilter, RunState},
    runtime::Clock,
};

use super::stores::Book;
use crate::http::problem::Problem;

/// How often is looked.
const PAUSE: Duration = Duration::from_secs(1);
/// How many of the newest are looked at, and of those that run.
const NEWEST: usize = 100;
const RUNNING: usize = 500;

type Known = HashMap<String, Arc<Run>>;

/// Looks, until the history is taken away.
pub(super) async fn report(book: Weak<Book>, clock: Arc<dyn Clock>) {
    let mut known: Option<Known> = None;
    loop {
        clock.sleep_until(clock.monotonic() + PAUSE).await;
        let Some(book) = book.upgrade() else { return };
        if book.news.receiver_count() == 0 {
            known = None;
            continue;
        }
        match look(&book, known.as_ref(), &*clock).await {
            Ok(seen) => known = Some(seen),
            Err(problem) => {
                tracing::debug!(problem = %problem.detail, "a history cannot be followed: trying again");
            }
        }
    }
}

/// What there is to see now; what is different from before is told.
async fn look(book: &Book, known: Option<&Known>, clock: &dyn Clock) -> Result<Known, Problem> {
    let store = book.store(clock).await?;
    let newest = RunFilter { limit: Some(NEWEST), ..RunFilter::default() };
    let running =
        RunFilter { state: Some(RunState::Running), limit: Some(RUNNING), ..RunFilter::default() };
    let newest = store.runs(&newest).await?.rows;
    let first_known = |known: &Known| newest.iter().any(|run| known.contains_key(&run.run_id));
    let is_gap = newest.len() == NEWEST && known.is_some_and(|known| !first_known(known));
    let mut seen: Known = HashMap::new();
    for run in store.runs(&running).await?.rows.into_iter().chain(newest) {
        seen.insert(run.run_id.clone(), Arc::new(run));
    }
    let Some(known) = known else { return Ok(seen) };
    if is_gap {
        let _ = book.news.send(None);
        return Ok(seen);
    }
    // What ran, and does neither run any more nor is among the newest, has ended.
    for run in known.values().filter(|run| run.state == RunState::Running) {
        if !seen.contains_key(&run.run_id)
            && let Some(run) = store.brief(&run.run_id).await?
        {
            let _ = book.news.send(Some(Arc::new(run)));
        }
    }
    let mut news: Vec<&Arc<Run>> =
        seen.values().filter(|run| known.get(&run.run_id) != Some(*run)).collect();
    news.sort_by_key(|run| run.started_at);
    for run in news {
        // Perhaps nobody listens any more.
        let _ = book.news.send(Some(Arc::clone(run)));
    }
    Ok(seen)
}
