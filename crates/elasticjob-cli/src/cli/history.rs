//! `elasticjob history`

use std::{ffi::OsString, fmt::Write as _, num::NonZeroU32, path::Path, time::Duration};

use clap::Subcommand;
use elasticjob::{
    history::{
        Cursor, ExecutionFilter, HistoryUrl, OutputLine, OutputPosition, Retention, Run,
        RunDetails, RunFilter, RunState, Span, Store,
    },
    runtime::{Clock, SystemClock},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Global,
    connection::{block_on_current_thread, format_instant, or_dash, to_json},
    default_history,
    run::parse_duration,
    secret_file,
};
use crate::{
    error::{Code, Error},
    output::{self, Format, Table, replace_control_chars},
};

/// Poll interval of `logs --follow`.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Debug, Subcommand)]
pub(super) enum History {
    /// Lists runs, newest first
    List(List),
    /// Shows a run: its shards, their attempts and failures
    Show(Show),
    /// Prints the output of a run
    Logs(Logs),
    /// Deletes old runs
    Prune(Prune),
}

/// The history store of a command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgs {
    /// History store: sqlite:FILE, postgres://… or mysql://… [default: the default file of `run` and `dev`]
    // The URL may hold a password, so the help does not show the value of the variable.
    #[arg(long, value_name = "URL", env = "ELASTICJOB_HISTORY", hide_env_values = true)]
    history: Option<String>,
    /// File with the URL of the history store, which may hold a password
    #[arg(long, value_name = "FILE", env = "ELASTICJOB_HISTORY_FILE")]
    history_file: Option<OsString>,
}

impl StoreArgs {
    /// The URL of flag, environment or credential.
    fn explicit(&self) -> Result<Option<String>, Error> {
        secret_file::url("history", self.history.as_deref(), self.history_file.as_deref())
    }

    /// The URL of flag, environment or credential, else the default file of the registry.
    pub(crate) fn url(&self, global: &Global) -> Result<HistoryUrl, Error> {
        match self.explicit()? {
            Some(url) => Ok(url.parse()?),
            None => default_history::file(global.explicit_registry())
                .map(HistoryUrl::sqlite)
                .ok_or_else(|| {
                    Error::bad_input("no home directory to find history in")
                        .with_hint("set --history URL")
                }),
        }
    }

    /// Opens the store; `None` with `--history none`, or if no URL is set and the default file does not exist.
    pub(super) async fn open_if_exists(&self, global: &Global) -> Result<Option<Store>, Error> {
        let explicit = self.explicit()?;
        let has_default =
            || default_history::file(global.explicit_registry()).is_some_and(|file| file.exists());
        let is_wanted = explicit.as_deref().map_or_else(has_default, |explicit| explicit != "none");
        if !is_wanted {
            return Ok(None);
        }
        Ok(Some(self.open(global).await?))
    }

    /// Opens the store. A missing file is an error; it is not created.
    async fn open(&self, global: &Global) -> Result<Store, Error> {
        let url = self.url(global)?;
        if let Some(file) = url.file().filter(|file| !file.exists()) {
            let mut hint = "`elasticjob run` and `elasticjob dev` write it; --history URL selects another store".to_owned();
            let others = other_history_files(file);
            if self.explicit()?.is_none() && !others.is_empty() {
                let _ = write!(
                    hint,
                    ", and so does the --registry of the worker; files in the same folder: {}",
                    others.join(", ")
                );
            }
            return Err(Error::new(Code::NotFound, format!("{url} does not exist")).with_hint(hint));
        }
        Ok(Store::open(&url).await?)
    }
}

/// Names of history files in the same folder.
fn other_history_files(file: &Path) -> Vec<String> {
    let entries = file.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let paths = paths.filter(|path| path.extension() == file.extension());
    let names = paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| name.starts_with("history")).collect();
    names.sort();
    names
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    store: StoreArgs,
    /// Only runs of this job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only runs in this state: running, done, incomplete, failed or cancelled
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only runs from this source: schedule or trigger
    #[arg(long, value_name = "SOURCE", value_parser = ["schedule", "trigger"])]
    source: Option<String>,
    /// Only runs with shards on this instance
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// Only runs that started since then: an age such as 2h or 7d, or an instant
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only runs that started before then: an age such as 2h or 7d, or an instant
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Continue after the previous page, with the cursor it printed
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// List executions of shards instead of runs, as Java ElasticJob's console does
    #[arg(long, conflicts_with_all = ["source", "instance"])]
    executions: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    store: StoreArgs,
    /// Run id, for example settle/1774785600000
    #[arg(value_name = "RUN")]
    run: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Logs {
    #[command(flatten)]
    store: StoreArgs,
    /// Run id, for example settle/1774785600000
    #[arg(value_name = "RUN")]
    run: String,
    /// Only output of this shard
    #[arg(long, value_name = "N")]
    shard: Option<u32>,
    /// Print new output until the run has ended
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Prune {
    #[command(flatten)]
    store: StoreArgs,
    /// Delete runs that started longer ago
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = parse_age)]
    age: Duration,
    /// Delete failed runs that started longer ago
    #[arg(long, value_name = "DURATION", default_value = "90d", value_parser = parse_age)]
    failures_age: Duration,
    /// Number of runs to keep for each job, and number of failed ones
    #[arg(long, value_name = "COUNT", default_value = "1000")]
    runs: NonZeroU32,
    /// Also delete rows that other programs wrote to ElasticJob's tables
    #[arg(long)]
    foreign: bool,
}

