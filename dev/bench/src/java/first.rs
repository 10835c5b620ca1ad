//! From the start of a process until its first fire.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Scale,
    page::{Both, Page, long},
    worker::{Pattern, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, statistics::median};

/// A look at one start, in milliseconds.
struct Start {
    joined: f64,
    fired: f64,
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "## The first fire\n\nA process is started at the beginning of a second, with one job of one shard that is due every second: how long until it is a member, and until its shard begins. \
         The second cannot be sooner than the next second. Medians of {}.",
        scale.starts
    ));
    page.table(&["", "a member after", "the first fire after"]);
    let mut starts = Both { java: Vec::new(), ours: Vec::new() };
    for number in 0..scale.starts {
        for side in Side::in_turn(number) {
            let start = start(server, side, number).await?;
            match side {
                Side::Java => starts.java.push(start),
                Side::Ours => starts.ours.push(start),
            }
        }
    }
    for (side, starts) in starts.each() {
        page.row(&[
            side.name().to_owned(),
            long(median(starts.iter().map(|start| start.joined))),
            long(median(starts.iter().map(|start| start.fired))),
        ]);
    }
    Ok(())
}

async fn start(server: SocketAddr, side: Side, number: usize) -> Result<Start, BoxError> {
    let began = (now() / 1_000 + 1) * 1_000;
    until(began).await;
    let mut worker =
        Worker::start(side, server, &format!("first-{side:?}-{number}"), 0, SESSION).await?;
    worker.join("settle", Pattern::new("* * * * * ?", 1)).await?;
    let joined = now();
    let fired = loop {
        if let Some(beat) = worker.beats().await?.first() {
            break beat.at;
        }
        sleep(Duration::from_millis(5)).await;
    };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(Start { joined: (joined - began) as f64, fired: (fired - began) as f64 })
}
