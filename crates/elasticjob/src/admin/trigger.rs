//! "Run now", and "stop that".
//!
//! A node below `trigger` for each instance that is meant. Only what is missing is created: a trigger that waits is somebody's, and
//! wiping it, as the ancestor does, would lose it. Nobody is asked who is not a member, so that nothing waits for an id that comes
//! back.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Serialize, Serializer};

use super::{door::Admin, error::AdminError, model::Language, picture::Picture};
use crate::{
    coordination::trigger::{Ask, Trigger},
    job::{JobName, RunId},
    registry::{Create, Error, Expected, Op},
};

/// How often a trigger that waits is given time to be taken before ours is put in its place.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Instances were asked to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// What the run is called, by every Rust instance. Java does not know it.
    #[serde(rename = "runId", serialize_with = "as_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub run: RunId,
    /// Who was asked, by id.
    pub instances: Vec<String>,
    /// Who was asked before and has not taken note yet: they run, but not by this name. By id.
    pub waiting: Vec<String>,
}

/// Instances were asked to stop what they run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Who was asked, by id, to stop which shards.
    pub asked: BTreeMap<String, Vec<u32>>,
    /// Shards whose holder cannot be told to stop, and who that is: a Java instance, or one that was shut down and is finishing.
    pub not_cancellable: BTreeMap<u32, String>,
    /// Shards that did not run.
    pub idle: Vec<u32>,
}

impl Admin {
    /// Asks the instances of a job to run now. Refused when nobody is there, and when something is said that only Rust understands (shards,
    /// time, parameter) to Java.
    pub async fn trigger(&self, job: &JobName, ask: Ask) -> Result<Asked, AdminError> {
        let picture = self.existing(job).await?;
        check_shards(&picture, &ask.shards)?;
        let chosen = choose(&picture, &ask)?;
        let run = ask.run.clone().unwrap_or_else(|| RunId::triggered(self.randomness.bits()));
        let ours = Trigger::Run(Ask { run: Some(run.clone()), ..ask });
        self.plant_triggers(&picture).await?;
        let (mut instances, mut waiting) = (Vec::new(), Vec::new());
        for id in chosen {
            let (data, tries) = match Language::of(&id) {
                Language::Rust => (ours.to_bytes(), TRIES),
                Language::Java => (Vec::new(), 1),
            };
            match self.place(&picture, &id, data, tries).await? {
                Placed::Yes => instances.push(id),
                Placed::Waits => waiting.push(id),
                Placed::Left => {}
            }
        }
        if instances.is_empty() && waiting.is_empty() {
            return Err(nobody(job));
        }
        Ok(Asked { run, instances, waiting })
    }

    /// Asks whoever runs these shards (all, if there are none) to stop. Java cannot be asked; it is named.
    pub async fn cancel(
        &self,
        job: &JobName,
        shards: &BTreeSet<u32>,
    ) -> Result<Cancelled, AdminError> {
        let picture = self.existing(job).await?;
        check_shards(&picture, shards)?;
        let meant = if shards.is_empty() { picture.items() } else { shards.clone() };
        let mut cancelled = Cancelled {
            asked: BTreeMap::new(),
            not_cancellable: BTreeMap::new(),
            idle: Vec::new(),
        };
        let mut holders: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for shard in meant {
            match picture.holder(shard).map(|running| running.instance) {
                None => cancelled.idle.push(shard),
                Some(id) if Language::of(&id) == Language::Java => {
                    cancelled.not_cancellable.insert(shard, id);
                }
                Some(id) => {
                    holders.entry(id).or_default().insert(shard);
                }
            }
        }
        if !holders.is_empty() {
            self.plant_triggers(&picture).await?;
        }
        for (id, shards) in holders {
            let data = Trigger::Cancel(shards.clone()).to_bytes();
            match self.place(&picture, &id, data, TRIES).await? {
                Placed::Yes => drop(cancelled.asked.insert(id, shards.into_iter().collect())),
                Placed::Left => {
                    cancelled
                        .not_cancellable
                        .extend(shards.into_iter().map(|shard| (shard, id.clone())));
                }
                Placed::Waits => {
                    return Err(AdminError::conflict(
                        format!("{id} has not taken its last trigger in job {job} yet"),
                        "does it still live? try again in a moment",
                    ));
                }
            }
        }
        Ok(cancelled)
    }

