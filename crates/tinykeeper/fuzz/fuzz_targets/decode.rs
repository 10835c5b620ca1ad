//! Any bytes at all: see `tests/server/roundtrip.rs` for what must hold.

#![no_main]

#[path = "../../tests/server/roundtrip.rs"]
mod roundtrip;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roundtrip::check(bytes));
