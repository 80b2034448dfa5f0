//! The tests of the crate's public surface, as one program.

mod adversarial;
mod left_alone;
mod masked;
mod properties;
