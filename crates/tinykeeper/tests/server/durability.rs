//! Acknowledged writes survive `kill -9`, whatever the server is doing.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use tempfile::TempDir;
use tinykeeper::wire::{
    Acl, Code, Create, CreateMode, EventKind, MultiResult, Op, Request, Response,
};
use tokio::{sync::watch, task::JoinSet};

use super::{
    process::Process,
    raw::{Incoming, RawClient, children, create, create_as, delete, exists, get, set},
    within_timeout,
};

const WRITERS: usize = 4;
/// Number of requests of one writer in flight at once.
const IN_FLIGHT: usize = 8;

/// A write of a writer.
#[derive(Debug, Clone)]
enum Action {
    Set {
        value: String,
    },
    Create {
        name: String,
    },
    /// Two nodes, both or neither.
    Pair {
        name: String,
    },
    Delete {
        name: String,
    },
}

/// What one writer knows about its own node and its children.
#[derive(Debug, Default)]
struct WriterState {
    home: String,
    /// The last acknowledged value, with its version.
    value: Option<(i32, String)>,
    /// Later values that may or may not have been set.
    unconfirmed: VecDeque<String>,
    existing: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl WriterState {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.home)
    }

    fn create_op(&self, name: &str) -> Op {
        let path = self.path(name);
        let data = Some(Bytes::from(path.clone()));
        let mode = CreateMode::Persistent;
        Op::Create(Create { path, data, acl: Acl::open(), mode, with_stat: true })
    }

    fn request(&self, action: &Action) -> Request {
        match action {
            Action::Set { value } => set(&self.home, value.clone()),
            Action::Create { name } => Request::Write(self.create_op(name)),
            Action::Pair { name } => Request::Multi(
                ["left", "right"].map(|side| self.create_op(&format!("{name}-{side}"))).to_vec(),
            ),
            Action::Delete { name } => delete(&self.path(name)),
        }
    }

    /// Records that a write was sent and may take effect from now on.
    fn begin(&mut self, action: &Action) {
        match action {
            Action::Set { value } => self.unconfirmed.push_back(value.clone()),
            Action::Delete { name } => {
                self.existing.remove(name);
            }
            Action::Create { .. } | Action::Pair { .. } => {}
        }
    }

    /// Records that the server acknowledged a write.
    fn acknowledge(&mut self, action: Action, response: Response) {
        match (action, response) {
            (Action::Set { value }, Response::Stat(stat)) => {
                self.unconfirmed.pop_front();
                self.value = Some((stat.version, value));
            }
            (Action::Create { name }, Response::Create2 { .. }) => {
                self.existing.insert(name);
            }
            (Action::Pair { name }, Response::Multi(results)) => {
                assert!(results.iter().all(|result| matches!(result, MultiResult::Create { .. })));
                self.existing.extend(["left", "right"].map(|side| format!("{name}-{side}")));
            }
            (Action::Delete { name }, Response::Empty) => {
                self.deleted.insert(name);
            }
            (action, response) => panic!("{action:?} got {response:?}"),
        }
    }

    /// Checks that all acknowledged writes are there, and resolves the unconfirmed ones.
    async fn verify(&mut self, client: &mut RawClient, hint: &str) {
        let Ok(Response::Data { data: Some(data), stat }) = client.call(&get(&self.home)).await
        else {
            panic!("{} is gone; {hint}", self.home)
        };
        let found = String::from_utf8(data.to_vec()).unwrap();
        if let Some((version, value)) = &self.value {
            assert!(stat.version >= *version, "version {version} of {} is lost; {hint}", self.home);
            let is_it = stat.version == *version && found == *value;
            let is_later = stat.version > *version && self.unconfirmed.contains(&found);
            assert!(is_it || is_later, "{found} instead of {value}; {hint}");
        }
        self.value = Some((stat.version, found));
        self.unconfirmed.clear();

        let Ok(Response::Children(names)) = client.call(&children(&self.home)).await else {
            panic!("no children of {}; {hint}", self.home)
        };
        let names: BTreeSet<String> = names.into_iter().collect();
        let lost: Vec<_> = self.existing.difference(&names).collect();
        assert!(lost.is_empty(), "{lost:?} of {} were acknowledged; {hint}", self.home);
        let back: Vec<_> = self.deleted.intersection(&names).collect();
        assert!(back.is_empty(), "{back:?} of {} were deleted; {hint}", self.home);
        for name in &names {
            if let Some(pair) = name.strip_suffix("-left") {
                assert!(names.contains(&format!("{pair}-right")), "half of {pair}; {hint}");
            }
            client.submit(&get(&self.path(name))).await;
        }
        for name in &names {
            let Ok(Response::Data { data, stat }) = client.reply().await.result else {
                panic!("{name} cannot be read; {hint}")
            };
            assert_eq!(data, Some(Bytes::from(self.path(name))), "{hint}");
            assert_eq!(stat.version, 0);
        }
        self.existing = names;
    }
}

