//! Scripts under a supervisor: everything that holds without one, and what only holds with it.

#[path = "../../../../crates/elasticjob/tests/execution/fixture.rs"]
mod fixture;
#[path = "../../../../crates/elasticjob/tests/execution/script.rs"]
mod script;

mod supervision;
mod worker;

use elasticjob::execution::{ScriptWork, Supervisor};

/// A test has no `main` of its own, so another program is the supervisor.
fn script_work() -> ScriptWork {
    ScriptWork::supervised(Supervisor::program(env!("CARGO_BIN_EXE_script-worker")))
}
