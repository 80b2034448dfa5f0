//! Fuzzes `throughline_fuzz::codex_log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::codex_log(data));
