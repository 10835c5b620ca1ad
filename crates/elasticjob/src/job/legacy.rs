//! Configurations of ElasticJob 2.1.5: one line of JSON.
//!
//! This library cannot share a job with 2.1.5, so these documents are only read, for import. Java class names become type names where
//! there is one; settings without a counterpart are listed and dropped.

use serde_json::{Map, Value};

use super::{
    bounds::MAX_DOCUMENT,
    error::UnreadableDocument,
    job::Job,
    name::JobName,
    policy::{Failover, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile},
    properties::Property,
    shards::ShardCount,
};
use crate::problem::Hint;

/// Java classes of 2.1.5 and the type names that replace them; `None` means the default.
const TYPE_OF_CLASS: [(&str, Option<&str>); 6] = [
    ("com.dangdang.ddframe.job.executor.handler.impl.DefaultJobExceptionHandler", None),
    ("com.dangdang.ddframe.job.executor.handler.impl.DefaultExecutorServiceHandler", None),
    ("com.dangdang.ddframe.job.lite.api.strategy.impl.AverageAllocationJobShardingStrategy", None),
    (
        "com.dangdang.ddframe.job.lite.api.strategy.impl.OdevitySortByNameJobShardingStrategy",
        Some("ODEVITY"),
    ),
    (
        "com.dangdang.ddframe.job.lite.api.strategy.impl.RotateServerByNameJobShardingStrategy",
        Some("ROUND_ROBIN"),
    ),
    ("", None),
];

/// A job that 2.1.5 stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LegacyJob {
    /// The equivalent configuration.
    pub job: Job,
    /// The Java class that ran the job; `None` for scripts.
    pub class: Option<String>,
    pub kind: LegacyKind,
    /// Settings that were dropped, one sentence each.
    pub dropped: Vec<String>,
}

/// The job type: `SIMPLE`, `DATAFLOW` or `SCRIPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyKind {
    Simple,
    Dataflow,
    Script,
}

impl LegacyJob {
    /// Reads the document that 2.1.5 stored for the job `name`.
    ///
    /// ```
    /// use elasticjob::job::{LegacyJob, LegacyKind};
    ///
    /// let document = br#"{"jobName":"j","jobClass":"","jobType":"SCRIPT","cron":"0 0 * * * ?","shardingTotalCount":2,"scriptCommandLine":"sh a.sh"}"#;
    /// let legacy = LegacyJob::read(&"j".parse()?, document).unwrap();
    /// assert_eq!(legacy.kind, LegacyKind::Script);
    /// assert_eq!(legacy.job.props.get("script.command.line"), Some("sh a.sh"));
    /// # Ok::<(), elasticjob::job::InvalidValue>(())
    /// ```
    pub fn read(name: &JobName, document: &[u8]) -> Result<Self, UnreadableDocument> {
        let reader = Reader { job: name };
        if document.len() > MAX_DOCUMENT {
            let problem = format!("it has more than {MAX_DOCUMENT} bytes");
            return Err(reader.error(None, problem));
        }
        let map: Map<String, Value> = serde_json::from_slice(document).map_err(|error| {
            let line = Some(error.line()).filter(|line| *line > 0);
            UnreadableDocument {
                line,
                ..reader.error(None, format!("it is not a JSON document of 2.1.5: {error}"))
            }
        })?;
        reader.document(&map)
    }
}

struct Reader<'a> {
    job: &'a JobName,
}

