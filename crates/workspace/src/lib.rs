//! For tests only: `tests/skipped.rs` is the last program of `cargo test --workspace` and says which tests did not run.
//!
//! Not for: anything that ships.
