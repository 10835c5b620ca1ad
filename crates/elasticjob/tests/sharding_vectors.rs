//! Compares shard assignment with 400 situations recorded from Java ElasticJob, three strategies each.

use std::collections::BTreeMap;

use elasticjob::{
    coordination::sharding::{Candidate, ShardingInput, ShardingStrategy},
    job::Strategy,
};
use serde_json::Value;

#[test]
fn shards_are_assigned_as_java_assigns_them() {
    let mut checked = 0;
    for line in include_str!("vectors/sharding.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let ids = |key: &str| -> Vec<String> {
            case[key].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
        };
        let candidates: Vec<Candidate> = ids("instances").into_iter().map(Candidate::new).collect();
        let situation = ShardingInput {
            job: case["job"].as_str().unwrap(),
            total: u32::try_from(case["total"].as_u64().unwrap()).unwrap(),
            candidates: &candidates,
            owners: &BTreeMap::new(),
            now_ms: 0,
        };
        for (name, strategy) in [
            ("AVG_ALLOCATION", Strategy::AvgAllocation),
            ("ODEVITY", Strategy::Odevity),
            ("ROUND_ROBIN", Strategy::RoundRobin),
        ] {
            // Nothing was recorded where Java itself fails.
            if case[name].is_array() {
                assert_eq!(strategy.assign(&situation), ids(name), "{name}: {line}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 1200);
}
