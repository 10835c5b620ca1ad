//! For tests: a disk that guarantees only what real disks guarantee. The bytes of a file survive a crash after a sync of the file,
//! a name after a sync of the directory. Anything else may survive in part, in any order, in units of a sector.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::step_recorder::Step;

/// A kind of crash, which decides which unsynced steps survive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Crash {
    /// The process dies, the system continues: all of them survive.
    Kill,
    /// None of them survives.
    PowerLoss,
    /// A random part of them survives, by this seed.
    Partial(u64),
}

/// The files of a directory, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Default)]
pub(super) struct SimulatedDisk {
    files: Vec<Inode>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
}

#[derive(Default)]
struct Inode {
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Clone)]
enum NameChange {
    Link(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

impl SimulatedDisk {
    pub(super) fn with_files(files: &Files) -> SimulatedDisk {
        let mut disk = SimulatedDisk::default();
        for (name, bytes) in files {
            disk.names.insert(name.clone(), disk.files.len());
            disk.files.push(Inode { synced: bytes.clone(), unsynced: Vec::new() });
        }
        disk.synced_names = disk.names.clone();
        disk
    }

    pub(super) fn apply(&mut self, step: &Step) {
        match step {
            Step::Create(path) => {
                // The store never creates a file over an existing one.
                assert!(!self.names.contains_key(&name(path)), "{path:?}");
                self.files.push(Inode::default());
                self.rename(NameChange::Link(name(path), self.files.len() - 1));
            }
            Step::Write { path, offset, bytes } => {
                self.change(path, Change::Write(*offset as usize, bytes.clone()));
            }
            Step::SetLen { path, len } => self.change(path, Change::SetLen(*len as usize)),
            Step::Sync(path) => {
                let file = &mut self.files[self.names[&name(path)]];
                for change in file.unsynced.drain(..) {
                    change.apply(&mut file.synced, |_| true);
                }
            }
            Step::Rename { from, to } => {
                let file = self.names[&name(from)];
                self.rename(NameChange::Rename(name(from), name(to), file));
            }
            Step::Remove(path) => self.rename(NameChange::Remove(name(path))),
            Step::SyncDir => {
                self.unsynced_names.clear();
                self.synced_names = self.names.clone();
            }
        }
    }

    fn change(&mut self, path: &Path, change: Change) {
        self.files[self.names[&name(path)]].unsynced.push(change);
    }

    fn rename(&mut self, change: NameChange) {
        change.clone().apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    /// The files that exist after the crash.
    pub(super) fn files_after(self, crash: Crash) -> Files {
        let mut random = Random(if let Crash::Partial(seed) = crash { seed } else { 0 });
        let mut survives = || match crash {
            Crash::Kill => true,
            Crash::PowerLoss => false,
            Crash::Partial(_) => random.below(2) == 0,
        };
        let mut names = self.synced_names;
        for change in self.unsynced_names {
            if survives() {
                change.apply(&mut names);
            }
        }
        let mut contents = Vec::new();
        for file in self.files {
            let mut bytes = file.synced;
            for change in file.unsynced {
                change.apply(&mut bytes, |_| survives());
            }
            contents.push(bytes);
        }
        names.into_iter().map(|(name, file)| (name, contents[file].clone())).collect()
    }
}

impl Change {
    /// Applies the sectors of this change that survive to `bytes`.
    fn apply(self, bytes: &mut Vec<u8>, mut survives: impl FnMut(usize) -> bool) {
        const SECTOR: usize = 16;
        match self {
            Change::SetLen(len) => {
                if survives(0) {
                    bytes.resize(len, 0);
                }
            }
            Change::Write(offset, written) => {
                for (number, sector) in written.chunks(SECTOR).enumerate() {
                    let start = offset + number * SECTOR;
                    if survives(number) {
                        bytes.resize(bytes.len().max(start + sector.len()), 0);
                        bytes[start..start + sector.len()].copy_from_slice(sector);
                    }
                }
            }
        }
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Link(name, file) => {
                names.insert(name, file);
            }
            NameChange::Rename(from, to, file) => {
                names.remove(&from);
                names.insert(to, file);
            }
            NameChange::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}

/// A temporary directory, in memory if possible: thousands of them on a busy disk take minutes.
pub(super) fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

pub(super) fn write_files(files: &Files) -> tempfile::TempDir {
    let dir = temp_dir();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

pub(super) fn read_files(dir: &Path) -> Files {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path: PathBuf| (name(&path), fs::read(&path).unwrap())).collect()
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// splitmix64, deterministic for a seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
