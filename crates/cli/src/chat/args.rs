//! Arguments of `throughline chat`.

use clap::Args;

/// Chat with a model that can work in this folder; long conversations are compacted automatically
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "\
Examples:
  throughline chat
  throughline chat --model claude-sonnet-4-5
  throughline chat --resume last
  throughline chat -q \"which tests cover the parser?\"
  git diff | throughline chat -q \"review this\" --json

The agent reads, searches and edits files in this folder and runs commands; it
asks before it writes, runs or leaves the folder. Everything is recorded;
what no longer fits the window is compacted into a summary and stays searchable.
Ctrl-C stops an answer and keeps the conversation; twice leaves. /help lists
what can be typed.")]
pub(crate) struct ChatArgs {
    /// The model, or provider:model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The provider: anthropic, openai, openrouter, ollama, llama.cpp, lmstudio, custom
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// Continue a conversation: an id, a unique prefix of one, a title, or last
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Run every tool without asking
    #[arg(long)]
    pub(crate) yolo: bool,
    /// Send this message, print the answer and exit
    #[arg(long, short, value_name = "QUESTION")]
    pub(crate) question: Option<String>,
    /// With a question: print one JSON object with answer, tokens and cost
    #[arg(long)]
    pub(crate) json: bool,
}
