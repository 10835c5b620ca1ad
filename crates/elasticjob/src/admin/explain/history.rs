//! Findings from history about the explained fire: its attempts, or that it was recorded as missed.

use std::fmt::Display;

use jiff::Timestamp;

use super::{Explanation, Finding, Severity, Topic};
use crate::{
    admin::{Admin, AdminError},
    history::{
        AttemptState, Execution, MissedFires, RunDetails, RunState, Span, Store, StoreError,
    },
    job::{JobName, Outcome, RunId},
};

/// Maximum number of missed-fire records, newest first, that are searched for the explained fire.
const MAX_MISSED: usize = 1_000;

impl Admin {
    /// Like [`Admin::explain`], with what history knows of the fire, however long ago it was. A history that cannot be queried is a finding.
    pub async fn explain_with_history(
        &self,
        history: &Store,
        job: &JobName,
        shard: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Explanation, AdminError> {
        let explanation = self.explain(job, shard, at).await?;
        let Some(due_at) = explanation.due_at else { return Ok(explanation) };
        Ok(match query_fire(history, job, due_at).await {
            Ok((run, missed)) => explanation.with_history(shard, due_at, run.as_ref(), &missed),
            Err(error) => explanation.without_history(&error),
        })
    }
}

/// The run of a fire, and the missed-fire records that include it.
async fn query_fire(
    history: &Store,
    job: &JobName,
    due_at: Timestamp,
) -> Result<(Option<RunDetails>, Vec<MissedFires>), StoreError> {
    let run = history.run(&RunId::scheduled(job.clone(), due_at).to_string()).await?;
    let mut missed = history.missed(Some(job.as_str()), Span::since(due_at), MAX_MISSED).await?;
    let includes_fire =
        |fires: &MissedFires| fires.first <= Some(due_at) && Some(due_at) <= fires.last;
    missed.retain(includes_fire);
    Ok((run, missed))
}

impl Explanation {
    /// Adds the finding that history cannot be queried.
    #[must_use]
    pub fn without_history(self, error: impl Display) -> Self {
        let message = format!("history cannot be queried: {error}");
        self.with_finding(None, Topic::Limits, Severity::Warning, message)
    }

    fn with_finding(
        mut self,
        shard: Option<u32>,
        topic: Topic,
        severity: Severity,
        message: String,
    ) -> Self {
        self.findings.push(Finding { topic, severity, shard, message, hint: None });
        self
    }

    /// Adds what history knows, and drops the findings about what the ledger does not know of the same shards.
    fn with_history(
        mut self,
        shard: Option<u32>,
        due_at: Timestamp,
        run: Option<&RunDetails>,
        missed: &[MissedFires],
    ) -> Self {
        let executions = run.into_iter().flat_map(|run| &run.executions);
        let executions: Vec<(u32, &Execution)> = executions
            .filter_map(|one| Some((u32::try_from(one.sharding_item).ok()?, one)))
            .filter(|(item, _)| shard.is_none_or(|shard| shard == *item))
            .collect();
        let is_known = |shard: Option<u32>| executions.iter().any(|(item, _)| Some(*item) == shard);
        self.findings.retain(|one| one.topic != Topic::Limits || !is_known(one.shard));
        for (item, execution) in &executions {
            let severity = match execution.state {
                AttemptState::Running | AttemptState::Ended(Outcome::Succeeded) => Severity::Info,
                AttemptState::Ended(_) => Severity::Warning,
            };
            let message = describe_attempt(due_at, execution);
            self = self.with_finding(Some(*item), Topic::History, severity, message);
        }
        if let Some(RunDetails { run, .. }) =
            run.filter(|run| run.run.state == RunState::Incomplete)
        {
            let expected = run.expected_shards.unwrap_or_default();
            let message = format!(
                "the run of the fire of {due_at} is incomplete: {} of {expected} shards ran",
                run.shards
            );
            self = self.with_finding(None, Topic::History, Severity::Warning, message);
        }
        for fires in missed {
            let (kind, severity) = if fires.is_coalesced() {
                ("coalesced", Severity::Info)
            } else {
                ("missed", Severity::Warning)
            };
            let message = format!(
                "history has {}, that of {due_at} among them: {}",
                if fires.count == 1 {
                    format!("a {kind} fire")
                } else {
                    format!("{} {kind} fires", fires.count)
                },
                fires.reason_text()
            );
            self = self.with_finding(None, Topic::History, severity, message);
        }
        if executions.is_empty() && missed.is_empty() {
            let message = format!("history has nothing of the fire of {due_at}");
            self = self.with_finding(None, Topic::History, Severity::Info, message);
        }
        self
    }
}

/// One attempt, as a sentence.
fn describe_attempt(due_at: Timestamp, one: &Execution) -> String {
    let attempt = one.attempt.unwrap_or(1);
    let reason = one.reason.map_or(one.execution_source.as_str(), |reason| reason.as_str());
    let reason = reason.to_lowercase().replace('_', " ");
    let instance = one.instance.as_deref().unwrap_or(one.ip.as_str());
    let started = match (one.start_time, one.lateness_ms) {
        (Some(at), Some(late)) if late > 0 => format!("started at {at}, {late} ms late,"),
        (Some(at), _) => format!("started at {at}"),
        (None, _) => "started".to_owned(),
    };
    let state = one.state.as_str().replace('_', " ");
    let ended = match (one.state, one.duration_ms) {
        (AttemptState::Running, _) => "and has not ended".to_owned(),
        (AttemptState::Ended(_), Some(ms)) => format!("and ended after {ms} ms: {state}"),
        (AttemptState::Ended(_), None) => format!("and ended: {state}"),
    };
    let cause = one.failure_cause.as_deref().and_then(|cause| cause.lines().next());
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    format!(
        "attempt {attempt} ({reason}) of the fire of {due_at} {started} on {instance} {ended}{cause}"
    )
}
