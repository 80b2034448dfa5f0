//! Benchmarks that print tables: retention, speed, estimates, the record.

mod anchor;
mod chat;
mod estimate;
mod gateway;
mod lcm;
mod measure;
mod prepare;
mod recorded;
mod replay;
mod retention;
mod scale;
mod speed;
mod store;
mod store_texts;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "throughline-bench", about = "Benchmarks that print tables")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// How many of the anchors an agent needs later survive a compaction.
    Retention {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
        /// List what was not found.
        #[arg(long)]
        missing: bool,
    },
    /// How far estimates are from the provider's own figures.
    Estimate {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
    },
    /// What recorded sessions cost through the managed call, against what their own client's prompts cost.
    Replay {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
    },
    /// What the gateway adds to a call, and what many open streams take.
    Gateway {
        /// The program.
        #[arg(long, default_value = "target/release/throughline")]
        program: PathBuf,
        /// LiteLLM's proxy, to be measured beside it.
        #[arg(long)]
        litellm: Option<PathBuf>,
    },
    /// What recorded sessions cost through the gateway, against the same requests sent directly.
    GatewayCost {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
        /// The program.
        #[arg(long, default_value = "target/release/throughline")]
        program: PathBuf,
        /// Let the conversation's own model write summaries, at the client's expense.
        #[arg(long)]
        own_model: bool,
    },
    /// How fast transcripts are decoded and compacted.
    Speed,
    /// How time and memory grow with the input.
    Scale {
        /// Sizes in megabytes.
        #[arg(default_values_t = [10, 50, 100, 400])]
        megabytes: Vec<usize>,
    },
    /// What the lossless engine keeps in view and finds again, beside the compressor; what it costs in a conversation of
    /// ten million tokens.
    Lcm {
        /// Folder of recorded Claude Code sessions; without it, only the generated conversation.
        #[arg(long)]
        data: Option<PathBuf>,
        /// Tokens of the generated conversation; zero for none.
        #[arg(long, default_value_t = 10_000_000)]
        tokens: u64,
    },
    /// How long a call takes to prepare in a conversation of a million tokens.
    Prepare,
    /// How fast the record takes messages, how large it gets, how fast it answers.
    Store {
        /// How many messages.
        #[arg(long, default_value_t = 1_000_000)]
        messages: usize,
        /// Where to keep the record; a folder that goes away afterwards if none is given.
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// How long `throughline chat` takes to its prompt beside a large record, and what it adds to the first token.
    Chat {
        /// The program that is measured.
        #[arg(long, default_value = "target/release/throughline")]
        program: PathBuf,
        /// How many messages its record has.
        #[arg(long, default_value_t = 100_000)]
        messages: usize,
    },
    /// One size, for `scale`.
    #[command(hide = true)]
    ScaleOne {
        /// The file to read.
        path: PathBuf,
    },
    /// The whole summary of one recorded session.
    Show {
        /// Folder of recorded sessions.
        folder: PathBuf,
        /// Part of the file's name.
        name: String,
        /// Where it is cut, in percent of its tokens.
        #[arg(long, default_value_t = 70)]
        percent: u64,
    },
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "printing tables is what this program does")]
fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Retention { folder, missing } => {
            let detail = if missing { retention::Detail::Missing } else { retention::Detail::Figures };
            retention::run(&folder, detail)
        }
        Command::Estimate { folder } => estimate::run(&folder),
        Command::Replay { folder } => replay::run(&folder),
        Command::GatewayCost { folder, program, own_model } => {
            use gateway::cost::Authors;
            let authors = if own_model { Authors::OwnModel } else { Authors::AsShipped };
            gateway::cost::run(&program, &folder, authors)
        }
        Command::Gateway { program, litellm } => gateway::run(&program, litellm),
        Command::Speed => speed::run(),
        Command::Scale { megabytes } => scale::run(&megabytes),
        Command::Lcm { data, tokens } => lcm::run(data.as_deref(), tokens),
        Command::Prepare => prepare::run(),
        Command::Store { messages, folder } => store(folder, messages),
        Command::Chat { program, messages } => chat::run(&program, messages),
        Command::ScaleOne { path } => scale::one(&path),
        Command::Show { folder, name, percent } => retention::show(&folder, &name, percent),
    };
    match result {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn store(folder: Option<PathBuf>, messages: usize) -> Result<String, String> {
    match folder {
        Some(folder) => store::run(&folder, messages),
        None => {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            store::run(folder.path(), messages)
        }
    }
}
