//! Golden tests of environment variables that belong to no flag; see `../golden/README.md`.

use std::process::Stdio;

use elasticjob::runtime::{Clock, SystemClock};
use testbed::golden_input;

use crate::{
    process::{PATIENCE, binary},
    scene::{Scene, settle},
};

/// The names in the golden file, in its order.
fn names() -> [String; 4] {
    let text = golden_input!("environment.txt");
    let names: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    names.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_address_is_read_from_environment() {
    let scene = Scene::with("    a: {props: {script.command.line: echo}}\n").await;
    let [address, ..] = names();

    let file = scene.file();
    let run = ["run", "-f", &file, "--registry", &scene.url];
    let command = binary().args(run).env(address, "10.9.8.7").stderr(Stdio::null()).spawn();
    let mut worker = command.unwrap();
    let deadline = SystemClock.monotonic() + PATIENCE;
    let mut server = None;
    while server.is_none() && SystemClock.monotonic() < deadline {
        server = scene.get("a/servers/10.9.8.7").await;
    }
    worker.kill().unwrap();
    worker.wait().unwrap();

    assert_eq!(server.as_deref(), Some("ENABLED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn triggering_user_is_read_from_environment() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let [_, names @ ..] = names();
    let registry = scene.connect().await;
    let page = "/shop~ledger/settle/0".parse().unwrap();

    for (name, others) in [(0, 1..3), (1, 2..3), (2, 3..3)] {
        let trigger = ["job", "trigger", "settle", "--wait", "--registry", &scene.url];
        let mut command = binary();
        command.args(trigger);
        for known in &names {
            command.env_remove(known);
        }
        command.envs(names[others].iter().map(|other| (other, "another user")));
        let by = format!("ann-{name}");
        let output = command.env(&names[name], &by).output().unwrap();

        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = registry.get(&page).await.unwrap().unwrap();
        let page = String::from_utf8(page.data.to_vec()).unwrap();
        assert!(page.contains(&by), "{}: {page}", names[name]);
    }
}
