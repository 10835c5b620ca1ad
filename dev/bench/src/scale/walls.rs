//! What fleets of other sizes cost, by the models, and the walls they meet: limits of one session, one ensemble, one listing, one database.

use std::collections::BTreeMap;

use elasticjob::{
    coordination::{ephemerals, tree::JobTree},
    registry::Limits,
};
use testbed::ZooKeeper;

use super::model::{Model, Size};
use crate::{
    BoxError,
    burst::Ceiling,
    history,
    report::{
        Report,
        Unit::{Bytes, Count, Megabytes},
    },
};

/// The fleets of the table: jobs of four shards with three instances each.
const JOBS: [f64; 4] = [1e3, 1e4, 1e5, 1e6];
const SHARDS: u32 = 4;
const INSTANCES: f64 = 3.0;
/// Jobs of the measurement of ZooKeeper's own rate.
const CEILING_JOBS: usize = 500;
/// A job name of usual length, for what depends on it.
const NAME: &str = "settle-orders-of-yesterday";

pub(super) async fn report(
    report: &mut Report,
    models: &BTreeMap<&str, Model>,
) -> Result<(), BoxError> {
    let rate = ceiling().await?;
    let rows_per_second = history::sqlite_rate().await?;
    let tree = JobTree::new(&"shop".parse()?, &NAME.parse()?)?;
    let reserved = number(ephemerals::most_bytes(&tree, SHARDS))?;
    let jobs_per_session = (number(ephemerals::MOST_RESERVED)? / reserved).floor();
    let listed = number(NAME.len() + 4)?;
    let jobs_per_listing = (number(Limits::ZOOKEEPER.bytes)? / listed).floor();
    let size = |jobs: f64| Size { jobs, shards: f64::from(SHARDS), instances: INSTANCES };
    report.block(&format!(
        "## Other sizes\n\nThe same models, for jobs of {SHARDS} shards with {INSTANCES:.0} instances each, of which each fires once a minute, spread evenly, with names of {} characters. In the same run, this \
         ZooKeeper executed the claims and releases of {} fires per second in full transactions, and SQLite stored {} shard events per second.",
        NAME.len(),
        Count.format(rate),
        Count.format(rows_per_second)
    ));
    let jobs: Vec<String> = JOBS.iter().map(|jobs| format!("{jobs:.0} jobs")).collect();
    let columns: Vec<&str> = [""].into_iter().chain(jobs.iter().map(String::as_str)).collect();
    report.table(&columns);
    let mut row = |name: &str, cell: &dyn Fn(Size) -> String| {
        let cells = JOBS.iter().map(|jobs| cell(size(*jobs)));
        report.row(&[name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    };
    for (name, unit) in [
        ("nodes", Count),
        ("watches", Count),
        ("live heap of ZooKeeper", Megabytes),
        ("snapshot of ZooKeeper", Megabytes),
        ("first process joins: requests", Count),
        ("resident memory of a process", Megabytes),
    ] {
        let model = models.get(name).ok_or_else(|| format!("no cost {name:?}"))?;
        let is_bytes = matches!(unit, Megabytes) && name.ends_with("ZooKeeper");
        let divisor = if is_bytes { 1e6 } else { 1.0 };
        row(name, &|size| unit.format(model.predict(size) / divisor));
    }
    row("sessions of a process", &|size| Count.format((size.jobs / jobs_per_session).ceil()));
    row("bytes of the list of jobs", &|size| Bytes.format(size.jobs * listed));
    let per_second = |size: Size| size.jobs / 60.0;
    row("fires per second", &|size| Count.format(per_second(size)));
    row("ensembles for them", &|size| Count.format((per_second(size) / rate).ceil()));
    let events = |size: Size| size.jobs * size.shards * 2.0 / 60.0;
    row("shard events per second of the history", &|size| Count.format(events(size)));
    let listings = |size: Size| Count.format((size.jobs / jobs_per_listing).ceil());
    row("namespaces, so that a list of jobs fits into one answer", &listings);
    report.end_table();
    report.block(&format!(
        "A session takes {jobs_per_session:.0} of these jobs ({} bytes reserved for each, {} in all). A list of jobs of {} bytes, which is `jute.maxbuffer`, has {jobs_per_listing:.0} names.",
        Count.format(reserved),
        ephemerals::MOST_RESERVED,
        Limits::ZOOKEEPER.bytes
    ));
    Ok(())
}

/// Fires per second whose claims and releases this ZooKeeper executes in full transactions.
async fn ceiling() -> Result<f64, BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    let ceiling = Ceiling::prepare(&server, CEILING_JOBS).await?;
    for _ in 0..3 {
        ceiling.measure().await?;
    }
    Ok(number(CEILING_JOBS)? / ceiling.measure().await?.whole().as_secs_f64())
}

fn number(count: usize) -> Result<f64, BoxError> {
    Ok(f64::from(u32::try_from(count)?))
}
