//! The tests of the crate's public surface, as one program.

mod local_model;
mod managed;
mod summaries;
