//! What runs, when, and what it is told.

use std::{collections::BTreeMap, fs};

use elasticjob::{coordination::trigger::Ask, job::Job};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    peer::Peer,
    record::{PATIENCE, Run},
    scene::{Ground, Scene, idle, job, ms},
};

/// Runs of one shard that were under way at the same time.
fn at_once(runs: &[Run]) -> Vec<(&Run, &Run)> {
    let mut found = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let Some((_, end)) = run.ended else { continue };
        let later = runs[index + 1..].iter();
        found.extend(
            later
                .filter(|other| other.item == run.item && other.began < end)
                .map(|other| (run, other)),
        );
    }
    found
}

/// Whoever is second joins while the first one runs everything, and gets its part when that is over.
async fn joins_during_a_long_run(scene: &Scene, first: &mut Peer, second: &mut Peer) {
    let settle = job("settle", "0/3 * * * * ?", 2);
    let old = first.joins(&settle, ms(5_000)).await;
    let look = |runs: &[Run]| (runs.len() >= 2).then(|| runs.to_vec());
    scene.record.until("both shards run", "settle", look).await;

    let new = second.joins(&settle, ms(200)).await;

    let owners = scene.dealt(&settle, &[&old, &new]).await;
    scene.runs_as(&settle, &owners).await;
    let runs = scene.record.runs("settle");
    assert!(runs[..2].iter().all(|run| run.instance == old && run.is_done()), "{runs:?}");
    assert!(at_once(&runs).is_empty(), "{runs:?}");
}

pub(crate) async fn rust_joins_during_a_long_run_of_java(ground: Ground) {
    let scene = Scene::new(&ground, "long-java").await;
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    joins_during_a_long_run(&scene, &mut java, &mut rust).await;
}

pub(crate) async fn java_joins_during_a_long_run_of_rust(ground: Ground) {
    let scene = Scene::new(&ground, "long-rust").await;
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    joins_during_a_long_run(&scene, &mut rust, &mut java).await;
}

pub(crate) async fn what_was_missed_is_made_up_for_by_either_side(ground: Ground) {
    let scene = Scene::new(&ground, "misfire").await;
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let settle = job("settle", "0/4 * * * * ?", 2);
    // Longer than the interval.
    let [java_id, rust_id] = scene.join_in_turn(&settle, [&mut java, &mut rust], ms(4_500)).await;

    // Right after the run that was in the way: sooner than any fire could explain.
    let follows = |runs: &[Run], instance: &str| {
        let of: Vec<&Run> = runs.iter().filter(|run| run.instance == instance).collect();
        let mut pairs = of.windows(2).map(|pair| (pair[0].ended.as_ref(), pair[1]));
        pairs.any(|(ended, next)| {
            let right_after = ended.is_some_and(|(_, at)| next.began - at < 400);
            right_after && next.reason.as_deref().is_none_or(|reason| reason == "Misfire")
        })
    };
    let look =
        |runs: &[Run]| (follows(runs, &java_id) && follows(runs, &rust_id)).then(|| runs.to_vec());
    let runs = scene.record.until("both make up", "settle", look).await;
    assert!(at_once(&runs).is_empty(), "{runs:?}");
}

pub(crate) async fn a_once_listener_is_called_once_for_a_fire_of_both_sides(ground: Ground) {
    const EVERY: i64 = 5_000;
    let scene = Scene::new(&ground, "once").await;
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let settle = job("settle", "0/5 * * * * ?", 4).java_listeners(["ONCE"]);
    let rust_id = rust.joins(&settle, ms(200)).await;
    let java_id = java.joins(&settle, ms(200)).await;
    let owners = scene.dealt(&settle, &[&java_id, &rust_id]).await;
    scene.runs_as(&settle, &owners).await;

    // What was said in each fire after the one that is under way.
    let of_fires = || {
        let mut fires: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for said in scene.record.all() {
            let (at, what) = (said.words["at"].as_i64().unwrap(), &said.words["said"]);
            fires.entry(at / EVERY).or_default().push(what.as_str().unwrap().to_owned());
        }
        fires
    };
    let whole = |said: &[String]| {
        let count = |what: &str| said.iter().filter(|said| *said == what).count();
        [count("before"), count("began"), count("ended"), count("after")]
    };
    let now = *of_fires().keys().last().unwrap();
    // In a row: one that did not meet the others and hangs would never be whole again.
    scene
        .until("three whole fires in a row", async || {
            let fires = of_fires();
            let later: Vec<_> = fires.range(now + 1..).map(|(_, said)| whole(said)).collect();
            later.windows(3).any(|three| three == [[1, 4, 4, 1]; 3])
        })
        .await;
    for (fire, said) in of_fires().range(now + 1..) {
        let [before, began, ended, after] = whole(said);
        assert!(before <= 1 && after <= 1, "{fire}: {said:?}");
        if [before, began, ended, after] == [1, 4, 4, 1] {
            assert_eq!((&*said[0], &*said[said.len() - 1]), ("before", "after"), "{said:?}");
        }
    }
}

