//! A job that is a script: no Rust in the job at all. What it prints is logged, line by line.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example script          # in another; ctrl-C drains and leaves
//! ```
//!
//! `ELASTICJOB_REGISTRY` is another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use elasticjob::{
    Job, Node,
    execution::{Supervisor, supervise_if_asked},
};

fn main() -> elasticjob::Result<()> {
    // Before anything else: this program is started once more beside every script, to end it should the worker not be able to.
    let supervisor = supervise_if_asked();
    work(supervisor)
}

#[tokio::main]
async fn work(supervisor: Supervisor) -> elasticjob::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    // Without the shell the command line is taken apart as Java does, and the sharding context is the last argument.
    let job = Job::named("script")?
        .cron("0/2 * * * * ?")?
        .shards(2)
        .items("0=Beijing,1=Shanghai")?
        .prop("elasticjob.script.shell", "true")?
        .prop(
            "script.command.line",
            r#"echo "settling $ELASTICJOB_ITEM_PARAMETER"; echo "told: $1""#,
        )?;
    Node::join(&url).supervisor(supervisor).script(job).run().await
}
