//! `elasticjob completions`

use clap::CommandFactory;
use clap_complete::Shell;

use super::Options;
use crate::{error::Error, output};

#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<(), Error> {
        // Generated into memory: the generator panics when nobody reads to the end.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Options::command(), "elasticjob", &mut script);
        output::write(&script)
    }
}
