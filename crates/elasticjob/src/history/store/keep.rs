//! A batch becomes rows.

use async_trait::async_trait;
use serde::Serialize;

use super::{
    super::{
        event::Event,
        sink::{Sink, SinkError},
    },
    Store,
    error::{is_character, is_collision},
    rows::Rows,
};

/// How often to begin again when somebody else wrote the same rows in another order.
const TRIES: u32 = 5;

#[async_trait]
impl Sink for Store {
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut statements = self.statements(&Rows::of(batch))?;
        let mut tries = 1;
        let mut readable = false;
        loop {
            match self.database.transaction(&statements).await {
                Ok(_) => return Ok(()),
                Err(error) if is_collision(&error) && tries < TRIES => tries += 1,
                // Better a message with holes than none, and than all that would wait behind it.
                Err(error) if is_character(&error) && !readable => {
                    readable = true;
                    for (_, rows) in &mut statements {
                        *rows = only_ascii(rows);
                    }
                }
                Err(error) => return Err(self.database.told(&error).into()),
            }
        }
    }
}

impl Store {
    fn statements(&self, rows: &Rows) -> Result<Vec<(&'static str, String)>, SinkError> {
        let mut statements = Vec::new();
        let mut add = |name: &str, rows: Result<Option<String>, SinkError>| {
            if let Some(rows) = rows? {
                statements.push((self.dialect().statement(name), rows));
            }
            Ok::<_, SinkError>(())
        };
        add("lock runs", json(rows.runs.values()))?;
        add("keep attempts", json(rows.attempts.values()))?;
        add("settle runs", json(rows.runs.keys()))?;
        add("keep traces", json(rows.traces.values()))?;
        add("keep missed", json(rows.missed.values()))?;
        add("keep output", json(rows.output.values()))?;
        add("keep cuts", json(rows.cuts.values()))?;
        let mut touched: Vec<&String> = rows.output.keys().map(|(attempt, _)| attempt).collect();
        touched.extend(rows.cuts.keys());
        touched.sort();
        touched.dedup();
        add("drop cut", json(touched.into_iter()))?;
        Ok(statements)
    }
}

/// Rows as a list; nothing for none.
fn json<T: Serialize>(rows: impl ExactSizeIterator<Item = T>) -> Result<Option<String>, SinkError> {
    if rows.len() == 0 {
        return Ok(None);
    }
    let rows: Vec<T> = rows.collect();
    let text = serde_json::to_string(&rows);
    text.map(Some)
        .map_err(|error| SinkError::Refused(format!("history cannot be written as JSON: {error}")))
}

/// The same with a question mark for every character that is not ASCII.
fn only_ascii(text: &str) -> String {
    text.chars().map(|character| if character.is_ascii() { character } else { '?' }).collect()
}
