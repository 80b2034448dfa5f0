//! Reads and decodes the transcript that the arguments name, and turns each failure into a message.

use std::path::Path;

use throughline_store::Session;
use throughline_transcript::{DecodeError, DecodeOptions, Source, Transcript, decode};

use crate::app::App;
use crate::args::TranscriptArgs;
use crate::error::{CliError, Exit};
use crate::files::{STANDARD_STREAM, input_name, read_input};
use crate::record::OpenRecord;
use crate::record::session_context::load_view;
use crate::ui::text::{counted, on_one_line};

/// The most notes that are shown about a file.
const MAX_NOTES_SHOWN: usize = 20;

/// The byte order marks of UTF-16.
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Whether the original bytes are needed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Original {
    /// They are written to the output if nothing changes.
    Keep,
    /// They are not needed.
    Drop,
}

/// A transcript and its origin.
pub(crate) struct TranscriptInput {
    /// The name in messages.
    pub(crate) name: String,
    /// The size after decompression.
    pub(crate) bytes: u64,
    /// The conversation.
    pub(crate) transcript: Transcript,
    /// The original bytes, if they were requested. `None` for logs, which are never written back.
    pub(crate) original: Option<Vec<u8>>,
}

/// Reads, decompresses and decodes the input. Notes of the decoder go to stderr.
pub(crate) fn load_input(
    app: &App,
    args: &TranscriptArgs,
    original: Original,
) -> Result<TranscriptInput, CliError> {
    if let Some(reference) = &args.session {
        let record = OpenRecord::open_to_read(app, reference)?;
        let session = record.tip(reference)?;
        return Ok(recorded_input(&session, load_view(&record, &session)?.1));
    }
    let file = args.file.as_deref().unwrap_or(Path::new(STANDARD_STREAM));
    let TranscriptInput { name, bytes, transcript, original } =
        read_transcript(file, &args.decode_options(), original)?;
    for note in transcript.notes.iter().take(MAX_NOTES_SHOWN) {
        let place = note.line.map(|line| format!(":{line}")).unwrap_or_default();
        app.note(&format!("{name}{place}: {}", on_one_line(&note.text)));
    }
    if let Some(more) = transcript.notes.len().checked_sub(MAX_NOTES_SHOWN).filter(|more| *more > 0) {
        app.note(&format!("{name}: {}", counted(more as u64, "more note", "more notes")));
    }
    Ok(TranscriptInput { name, bytes, transcript, original })
}

/// Reads, decompresses and decodes a file. Notes of the decoder are in the transcript.
pub(crate) fn read_transcript(
    file: &Path,
    options: &DecodeOptions,
    original: Original,
) -> Result<TranscriptInput, CliError> {
    let name = input_name(file);
    let bytes = read_input(file)?;
    let size = bytes.len() as u64;
    let is_utf16 = UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark));
    let kept = (original == Original::Keep).then(|| bytes.clone());
    let transcript = decode(bytes, options).map_err(|error| refused(&name, &error, is_utf16))?;
    let is_log = matches!(transcript.source, Source::ClaudeCodeLog | Source::CodexLog);
    Ok(TranscriptInput { name, bytes: size, transcript, original: kept.filter(|_| !is_log) })
}

/// The view of a recorded session as an input.
pub(crate) fn recorded_input(session: &Session, transcript: Transcript) -> TranscriptInput {
    let bytes = transcript.messages.iter().map(|message| message.json().len() as u64).sum();
    TranscriptInput { name: format!("session {}", session.id), bytes, transcript, original: None }
}

/// Converts an error of the decoder, with a hint.
fn refused(name: &str, error: &DecodeError, is_utf16: bool) -> CliError {
    let failure = CliError::new(Exit::BadInput, format!("cannot read {name} as a transcript"))
        .because(on_one_line(&error.to_string()));
    match error {
        DecodeError::Utf8 { .. } if is_utf16 => failure.hint("the file is UTF-16; save it as UTF-8"),
        DecodeError::Utf8 { .. } => failure.hint("transcripts are UTF-8 text; was this file damaged, or is it a database?"),
        DecodeError::Truncated { .. } => failure.hint("the file was probably cut off while it was written or copied"),
        DecodeError::Several { .. } => failure.hint("for example: --pick 1"),
        DecodeError::WrongWireFormat { .. } => failure.hint("leave out --dialect to have it detected"),
        DecodeError::TooLarge { .. } => failure,
        DecodeError::NoSuchPick { count, .. } => failure.hint(format!("--pick takes 1 to {count}")),
        DecodeError::Empty
        | DecodeError::Syntax { .. }
        | DecodeError::NotAConversation(_)
        | DecodeError::NotAMessage { .. } => failure.hint(
            "a transcript is a list of messages, a request body with messages or input,\na Claude Code session log, or a Codex rollout log",
        ),
    }
}

/// Describes the source of a document.
pub(crate) fn source_words(source: Source) -> &'static str {
    match source {
        Source::List => "list of messages",
        Source::Body => "request body",
        Source::Lines => "one message a line",
        Source::ClaudeCodeLog => "Claude Code session log",
        Source::CodexLog => "Codex rollout log",
    }
}
