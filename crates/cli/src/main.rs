//! The throughline binary: arguments, terminal, home directory, environment. Nothing else knows those.

mod context;
mod failure;
mod files;
mod text;

fn main() {}