impl History {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        block_on_current_thread(async {
            match self {
                Self::List(list) if list.executions => list.executions(global).await,
                Self::List(list) => list.runs(global).await,
                Self::Show(show) => show.run(global).await,
                Self::Logs(logs) => logs.run(global).await,
                Self::Prune(prune) => prune.run(global).await,
            }
        })
    }
}

impl List {
    async fn runs(&self, global: &Global) -> Result<(), Error> {
        let filter = RunFilter {
            job: self.job.clone(),
            state: self.state()?,
            instance: self.instance.clone(),
            source: self.source.clone(),
            span: self.span()?,
            after: self.after.as_deref().map(str::parse).transpose()?,
            limit: Some(self.limit as usize),
        };
        let page = self.store.open(global).await?.runs(&filter).await?;
        let mut table = Table::new([
            "RUN", "JOB", "STATE", "STARTED", "DURATION", "DELAY", "SHARDS", "ATTEMPTS", "FAILURE",
        ]);
        for run in &page.rows {
            table.row([
                run.run_id.clone(),
                run.job_name.clone(),
                run.state.as_str().to_owned(),
                format_instant(run.started_at),
                format_millis(run.duration_ms),
                format_millis(run.lateness_ms),
                format!("{}/{}", run.done, run_size(run)),
                run.attempts.to_string(),
                first_line(run.failure.as_deref()),
            ]);
        }
        output::print(global.output, &table, &to_json(&page.rows)?)?;
        print_next_cursor(page.next.as_ref());
        Ok(())
    }

    async fn executions(&self, global: &Global) -> Result<(), Error> {
        let success = match self.state()? {
            None => None,
            Some(RunState::Done) => Some(true),
            Some(RunState::Failed) => Some(false),
            Some(_) => {
                return Err(
                    Error::bad_input("an execution is done or failed").with_hint("--state failed")
                );
            }
        };
        let filter = ExecutionFilter {
            job: self.job.clone(),
            ip: None,
            success,
            span: self.span()?,
            after: self.after.as_deref().map(str::parse).transpose()?,
            limit: Some(self.limit as usize),
        };
        let page = self.store.open(global).await?.executions(&filter).await?;
        let mut table = Table::new([
            "JOB", "SHARD", "SERVER", "SOURCE", "OUTCOME", "STARTED", "DURATION", "FAILURE",
        ]);
        for execution in &page.rows {
            table.row([
                execution.job_name.clone(),
                execution.sharding_item.to_string(),
                execution.ip.clone(),
                execution.execution_source.clone(),
                execution.state.as_str().to_owned(),
                format_instant(execution.start_time),
                format_millis(execution.duration_ms),
                first_line(execution.failure_cause.as_deref()),
            ]);
        }
        output::print(global.output, &table, &to_json(&page.rows)?)?;
        print_next_cursor(page.next.as_ref());
        Ok(())
    }

    fn state(&self) -> Result<Option<RunState>, Error> {
        Ok(self.state.as_deref().map(str::parse).transpose()?)
    }

    fn span(&self) -> Result<Span, Error> {
        let when = |text: &Option<String>| text.as_deref().map(parse_moment).transpose();
        Ok(Span { since: when(&self.since)?, until: when(&self.until)? })
    }
}

impl Show {
    async fn run(&self, global: &Global) -> Result<(), Error> {
        let store = self.store.open(global).await?;
        let details = find_run(&store, &self.run).await?;
        let mut about = Table::new(["FIELD", "VALUE"]);
        for (what, text) in facts(&details) {
            about.row([what.to_owned(), text]);
        }
        let mut shards = Table::new([
            "SHARD", "ATTEMPT", "REASON", "INSTANCE", "OUTCOME", "STARTED", "DURATION", "FAILURE",
        ]);
        for execution in &details.executions {
            shards.row([
                execution.sharding_item.to_string(),
                execution.attempt.map_or("-".to_owned(), |number| number.to_string()),
                execution.reason.map_or(execution.execution_source.clone(), |reason| {
                    reason.as_str().to_owned()
                }),
                execution.instance.clone().unwrap_or_else(|| execution.ip.clone()),
                execution.state.as_str().to_owned(),
                format_instant(execution.start_time),
                format_millis(execution.duration_ms),
                first_line(execution.failure_cause.as_deref()),
            ]);
        }
        output::print_all(global.output, &[about, shards], &to_json(&details)?)
    }
}