/// Writes as fast as possible until the server is killed.
async fn write(
    mut client: RawClient,
    mut state: WriterState,
    generation: u64,
    acknowledged: watch::Sender<u64>,
) -> WriterState {
    let mut in_flight = VecDeque::new();
    for turn in 0.. {
        let name = format!("{generation}-{turn:06}");
        let action = match turn % 4 {
            1 => Action::Pair { name },
            2 => Action::Create { name },
            // A node whose creation was acknowledged, because it is no longer in flight.
            3 if turn > 13 => Action::Delete { name: format!("{generation}-{:06}", turn - 13) },
            _ => Action::Set { value: name },
        };
        state.begin(&action);
        client.submit(&state.request(&action)).await;
        in_flight.push_back(action);
        if in_flight.len() < IN_FLIGHT {
            continue;
        }
        match client.incoming().await {
            Some(Incoming::Reply(reply)) => {
                let action = in_flight.pop_front().expect("a request is in flight");
                let response = reply.result.unwrap_or_else(|code| panic!("{action:?}: {code}"));
                state.acknowledge(action, response);
                acknowledged.send_modify(|count| *count += 1);
            }
            Some(Incoming::Event(event)) => panic!("unexpected notification: {event:?}"),
            None => break,
        }
    }
    state
}

/// Kills the server repeatedly while clients write to it.
async fn check_kill(generations: u64, seed: u64, options: &[&str]) {
    let mut random = SmallRng::seed_from_u64(seed);
    let dir = TempDir::new().unwrap();
    let mut states: Vec<WriterState> = (0..WRITERS)
        .map(|writer| WriterState { home: format!("/writer-{writer}"), ..WriterState::default() })
        .collect();
    let process = Process::start_in(dir.path(), options).await;
    let mut client = RawClient::connect(process.address).await;
    for state in &states {
        client.call(&create(&state.home)).await.unwrap();
    }
    process.kill().await;

    for generation in 0..generations {
        let process = Process::start_in(dir.path(), options).await;
        let hint = format!("seed {seed}, generation {generation}");
        let mut client = RawClient::connect(process.address).await;
        for state in &mut states {
            state.verify(&mut client, &hint).await;
        }

        let (acknowledged, mut count) = watch::channel(0);
        let mut writers = JoinSet::new();
        for state in states.drain(..) {
            let client = RawClient::connect(process.address).await;
            writers.spawn(write(client, state, generation, acknowledged.clone()));
        }
        let enough = random.random_range(1..1000);
        within_timeout(count.wait_for(|count| *count >= enough)).await.unwrap();
        process.kill().await;
        states = within_timeout(writers.join_all()).await;
    }

    let process = Process::start_in(dir.path(), options).await;
    let mut client = RawClient::connect(process.address).await;
    for state in &mut states {
        state.verify(&mut client, &format!("seed {seed}, the end")).await;
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9() {
    check_kill(6, 1, &[]).await;
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9_during_snapshots() {
    check_kill(8, 2, &["--snapshot-every", "20"]).await;
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9_without_fsync() {
    check_kill(4, 3, &["--no-fsync", "--snapshot-every", "100"]).await;
}

#[tokio::test]
async fn transactions_of_several_short_processes_trigger_a_snapshot() {
    let dir = TempDir::new().unwrap();
    let snapshots = || files(dir.path(), "snapshot.").len();

    for generation in 0..5 {
        let process = Process::start_in(dir.path(), &["--snapshot-every", "20"]).await;
        let mut client = RawClient::connect(process.address).await;
        for turn in 0..8 {
            client.call(&create(&format!("/{generation}-{turn}"))).await.unwrap();
        }
        process.terminate().await;
        ended(process).await;
    }

    assert!(snapshots() > 0, "45 transactions and no snapshot");
}

async fn ended(mut process: Process) {
    let (status, _) = process.wait().await;
    assert!(status.success(), "{}", process.stderr());
}

#[tokio::test]
async fn resumed_session_keeps_its_ephemerals_after_a_restart() {
    check_session_recovery(&["--min-session-timeout", "1"]).await;
}

#[tokio::test]
async fn session_is_recovered_from_a_snapshot() {
    check_session_recovery(&["--min-session-timeout", "1", "--snapshot-every", "1"]).await;
}

async fn check_session_recovery(options: &[&str]) {
    let dir = TempDir::new().unwrap();
    let process = Process::start_in(dir.path(), options).await;
    let mut faithful = RawClient::connect(process.address).await;
    let mut fickle = RawClient::connect_for(process.address, Duration::from_secs(2)).await;
    let mut closed = RawClient::connect(process.address).await;
    faithful.call(&create_as("/faithful", CreateMode::Ephemeral)).await.unwrap();
    fickle.call(&create_as("/fickle", CreateMode::Ephemeral)).await.unwrap();
    closed.call(&create_as("/closed", CreateMode::Ephemeral)).await.unwrap();
    closed.call(&Request::CloseSession).await.unwrap();
    process.kill().await;

    let process = Process::start_in(dir.path(), options).await;
    let mut back = faithful.resume(process.address).await;

    assert_eq!((back.session, &back.password), (faithful.session, &faithful.password));
    assert_eq!(back.stat(&exists("/faithful")).await.ephemeral_owner, back.session);
    assert_eq!(back.call(&exists("/closed")).await, Err(Code::NO_NODE));
    let watch = Request::Exists { path: "/fickle".into(), watch: true };
    back.call(&watch).await.expect("a session has its timeout to resume after a restart");
    let event = back.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/fickle"));
    let mut late = RawClient::open(process.address).await;
    assert_eq!(late.handshake(&fickle.resume_request()).await.unwrap().session_id, 0);
    assert!(back.call(&exists("/faithful")).await.is_ok());
}

#[tokio::test]
async fn zxids_and_session_ids_continue_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let process = Process::start_in(dir.path(), &[]).await;
    let mut client = RawClient::connect(process.address).await;
    let newest = client.request(&create("/a")).await.zxid;
    process.kill().await;

    let process = Process::start_in(dir.path(), &[]).await;
    let mut returning = RawClient::open(process.address).await;
    let mut request = client.resume_request();
    request.last_zxid_seen = newest;
    returning
        .handshake(&request)
        .await
        .expect("the server has every transaction the client has seen");
    let mut stranger = RawClient::connect(process.address).await;

    assert!(stranger.request(&create("/b")).await.zxid > newest);
    assert!(stranger.session > client.session);
}

/// Files of the directory whose names begin with `prefix`, sorted.
fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
        .collect();
    files.sort();
    files
}

/// A data directory with acknowledged writes `/0` to `/9`, its newest log, and the end of that log.
async fn written() -> (TempDir, PathBuf, u64) {
    let dir = TempDir::new().unwrap();
    let process = Process::start_in(dir.path(), &[]).await;
    let mut client = RawClient::connect(process.address).await;
    for number in 0..10 {
        client.call(&create(&format!("/{number}"))).await.unwrap();
    }
    process.kill().await;
    let log = files(dir.path(), "log.").pop().expect("there is a log");
    // After the last record the file contains zeros.
    let end = fs::read(&log).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    (dir, log, end)
}

/// Checks that the first `count` nodes exist and that the server accepts writes.
async fn check_nodes(address: SocketAddr, count: usize) {
    let mut client = RawClient::connect(address).await;
    for number in 0..count {
        client.call(&exists(&format!("/{number}"))).await.expect("it was acknowledged");
    }
    client.call(&create("/later")).await.expect("it goes on");
}

#[tokio::test]
async fn torn_log_tail_is_cut_off_and_reported() {
    let (dir, log, end) = written().await;
    let mut file = File::options().write(true).open(&log).unwrap();
    // After the last record, as if only a later part of a write had reached the disk.
    file.seek(SeekFrom::Start(end + 500)).unwrap();
    file.write_all(&[0xa5; 100]).unwrap();

    let process = Process::start_in(dir.path(), &[]).await;

    let log_text = process.stderr();
    let line = log_text.lines().find(|line| line.contains("torn end of the log cut off"));
    let line = line.unwrap_or_else(|| panic!("not reported: {log_text}"));
    assert!(line.contains("WARN"), "{line}");
    assert!(line.contains(log.to_str().unwrap()), "{line}");
    check_nodes(process.address, 10).await;
    process.kill().await;
    let process = Process::start_in(dir.path(), &[]).await;
    assert!(!process.stderr().contains("torn"), "reported once");
    check_later_node(process.address).await;
}

#[tokio::test]
async fn truncated_log_is_used_up_to_its_end_and_reported() {
    let (dir, log, end) = written().await;
    File::options().write(true).open(&log).unwrap().set_len(end - 3).unwrap();

    let process = Process::start_in(dir.path(), &[]).await;

    assert!(process.stderr().contains("torn end of the log cut off"), "{}", process.stderr());
    check_nodes(process.address, 9).await;
    process.kill().await;
    check_later_node(Process::start_in(dir.path(), &[]).await.address).await;
}

async fn check_later_node(address: SocketAddr) {
    let mut client = RawClient::connect(address).await;
    client.call(&exists("/later")).await.expect("it was acknowledged");
}

#[tokio::test]
async fn damaged_log_is_refused_with_a_hint() {
    let (dir, log, end) = written().await;
    let mut file = File::options().write(true).open(&log).unwrap();
    file.seek(SeekFrom::Start(end / 2)).unwrap();
    file.write_all(&[0xa5; 4]).unwrap();

    let data = dir.path().to_str().unwrap();
    let (status, stdout, stderr) =
        super::process::run_refused(&["--listen", "127.0.0.1:0", "--data", data]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert!(stderr.contains("is damaged at byte") && stderr.contains("hint:"), "{stderr}");
}
