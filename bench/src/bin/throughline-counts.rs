//! Counts what fixed workloads allocate and, under valgrind, how many instructions they take.

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use throughline_bench::Allocations;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    throughline_bench::count(|| {
        let stats = ALLOCATOR.stats();
        Allocations {
            count: stats.allocations + stats.reallocations,
            // A reallocation counts with the bytes it adds.
            bytes: stats.bytes_allocated,
        }
    })
}
