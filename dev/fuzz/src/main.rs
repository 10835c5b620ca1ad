//! One fuzz target for each reader of bytes from outside; `FUZZ_TARGET` chooses it, `dev/fuzz/run.py` runs them one after another.
//!
//! A target checks more than the absence of panics: what was read and written again reads as the same value, memory stays in proportion to the
//! input, and every answer comes within a second of processor time.

#![no_main]

mod api;
mod cron;
mod job_file;
mod limits;
mod server;
mod stored;
mod url;
// The properties that the tests of the crate check, too.
#[allow(dead_code)]
#[path = "../../../crates/tinykeeper/tests/server/roundtrip.rs"]
mod roundtrip;

use std::{env, sync::LazyLock};

use libfuzzer_sys::{Corpus, fuzz_target};
use limits::Limits;

type Target = fn(&[u8]) -> Corpus;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    match name.as_str() {
        "wire" => wire,
        "server" => server::check,
        "yaml" => |bytes| job_file::check("yml", bytes),
        "json" => |bytes| job_file::check("json", bytes),
        "xml" => |bytes| job_file::check("xml", bytes),
        "properties" => |bytes| job_file::check("properties", bytes),
        "toml" => |bytes| job_file::check("toml", bytes),
        "stored" => stored::config,
        "ledger" => stored::ledger,
        "trigger" => stored::trigger,
        "cron" => cron::check,
        "url" => url::check,
        "api" => api::check,
        other => panic!("FUZZ_TARGET is {other:?}; dev/fuzz/run.py --list names the targets"),
    }
});

fuzz_target!(|bytes: &[u8]| -> Corpus { (*TARGET)(bytes) });

fn wire(bytes: &[u8]) -> Corpus {
    // Every operation is tried on the same bytes, twice.
    let limits = Limits { fixed: 64 << 10, per_byte: 64 };
    limits.check(bytes.len(), || roundtrip::check(bytes));
    Corpus::Keep
}
