//! Which rows belong to a shard? Ways to split a table, and how many rows a database reads for each; docs/splitting-data.md explains when to use
//! which. The example needs no registry: two nodes run in this process.
//!
//! ```sh
//! cargo run -p elasticjob --example splitting
//! ```

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use elasticjob::{Job, Shard, testing::Cluster};

const ORDERS: u32 = 10_000;
/// More buckets than there will ever be shards.
const BUCKETS: u32 = 64;
const SYSTEMS: [&str; 4] = ["RDP", "CORE", "SIMS", "ECIF"];

struct Order {
    id: u32,
    system: &'static str,
    is_open: bool,
}

/// A table with its indexes, which counts the rows that it reads.
struct Orders {
    rows: Vec<Order>,
    open: Vec<usize>,
    open_by_bucket: BTreeMap<u32, Vec<usize>>,
    open_by_system: BTreeMap<&'static str, Vec<usize>>,
    rows_read: AtomicUsize,
    handled: Mutex<BTreeMap<u32, u32>>,
}

/// `where open and mod(id, {total}) = {item}`: no index covers the remainder, so every shard reads every row.
fn modulo<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let all = orders.read(0..orders.rows.len());
    all.filter(|order| order.is_open && order.id % shard.total.get() == shard.item).collect()
}

/// The same with an index on `open`: every shard reads every open row.
fn modulo_of_few<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let open = orders.read(orders.open.iter().copied());
    open.filter(|order| order.id % shard.total.get() == shard.item).collect()
}

/// `where open and bucket in (…)` with an index on both: a shard reads only its own rows. The bucket is stored with the row when the row is inserted.
fn buckets<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let of_shard = (0..BUCKETS).filter(|bucket| bucket % shard.total.get() == shard.item);
    let rows = of_shard.filter_map(|bucket| orders.open_by_bucket.get(&bucket)).flatten();
    orders.read(rows.copied()).collect()
}

/// `where open and system = {parameter}` with an index on both: the business decides which rows belong together.
fn by_parameter<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let rows = shard.parameter.as_deref().and_then(|system| orders.open_by_system.get(system));
    orders.read(rows.into_iter().flatten().copied()).collect()
}

type Query = for<'a> fn(&'a Orders, &Shard) -> Vec<&'a Order>;

const QUERIES: [(&str, Query); 4] = [
    ("modulo", modulo),
    ("modulo-of-few", modulo_of_few),
    ("buckets", buckets),
    ("by-parameter", by_parameter),
];

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> elasticjob::Result<()> {
    for (name, query) in QUERIES {
        let orders = Arc::new(Orders::new());
        let job = || -> elasticjob::Result<Job> {
            Ok(Job::named(name)?.shards(4).items("0=RDP,1=CORE,2=SIMS,3=ECIF")?)
        };
        let handler = {
            let orders = Arc::clone(&orders);
            move |shard: Shard| {
                let of_shard = query(&orders, &shard);
                orders.handle(&of_shard);
                eprintln!("{name}: shard {} handled {} orders", shard.item, of_shard.len());
                std::future::ready(Ok::<(), std::io::Error>(()))
            }
        };
        let mut cluster = Cluster::at("2026-11-15T02:00:00Z").await;
        let (first, second) = (job()?, job()?);
        let _first = cluster.node(|node| node.job(first, handler.clone())).await?;
        let _second = cluster.node(|node| node.job(second, handler)).await?;

        cluster.trigger(name).await;

        orders.assert_each_open_order_was_handled_once();
        let rows_read = orders.rows_read.load(Ordering::Relaxed);
        eprintln!("{name}: {rows_read} rows read, {} to handle", orders.open.len());
    }
    Ok(())
}

impl Orders {
    /// One order in ten is open; half of all orders belong to RDP.
    fn new() -> Self {
        let rows: Vec<Order> = (0..ORDERS)
            .map(|id| {
                let system = if id % 2 == 0 { 0 } else { 1 + id as usize / 2 % 3 };
                Order { id, system: SYSTEMS[system], is_open: id / 7 % 10 == 0 }
            })
            .collect();
        let open: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].is_open).collect();
        let (mut open_by_bucket, mut open_by_system) = (BTreeMap::new(), BTreeMap::new());
        for row in &open {
            let order = &rows[*row];
            open_by_bucket.entry(order.id % BUCKETS).or_insert_with(Vec::new).push(*row);
            open_by_system.entry(order.system).or_insert_with(Vec::new).push(*row);
        }
        let (rows_read, handled) = (AtomicUsize::default(), Mutex::default());
        Self { rows, open, open_by_bucket, open_by_system, rows_read, handled }
    }

    fn read(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = &Order> {
        rows.map(|row| {
            self.rows_read.fetch_add(1, Ordering::Relaxed);
            &self.rows[row]
        })
    }

    fn handle(&self, orders: &[&Order]) {
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        for order in orders {
            *handled.entry(order.id).or_default() += 1;
        }
    }

    fn assert_each_open_order_was_handled_once(&self) {
        let handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let once: BTreeMap<u32, u32> =
            self.open.iter().map(|row| (self.rows[*row].id, 1)).collect();
        assert_eq!(*handled, once);
    }
}
