//! Which rows belong to a shard? Three ways to split a table, and how many rows a database looks at for each; docs/splitting-data.md
//! tells when to use which. It needs no registry: two nodes run in this process.
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
/// More than there will ever be shards.
const BUCKETS: u32 = 64;
const SYSTEMS: [&str; 4] = ["RDP", "CORE", "SIMS", "ECIF"];

struct Order {
    id: u32,
    system: &'static str,
    is_open: bool,
}

/// A table with its indexes, which counts the rows it has to look at.
struct Orders {
    rows: Vec<Order>,
    open: Vec<usize>,
    open_by_bucket: BTreeMap<u32, Vec<usize>>,
    open_by_system: BTreeMap<&'static str, Vec<usize>>,
    looked_at: AtomicUsize,
    handled: Mutex<BTreeMap<u32, u32>>,
}

/// `where open and mod(id, {total}) = {item}`: no index knows the remainder, so every row is looked at, by every shard.
fn modulo<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let all = orders.look(0..orders.rows.len());
    all.filter(|order| order.is_open && order.id % shard.total.get() == shard.item).collect()
}

/// The same with an index on `open`: every open row is looked at, by every shard.
fn modulo_of_few<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let open = orders.look(orders.open.iter().copied());
    open.filter(|order| order.id % shard.total.get() == shard.item).collect()
}

/// `where open and bucket in (…)` with an index on both: a shard looks at its own rows only. The bucket is written once, with the row.
fn buckets<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let mine = (0..BUCKETS).filter(|bucket| bucket % shard.total.get() == shard.item);
    let rows = mine.filter_map(|bucket| orders.open_by_bucket.get(&bucket)).flatten();
    orders.look(rows.copied()).collect()
}

/// `where open and system = {parameter}` with an index on both: the business says what belongs together.
fn by_parameter<'a>(orders: &'a Orders, shard: &Shard) -> Vec<&'a Order> {
    let rows = shard.parameter.as_deref().and_then(|system| orders.open_by_system.get(system));
    orders.look(rows.into_iter().flatten().copied()).collect()
}

type Query = for<'a> fn(&'a Orders, &Shard) -> Vec<&'a Order>;

const WAYS: [(&str, Query); 4] = [
    ("modulo", modulo),
    ("modulo-of-few", modulo_of_few),
    ("buckets", buckets),
    ("by-parameter", by_parameter),
];

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> elasticjob::Result<()> {
    for (name, query) in WAYS {
        let orders = Arc::new(Orders::new());
        let job = || -> elasticjob::Result<Job> {
            Ok(Job::named(name)?.shards(4).items("0=RDP,1=CORE,2=SIMS,3=ECIF")?)
        };
        let handler = {
            let orders = Arc::clone(&orders);
            move |shard: Shard| {
                let mine = query(&orders, &shard);
                orders.handle(&mine);
                eprintln!("{name}: shard {} handled {} orders", shard.item, mine.len());
                std::future::ready(Ok::<(), std::io::Error>(()))
            }
        };
        let mut cluster = Cluster::at("2026-11-15T02:00:00Z").await;
        let (first, second) = (job()?, job()?);
        let _first = cluster.node(|node| node.job(first, handler.clone())).await?;
        let _second = cluster.node(|node| node.job(second, handler)).await?;

        cluster.trigger(name).await;

        orders.assert_each_open_one_was_handled_once();
        let looked_at = orders.looked_at.load(Ordering::Relaxed);
        eprintln!("{name}: {looked_at} rows looked at for {} to handle", orders.open.len());
    }
    Ok(())
}

impl Orders {
    /// One order of ten is open; half of all are RDP's.
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
        let (looked_at, handled) = (AtomicUsize::default(), Mutex::default());
        Self { rows, open, open_by_bucket, open_by_system, looked_at, handled }
    }

    fn look(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = &Order> {
        rows.map(|row| {
            self.looked_at.fetch_add(1, Ordering::Relaxed);
            &self.rows[row]
        })
    }

    fn handle(&self, orders: &[&Order]) {
        let mut handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        for order in orders {
            *handled.entry(order.id).or_default() += 1;
        }
    }

    fn assert_each_open_one_was_handled_once(&self) {
        let handled = self.handled.lock().unwrap_or_else(PoisonError::into_inner);
        let once: BTreeMap<u32, u32> =
            self.open.iter().map(|row| (self.rows[*row].id, 1)).collect();
        assert_eq!(*handled, once);
    }
}
