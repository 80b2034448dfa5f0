//! Benchmarks that print tables.

use std::process::ExitCode;

fn main() -> ExitCode {
    throughline_bench::main()
}
