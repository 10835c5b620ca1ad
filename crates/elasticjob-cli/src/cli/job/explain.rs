//! `elasticjob job explain`

use elasticjob::{admin::Topic, job::JobName};

use crate::{
    cli::{
        Global,
        connection::{Connection, format_instant, status_text, to_json},
        cron::parse_instant,
        history::StoreArgs,
    },
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Name of the job
    #[arg(value_name = "JOB")]
    job: JobName,
    /// Number of the shard [default: all shards]
    #[arg(long, value_name = "N")]
    shard: Option<u32>,
    /// Instant to explain, for example 2026-11-15T06:36:07Z [default: now]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Explain {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let at = self.at.as_deref().map(parse_instant).transpose()?;
        let job = &self.job;
        Connection::with(global, None, async |connection| {
            let explanation = match self.store.open_if_exists(global).await? {
                Some(history) => {
                    connection.admin.explain_with_history(&history, job, self.shard, at).await?
                }
                None => connection.admin.explain(job, self.shard, at).await?.not_recorded(),
            };
            if explanation.has(Topic::Missing, None) {
                connection.or_suggest(job, connection.admin.job(job).await).await?;
            }
            if global.output == Format::Table {
                let (due, next) =
                    (format_instant(explanation.due_at), format_instant(explanation.next_fire));
                let at = format_instant(Some(explanation.at));
                output::print_message(&format!("job {job} at {at}: last due {due}, next {next}"));
            }
            let mut table = Table::new(["SHARD", "SEVERITY", "FINDING"]);
            for finding in &explanation.findings {
                let shard = finding.shard.map_or("-".to_owned(), |shard| shard.to_string());
                table.row([shard, status_text(&finding.severity), finding.message.clone()]);
                if let Some(hint) = &finding.hint {
                    table.row([String::new(), String::new(), format!("hint: {hint}")]);
                }
            }
            output::print(global.output, &table, &to_json(&explanation)?)
        })
    }
}
