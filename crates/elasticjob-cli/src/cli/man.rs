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
    /// The command, for example `job apply`; without it, the program itself
    command: Vec<String>,
}

impl Man {
    pub(super) fn run(&self) -> Result<(), Error> {
        let mut whole = Options::command();
        // Propagates full names and global options to the subcommands.
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
        None => format!("known commands: {}", known.join(", ")),
    };
    Err(Error::bad_input(format!("{} has no command {name:?}", command.get_name())).with_hint(hint))
}
