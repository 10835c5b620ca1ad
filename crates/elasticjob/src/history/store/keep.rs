//! A batch becomes rows.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;

use super::{
    super::{
        event::{Ended, Ending, Event, Line, Printed, Source, Started, Status},
        sink::{Sink, SinkError},
    },
    Store,
    error::{is_character, is_collision, is_unfit, too_large},
    lost::LostRow,
    rows::Rows,
    write::Write,
};

/// How often to begin again when somebody else wrote the same rows in another order.
const TRIES: u32 = 5;

#[async_trait]
impl Sink for Store {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut writes = self.fitting(batch)?;
        let mut tries = 1;
        let mut is_plain = false;
        loop {
            match self.database.transaction(&writes).await {
                Ok(_) => return Ok(()),
                Err(error) if is_collision(&error) && tries < TRIES => tries += 1,
                // Better a message with holes than none. Only of an event that comes alone, so that no other is touched.
                Err(error) if is_character(&error) && batch.len() == 1 && !is_plain => {
                    is_plain = true;
                    writes = self.fitting(&[plain(&batch[0])])?;
                }
                Err(error) if is_unfit(&error) => {
                    return Err(SinkError::Unfit(self.database.told(&error).to_string()));
                }
                Err(error) => return Err(self.database.told(&error).into()),
            }
        }
    }
}

impl Store {
    /// What these are written with, if the database takes as much at once.
    fn fitting(&self, batch: &[Event]) -> Result<Vec<Write>, SinkError> {
        let writes = self.writes(&Rows::of(batch)).map_err(|error| {
            SinkError::Refused(format!("history cannot be written as JSON: {error}"))
        })?;
        let largest = writes.iter().map(Write::bytes).max().unwrap_or_default();
        match self.database.most_at_once() {
            Some(most) if largest > most => {
                let error = too_large(self.database.shown(), largest, most);
                Err(SinkError::Unfit(error.to_string()))
            }
            _ => Ok(writes),
        }
    }

    fn writes(&self, rows: &Rows) -> Result<Vec<Write>, serde_json::Error> {
        let dialect = self.dialect();
        let mut touched: Vec<&String> = rows.output.keys().map(|(attempt, _)| attempt).collect();
        touched.extend(rows.cuts.keys());
        touched.sort();
        touched.dedup();
        let lost = rows.lost.keys().map(|(run, _)| run);
        let lost: BTreeSet<&String> = lost.filter(|run| !rows.runs.contains_key(*run)).collect();
        let runs: BTreeSet<&String> = rows.runs.keys().chain(lost.iter().copied()).collect();
        let writes = [
            Write::new(dialect, "lock runs", rows.runs.values())?,
            Write::new(dialect, "touch runs", lost.into_iter())?,
            Write::new(dialect, "keep attempts", rows.attempts.values())?,
            Write::new(dialect, "lose attempts", LostRow::told_by(rows))?,
            Write::new(dialect, "settle runs", runs.into_iter())?,
            Write::after(dialect, "settle runs as found"),
            Write::new(dialect, "keep traces", rows.traces.values())?,
            Write::new(dialect, "keep missed", rows.missed.values())?,
            Write::new(dialect, "keep output", rows.output.values())?,
            Write::new(dialect, "keep cuts", rows.cuts.values())?,
            Write::new(dialect, "drop cut", touched.into_iter())?,
        ];
        Ok(writes.into_iter().flatten().collect())
    }
}

/// The same event with a question mark for every character of its free text that is not ASCII. What it is found by stays as it is.
fn plain(event: &Event) -> Event {
    match event {
        Event::Started(started) => Event::Started(Arc::new(plainly_started(started))),
        Event::Ended(Ended { started, at, ending }) => Event::Ended(Ended {
            started: Arc::new(plainly_started(started)),
            at: *at,
            ending: match ending {
                Ending::Failed(message) => Ending::Failed(only_ascii(message)),
                Ending::TimedOut(message) => Ending::TimedOut(only_ascii(message)),
                Ending::Cancelled(message) => Ending::Cancelled(only_ascii(message)),
                ending => ending.clone(),
            },
        }),
        Event::Status(status) => {
            Event::Status(Status { message: only_ascii(&status.message), ..status.clone() })
        }
        Event::Printed(printed) => {
            let line = |line: &Line| Line { text: only_ascii(&line.text), ..line.clone() };
            let lines = printed.lines.iter().map(line).collect();
            Event::Printed(Printed { lines, ..printed.clone() })
        }
        event => event.clone(),
    }
}

fn plainly_started(started: &Started) -> Started {
    let source = match &started.source {
        Source::Trigger { by: Some(by) } => Source::Trigger { by: Some(only_ascii(by)) },
        source => source.clone(),
    };
    Started { source, host: only_ascii(&started.host).into(), ..started.clone() }
}

fn only_ascii(text: &str) -> String {
    text.chars().map(|character| if character.is_ascii() { character } else { '?' }).collect()
}
