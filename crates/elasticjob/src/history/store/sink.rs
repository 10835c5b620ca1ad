//! Stores batches of events.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;

use super::{
    super::{
        event::{AttemptEnded, AttemptStarted, Event, Line, OutputPrinted, Status},
        sink::{Sink, SinkError},
    },
    Store,
    batch_statement::BatchStatement,
    error::{is_conflict, is_invalid_data, is_unsupported_character, too_large},
    lost_attempts::LostRow,
    rows::Rows,
};
use crate::problem::Problem;

/// Maximum number of tries when another process writes the same rows in another order.
const TRIES: u32 = 5;

#[async_trait]
impl Sink for Store {
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut writes = self.statements_within_limit(batch)?;
        let mut tries = 1;
        let mut is_ascii = false;
        loop {
            match self.database.transaction(&writes).await {
                Ok(_) => return Ok(()),
                Err(error) if is_conflict(&error) && tries < TRIES => tries += 1,
                // A message with replaced characters is better than none. Only for an event that comes alone, so that others stay unchanged.
                Err(error) if is_unsupported_character(&error) && batch.len() == 1 && !is_ascii => {
                    is_ascii = true;
                    writes = self.statements_within_limit(&[with_ascii_texts(&batch[0])])?;
                }
                Err(error) if is_invalid_data(&error) => {
                    let error = self.database.store_error(&error);
                    return Err(SinkError::InvalidEvent(Problem::of(&error).to_string()));
                }
                Err(error) => return Err(self.database.store_error(&error).into()),
            }
        }
    }
}

impl Store {
    /// The statements that write these events, if the database accepts their size.
    fn statements_within_limit(&self, batch: &[Event]) -> Result<Vec<BatchStatement>, SinkError> {
        let writes = self.writes(&Rows::of(batch)).map_err(|error| {
            SinkError::Refused(format!("cannot encode history as JSON: {error}"))
        })?;
        let largest = writes.iter().map(BatchStatement::bytes).max().unwrap_or_default();
        match self.database.max_statement_bytes() {
            Some(most) if largest > most => {
                let error = too_large(self.database.display_name(), largest, most);
                Err(SinkError::InvalidEvent(Problem::of(&error).to_string()))
            }
            _ => Ok(writes),
        }
    }

    fn writes(&self, rows: &Rows) -> Result<Vec<BatchStatement>, serde_json::Error> {
        let dialect = self.dialect();
        let mut touched: Vec<&String> = rows.output.keys().map(|(attempt, _)| attempt).collect();
        touched.extend(rows.cuts.keys());
        touched.sort();
        touched.dedup();
        let lost = rows.lost.keys().map(|(run, _)| run);
        let lost: BTreeSet<&String> = lost.filter(|run| !rows.runs.contains_key(*run)).collect();
        let runs: BTreeSet<&String> = rows.runs.keys().chain(lost.iter().copied()).collect();
        let writes = [
            BatchStatement::new(dialect, "lock runs", rows.runs.values())?,
            BatchStatement::new(dialect, "lock existing runs", lost.into_iter())?,
            BatchStatement::new(dialect, "insert attempts", rows.attempts.values())?,
            BatchStatement::new(dialect, "mark attempts lost", LostRow::from_rows(rows))?,
            BatchStatement::new(dialect, "update runs", runs.into_iter())?,
            BatchStatement::follow_up(dialect, "apply run updates"),
            BatchStatement::new(dialect, "insert traces", rows.traces.values())?,
            BatchStatement::new(dialect, "insert missed", rows.missed.values())?,
            BatchStatement::new(dialect, "insert output", rows.output.values())?,
            BatchStatement::new(dialect, "insert cuts", rows.cuts.values())?,
            BatchStatement::new(dialect, "delete cut output", touched.into_iter())?,
        ];
        Ok(writes.into_iter().flatten().collect())
    }
}

/// The event with a question mark for every non-ASCII character of its free text. Names and ids stay as they are.
fn with_ascii_texts(event: &Event) -> Event {
    match event {
        Event::Started(started) => Event::Started(Arc::new(with_ascii_start(started))),
        Event::Ended(AttemptEnded { started, at, outcome, message }) => {
            Event::Ended(AttemptEnded {
                started: Arc::new(with_ascii_start(started)),
                at: *at,
                outcome: *outcome,
                message: message.as_deref().map(to_ascii),
            })
        }
        Event::Status(status) => {
            Event::Status(Status { message: to_ascii(&status.message), ..status.clone() })
        }
        Event::Printed(printed) => {
            let line = |line: &Line| Line { text: to_ascii(&line.text), ..line.clone() };
            let lines = printed.lines.iter().map(line).collect();
            Event::Printed(OutputPrinted { lines, ..printed.clone() })
        }
        event => event.clone(),
    }
}

fn with_ascii_start(started: &AttemptStarted) -> AttemptStarted {
    let triggered_by = started.triggered_by.as_deref().map(to_ascii);
    AttemptStarted { triggered_by, host: to_ascii(&started.host).into(), ..started.clone() }
}

fn to_ascii(text: &str) -> String {
    text.chars().map(|character| if character.is_ascii() { character } else { '?' }).collect()
}
