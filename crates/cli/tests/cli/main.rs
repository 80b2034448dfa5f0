//! The program as a user meets it: arguments in; stdout, stderr and exit code out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod artifact_places;
mod bad_input;
mod basics;
mod chat;
#[cfg(unix)]
mod chat_first_run;
#[cfg(unix)]
mod chat_local_model;
#[cfg(unix)]
mod chat_models;
#[cfg(unix)]
mod chat_named_model;
#[cfg(unix)]
mod chat_one_slot;
#[cfg(unix)]
mod chat_resume;
#[cfg(unix)]
mod chat_terminal;
#[cfg(unix)]
mod chat_trouble;
mod chat_words;
mod clients;
mod compress;
mod contract;
#[cfg(feature = "postgres")]
mod copy_killed;
mod deploy;
#[cfg(unix)]
mod engines;
#[cfg(unix)]
mod first_minute;
mod golden;
mod golden_inputs;
mod harness;
mod inspect;
mod limits;
#[cfg(unix)]
#[expect(clippy::panic, reason = "a test that cannot go on should say where")]
#[path = "../../../engine/tests/suite/local_model/server.rs"]
mod local_model;
mod mcp;
mod models;
#[cfg(unix)]
mod one_figure;
mod picture;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod reference;
mod replay;
#[cfg(target_os = "linux")]
mod run;
mod samples;
mod settings;
mod setup;
mod state;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod widths;
