//! Benchmarks that print tables: retention, speed, estimates.

fn main() {}
