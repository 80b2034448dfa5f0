//! Chores of contributors: `cargo xtask stats [--details] [FOLDER]`, `cargo xtask picture`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use throughline_workspace::{SourceError, Stats, Workspace};

const USAGE: &str = "\
Usage: cargo xtask stats [--details] [FOLDER]
       cargo xtask picture

`picture` draws the terminal in README anew, from what the program prints. `stats` prints
the size of the production code, the largest import cycle, type names that are defined more
than once, and exported names that no other crate uses.

  --details  list the cycles and names themselves
  FOLDER     a checkout of the workspace, this one by default";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut folder: Option<PathBuf> = None;
    let mut details = false;
    if arguments == ["picture"] {
        return draw_picture();
    }
    let Some(("stats", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        let asks_for_help = arguments.iter().any(|argument| argument == "--help" || argument == "-h");
        if asks_for_help {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    for argument in rest {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            "--details" => details = true,
            flag if flag.starts_with('-') || folder.is_some() => {
                eprintln!("unexpected argument {flag:?}\n\n{USAGE}");
                return ExitCode::from(2);
            }
            path => folder = Some(PathBuf::from(path)),
        }
    }
    let root = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    match print_stats(&root, details) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the test that compares the picture, and has it write the file.
fn draw_picture() -> ExitCode {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["test", "--workspace", "--test", "cli", "picture"]).env("INSTA_UPDATE", "always");
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn print_stats(root: &Path, details: bool) -> Result<(), SourceError> {
    let stats = Stats::of(&Workspace::read(root)?);
    if details {
        println!("{}\n", stats.details());
    }
    println!("{stats}");
    Ok(())
}
