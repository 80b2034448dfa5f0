//! Fuzzes `throughline_fuzz::claude_log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| throughline_fuzz::claude_log(data));
