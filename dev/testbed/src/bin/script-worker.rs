//! A worker with one script job that is due every second. It prints the outcome of every shard.
//!
//! ```sh
//! script-worker REGISTRY COMMAND-LINE [PROPERTY=VALUE]…
//! ```

use std::{
    env,
    error::Error,
    io::{self, Write},
    sync::Arc,
};

use async_trait::async_trait;
use elasticjob::{
    execution::{Execution, Failure, Listener, ShardResult, supervise_if_requested},
    job::Job,
    node::{Node, NodeJob},
};

fn main() -> Result<(), Box<dyn Error>> {
    let supervisor = supervise_if_requested();
    let mut arguments = env::args().skip(1);
    let (Some(registry), Some(command_line)) = (arguments.next(), arguments.next()) else {
        return Err("usage: script-worker REGISTRY COMMAND-LINE [PROPERTY=VALUE]…".into());
    };
    let mut job =
        Job::named("script")?.cron("* * * * * ?")?.prop("script.command.line", command_line)?;
    for property in arguments {
        let (key, value) = property.split_once('=').ok_or("a property has the form KEY=VALUE")?;
        job = job.prop(key, value)?;
    }
    let node = Node::join(&registry)
        .supervisor(supervisor)
        .with(NodeJob::script(job).listener(Arc::new(OutcomePrinter)));
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(node.run())?;
    Ok(())
}

struct OutcomePrinter;

#[async_trait]
impl Listener for OutcomePrinter {
    async fn after(&self, _: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        for ran in ran {
            writeln!(io::stdout(), "{}", ran.outcome)?;
        }
        Ok(())
    }
}
