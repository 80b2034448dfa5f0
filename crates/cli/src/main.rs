//! The throughline binary: arguments, terminal, home directory, environment. Nothing else knows those.

fn main() {}
