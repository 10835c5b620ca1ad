//! The cost model of docs/scale.md: requests, bytes, watches and memory as functions of jobs, shards and instances.
//!
//! Each cost is fitted on three sizes and predicts a fourth, which is larger. The benchmark fails if a prediction is off by more than 15 %. With the
//! models it computes what larger fleets cost, and where they meet a wall.

mod measurement;
mod model;
mod walls;

use std::path::PathBuf;

use self::{
    measurement::Measurement,
    model::{Model, Size, Term},
};
use crate::{
    BoxError,
    report::{
        Report,
        Unit::{self, Bytes, Count, Megabytes, Percent},
    },
};

/// How far a prediction may be off, in percent.
const MAX_ERROR: f64 = 15.0;

/// The models are fitted on these.
const FITTED: [Size; 3] = [
    Size { jobs: 150.0, shards: 2.0, instances: 2.0 },
    Size { jobs: 300.0, shards: 4.0, instances: 3.0 },
    Size { jobs: 600.0, shards: 8.0, instances: 4.0 },
];
/// And predict this one.
const PREDICTED: Size = Size { jobs: 1_200.0, shards: 6.0, instances: 3.0 };

/// One cost: what it is, what it grows with, and where it is measured.
struct Cost {
    name: &'static str,
    unit: Unit,
    terms: &'static [Term],
    of: fn(&Measurement) -> f64,
}

use Term::{Constant, JobInstances, JobShards, Jobs};

const COSTS: [Cost; 12] = [
    Cost { name: "nodes", unit: Count, terms: &[Jobs, JobShards, JobInstances], of: |m| m.nodes },
    Cost {
        name: "bytes of paths and data",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.data_bytes,
    },
    Cost { name: "watches", unit: Count, terms: &[JobInstances], of: |m| m.watches },
    Cost {
        name: "live heap of ZooKeeper",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.heap_bytes,
    },
    Cost {
        name: "snapshot of ZooKeeper",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.snapshot_bytes,
    },
    Cost {
        name: "resident memory of a process",
        unit: Megabytes,
        terms: &[Constant, Jobs, JobShards],
        of: |m| m.resident,
    },
    Cost {
        name: "first process joins: requests",
        unit: Count,
        terms: &[Constant, Jobs],
        of: |m| m.first_join.requests,
    },
    Cost {
        name: "first process joins: bytes sent",
        unit: Bytes,
        terms: &[Constant, Jobs, JobShards],
        of: |m| m.first_join.received_bytes,
    },
    Cost {
        name: "each further process joins: requests of all",
        unit: Count,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.further_join.requests,
    },
    Cost {
        name: "each further process joins: bytes that ZooKeeper sends",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.further_join.sent_bytes,
    },
    Cost {
        name: "all jobs are due at once: bytes sent",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.fire.received_bytes,
    },
    Cost {
        name: "all jobs are due at once: bytes that ZooKeeper sends",
        unit: Bytes,
        terms: &[Jobs, JobShards, JobInstances],
        of: |m| m.fire.sent_bytes,
    },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The page whose section is written
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Runs the benchmark. Returns whether every prediction was good enough.
pub(crate) async fn run(options: &Options) -> Result<bool, BoxError> {
    let mut report = Report::begin("scale", options.page.as_deref(), &introduction())?;
    let mut fitted = Vec::new();
    for size in FITTED {
        fitted.push((size, measurement::take(size).await?));
    }
    let measured = measurement::take(PREDICTED).await?;
    let models: Vec<Model> = COSTS
        .iter()
        .map(|cost| {
            let values: Vec<(Size, f64)> =
                fitted.iter().map(|(size, measurement)| (*size, (cost.of)(measurement))).collect();
            Model::fit(cost.terms, &values)
        })
        .collect();
    report.table(&["cost", "model", "predicted", "measured", "error"]);
    for (cost, model) in COSTS.iter().zip(&models) {
        let (predicted, value) = (model.predict(PREDICTED), (cost.of)(&measured));
        let error = (predicted / value - 1.0) * 100.0;
        let mark = if error.abs() <= MAX_ERROR { "" } else { " **missed**" };
        report.row(&[
            cost.name.to_owned(),
            model.formula(),
            cost.unit.format(predicted),
            cost.unit.format(value),
            format!("{}{mark}", Percent.format(error)),
        ]);
        let problem = format!(
            "{}: predicted {}, measured {}, at most {MAX_ERROR} % off expected",
            cost.name,
            cost.unit.format(predicted),
            cost.unit.format(value)
        );
        report.require(error.abs() <= MAX_ERROR, &problem);
    }
    report.end_table();
    let models = COSTS.iter().map(|cost| cost.name).zip(models).collect();
    walls::report(&mut report, &models).await?;
    report.end()
}

fn introduction() -> String {
    let sizes: Vec<String> = FITTED.iter().map(ToString::to_string).collect();
    format!(
        "## The cost model\n\nJ jobs of S shards, each with I instances: I processes, of which every one takes part in every job. Each model is fitted on three sizes ({}) and predicts a fourth ({PREDICTED}), \
         which is then measured. Bytes and requests are those that ZooKeeper counts; the live heap is what is left after a full garbage collection, less that of an empty server.",
        sizes.join("; ")
    )
}
