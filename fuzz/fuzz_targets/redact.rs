//! Fuzzes `throughline_fuzz::redact`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::redact(data));
