//! What the registry stores: configurations, ledger pages, floors, triggers, instances. Another program may have written any of it. What was read is
//! written and read again as the same value.

use elasticjob::{
    coordination::{
        floor::Floor,
        ledger::LedgerPage,
        server_status::StoredStatus,
        shard_ranges::ShardRanges,
        trigger::{Cancellation, Doorbell, ShardEntry, Trigger},
    },
    job::{Instance, InstanceId, Job, JobName, LegacyJob, ShardCount, drift},
    schedule::Zone,
};
use jiff::Timestamp;
use libfuzzer_sys::Corpus;

use crate::limits::Limits;

const LIMITS: Limits = Limits { fixed: 512 << 10, per_byte: 256 };

/// A job's configuration, as Java ElasticJob 3.x and 2.1.5 store it.
pub fn config(bytes: &[u8]) -> Corpus {
    let name: JobName = "a".parse().expect("valid name");
    if let Ok(job) = LIMITS.check(bytes.len(), || Job::read(&name, bytes)) {
        let yaml = job.to_yaml();
        let again = Job::read(&name, yaml.as_bytes()).expect("what was written can be read");
        assert_eq!(again, job, "{yaml}");
        assert_eq!(again.to_yaml(), yaml);
        LIMITS.check(bytes.len(), || use_job(&job));
    }
    if let Ok(legacy) = LIMITS.check(bytes.len(), || LegacyJob::read(&name, bytes)) {
        let yaml = legacy.job.to_yaml();
        let again = Job::read(&name, yaml.as_bytes()).expect("what was written can be read");
        assert_eq!(again, legacy.job, "{yaml}");
    }
    Corpus::Keep
}

/// What every console and worker does with a configuration.
fn use_job(job: &Job) {
    let _ = job.to_json();
    let _ = drift(job, job);
    if let Some(schedule) = job.schedule(&Zone::utc()) {
        let _ = schedule.next_after(Timestamp::UNIX_EPOCH);
    }
}

/// Ledger pages, floors, states of servers and instances.
pub fn ledger(bytes: &[u8]) -> Corpus {
    LIMITS.check(bytes.len(), || {
        if let Ok(page) = LedgerPage::read(bytes) {
            assert_eq!(LedgerPage::read(&page.to_bytes()).as_ref(), Ok(&page));
        }
        if let Ok(floor) = Floor::read(bytes) {
            assert_eq!(Floor::read(&floor.to_bytes()).as_ref(), Ok(&floor));
        }
        let _ = StoredStatus::read(bytes);
    });
    let name: JobName = "a".parse().expect("valid name");
    let id: InstanceId = "10.0.0.7@-@1-a".parse().expect("valid id");
    if let Ok(instance) = LIMITS.check(bytes.len(), || Instance::read(&name, &id, bytes)) {
        let yaml = instance.to_yaml();
        assert_eq!(Instance::read(&name, &id, yaml.as_bytes()).as_ref(), Ok(&instance), "{yaml}");
    }
    if let Ok(id) = std::str::from_utf8(bytes).unwrap_or_default().parse::<InstanceId>() {
        assert_eq!(id.as_str().parse::<InstanceId>().ok().as_ref(), Some(&id));
        let _ = (id.server(), id.process(), id.is_java());
    }
    Corpus::Keep
}

/// Triggers with their entries, cancellations and doorbells.
pub fn trigger(bytes: &[u8]) -> Corpus {
    LIMITS.check(bytes.len(), || {
        if let Ok(trigger) = Trigger::read(bytes) {
            assert_eq!(Trigger::read(&trigger.to_bytes()).as_ref(), Ok(&trigger));
            check_ranges(&trigger.shards);
            check_ranges(&trigger.delegated);
        }
        if let Ok(entry) = ShardEntry::read(bytes) {
            assert_eq!(ShardEntry::read(&entry.to_bytes()).as_ref(), Ok(&entry));
        }
        if let Ok(cancellation) = Cancellation::read(bytes) {
            assert_eq!(Cancellation::read(&cancellation.to_bytes()).as_ref(), Ok(&cancellation));
            check_ranges(&cancellation.shards);
        }
        if Doorbell::read(bytes) == Ok(Doorbell::RunAll) {
            assert!(!bytes.trim_ascii_start().starts_with(b"{"), "a note runs no shard");
        }
    });
    Corpus::Keep
}

/// However the ranges are written, no job has as many shards, and each shard is in them once.
fn check_ranges(ranges: &ShardRanges) {
    assert!(ranges.len() <= ShardCount::MAX.get() as usize, "{} shards", ranges.len());
    assert_eq!(ranges.iter().count(), ranges.len());
    assert!(ranges.iter().is_sorted_by(|one, next| one < next));
    let ends = [ranges.iter().next(), ranges.iter().last()];
    assert!(ends.into_iter().flatten().all(|shard| ranges.contains(shard)));
}
