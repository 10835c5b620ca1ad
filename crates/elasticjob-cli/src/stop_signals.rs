//! SIGINT and SIGTERM, which stop the program.

use elasticjob::node::NodeError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// From now on, the signals no longer end the process by themselves.
    pub(crate) fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(NodeError::Signals);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
