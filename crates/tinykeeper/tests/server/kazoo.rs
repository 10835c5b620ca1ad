//! Runs the recipes of kazoo, the Python client for ZooKeeper, with the server.

use std::path::Path;

use tokio::process::Command;

use super::serve;

#[tokio::test]
#[ignore = "needs Python and kazoo: make test"]
async fn kazoo_recipes_work() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = Command::new(crate_dir.join("../../scripts/python-with.sh"))
        .args(["kazoo", "crates/tinykeeper/tests/kazoo/requirements.txt"])
        .output()
        .await
        .expect("the script runs");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let python = String::from_utf8(found.stdout).unwrap();
    let server = serve(|_| {}).await;

    let run = Command::new(python.trim())
        .arg(crate_dir.join("tests/kazoo/recipes.py"))
        .arg(server.address().to_string())
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python runs");

    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{stderr}{}", String::from_utf8_lossy(&run.stdout));
    assert!(!stderr.contains("Ran 0 tests"), "{stderr}");
}
