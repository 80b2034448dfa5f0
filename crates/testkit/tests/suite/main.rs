//! The tests of the crate's public surface, as one program.

mod big;
mod generators;
mod notation;
mod throughput;
#[cfg(feature = "upstream")]
mod upstream;
