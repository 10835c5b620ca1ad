//! `elasticjob doctor`

use super::Global;
use crate::error::Error;

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {}

impl Doctor {
    pub(super) fn run(&self, _global: &Global) -> Result<(), Error> {
        Ok(())
    }
}
