//! `elasticjob job explain`

use elasticjob::{admin::Topic, job::JobName};

use crate::{
    cli::{
        Global,
        cron::instant as parsed,
        history::Place,
        site::{Site, instant, value, word},
    },
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Which job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Which shard; without, all of them
    #[arg(long, value_name = "N")]
    shard: Option<u32>,
    /// At what time, for example 2026-11-15T06:36:07Z; without, now
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Explain {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let at = self.at.as_deref().map(parsed).transpose()?;
        let job = &self.job;
        Site::visit(global, None, async |site| {
            let explanation = match self.place.open_if_there(global).await? {
                Some(history) => site.admin.explain_with(&history, job, self.shard, at).await?,
                None => site.admin.explain(job, self.shard, at).await?,
            };
            if explanation.has(Topic::Missing, None) {
                site.about(job, site.admin.job(job).await).await?;
            }
            if global.output == Format::Table {
                let (due, next) = (instant(explanation.due_at), instant(explanation.next_fire));
                let at = instant(Some(explanation.at));
                output::say(&format!("job {job} at {at}: last due {due}, next {next}"));
            }
            let mut table = Table::new(["SHARD", "WEIGHT", "FINDING"]);
            for finding in &explanation.findings {
                let shard = finding.shard.map_or("-".to_owned(), |shard| shard.to_string());
                table.row([shard, word(&finding.weight), finding.says.clone()]);
                if let Some(hint) = &finding.hint {
                    table.row([String::new(), String::new(), format!("hint: {hint}")]);
                }
            }
            output::print(global.output, &table, &value(&explanation)?)
        })
    }
}
