//! Measures the time from the start of a process to its first fire.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Scale,
    page::{Comparison, Page, format_ms},
    worker::{JobTemplate, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, statistics::median};

/// The times of one process, in milliseconds after its start.
struct Startup {
    joined: f64,
    fired: f64,
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "### First fire\n\nA process starts at the beginning of a second, with one job of one shard that is due every second: the time until it has joined the job, and until its shard \
         starts, which is at the next second at the earliest. Medians of {}.",
        scale.starts
    ));
    page.table(1, &["", "joined after", "first fire after"]);
    let mut startups = Comparison { java: Vec::new(), rust: Vec::new() };
    for number in 0..scale.starts {
        for side in Side::in_turn(number) {
            let startup = start_process(server, side, number).await?;
            match side {
                Side::Java => startups.java.push(startup),
                Side::Rust => startups.rust.push(startup),
            }
        }
    }
    for (side, startups) in startups.each() {
        page.row(&[
            side.name().to_owned(),
            format_ms(median(startups.iter().map(|startup| startup.joined))),
            format_ms(median(startups.iter().map(|startup| startup.fired))),
        ]);
    }
    Ok(())
}

async fn start_process(server: SocketAddr, side: Side, number: usize) -> Result<Startup, BoxError> {
    let started = (now() / 1_000 + 1) * 1_000;
    until(started).await;
    let mut worker =
        Worker::start(side, server, &format!("first-{side:?}-{number}"), 0, SESSION).await?;
    worker.join("settle", JobTemplate::new("* * * * * ?", 1)).await?;
    let joined = now();
    let fired = loop {
        if let Some(start) = worker.take_starts().await?.first() {
            break start.at;
        }
        sleep(Duration::from_millis(5)).await;
    };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(Startup { joined: (joined - started) as f64, fired: (fired - started) as f64 })
}
