//! What history knows of the fire in question: every attempt of it, or that somebody noticed that it did not run.

use std::fmt::Display;

use jiff::Timestamp;

use super::{Explanation, Finding, Topic, Weight};
use crate::{
    admin::{Admin, AdminError},
    history::{Execution, MissedFires, RunDetails, Span, Store, StoreError},
    job::{JobName, RunId},
};

/// Of so many misses, the last noticed, those of the fire in question are looked for.
const MISSES: usize = 1_000;

impl Admin {
    /// The same as [`Admin::explain`], and what history knows of that fire, however long ago it was. A history that cannot be asked is a
    /// finding.
    pub async fn explain_with(
        &self,
        history: &Store,
        job: &JobName,
        shard: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Explanation, AdminError> {
        let explanation = self.explain(job, shard, at).await?;
        let Some(due_at) = explanation.due_at else { return Ok(explanation) };
        Ok(match recall(history, job, due_at).await {
            Ok((run, missed)) => explanation.recalling(shard, due_at, run.as_ref(), &missed),
            Err(error) => explanation.without_history(&error),
        })
    }
}

async fn recall(
    history: &Store,
    job: &JobName,
    due_at: Timestamp,
) -> Result<(Option<RunDetails>, Vec<MissedFires>), StoreError> {
    let run = history.run(&RunId::scheduled(job.clone(), due_at).to_string()).await?;
    let mut missed = history.missed(Some(job.as_str()), Span::since(due_at), MISSES).await?;
    let is_it = |fires: &MissedFires| fires.first <= Some(due_at) && Some(due_at) <= fires.last;
    missed.retain(is_it);
    Ok((run, missed))
}

impl Explanation {
    /// The same, and that history could not be asked.
    #[must_use]
    pub fn without_history(self, why: impl Display) -> Self {
        let says = format!("history cannot be asked: {why}");
        self.finding(None, Topic::Limits, Weight::Matters, says)
    }

    fn finding(mut self, shard: Option<u32>, topic: Topic, weight: Weight, says: String) -> Self {
        self.findings.push(Finding { topic, weight, shard, says, hint: None });
        self
    }

    /// What the ledger could not say is not said where history can.
    fn recalling(
        mut self,
        asked: Option<u32>,
        due_at: Timestamp,
        run: Option<&RunDetails>,
        missed: &[MissedFires],
    ) -> Self {
        let executions = run.into_iter().flat_map(|run| &run.executions);
        let executions: Vec<(u32, &Execution)> = executions
            .filter_map(|one| Some((u32::try_from(one.sharding_item).ok()?, one)))
            .filter(|(item, _)| asked.is_none_or(|asked| asked == *item))
            .collect();
        let is_known = |shard: Option<u32>| executions.iter().any(|(item, _)| Some(*item) == shard);
        self.findings.retain(|one| one.topic != Topic::Limits || !is_known(one.shard));
        for (item, execution) in &executions {
            let weight = match execution.outcome.as_deref() {
                Some("done") | None => Weight::Informs,
                Some(_) => Weight::Matters,
            };
            let says = told(due_at, execution);
            self = self.finding(Some(*item), Topic::Remembered, weight, says);
        }
        for fires in missed {
            let says = format!(
                "history has {} not run, that of {due_at} among them: {}",
                if fires.count == 1 {
                    "a fire".to_owned()
                } else {
                    format!("{} fires", fires.count)
                },
                fires.why.replace('_', " ")
            );
            self = self.finding(None, Topic::Remembered, Weight::Matters, says);
        }
        if executions.is_empty() && missed.is_empty() {
            let says = format!("history has nothing of the fire of {due_at}");
            self = self.finding(None, Topic::Remembered, Weight::Informs, says);
        }
        self
    }
}

/// One attempt, as a sentence.
fn told(due_at: Timestamp, one: &Execution) -> String {
    let attempt = one.attempt.unwrap_or(1);
    let reason = one.reason.as_deref().unwrap_or("due").replace('_', " ");
    let who = one.instance.as_deref().unwrap_or(one.ip.as_str());
    let began = match (one.start_time, one.lateness_ms) {
        (Some(at), Some(late)) if late > 0 => format!("began at {at}, {late} ms late,"),
        (Some(at), _) => format!("began at {at}"),
        (None, _) => "began".to_owned(),
    };
    let end = match (one.outcome.as_deref(), one.duration_ms) {
        (None, _) => "and is not over".to_owned(),
        (Some(outcome), Some(ms)) => format!("and was {} after {ms} ms", outcome.replace('_', " ")),
        (Some(outcome), None) => format!("and was {}", outcome.replace('_', " ")),
    };
    let cause = one.failure_cause.as_deref().and_then(|cause| cause.lines().next());
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("attempt {attempt} ({reason}) of the fire of {due_at} {began} on {who} {end}{cause}")
}
