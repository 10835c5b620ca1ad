//! `elasticjob doctor`

use elasticjob::{admin::doctor, registry::RegistryUrl};

use super::{
    Global,
    connection::{block_on_current_thread, or_dash, status_text, to_json},
};
use crate::{
    error::{Code, Error},
    output::{self, Format, Table},
};

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {}

impl Doctor {
    #[expect(clippy::unused_self, reason = "commands are run alike")]
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let RegistryUrl::ZooKeeper(settings) = global.registry(None).parse()? else {
            return Err(Error::bad_input("a memory: registry is private to its process")
                .with_hint("set --registry to a ZooKeeper"));
        };
        let limit = global.max_shards;
        let findings =
            block_on_current_thread(async { Ok(doctor::examine(&settings, limit).await?) })?;
        let problems = findings.iter().filter(|finding| finding.is_problem).count();
        let mut table = Table::new(["CHECK", "RESULT", "ABOUT", "FINDING"]);
        for finding in &findings {
            let result = if finding.is_problem { "found" } else { "ok" };
            let about = or_dash(finding.about.as_deref());
            table.row([
                status_text(&finding.check),
                result.to_owned(),
                about,
                finding.message.clone(),
            ]);
            if let Some(hint) = &finding.hint {
                let blank = String::new;
                table.row([blank(), blank(), blank(), format!("hint: {hint}")]);
            }
        }
        output::print(global.output, &table, &to_json(&findings)?)?;
        if global.output == Format::Table {
            let count = match problems {
                0 => "no problems found".to_owned(),
                1 => "1 problem found".to_owned(),
                many => format!("{many} problems found"),
            };
            output::print_message(&count);
        }
        if problems == 0 { Ok(()) } else { Err(Error::silent(Code::Found)) }
    }
}
