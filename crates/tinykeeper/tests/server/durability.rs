//! What survives `kill -9`: everything that was acknowledged, whatever the server was doing.

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
    raw::{Incoming, Raw, children, create, create_as, delete, exists, get, set},
    soon,
};

const WRITERS: usize = 4;
/// How many requests of one writer are on their way at once.
const IN_FLIGHT: usize = 8;

/// Something a writer does.
#[derive(Debug, Clone)]
enum Deed {
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

/// What one writer knows of its own node and the children of that.
#[derive(Debug, Default)]
struct Memory {
    home: String,
    /// The last value acknowledged, in its version.
    value: Option<(i32, String)>,
    /// Values that may or may not have been set after that.
    in_doubt: VecDeque<String>,
    there: BTreeSet<String>,
    gone: BTreeSet<String>,
}

impl Memory {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.home)
    }

    fn planting(&self, name: &str) -> Op {
        let path = self.path(name);
        let data = Some(Bytes::from(path.clone()));
        let mode = CreateMode::Persistent;
        Op::Create(Create { path, data, acl: Acl::open(), mode, with_stat: true })
    }

    fn request(&self, deed: &Deed) -> Request {
        match deed {
            Deed::Set { value } => set(&self.home, value.clone()),
            Deed::Create { name } => Request::Write(self.planting(name)),
            Deed::Pair { name } => Request::Multi(
                ["left", "right"].map(|side| self.planting(&format!("{name}-{side}"))).to_vec(),
            ),
            Deed::Delete { name } => delete(&self.path(name)),
        }
    }

    /// From here on it may happen.
    fn attempt(&mut self, deed: &Deed) {
        match deed {
            Deed::Set { value } => self.in_doubt.push_back(value.clone()),
            Deed::Delete { name } => {
                self.there.remove(name);
            }
            Deed::Create { .. } | Deed::Pair { .. } => {}
        }
    }

    /// It has happened: the server said so.
    fn acknowledge(&mut self, deed: Deed, response: Response) {
        match (deed, response) {
            (Deed::Set { value }, Response::Stat(stat)) => {
                self.in_doubt.pop_front();
                self.value = Some((stat.version, value));
            }
            (Deed::Create { name }, Response::Create2 { .. }) => {
                self.there.insert(name);
            }
            (Deed::Pair { name }, Response::Multi(results)) => {
                assert!(results.iter().all(|result| matches!(result, MultiResult::Create { .. })));
                self.there.extend(["left", "right"].map(|side| format!("{name}-{side}")));
            }
            (Deed::Delete { name }, Response::Empty) => {
                self.gone.insert(name);
            }
            (deed, response) => panic!("{deed:?} was answered {response:?}"),
        }
    }

    /// Everything acknowledged is there; what is in doubt is settled now.
    async fn verify(&mut self, client: &mut Raw, hint: &str) {
        let Ok(Response::Data { data: Some(data), stat }) = client.call(&get(&self.home)).await
        else {
            panic!("{} is gone; {hint}", self.home)
        };
        let found = String::from_utf8(data.to_vec()).unwrap();
        if let Some((version, value)) = &self.value {
            assert!(stat.version >= *version, "version {version} of {} is lost; {hint}", self.home);
            let is_it = stat.version == *version && found == *value;
            let is_later = stat.version > *version && self.in_doubt.contains(&found);
            assert!(is_it || is_later, "{found} instead of {value}; {hint}");
        }
        self.value = Some((stat.version, found));
        self.in_doubt.clear();

        let Ok(Response::Children(names)) = client.call(&children(&self.home)).await else {
            panic!("no children of {}; {hint}", self.home)
        };
        let names: BTreeSet<String> = names.into_iter().collect();
        let lost: Vec<_> = self.there.difference(&names).collect();
        assert!(lost.is_empty(), "{lost:?} of {} were acknowledged; {hint}", self.home);
        let back: Vec<_> = self.gone.intersection(&names).collect();
        assert!(back.is_empty(), "{back:?} of {} were deleted; {hint}", self.home);
        for name in &names {
            if let Some(pair) = name.strip_suffix("-left") {
                assert!(names.contains(&format!("{pair}-right")), "half of {pair}; {hint}");
            }
            client.submit(&get(&self.path(name))).await;
        }
        for name in &names {
            let Ok(Response::Data { data, stat }) = client.answer().await.result else {
                panic!("{name} cannot be read; {hint}")
            };
            assert_eq!(data, Some(Bytes::from(self.path(name))), "{hint}");
            assert_eq!(stat.version, 0);
        }
        self.there = names;
    }
}

