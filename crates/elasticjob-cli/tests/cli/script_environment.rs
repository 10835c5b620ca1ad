//! What a script inherits from its worker.

use std::{fs, process::Command};

use crate::{
    process::{Process, binary},
    scene::Scene,
};

const SECRETS: [(&str, &str); 4] = [
    ("ELASTICJOB_HISTORY", "none"),
    ("ELASTICJOB_OIDC_CLIENT_SECRET", "hunter2"),
    ("ELASTICJOB_REGISTRY_FILE", ""),
    ("CREDENTIALS_DIRECTORY", "/nonexistent"),
];

/// A worker that has its registry and other secrets in the environment.
fn worker(scene: &Scene) -> Process {
    let file = scene.file();
    let mut command: Command = binary();
    command.args(["run", "-f", &file, "--log-format", "json"]);
    command.env("ELASTICJOB_REGISTRY", &scene.url).env("UNRELATED", "kept").envs(SECRETS);
    Process::spawn(&mut command)
}

/// The environment that the script of this job prints.
fn environment(process: &mut Process, job: &str) -> String {
    loop {
        let line = process.wait_for_log("environment-of-");
        if line.contains(&format!("environment-of-{job}")) {
            return line;
        }
    }
}

fn write_script(scene: &Scene) {
    let script = "echo environment-of-$ELASTICJOB_JOB_NAME $(env | tr '\\n' ' ')\n";
    fs::write(scene.folder.path().join("print.sh"), script).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn script_inherits_secrets_only_if_the_job_file_says_so() {
    let props = "script.command.line: sh FOLDER/print.sh";
    let scene = Scene::with(&format!(
        "    plain: {{cron: '* * * * * ?', props: {{{props}}}}}\n    \
         asks: {{cron: '* * * * * ?', props: {{{props}, elasticjob.script.inherit.environment: 'true'}}}}\n"
    ))
    .await;
    write_script(&scene);

    let mut process = worker(&scene);

    let plain = environment(&mut process, "plain");
    assert!(plain.contains("UNRELATED=kept") && plain.contains("ELASTICJOB_RUN_ID="), "{plain}");
    for name in SECRETS.map(|(name, _)| name).iter().chain(&["ELASTICJOB_REGISTRY"]) {
        assert!(!plain.contains(&format!("{name}=")), "{name}: {plain}");
    }
    let asks = environment(&mut process, "asks");
    for name in SECRETS.map(|(name, _)| name).iter().chain(&["ELASTICJOB_REGISTRY"]) {
        assert!(asks.contains(&format!("{name}=")), "{name}: {asks}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_cannot_make_a_script_inherit_secrets() {
    let props = "script.command.line: sh FOLDER/print.sh";
    let scene =
        Scene::with(&format!("    plain: {{cron: '* * * * * ?', props: {{{props}}}}}\n")).await;
    write_script(&scene);
    let mut process = worker(&scene);
    environment(&mut process, "plain");

    let stored = scene.get("plain/config").await.unwrap();
    let changed = stored
        .replace("props:\n", "props:\n  elasticjob.script.inherit.environment: 'true'\n")
        .replace("description: ''", "description: changed");
    assert_ne!(stored, changed);
    scene
        .put(
            "plain/config",
            &format!("{changed}\njobParameter: changed\n").replace("jobParameter: ''\n", ""),
        )
        .await;
    let mut line = environment(&mut process, "plain");
    while !line.contains("ELASTICJOB_JOB_PARAMETER=changed") {
        line = environment(&mut process, "plain");
    }

    assert!(!line.contains("ELASTICJOB_REGISTRY="), "{line}");
}
