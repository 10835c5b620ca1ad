//! `job apply` and `job import`: print what files would change in the registry, ask, then store it.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
};

use elasticjob::{
    admin::{ApplyResult, ConfigChange, Edit, Plan},
    job::Handler,
};
use serde_json::{Value, json};

use crate::{
    cli::{
        Global,
        connection::{Connection, or_dash},
    },
    error::{Code, Error},
    output::{self, Format, Table},
};
use elasticjob_jobfile::{self as jobfile, Entry, Kind};

#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// Job files: Spring Boot's application.yml, or .json, .toml, .properties, .xml
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Only print what would change; the exit code is 10 if there are changes
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

impl Apply {
    /// The same, but only for files of 2.1.5.
    pub(super) fn run_import(&self, global: &Global) -> Result<(), Error> {
        for file in &self.files {
            let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
            if extension != "json" && extension != "xml" {
                return Err(Error::bad_input(format!(
                    "{} is not a configuration of 2.1.5",
                    file.display()
                ))
                .with_hint(
                    "import its .json, or Spring's .xml; elasticjob job apply takes the others",
                ));
            }
        }
        self.run(global)
    }

    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let jobs = jobfile::read(&self.files, &|name| env::var(name).ok())?;
        for note in &jobs.notes {
            output::print_message(&format!("note: {note}"));
        }
        if jobs.entries.is_empty() {
            return Err(Error::bad_input("no job found in these files")
                .with_hint("define jobs below elasticjob.jobs, each under its name"));
        }
        let file_url = jobs.registry.as_ref().map(|(_, url)| url.as_str());
        Connection::with(global, file_url, async |connection| {
            // Plan every job before storing any: if one has a problem, none is changed.
            let mut plans = Vec::new();
            for entry in &jobs.entries {
                plans.push(connection.admin.plan(edit(entry)).await?);
            }
            let changing: Vec<&str> = plans
                .iter()
                .filter(|plan| plan.change != ConfigChange::Same)
                .map(|plan| plan.job.name.as_str())
                .collect();
            if self.dry_run || changing.is_empty() {
                show(global.output, &plans, &[])?;
                if changing.is_empty() && global.output == Format::Table {
                    output::print_message("no changes");
                }
                return if changing.is_empty() { Ok(()) } else { Err(Error::silent(Code::Found)) };
            }
            if global.output == Format::Table {
                show(global.output, &plans, &[])?;
            }
            if !self.yes {
                confirm(&changing)?;
            }
            let mut applied = Vec::new();
            for plan in &plans {
                let done = connection.admin.apply(plan).await?;
                if done.is_changed {
                    let version = done.version.0;
                    output::print_message(&format!(
                        "job {} stored, version {version}",
                        plan.job.name
                    ));
                }
                applied.push(done);
            }
            if global.output == Format::Table {
                Ok(())
            } else {
                show(global.output, &plans, &applied)
            }
        })
    }
}

/// The edit that stores a job of a file. A Java class is stored as the job's handler, where Java instances look for it.
fn edit(entry: &Entry) -> Edit {
    let handler = match &entry.kind {
        Kind::Script => Handler::Script,
        Kind::Http => Handler::Http,
        Kind::Java(class) => Handler::Code { java_class: Some(class.clone()) },
    };
    Edit::new(entry.job.clone()).handler(handler)
}

/// Asks for confirmation on the terminal.
fn confirm(changing: &[&str]) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Code::Refused, text));
    if !io::stdin().is_terminal() {
        let text = "nothing was stored: cannot ask for confirmation without a terminal";
        let hint = "--yes stores without asking, --dry-run only prints the changes";
        return Err(Error::new(Code::Refused, text).with_hint(hint));
    }
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "Store {}? [y/N] ", changing.join(", "));
    let _ = stderr.flush();
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => refused("nothing was stored: not confirmed"),
    }
}

fn show(format: Format, plans: &[Plan], applied: &[ApplyResult]) -> Result<(), Error> {
    let mut table = Table::new(["JOB", "CHANGE", "KEY", "STORED", "FILE"]);
    let mut values = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let name = plan.job.name.to_string();
        let mut differences = Vec::new();
        let change_kind = match &plan.change {
            ConfigChange::New => "new",
            ConfigChange::Changed(_) => "changed",
            ConfigChange::Same => "same",
        };
        match &plan.change {
            ConfigChange::Changed(changes) if !changes.is_empty() => {
                for change in changes {
                    let [stored, local] =
                        [&change.stored, &change.local].map(|side| or_dash(side.as_deref()));
                    table.row([
                        name.clone(),
                        change_kind.to_owned(),
                        change.key.clone(),
                        stored,
                        local,
                    ]);
                    differences.push(json!({
                        "key": change.key, "stored": change.stored, "file": change.local,
                    }));
                }
            }
            ConfigChange::New | ConfigChange::Same | ConfigChange::Changed(_) => {
                let dash = || "-".to_owned();
                table.row([name.clone(), change_kind.to_owned(), dash(), dash(), dash()]);
            }
        }
        let mut value = json!({
            "jobName": name, "change": change_kind, "differences": differences, "config": plan.job.to_json(),
        });
        if let Some(applied) = applied.get(index) {
            value["version"] = applied.version.0.into();
        }
        values.push(value);
    }
    output::print(format, &table, &Value::Array(values))
}