/// Lets each side run the job alone, and says by which id it did.
async fn each_alone(scene: &Scene, kind: &str, job: &Job, ran: impl Fn() -> usize) -> [String; 2] {
    let mut ids = Vec::new();
    for mut peer in [scene.java("java").await, scene.rust(1).await] {
        let (before, id) = (ran(), peer.joins_as(kind, job, ms(0)).await);
        scene.admin().trigger(&job.name, Ask::default()).await.unwrap();
        scene.until("it ran", async || ran() > before).await;
        scene.is_at_peace(job).await;
        peer.leaves(job).await;
        ids.push(id);
    }
    ids.try_into().unwrap()
}

/// Characters that JSON, shells and headers take for something else.
fn awkward(name: &str) -> Job {
    idle(name, 1).items("0=a<b>&'c' \"d\"").unwrap().parameter("p=1&q=\\")
}

pub(crate) async fn a_script_is_given_the_same_arguments_to_the_byte(ground: Ground) {
    let scene = Scene::new(&ground, "script").await;
    let folder = tempfile::tempdir().unwrap();
    let (script, told) = (folder.path().join("script.sh"), folder.path().join("told"));
    // In one piece at the end, so that half of it is never seen.
    let body =
        "told=$1\nshift\nall=$(printf '[%s]\\n' \"$@\")\nprintf '%s\\0' \"$all\" >> \"$told\"\n";
    fs::write(&script, body).unwrap();
    let line = format!("sh {} {} 'c d' \"e f\" plain", script.display(), told.display());
    let job = awkward("script").prop("script.command.line", line).unwrap();
    let all = || -> Vec<String> {
        let text = fs::read_to_string(&told).unwrap_or_default();
        text.split_terminator('\0').map(ToOwned::to_owned).collect()
    };

    let [java, rust] = each_alone(&scene, "SCRIPT", &job, || all().len()).await;

    let told = all();
    assert_eq!(told[0].replace(&java, "ID"), told[1].replace(&rust, "ID"));
    assert!(told[0].contains("[plain]\n[{\"jobName\":\"script\""), "{}", told[0]);
}

pub(crate) async fn a_request_is_the_same_to_the_byte(ground: Ground) {
    let scene = Scene::new(&ground, "http").await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let job = awkward("http")
        .prop("http.uri", format!("http://{}/settle?day=1", server.local_addr().unwrap()))
        .unwrap()
        .prop("http.method", "POST")
        .unwrap()
        .prop("http.data", "day=1&name=上海")
        .unwrap()
        .prop("http.content.type", "application/x-www-form-urlencoded")
        .unwrap();
    let requests = std::sync::Mutex::new(Vec::new());

    let serving = async {
        loop {
            let request = answer(&server).await;
            requests.lock().unwrap().push(request);
        }
    };
    let asked = each_alone(&scene, "HTTP", &job, || requests.lock().unwrap().len());
    let [java, rust] = tokio::select! {
        () = serving => unreachable!(),
        ids = asked => ids,
    };

    let requests = requests.into_inner().unwrap();
    let (javas, rusts) = (&requests[0], &requests[1]);
    assert_eq!(javas.line, rusts.line);
    assert_eq!(javas.body, rusts.body);
    assert_eq!(javas.headers["content-type"], rusts.headers["content-type"]);
    let context = &javas.headers["shardingcontext"];
    let ours = &rusts.headers["shardingcontext"];
    assert_eq!(context.replace(&java, "ID"), ours.replace(&rust, "ID"));
    assert!(context.starts_with("{\"jobName\":\"http\""), "{context}");
}

/// A request as it came.
struct Request {
    line: String,
    /// By their names in small letters, which is all that counts of them.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

async fn answer(server: &TcpListener) -> Request {
    let (mut stream, _) = server.accept().await.unwrap();
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "a whole request");
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let (line, rest) = head.split_once("\r\n").unwrap();
            let headers: BTreeMap<String, String> = rest
                .split("\r\n")
                .filter_map(|header| header.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let body = bytes[end + 4..].to_vec();
            if body.len() >= headers["content-length"].parse().unwrap() {
                return Request { line: line.to_owned(), headers, body };
            }
        }
    };
    let request = tokio::time::timeout(PATIENCE, reading).await.expect("a request in time");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        .await
        .unwrap();
    request
}
