//! A job that is a script, without any Rust code. Its output is logged line by line.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example script          # in another; ctrl-C drains and leaves
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use elasticjob::{
    Job, Node,
    execution::{Supervisor, supervise_if_requested},
};

fn main() -> elasticjob::Result<()> {
    // Before anything else: for every script this program is started again as a supervisor, which ends the script if the worker cannot.
    let supervisor = supervise_if_requested();
    work(supervisor)
}

#[tokio::main]
async fn work(supervisor: Supervisor) -> elasticjob::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    // Without the shell the command line is split as in Java, and the sharding context is appended as the last argument.
    let job = Job::named("script")?
        .cron("0/2 * * * * ?")?
        .shards(2)
        .items("0=Beijing,1=Shanghai")?
        .prop("elasticjob.script.shell", "true")?
        .prop(
            "script.command.line",
            r#"echo "settling $ELASTICJOB_ITEM_PARAMETER"; echo "context: $1""#,
        )?;
    Node::join(&url).supervisor(supervisor).script(job).run().await
}
