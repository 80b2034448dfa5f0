//! Counts that are equal in every run: the allocations and instructions of fixed workloads.
//!
//! Wall time on a shared machine varies by a fifth, which hides a regression of a few percent. These counts are of the second round of
//! each workload, after one that fills caches and pools. Parts: `workloads` the workloads, `bounds` the stored bounds, `instructions`
//! counts with valgrind, `table` the output.
//!
//! Not for: durations.

mod bounds;
mod compaction;
mod gateway;
mod instructions;
mod record;
mod table;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

pub use workloads::Allocations;

#[derive(Parser)]
#[command(name = "throughline-counts", about = "Counts allocations and instructions of fixed workloads")]
struct Args {
    /// Another build of this program, counted beside it.
    #[arg(long)]
    against: Option<PathBuf>,
    /// Count instructions too; needs valgrind.
    #[arg(long)]
    instructions: bool,
    /// Fail where a workload allocates more than 3 % above its bound in this file.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Write the counts to this file as the new bounds.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Only workloads whose name begins like this.
    #[arg(long, default_value = "")]
    only: String,
    /// One line a workload with tabs, for programs.
    #[arg(long)]
    plain: bool,
    /// Run so many rounds of the workload with exactly this name in `only` and print nothing, for valgrind.
    #[arg(long, hide = true)]
    rounds: Option<usize>,
}

/// Runs the program. `allocations` returns the allocations of the process so far.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "printing tables is what this program does")]
pub fn main(allocations: impl Fn() -> Allocations) -> ExitCode {
    match run(&Args::parse(), &allocations) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, allocations: &dyn Fn() -> Allocations) -> Result<String, String> {
    if let Some(rounds) = args.rounds {
        let workload = workloads::ALL.iter().find(|workload| workload.name == args.only);
        workload.ok_or_else(|| format!("no workload is called {}", args.only))?.run(rounds)?;
        return Ok(String::new());
    }
    let chosen = workloads::ALL.iter().filter(|workload| workload.name.starts_with(&args.only));
    let mut counted = Vec::new();
    for workload in chosen {
        counted.push(workload.count(allocations)?);
    }
    if args.instructions {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        for workload in &mut counted {
            workload.instructions = Some(instructions::of(&program, &workload.name)?);
        }
    }
    if let Some(file) = &args.write {
        bounds::write(file, &counted)?;
    }
    if let Some(file) = &args.check {
        return bounds::check(file, &counted);
    }
    if args.plain {
        return Ok(table::plain(&counted));
    }
    match &args.against {
        None => Ok(table::alone(&counted)),
        Some(other) => {
            let before = table::of_program(other, &args.only, args.instructions)?;
            table::side_by_side(&before, &counted)
        }
    }
}
