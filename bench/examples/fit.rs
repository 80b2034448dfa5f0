//! Makes the priors of the estimator: fits the weights of every family and prints the table for
//! `crates/tokens/src/weights.rs`.
//!
//! ```text
//! cargo run --release -p throughline-bench --example fit -- CORPUS SESSIONS
//! ```
//!
//! `CORPUS` is a folder of `.jsonl` files, one class of text each (a language, a file format), one sample a line:
//! `{"text": "...", "llama3": 123, "qwen2": 119, ...}`. The OpenAI encodings are counted here, other vocabularies are
//! read from the members named in `GENERIC`. `SESSIONS` is a folder of recorded Claude Code sessions.

#[path = "../src/recorded.rs"]
#[expect(dead_code, reason = "shared with the benchmarks; only its file reading is needed here")]
mod recorded;
#[path = "../src/estimate/steps.rs"]
mod steps;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use throughline_tokens::{Encoding, FEATURE_COUNT, Feature, FitOptions, Sample, fit_weights, profile_text, relative_error};

/// Vocabularies whose mean is the generic family.
const GENERIC: [&str; 4] = ["llama3", "qwen2", "deepseek_v3", "mistral_v3"];