    /// Makes sure that there is a place for triggers, in a job that is there.
    async fn plant_triggers(&self, picture: &Picture) -> Result<(), AdminError> {
        let path = picture.tree.triggers();
        if picture.has(&path) {
            return Ok(());
        }
        let config = Op::Check { path: picture.tree.config(), expected: Expected::Any };
        match self.registry.multi(vec![config, Op::Create(Create::persistent(&path, ""))]).await {
            Ok(_) => Ok(()),
            Err(Error::Member { cause, .. }) if matches!(*cause, Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn place(
        &self,
        picture: &Picture,
        id: &str,
        data: Vec<u8>,
        tries: usize,
    ) -> Result<Placed, AdminError> {
        let tree = &picture.tree;
        for attempt in 0..tries {
            if attempt > 0 {
                self.clock.sleep_until(self.clock.monotonic() + PAUSE).await;
            }
            let ops = vec![
                Op::Check { path: tree.config(), expected: Expected::Any },
                Op::Check { path: tree.instance(id), expected: Expected::Any },
                Op::Create(Create::persistent(&tree.trigger(id), data.clone())),
            ];
            match self.registry.multi(ops).await {
                Ok(_) => return Ok(Placed::Yes),
                Err(Error::Member { cause, .. }) if matches!(*cause, Error::Exists { .. }) => {}
                Err(Error::Member { index: 1, .. }) => return Ok(Placed::Left),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Placed::Waits)
    }
}

enum Placed {
    Yes,
    /// Another trigger waits there.
    Waits,
    /// It is no member any more.
    Left,
}

fn check_shards(picture: &Picture, shards: &BTreeSet<u32>) -> Result<(), AdminError> {
    let known = picture.items();
    match shards.iter().find(|shard| !known.contains(shard)) {
        None => Ok(()),
        Some(shard) => Err(AdminError::invalid(
            format!("job {} has no shard {shard}", picture.job),
            format!("its shards are 0 to {}", known.len().saturating_sub(1)),
        )),
    }
}

/// Who is to be asked.
fn choose(picture: &Picture, ask: &Ask) -> Result<BTreeSet<String>, AdminError> {
    let (job, ids) = (&picture.job, picture.ids());
    if ids.is_empty() {
        return Err(nobody(job));
    }
    let (java, rust): (BTreeSet<String>, BTreeSet<String>) =
        ids.iter().cloned().partition(|id| Language::of(id) == Language::Java);
    let owners: BTreeMap<u32, Option<String>> = ask
        .shards
        .iter()
        .map(|shard| (*shard, picture.owner(*shard).filter(|owner| ids.contains(owner))))
        .collect();
    for (shard, owner) in &owners {
        if let Some(owner) = owner.as_ref().filter(|owner| java.contains(*owner)) {
            return Err(AdminError::refused(
                format!(
                    "shard {shard} of job {job} belongs to {owner}, a Java instance, which runs all its shards or none"
                ),
                "trigger the whole job, or choose shards of Rust instances",
            ));
        }
    }
    if ask.shards.is_empty() {
        let words = [("a time", ask.at.is_some()), ("a parameter", ask.parameter.is_some())];
        if let (Some((word, _)), Some(id)) = (words.iter().find(|(_, said)| *said), java.first()) {
            return Err(AdminError::refused(
                format!(
                    "job {job} cannot be given {word}: {id} is a Java instance and would run without"
                ),
                "trigger it without, or choose shards of Rust instances",
            ));
        }
        return Ok(ids);
    }
    if rust.is_empty() {
        return Err(AdminError::refused(
            format!(
                "job {job} has only Java instances ({}), which run all their shards or none",
                java.into_iter().collect::<Vec<_>>().join(", ")
            ),
            "trigger the whole job",
        ));
    }
    // While shards are dealt anew, whoever owns them in the end is asked, too: of two who are asked, only the owner runs.
    let is_settled =
        !picture.has(&picture.tree.necessary()) && !picture.has(&picture.tree.processing());
    let owned: Option<BTreeSet<String>> = owners.into_values().collect();
    Ok(owned.filter(|_| is_settled).unwrap_or(rust))
}

fn nobody(job: &JobName) -> AdminError {
    AdminError::refused(
        format!("nobody runs job {job}: it has no instance"),
        "start one, then trigger it",
    )
}

fn as_text<S: Serializer>(run: &RunId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(run)
}