/// Writes as fast as it can until the server is gone.
async fn write(
    mut client: Raw,
    mut memory: Memory,
    life: u64,
    acknowledged: watch::Sender<u64>,
) -> Memory {
    let mut flying = VecDeque::new();
    for turn in 0.. {
        let name = format!("{life}-{turn:06}");
        let deed = match turn % 4 {
            1 => Deed::Pair { name },
            2 => Deed::Create { name },
            // One whose creation was acknowledged: it is no longer on its way.
            3 if turn > 13 => Deed::Delete { name: format!("{life}-{:06}", turn - 13) },
            _ => Deed::Set { value: name },
        };
        memory.attempt(&deed);
        client.submit(&memory.request(&deed)).await;
        flying.push_back(deed);
        if flying.len() < IN_FLIGHT {
            continue;
        }
        match client.incoming().await {
            Some(Incoming::Answer(answer)) => {
                let deed = flying.pop_front().expect("something was asked");
                let response = answer.result.unwrap_or_else(|code| panic!("{deed:?}: {code}"));
                memory.acknowledge(deed, response);
                acknowledged.send_modify(|count| *count += 1);
            }
            Some(Incoming::Event(event)) => panic!("nobody watches, yet {event:?}"),
            None => break,
        }
    }
    memory
}

/// Kills the server again and again while it is written to.
async fn survive(lives: u64, seed: u64, options: &[&str]) {
    let mut random = SmallRng::seed_from_u64(seed);
    let folder = TempDir::new().unwrap();
    let mut memories: Vec<Memory> = (0..WRITERS)
        .map(|writer| Memory { home: format!("/writer-{writer}"), ..Memory::default() })
        .collect();
    let process = Process::start_in(folder.path(), options).await;
    let mut client = Raw::connect(process.address).await;
    for memory in &memories {
        client.call(&create(&memory.home)).await.unwrap();
    }
    process.kill().await;

    for life in 0..lives {
        let process = Process::start_in(folder.path(), options).await;
        let hint = format!("seed {seed}, life {life}");
        let mut client = Raw::connect(process.address).await;
        for memory in &mut memories {
            memory.verify(&mut client, &hint).await;
        }

        let (acknowledged, mut count) = watch::channel(0);
        let mut writers = JoinSet::new();
        for memory in memories.drain(..) {
            let client = Raw::connect(process.address).await;
            writers.spawn(write(client, memory, life, acknowledged.clone()));
        }
        let enough = random.random_range(1..1000);
        soon(count.wait_for(|count| *count >= enough)).await.unwrap();
        process.kill().await;
        memories = soon(writers.join_all()).await;
    }

    let process = Process::start_in(folder.path(), options).await;
    let mut client = Raw::connect(process.address).await;
    for memory in &mut memories {
        memory.verify(&mut client, &format!("seed {seed}, the end")).await;
    }
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_kill_9_while_many_write() {
    survive(6, 1, &[]).await;
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_kill_9_while_snapshots_are_written() {
    survive(8, 2, &["--snapshot-every", "20"]).await;
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_kill_9_without_fsync_too() {
    survive(4, 3, &["--no-fsync", "--snapshot-every", "100"]).await;
}

#[tokio::test]
async fn lives_too_short_for_a_snapshot_add_up_to_one() {
    let folder = TempDir::new().unwrap();
    let snapshots = || files(folder.path(), "snapshot.").len();

    for life in 0..5 {
        let process = Process::start_in(folder.path(), &["--snapshot-every", "20"]).await;
        let mut client = Raw::connect(process.address).await;
        for turn in 0..8 {
            client.call(&create(&format!("/{life}-{turn}"))).await.unwrap();
        }
        process.terminate().await;
        ended(process).await;
    }

    assert!(snapshots() > 0, "45 transactions and no snapshot");
}

async fn ended(mut process: Process) {
    let (status, _) = process.ended().await;
    assert!(status.success(), "{}", process.stderr());
}

#[tokio::test]
async fn a_session_that_comes_back_keeps_its_ephemerals_and_one_that_does_not_loses_them() {
    come_back_or_not(&["--min-session-timeout", "1"]).await;
}

#[tokio::test]
async fn a_session_comes_back_from_a_snapshot_as_well_as_from_the_log() {
    come_back_or_not(&["--min-session-timeout", "1", "--snapshot-every", "1"]).await;
}

async fn come_back_or_not(options: &[&str]) {
    let folder = TempDir::new().unwrap();
    let process = Process::start_in(folder.path(), options).await;
    let mut faithful = Raw::connect(process.address).await;
    let mut fickle = Raw::connect_for(process.address, Duration::from_secs(2)).await;
    let mut closed = Raw::connect(process.address).await;
    faithful.call(&create_as("/faithful", CreateMode::Ephemeral)).await.unwrap();
    fickle.call(&create_as("/fickle", CreateMode::Ephemeral)).await.unwrap();
    closed.call(&create_as("/closed", CreateMode::Ephemeral)).await.unwrap();
    closed.call(&Request::CloseSession).await.unwrap();
    process.kill().await;

    let process = Process::start_in(folder.path(), options).await;
    let mut back = faithful.resume(process.address).await;

    assert_eq!((back.session, &back.password), (faithful.session, &faithful.password));
    assert_eq!(back.stat(&exists("/faithful")).await.ephemeral_owner, back.session);
    assert_eq!(back.call(&exists("/closed")).await, Err(Code::NO_NODE));
    let watch = Request::Exists { path: "/fickle".into(), watch: true };
    back.call(&watch).await.expect("it has its timeout to come back");
    let event = back.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/fickle"));
    let mut late = Raw::dial(process.address).await;
    assert_eq!(late.hello(&fickle.returning()).await.unwrap().session_id, 0);
    assert!(back.call(&exists("/faithful")).await.is_ok());
}

#[tokio::test]
async fn transactions_and_sessions_go_on_counting_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let process = Process::start_in(folder.path(), &[]).await;
    let mut client = Raw::connect(process.address).await;
    let newest = client.ask(&create("/a")).await.zxid;
    process.kill().await;

    let process = Process::start_in(folder.path(), &[]).await;
    let mut returning = Raw::dial(process.address).await;
    let mut request = client.returning();
    request.last_zxid_seen = newest;
    returning.hello(&request).await.expect("a server that has everything the client saw");
    let mut stranger = Raw::connect(process.address).await;

    assert!(stranger.ask(&create("/b")).await.zxid > newest);
    assert!(stranger.session > client.session);
}

/// Files of the folder whose names begin like this, in order.
fn files(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
        .collect();
    files.sort();
    files
}

/// A folder with acknowledged writes `/0` to `/9` in it, its newest log, and where that ends.
async fn written() -> (TempDir, PathBuf, u64) {
    let folder = TempDir::new().unwrap();
    let process = Process::start_in(folder.path(), &[]).await;
    let mut client = Raw::connect(process.address).await;
    for number in 0..10 {
        client.call(&create(&format!("/{number}"))).await.unwrap();
    }
    process.kill().await;
    let log = files(folder.path(), "log.").pop().expect("there is a log");
    // Behind the last record the file is zeros.
    let end = fs::read(&log).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    (folder, log, end)
}

/// The first so many nodes are there, and the server takes more.
async fn has(address: SocketAddr, count: usize) {
    let mut client = Raw::connect(address).await;
    for number in 0..count {
        client.call(&exists(&format!("/{number}"))).await.expect("it was acknowledged");
    }
    client.call(&create("/later")).await.expect("it goes on");
}

#[tokio::test]
async fn a_torn_end_of_the_log_is_cut_off_and_reported_and_everything_before_it_is_there() {
    let (folder, log, end) = written().await;
    let mut file = File::options().write(true).open(&log).unwrap();
    // Somewhere behind the last record: of what was being written, only a later part reached the disk.
    file.seek(SeekFrom::Start(end + 500)).unwrap();
    file.write_all(&[0xa5; 100]).unwrap();

    let process = Process::start_in(folder.path(), &[]).await;

    let said = process.stderr();
    let line = said.lines().find(|line| line.contains("torn end of the log cut off"));
    let line = line.unwrap_or_else(|| panic!("not reported: {said}"));
    assert!(line.contains("WARN"), "{line}");
    assert!(line.contains(log.to_str().unwrap()), "{line}");
    has(process.address, 10).await;
    process.kill().await;
    let process = Process::start_in(folder.path(), &[]).await;
    assert!(!process.stderr().contains("torn"), "reported once");
    has_later(process.address).await;
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_used_up_to_there_and_that_is_reported() {
    let (folder, log, end) = written().await;
    File::options().write(true).open(&log).unwrap().set_len(end - 3).unwrap();

    let process = Process::start_in(folder.path(), &[]).await;

    assert!(process.stderr().contains("torn end of the log cut off"), "{}", process.stderr());
    has(process.address, 9).await;
    process.kill().await;
    has_later(Process::start_in(folder.path(), &[]).await.address).await;
}

async fn has_later(address: SocketAddr) {
    let mut client = Raw::connect(address).await;
    client.call(&exists("/later")).await.expect("it was acknowledged");
}

#[tokio::test]
async fn damage_that_no_crash_explains_is_refused_with_a_way_out() {
    let (folder, log, end) = written().await;
    let mut file = File::options().write(true).open(&log).unwrap();
    file.seek(SeekFrom::Start(end / 2)).unwrap();
    file.write_all(&[0xa5; 4]).unwrap();

    let data = folder.path().to_str().unwrap();
    let (status, stdout, stderr) =
        super::process::refused(&["--listen", "127.0.0.1:0", "--data", data]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert!(stderr.contains("is damaged at byte") && stderr.contains("hint:"), "{stderr}");
}
