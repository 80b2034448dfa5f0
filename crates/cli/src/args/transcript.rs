//! Arguments that name a transcript and say how to read it.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use throughline_transcript::{DecodeOptions, WireFormat, WireFormatChoice};

/// Where the transcript is and how to read it.
#[derive(Debug, Args)]
pub(crate) struct TranscriptArgs {
    /// The transcript: a file, or - for stdin; gzip is detected
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "session")]
    pub(crate) file: Option<PathBuf>,

    /// Instead of a file: a recorded session, by its id, a unique prefix of one, its title, or last
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "wire_format", "pick", "since_compaction"])]
    pub(crate) session: Option<String>,

    /// Read it in this wire format instead of detecting it
    #[arg(long = "dialect", value_name = "DIALECT", help_heading = "Reading")]
    pub(crate) wire_format: Option<WireFormatArg>,

    /// Take this conversation, counted from 1, of a file that holds several
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub(crate) pick: Option<usize>,

    /// Read only the part of a session log after the client's own last compaction
    #[arg(long, help_heading = "Reading")]
    pub(crate) since_compaction: bool,
}

impl TranscriptArgs {
    /// Returns the arguments as options of the decoder.
    pub(crate) fn decode_options(&self) -> DecodeOptions {
        DecodeOptions {
            wire_format: self
                .wire_format
                .map_or(WireFormatChoice::Detect, |wire_format| WireFormatChoice::Forced(wire_format.into())),
            pick: self.pick,
            since_compaction: self.since_compaction,
        }
    }
}

/// The wires by the names users type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireFormatArg {
    /// OpenAI Chat Completions
    Chat,
    /// OpenAI Responses
    Responses,
    /// Anthropic Messages
    Anthropic,
}

impl From<WireFormatArg> for WireFormat {
    fn from(arg: WireFormatArg) -> Self {
        match arg {
            WireFormatArg::Chat => Self::Chat,
            WireFormatArg::Responses => Self::Responses,
            WireFormatArg::Anthropic => Self::Anthropic,
        }
    }
}
