//! A batch becomes rows.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{
    super::{
        event::Event,
        sink::{Sink, SinkError},
    },
    Store,
    error::{is_character, is_collision},
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
        let writes = self.writes(&Rows::of(batch));
        let mut writes = writes.map_err(|error| {
            SinkError::Refused(format!("history cannot be written as JSON: {error}"))
        })?;
        let mut tries = 1;
        let mut readable = false;
        loop {
            match self.database.transaction(&writes).await {
                Ok(_) => return Ok(()),
                Err(error) if is_collision(&error) && tries < TRIES => tries += 1,
                // Better a message with holes than none, and than all that would wait behind it.
                Err(error) if is_character(&error) && !readable => {
                    readable = true;
                    writes.iter_mut().for_each(Write::only_ascii);
                }
                Err(error) => return Err(self.database.told(&error).into()),
            }
        }
    }
}

impl Store {
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
