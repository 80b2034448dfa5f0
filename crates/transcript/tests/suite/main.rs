//! The tests of the crate's public surface, as one program.

mod cuts;
mod groups;
mod properties;
mod recorded;
