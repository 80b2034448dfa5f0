//! Arguments of `throughline compress`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{TranscriptArgs, WindowArgs};

/// Compact a transcript: keep its head and tail, summarise the middle, report what happened
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline compress session.jsonl --context-length 200k
  throughline compress session.jsonl --preview
  throughline compress session.json --focus \"database schema\" --force
  throughline compress request.json --out compacted.json
  throughline compress - --json < messages.json | jq .report.tokens
  throughline compress --session last

Below the threshold nothing is done, unless --force is given. The output has the
wire format and form of the input; for a log it is the list of messages. A recorded
session ends, and a continuation with the new view follows it. No message is lost,
and `throughline sessions undo` reverts it.")]
pub(crate) struct CompressArgs {
    #[command(flatten)]
    pub(crate) transcript: TranscriptArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// Compact even below the threshold
    #[arg(long)]
    pub(crate) force: bool,

    /// Give this topic most of the summary
    #[arg(long, value_name = "TOPIC")]
    pub(crate) focus: Option<String>,

    /// Keep at least this many of the newest messages (for compression.protect_last_n)
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,

    /// Keep this many of the newest messages and no more, as `chat` does
    #[arg(long, value_name = "N", hide = true, conflicts_with = "keep")]
    pub(crate) keep_exactly: Option<usize>,

    /// Only show the plan: head, middle, tail, what would be pruned, what is at stake
    #[arg(long, conflicts_with = "out")]
    pub(crate) preview: bool,

    /// Write the compacted transcript here, replacing the file as a whole; - for stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Print one JSON object on stdout: outcome, report and messages
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave the summary out of the report
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}
