//! Scripts under a supervisor: the tests that also hold without one, and those that need one.

#[path = "../../../../crates/elasticjob/tests/execution/fixture.rs"]
mod fixture;
#[path = "../../../../crates/elasticjob/tests/execution/script.rs"]
mod script;

mod supervision;
mod worker;

use elasticjob::execution::{ScriptWork, Supervisor};

/// A test has no `main` of its own, so it uses another program as the supervisor.
fn script_work() -> ScriptWork {
    ScriptWork::supervised(Supervisor::program(env!("CARGO_BIN_EXE_script-worker")))
}
