//! `elasticjob shard`

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use elasticjob::{
    coordination::sharding::{Candidate, Dealer, Situation},
    job::{InstanceId, ShardCount, Strategy},
    runtime::{Clock, SystemClock},
};
use serde_json::Value;

use super::{Global, cron::instant};
use crate::{
    error::Error,
    output::{self, Table},
};

/// More than anybody has, and still printed in a moment.
const MOST: u32 = 1_000_000;

const STRATEGIES: &str =
    "AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, SINGLE_SHARDING_BALANCE, STICKY or WEIGHTED";

#[derive(Debug, Subcommand)]
pub(super) enum Shard {
    /// Deals shards as the leader would, without asking anybody
    Plan(Plan),
}

#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// The job's name: three strategies go by it
    #[arg(long, value_name = "NAME")]
    job: String,
    /// How many shards
    #[arg(long, value_name = "N")]
    total: u32,
    #[arg(long, value_name = "STRATEGY", default_value = "AVG_ALLOCATION", help = STRATEGIES)]
    strategy: String,
    /// The instances, for example 10.0.0.7@-@4711
    #[arg(long = "instance", value_name = "ID", required = true, num_args = 1..)]
    instances: Vec<String>,
    /// When, for `SINGLE_SHARDING_BALANCE`; without, now
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
}

impl Shard {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let Self::Plan(plan) = self;
        let plan = plan.plan()?;
        let mut table = Table::new(["SHARD", "INSTANCE"]);
        for (shard, instance) in plan.iter().enumerate() {
            table.row([shard.to_string(), instance.clone()]);
        }
        output::print(global.output, &table, &Value::from(plan))
    }
}

impl Plan {
    fn plan(&self) -> Result<Vec<String>, Error> {
        let total = ShardCount::try_from(self.total)?.get();
        if total > MOST {
            return Err(Error::bad_input(format!(
                "{total} shards are too many to print; hint: at most {MOST}"
            )));
        }
        let strategy = Strategy::from(self.strategy.as_str());
        if let Strategy::Named(name) = &strategy {
            return Err(Error::bad_input(format!(
                "strategy {:?} is not known here; hint: {STRATEGIES}",
                name.as_str()
            )));
        }
        let mut seen = BTreeSet::new();
        let mut candidates = Vec::new();
        for id in &self.instances {
            let id: InstanceId = id.parse()?;
            if !seen.insert(id.clone()) {
                return Err(Error::bad_input(format!("instance {id} is named twice")));
            }
            candidates.push(Candidate::new(id.as_str()));
        }
        let at = self.at.as_deref().map_or_else(|| Ok(SystemClock.now()), instant)?;
        Ok(strategy.deal(&Situation {
            job: &self.job,
            total,
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: at.as_millisecond(),
        }))
    }
}
