//! `elasticjob completions`

use clap::CommandFactory;
use clap_complete::Shell;

use super::Options;
use crate::{error::Error, output};

#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<(), Error> {
        // Generated into memory, since the generator panics when standard output is closed early.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Options::command(), "elasticjob", &mut script);
        output::write(&script)
    }
}
