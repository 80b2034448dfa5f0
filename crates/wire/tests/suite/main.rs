//! The tests of the crate's public surface, as one program.

mod answers;
mod requests;