impl Reader<'_> {
    fn error(&self, key: Option<&str>, problem: impl Into<String>) -> UnreadableDocument {
        UnreadableDocument::new(self.job, "config", problem).at(None, key)
    }

    fn document(&self, map: &Map<String, Value>) -> Result<LegacyJob, UnreadableDocument> {
        let name = self.text(map, "jobName")?;
        if name != self.job.as_str() {
            return Err(self.error(Some("jobName"), format!("the document is for job {name:?}")));
        }
        let kind = match self.text(map, "jobType")?.as_str() {
            "SIMPLE" => LegacyKind::Simple,
            "DATAFLOW" => LegacyKind::Dataflow,
            "SCRIPT" => LegacyKind::Script,
            other => {
                let problem = format!("{other:?} is not SIMPLE, DATAFLOW or SCRIPT");
                return Err(self.error(Some("jobType"), problem));
            }
        };
        let mut job = Job::new(self.job.clone());
        let cron = self.text(map, "cron")?;
        if !cron.is_empty() {
            // Quartz scheduled it so far, so its DST rule stays.
            job.cron = Some(cron.parse().map_err(|error| self.parse_error("cron", &error))?);
        }
        let count = self.int(map, "shardingTotalCount", 0)?;
        job.shards = ShardCount::try_from(u32::try_from(count).unwrap_or(0))
            .map_err(|error| self.error(Some("shardingTotalCount"), error.problem))?;
        job.items = self
            .text(map, "shardingItemParameters")?
            .parse()
            .map_err(|error| self.parse_error("shardingItemParameters", &error))?;
        job.parameter = self.text(map, "jobParameter")?;
        job.description = self.text(map, "description")?;
        job.disabled = self.flag(map, "disabled", false)?;
        job.max_time_diff = MaxTimeDiff::seconds(self.int(map, "maxTimeDiffSeconds", -1)?);
        job.reconcile = Reconcile::minutes(self.int(map, "reconcileIntervalMinutes", 10)?);
        if self.flag(map, "failover", false)? {
            job.failover = Failover::TakeOver;
        }
        if !self.flag(map, "misfire", true)? {
            job.misfire = Misfire::Skip;
        }
        if !self.flag(map, "monitorExecution", true)? {
            job.monitor = Monitor::Nothing;
        }
        if self.flag(map, "overwrite", false)? {
            job.overwrite = Overwrite::LocalWins;
        }
        let dropped = self.read_plugins(map, &mut job)?;
        self.read_kind_settings(map, kind, &mut job)?;
        for property in Property::all() {
            property.check(&job).map_err(|problem| self.error(Some(property.key), problem))?;
        }
        let class = Some(self.text(map, "jobClass")?)
            .filter(|class| kind != LegacyKind::Script && !class.is_empty());
        Ok(LegacyJob { job, class, kind, dropped })
    }

    /// Settings that were class names and are type names now. Returns those that were dropped.
    fn read_plugins(
        &self,
        map: &Map<String, Value>,
        job: &mut Job,
    ) -> Result<Vec<String>, UnreadableDocument> {
        let empty = Map::new();
        let properties = map.get("jobProperties").and_then(Value::as_object).unwrap_or(&empty);
        let mut dropped = Vec::new();
        for (key, class) in [
            ("jobShardingStrategyClass", self.text(map, "jobShardingStrategyClass")?),
            ("job_exception_handler", self.text(properties, "job_exception_handler")?),
            ("executor_service_handler", self.text(properties, "executor_service_handler")?),
        ] {
            match TYPE_OF_CLASS.iter().find(|(known, _)| *known == class) {
                Some((_, name)) if key == "jobShardingStrategyClass" => {
                    job.strategy_type = name.map(Into::into);
                }
                Some(_) => {}
                None => dropped.push(format!("{key}: {class} has no counterpart")),
            }
        }
        if self.int(map, "monitorPort", -1)? >= 0 {
            dropped.push(
                "monitorPort: the dump port is now a setting of the process, not of a job"
                    .to_owned(),
            );
        }
        Ok(dropped)
    }

    /// Settings that only this kind of job has.
    fn read_kind_settings(
        &self,
        map: &Map<String, Value>,
        kind: LegacyKind,
        job: &mut Job,
    ) -> Result<(), UnreadableDocument> {
        let (key, prop, value) = match kind {
            LegacyKind::Simple => return Ok(()),
            LegacyKind::Dataflow => {
                let streaming = self.flag(map, "streamingProcess", false)?;
                ("streamingProcess", "streaming.process", streaming.to_string())
            }
            LegacyKind::Script => {
                ("scriptCommandLine", "script.command.line", self.text(map, "scriptCommandLine")?)
            }
        };
        job.props.set(prop, value).map_err(|error| self.error(Some(key), error.problem))
    }

    fn text(&self, map: &Map<String, Value>, key: &str) -> Result<String, UnreadableDocument> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.error(Some(key), format!("{other} is not text"))),
        }
    }

    fn flag(
        &self,
        map: &Map<String, Value>,
        key: &str,
        default: bool,
    ) -> Result<bool, UnreadableDocument> {
        match map.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.error(Some(key), format!("{other} is neither true nor false"))),
        }
    }

    fn int(
        &self,
        map: &Map<String, Value>,
        key: &str,
        default: i32,
    ) -> Result<i32, UnreadableDocument> {
        let Some(value) = map.get(key) else { return Ok(default) };
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| {
            self.error(Some(key), format!("{value} is not a whole number of 32 bits"))
        })
    }

    fn parse_error(&self, key: &str, error: &impl Hint) -> UnreadableDocument {
        let hint = error.hint().map(|hint| hint.into_owned().into());
        UnreadableDocument { hint, ..self.error(Some(key), error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Result<LegacyJob, UnreadableDocument> {
        LegacyJob::read(&"testJob".parse().unwrap(), document.as_bytes())
    }

    const DATAFLOW: &str = r#"{"jobName":"testJob","jobClass":"com.acme.Flow","jobType":"DATAFLOW","cron":"0/1 * * * * ?","shardingTotalCount":3,"shardingItemParameters":"0\u003da,1\u003db","jobParameter":"p","failover":true,"misfire":false,"description":"desc","jobProperties":{"job_exception_handler":"com.acme.Mine","executor_service_handler":"com.dangdang.ddframe.job.executor.handler.impl.DefaultExecutorServiceHandler"},"streamingProcess":true,"monitorExecution":false,"maxTimeDiffSeconds":1000,"monitorPort":8888,"jobShardingStrategyClass":"com.dangdang.ddframe.job.lite.api.strategy.impl.OdevitySortByNameJobShardingStrategy","reconcileIntervalMinutes":15,"disabled":true,"overwrite":true}"#;

    #[test]
    fn every_setting_of_2_1_5_is_imported_or_listed_as_dropped() {
        let legacy = read(DATAFLOW).unwrap();

        assert_eq!(legacy.class.as_deref(), Some("com.acme.Flow"));
        assert_eq!(
            legacy.job.to_yaml(),
            "cron: 0/1 * * * * ?\ndescription: desc\ndisabled: true\nfailover: true\njobName: testJob\njobParameter: p\njobShardingStrategyType: ODEVITY\nmaxTimeDiffSeconds: 1000\nmisfire: false\nmonitorExecution: false\noverwrite: true\nprops:\n  streaming.process: 'true'\nreconcileIntervalMinutes: 15\nshardingItemParameters: 0=a,1=b\nshardingTotalCount: 3\nstaticSharding: false\n"
        );
        assert_eq!(legacy.dropped.len(), 2, "{:?}", legacy.dropped);
    }

    #[test]
    fn job_read_points_to_import_for_2_1_5_documents() {
        let error = Job::read(&"testJob".parse().unwrap(), DATAFLOW.as_bytes()).unwrap_err();

        assert!(error.to_string().contains("2.1.5"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("elasticjob job import"));
    }

    #[test]
    fn unreadable_legacy_document_names_the_key() {
        for (document, location) in [
            ("", "JSON"),
            ("{\n\"jobName\": }", "line 2"),
            (r#"{"jobName":"other"}"#, "key jobName"),
            (r#"{"jobName":"testJob","jobType":"CLOUD"}"#, "key jobType"),
            (r#"{"jobName":"testJob","jobType":"SIMPLE"}"#, "key shardingTotalCount"),
            (r#"{"jobName":"testJob","jobType":"SIMPLE","cron":"x"}"#, "key cron"),
            (
                r#"{"jobName":"testJob","jobType":"SIMPLE","shardingTotalCount":1,"misfire":"a"}"#,
                "key misfire",
            ),
        ] {
            let error = read(document).unwrap_err().to_string();

            assert!(error.contains("job testJob") && error.contains(location), "{error}");
        }
    }
}
