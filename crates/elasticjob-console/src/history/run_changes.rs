//! Detects new and changed runs: one task per history store polls once a second while there are subscribers.

use std::sync::Arc;
use std::{collections::HashMap, sync::Weak, time::Duration};

use elasticjob::{
    history::{Run, RunFilter, RunState},
    runtime::Clock,
};

use super::stores::HistoryConnection;
use crate::http::problem::Problem;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Limits of polled runs: newest, and running.
const MAX_NEWEST: usize = 100;
const MAX_RUNNING: usize = 500;

type KnownRuns = HashMap<String, Arc<Run>>;

/// Polls until the history is removed.
pub(super) async fn poll_runs(history: Weak<HistoryConnection>, clock: Arc<dyn Clock>) {
    let mut known: Option<KnownRuns> = None;
    loop {
        clock.sleep_until(clock.monotonic() + POLL_INTERVAL).await;
        let Some(history) = history.upgrade() else { return };
        if history.run_changes.receiver_count() == 0 {
            known = None;
            continue;
        }
        match poll_once(&history, known.as_ref(), &*clock).await {
            Ok(seen) => known = Some(seen),
            Err(problem) => {
                tracing::debug!(problem = %problem.detail, "history poll failed, retrying");
            }
        }
    }
}

/// Reads the current runs and publishes those that differ from `known`.
async fn poll_once(
    history: &HistoryConnection,
    known: Option<&KnownRuns>,
    clock: &dyn Clock,
) -> Result<KnownRuns, Problem> {
    let store = history.store(clock).await?;
    let newest = RunFilter { limit: Some(MAX_NEWEST), ..RunFilter::default() };
    let running = RunFilter {
        state: Some(RunState::Running),
        limit: Some(MAX_RUNNING),
        ..RunFilter::default()
    };
    let newest = store.runs(&newest).await?.rows;
    let overlaps = |known: &KnownRuns| newest.iter().any(|run| known.contains_key(&run.run_id));
    let is_gap = newest.len() == MAX_NEWEST && known.is_some_and(|known| !overlaps(known));
    let mut seen: KnownRuns = HashMap::new();
    for run in store.runs(&running).await?.rows.into_iter().chain(newest) {
        seen.insert(run.run_id.clone(), Arc::new(run));
    }
    let Some(known) = known else { return Ok(seen) };
    if is_gap {
        let _ = history.run_changes.send(None);
        return Ok(seen);
    }
    // A run that is neither running nor among the newest any more has ended.
    for run in known.values().filter(|run| run.state == RunState::Running) {
        if !seen.contains_key(&run.run_id)
            && let Some(run) = store.brief(&run.run_id).await?
        {
            let _ = history.run_changes.send(Some(Arc::new(run)));
        }
    }
    let mut changed: Vec<&Arc<Run>> =
        seen.values().filter(|run| known.get(&run.run_id) != Some(*run)).collect();
    changed.sort_by_key(|run| run.started_at);
    for run in changed {
        // There may be no subscriber any more.
        let _ = history.run_changes.send(Some(Arc::clone(run)));
    }
    Ok(seen)
}
