//! `elasticjob man`

use clap::{Command, CommandFactory};

use super::Options;
use crate::{
    error::{Code, Error},
    output,
};
use elasticjob_jobfile::nearest;

#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// Of which command: nothing for the whole, else for example `job apply`
    command: Vec<String>,
}

impl Man {
    pub(super) fn run(&self) -> Result<(), Error> {
        let mut whole = Options::command();
        // Then every command knows its whole name, and what it understands as all others do.
        whole.build();
        let version = concat!("elasticjob ", env!("CARGO_PKG_VERSION"));
        let page = clap_mangen::Man::new(find(&whole, &self.command)?.clone()).source(version);
        let mut text = Vec::new();
        page.render(&mut text).map_err(|error| {
            Error::new(Code::Internal, format!("cannot write the page: {error}"))
        })?;
        output::write(&text)
    }
}

fn find<'a>(command: &'a Command, names: &[String]) -> Result<&'a Command, Error> {
    let Some((name, rest)) = names.split_first() else { return Ok(command) };
    if let Some(found) = command.find_subcommand(name) {
        return find(found, rest);
    }
    let known = command.get_subcommands().filter(|known| !known.is_hide_set());
    let known: Vec<String> = known.map(|known| known.get_name().to_owned()).collect();
    let hint = match nearest(name, known.iter().map(|known| (known.clone(), known))) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known are {}", known.join(", ")),
    };
    Err(Error::bad_input(format!("{} has no command {name:?}; hint: {hint}", command.get_name())))
}
