//! The commands of `throughline-bench`, one table each.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    chat, compare, economy, estimate, fleet, focus, gateway, index, lcm, prepare, recall, replay, retention,
    scale, shrink, speed, store, takeover,
};

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
    /// The error of estimates against the provider's counts.
    Estimate {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
    },
    /// The cost of recorded sessions through the managed call, compared with their own client's prompts.
    Replay {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
    },
    /// The cost of recorded sessions in each mode of `economy`, compared with their own client's prompts.
    Economy {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
        /// Print a line for each session.
        #[arg(long)]
        sessions: bool,
        /// Only these modes, for example balanced (repeatable).
        #[arg(long = "only", value_name = "MODE")]
        only: Vec<String>,
        /// Only notes by rules, or only by a model.
        #[arg(long, value_enum)]
        notes: Option<economy::Author>,
        /// Take system prompt and tools from this Claude Code (target/clients/node_modules/.bin/claude) instead of texts of the same sizes.
        #[arg(long, value_name = "PROGRAM")]
        client: Option<PathBuf>,
        /// Folder of marks, one file for each session: also print what the sent views contain.
        #[arg(long)]
        truth: Option<PathBuf>,
        /// The model of conversations that name none.
        #[arg(long)]
        model: Option<String>,
    },
    /// The latency that the gateway adds to a call, and the memory of many open streams.
    Gateway {
        /// The program.
        #[arg(long, default_value = "target/release/throughline")]
        program: PathBuf,
        /// LiteLLM's proxy, to be measured beside it.
        #[arg(long, conflicts_with = "against")]
        litellm: Option<PathBuf>,
        /// Another build of the program: both are measured in turns, five times, and printed with their spread.
        #[arg(long)]
        against: Option<PathBuf>,
    },
    /// Several gateways on one PostgreSQL beside one on SQLite: calls per second and added latency; a record of a million messages on
    /// either; and with --simulate the load at which latency degrades.
    Fleet(fleet::FleetArgs),
    /// The cost of recorded sessions through the gateway, compared with the same requests sent directly.
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
    /// The cost of recorded sessions through the gateway in each mode of `economy`, and through Headroom's proxy.
    Beside {
        /// Folder of recorded Claude Code sessions.
        folder: PathBuf,
        /// The program.
        #[arg(long, default_value = "target/release/throughline")]
        program: PathBuf,
        /// The command `headroom` (PyPI `headroom-ai[proxy]`). It needs a vocabulary for its tokenizer, which it would
        /// download: name a folder that has one in `TIKTOKEN_CACHE_DIR`.
        #[arg(long)]
        headroom: Option<PathBuf>,
    },
    /// Whether an engineer could take over after a compaction: notes and views against what a reader marked as true.
    Takeover {
        /// Folder of recorded Claude Code sessions.
        #[arg(required_unless_present = "generated")]
        sessions: Option<PathBuf>,
        /// Folder of marks, one file for each session.
        #[arg(long, required_unless_present = "generated")]
        truth: Option<PathBuf>,
        /// Use this many generated conversations instead, in which the fate of every request is known.
        #[arg(long, value_name = "N", conflicts_with_all = ["sessions", "truth"])]
        generated: Option<u64>,
        /// The model's window, in tokens.
        #[arg(long, default_value_t = 200_000)]
        window: u64,
        /// Compact the past this many times, in parts of equal size, instead of where the recorded client did; several
        /// numbers, separated by commas, give a column each.
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=20))]
        parts: Vec<u64>,
        /// A setting over the defaults, for example compression.target_ratio=0.1 (repeatable).
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Measure views at these values of compression.target_tokens too.
        #[arg(long = "target", value_name = "TOKENS", value_delimiter = ',')]
        targets: Vec<u64>,
        /// Folder of notes (NAME.md) that are used as a model's answer and merged as the gateway merges them.
        #[arg(long)]
        words: Option<PathBuf>,
        /// A Python that has the package `hermes-agent`, for a column of its rules.
        #[arg(long)]
        hermes: Option<PathBuf>,
        /// Only this session, with its notes beside the marks.
        #[arg(long)]
        show: Option<String>,
        /// Write the notes of every column to this folder.
        #[arg(long)]
        dump: Option<PathBuf>,
        /// Also print the figures that must not get worse: prompts, spared re-reads, anchors, shares of the sections.
        #[arg(long)]
        floors: bool,
        /// Print figures as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Whether questions in plain words find the passages that answer them, beside plain BM25 and the newest passages.
    Recall {
        /// Folder of recorded Claude Code sessions, of marks, or of both (`claude-code`, `takeover`).
        folder: Option<PathBuf>,
        /// Folder of marks, one file for each session.
        #[arg(long)]
        truth: Option<PathBuf>,
        /// File or folder in the format of LoCoMo.
        #[arg(long)]
        locomo: Option<PathBuf>,
        /// Folder in the format of BEAM.
        #[arg(long)]
        beam: Option<PathBuf>,
        /// A static model (*.safetensors with its tokenizer, or their folder) for a column with vectors.
        #[arg(long)]
        static_model: Option<PathBuf>,
        /// Its tokenizer, when that is not beside it.
        #[arg(long)]
        tokenizer: Option<PathBuf>,
        /// The number of generated conversations with questions in other words.
        #[arg(long, value_name = "N", default_value_t = 10)]
        generated: u64,
        /// List questions that were not answered.
        #[arg(long)]
        missing: bool,
    },
    /// The index of the record beside full-text tables of SQLite: speed, size, questions.
    Index {
        /// The number of messages.
        #[arg(long, default_value_t = 1_000_000)]
        messages: usize,
        /// Folder for the databases, which stay there and are used again by the next run.
        #[arg(long)]
        folder: PathBuf,
        /// Only the record.
        #[arg(long)]
        only_record: bool,
    },
    /// What three compactions in a row keep of CompactBench's practice sets, put anywhere in a conversation.
    CompactBench {
        /// Folder of its templates: `benchmarks/public` in its source distribution.
        sets: PathBuf,
        /// A Python that has the package `compactbench`.
        #[arg(long, default_value = "python3")]
        python: PathBuf,
        /// Cases of each template.
        #[arg(long, default_value_t = 5)]
        seeds: u32,
    },
    /// How much of a summary by rules is about its focus, in generated conversations with known topics.
    Focus,
    /// How fast transcripts are decoded and compacted.
    Speed,
    /// How fast tool results are shortened, and what is left of them.
    Shrink,
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
        /// Folder for the record; without it, a temporary folder.
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
    /// Any of these commands by two builds of this program in turns, figure by figure with their spread.
    Compare {
        /// The other build of this program.
        #[arg(long)]
        against: PathBuf,
        /// The build of `throughline` for commands that take `--program`, ...
        #[arg(long, requires = "against_program")]
        program: Option<PathBuf>,
        /// ... and the other build.
        #[arg(long, requires = "program")]
        against_program: Option<PathBuf>,
        /// How often each is run.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// The command with its arguments, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<String>,
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

/// Runs the command that the arguments name, and prints its table.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "printing tables is what this program does")]
pub fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Retention { folder, missing } => {
            let detail = if missing { retention::Detail::Missing } else { retention::Detail::Figures };
            retention::run(&folder, detail)
        }
        Command::Estimate { folder } => estimate::run(&folder),
        Command::Replay { folder } => replay::run(&folder),
        Command::Economy { folder, sessions, only, notes, client, truth, model } => {
            let detail = if sessions { economy::Detail::Sessions } else { economy::Detail::Sums };
            let (client, truth) = (client.as_deref(), truth.as_deref());
            let (only, model) = (only.as_slice(), model.as_deref());
            economy::run(&economy::EconomyRun { folder: &folder, detail, only, notes, client, truth, model })
        }
        Command::GatewayCost { folder, program, own_model } => {
            use crate::gateway::cost::Authors;
            let authors = if own_model { Authors::OwnModel } else { Authors::AsShipped };
            gateway::cost::run(&program, &folder, authors)
        }
        Command::Beside { folder, program, headroom } => {
            let tables = gateway::beside::run(&program, headroom.as_deref(), &folder);
            let note =
                if headroom.is_some() { "" } else { "Headroom was not measured: name it with --headroom\n" };
            tables.map(|tables| tables + note)
        }
        Command::Gateway { program, against: Some(other), .. } => gateway::run_against(&program, &other),
        Command::Gateway { program, litellm, against: None } => gateway::run(&program, litellm),
        Command::Fleet(args) => fleet::run(&args),
        Command::Compare { against, program, against_program, rounds, command } => {
            let before = compare::Build { bench: against, program: against_program };
            compare::run(&before, program, rounds, &command)
        }
        Command::Takeover { generated: Some(count), window, settings, json, .. } => {
            takeover::run_generated(count, window, &settings, json)
        }
        Command::Takeover {
            sessions,
            truth,
            window,
            parts,
            settings,
            targets,
            words,
            hermes,
            show,
            dump,
            floors,
            json,
            ..
        } => {
            let (sessions, truth) = (sessions.unwrap_or_default(), truth.unwrap_or_default());
            let parts = parts.into_iter().filter_map(|count| usize::try_from(count).ok()).collect();
            let window_tokens = window;
            let asked = takeover::Takeover {
                sessions,
                truth,
                window_tokens,
                parts,
                settings,
                targets,
                words,
                hermes,
                show,
                dump,
                floors,
                json,
            };
            takeover::run(&asked)
        }
        Command::Recall { folder, truth, locomo, beam, static_model, tokenizer, generated, missing } => {
            recall::run(&recall::RecallOptions {
                folder,
                truth,
                locomo,
                beam,
                static_model,
                tokenizer,
                generated,
                missing,
            })
        }
        Command::CompactBench { sets, python, seeds } => takeover::compactbench::run(&python, &sets, seeds),
        Command::Index { messages, folder, only_record } => index::run(&folder, messages, !only_record),
        Command::Focus => focus::run(),
        Command::Speed => speed::run(),
        Command::Shrink => shrink::run(),
        Command::Scale { megabytes } => scale::run(&megabytes),
        Command::Lcm { data, tokens } => lcm::run(data.as_deref(), tokens),
        Command::Prepare => prepare::run(),
        Command::Store { messages, folder } => store_in(folder, messages),
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

fn store_in(folder: Option<PathBuf>, messages: usize) -> Result<String, String> {
    match folder {
        Some(folder) => store::run(&folder, messages),
        None => {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            store::run(folder.path(), messages)
        }
    }
}
