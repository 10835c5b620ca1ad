//! `elasticjob cron`

use clap::Subcommand;
use elasticjob::{
    runtime::{Clock, SystemClock},
    schedule::{self, Dst, Schedule, Zone},
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::Global;
use crate::{
    error::Error,
    output::{self, Format, Table},
};

#[derive(Debug, Subcommand)]
pub(super) enum Cron {
    /// Prints the next fires of an expression
    Next(Next),
    /// Checks an expression and warns about parts that Quartz accepts by accident
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(super) struct Next {
    /// Quartz expression, seconds first, in quotes: "0 0/5 * * * ?"
    #[arg(value_name = "EXPR")]
    expression: String,
    /// Time zone, for example Asia/Shanghai [default: the system zone]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Start after this instant, for example 2026-11-15T06:36:07Z [default: now]
    #[arg(long, value_name = "INSTANT")]
    after: Option<String>,
    /// Number of fires
    #[arg(short = 'n', value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Rule for daylight saving time: default or quartz
    #[arg(long, value_name = "RULE", default_value = "default")]
    dst: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// Quartz expression, seconds first, in quotes: "0 0/5 * * * ?"
    #[arg(value_name = "EXPR")]
    expression: String,
}

impl Cron {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        match self {
            Self::Next(next) => next.run(global.output),
            Self::Check(check) => check.run(global.output),
        }
    }
}

impl Next {
    fn run(&self, format: Format) -> Result<(), Error> {
        let schedule = Schedule {
            cron: self.expression.parse()?,
            zone: match &self.zone {
                Some(zone) => zone.parse()?,
                None => Zone::from(TimeZone::system()),
            },
            dst: self.dst.parse::<Dst>().map_err(|error| Error::bad_input(&error))?,
        };
        let after = self.after.as_deref().map_or_else(|| Ok(SystemClock.now()), parse_instant)?;
        let fires: Vec<Timestamp> = schedule.after(after).take(self.count as usize).collect();

        let local = schedule.zone.to_time_zone();
        let mut table = Table::new(["FIRE", "LOCAL"]);
        for fire in &fires {
            let shown = fire.to_zoned(local.clone()).strftime("%a %Y-%m-%d %H:%M:%S %:z");
            table.row([fire.to_string(), shown.to_string()]);
        }
        let instants: Vec<Value> = fires.iter().map(|fire| fire.to_string().into()).collect();
        output::print(format, &table, &Value::Array(instants))?;
        if fires.is_empty() {
            let expression = &self.expression;
            let text = format!("cron {expression:?} never fires after {after}");
            return Err(Error::bad_input(text));
        }
        Ok(())
    }
}

impl Check {
    fn run(&self, format: Format) -> Result<(), Error> {
        let cron: schedule::Cron = self.expression.parse()?;
        let mut table = Table::new(["FIELD", "PART", "WARNING"]);
        let mut warnings = Vec::new();
        for warning in cron.warnings() {
            let field = warning.field.map(|field| field.to_string());
            table.row([
                field.clone().unwrap_or_default(),
                warning.part.clone(),
                warning.message.clone(),
            ]);
            warnings
                .push(json!({ "field": field, "part": warning.part, "message": warning.message }));
        }
        if warnings.is_empty() && format == Format::Table {
            output::print_message(&format!("{:?} is valid, no warnings", cron.as_str()));
        }
        output::print(format, &table, &json!({ "cron": cron.as_str(), "warnings": warnings }))
    }
}

/// Parses an instant of the command line.
pub(super) fn parse_instant(text: &str) -> Result<Timestamp, Error> {
    text.parse().map_err(|_| {
        Error::bad_input(format!("{text:?} is not an instant"))
            .with_hint("date, time and offset from UTC, for example 2026-11-15T06:36:07Z")
    })
}