impl Logs {
    async fn run(&self, global: &Global) -> Result<(), Error> {
        let store = self.store.open(global).await?;
        let mut position = OutputPosition::default();
        let mut all = Vec::new();
        loop {
            // The state is read before the output, so that the output of a finished run is complete.
            let is_running = find_run(&store, &self.run).await?.run.state == RunState::Running;
            loop {
                let output = store.output(&self.run, self.shard, &position).await?;
                position = output.position;
                if self.follow || global.output == Format::Table {
                    output::write(format_lines(global.output, &output.lines)?.as_bytes())?;
                } else {
                    all.extend(output.lines);
                }
                if !output.more {
                    break;
                }
            }
            if !self.follow || !is_running {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        if self.follow || global.output == Format::Table {
            return Ok(());
        }
        output::print_all(global.output, &[], &to_json(&all)?)
    }
}

impl Prune {
    async fn run(&self, global: &Global) -> Result<(), Error> {
        let mut retention = Retention::default();
        retention.age = self.age;
        retention.failures_age = self.failures_age;
        retention.runs_per_job = self.runs;
        retention.foreign = self.foreign;
        let pruned = self.store.open(global).await?.prune(&retention, SystemClock.now()).await?;
        let mut sentence =
            format!("deleted {} runs and {} missed fires", pruned.runs, pruned.missed);
        if self.foreign {
            let _ = write!(sentence, ", and {} rows of other programs", pruned.foreign);
        }
        output::done(global.output, &sentence, &to_json(&pruned)?)
    }
}

/// How many shards the run should have; if that is not known, how many the job has.
fn run_size(run: &Run) -> i64 {
    run.expected_shards.or(run.sharding_total_count).unwrap_or(run.shards)
}

async fn find_run(store: &Store, run: &str) -> Result<RunDetails, Error> {
    store.run(run).await?.ok_or_else(|| {
        let hint = "elasticjob history list shows runs; old ones are deleted after a while";
        Error::new(Code::NotFound, format!("there is no run {run}")).with_hint(hint)
    })
}

/// The fields of a run for a table.
fn facts(details: &RunDetails) -> Vec<(&'static str, String)> {
    let run = &details.run;
    let source = match (&run.source, &run.triggered_by) {
        (Some(source), Some(by)) => format!("{source}, by {by}"),
        (source, _) => or_dash(source.as_deref()),
    };
    let mut facts = vec![
        ("run", run.run_id.clone()),
        ("job", run.job_name.clone()),
        ("state", run.state.as_str().to_owned()),
        ("source", source),
        ("due", format_instant(run.due_at)),
        ("started", format_instant(run.started_at)),
        ("ended", format_instant(run.ended_at)),
        ("duration", format_millis(run.duration_ms)),
        ("start delay", format_millis(run.lateness_ms)),
        ("shards", format_shards(run)),
    ];
    if let Some(trace) = &run.trace_id {
        facts.push(("trace", trace.clone()));
    }
    if let Some(failure) = &run.failure {
        facts.push(("failure", failure.clone()));
    }
    facts
}

/// How many shards succeeded, of how many, and of how many nothing is known.
fn format_shards(run: &Run) -> String {
    let mut text = format!("{} of {} done", run.done, run_size(run));
    if let Some(untracked) = run.untracked_shards.filter(|count| *count > 0) {
        let _ = write!(text, ", {untracked} of Java ElasticJob not tracked");
    }
    text
}

/// Output lines as text, or as one JSON object per line.
fn format_lines(format: Format, lines: &[OutputLine]) -> Result<String, Error> {
    let mut text = String::new();
    for line in lines {
        if format == Format::Table {
            let at = line.at.map_or("-".to_owned(), |at| at.strftime("%H:%M:%S%.3f").to_string());
            let OutputLine { sharding_item, stream, text: printed, .. } = line;
            let _ = writeln!(
                text,
                "{at} {sharding_item} {stream:<6} {}",
                replace_control_chars(printed)
            );
        } else {
            let _ = writeln!(text, "{}", output::escape_json(&to_json(line)?.to_string()));
        }
    }
    Ok(text)
}

fn print_next_cursor(next: Option<&Cursor>) {
    if let Some(next) = next {
        output::print_message(&format!("more rows: --after '{next}'"));
    }
}

fn first_line(text: Option<&str>) -> String {
    or_dash(text.and_then(|text| text.lines().find(|line| !line.trim().is_empty())))
}

fn format_millis(millis: Option<i64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 1000 => format!("{millis}ms"),
        Some(millis) if millis < 60_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        Some(millis) => format!("{:#}", SignedDuration::from_secs(millis / 1000)),
    }
}

/// Parses a point in time: an age such as `2h`, or an instant.
fn parse_moment(text: &str) -> Result<Timestamp, Error> {
    if let Ok(age) = parse_age(text) {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        return Ok(SystemClock.now().checked_sub(age).unwrap_or(Timestamp::MIN));
    }
    text.parse().map_err(|_| {
        Error::bad_input(format!("{text:?} is not a point in time")).with_hint(
            "how long ago, for example 2h or 7d, or an instant, for example 2026-11-15T06:36:07Z",
        )
    })
}

/// Parses a duration that may be in days.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    match days.and_then(|days| days.checked_mul(24 * 60 * 60)) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => parse_duration(text)
            .map_err(|_| "a number and s, m, h or d, for example 12h or 30d".to_owned()),
    }
}
