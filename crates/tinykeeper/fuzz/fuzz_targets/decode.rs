//! Decodes arbitrary bytes; `tests/server/roundtrip.rs` checks the properties.

#![no_main]

#[path = "../../tests/server/roundtrip.rs"]
mod roundtrip;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roundtrip::check(bytes));
