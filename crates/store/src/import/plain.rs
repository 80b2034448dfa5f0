//! Transcripts of unknown programs: lists, request bodies, lines of messages.
//!
//! Such a file does not name its conversation, so the conversation is identified by the path: a file that grew is found again, and two
//! files with the same beginning are two conversations. A file with several conversations numbers them.

use std::path::Path;

use throughline_transcript::Transcript;

use crate::call::StoredPreamble;
use crate::ids::Millis;

use super::conversation::{ForeignConversation, ForeignMessage};

/// The program under which these conversations are recorded.
pub(super) const PROGRAM: &str = "file";

/// Returns the key of a file, the same whether compressed or not.
pub(super) fn key_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = whole.to_string_lossy();
    name.strip_suffix(".gz").unwrap_or(&name).to_owned()
}

/// Returns the conversation of a document.
pub(super) fn conversation(transcript: &Transcript, key: String, at_ms: Millis) -> ForeignConversation {
    let preamble = &transcript.preamble;
    let raw = |text: &Option<throughline_transcript::SharedText>| {
        text.as_ref().map(|text| text.as_str().to_owned())
    };
    let stored =
        StoredPreamble { system: raw(&preamble.system), tools: raw(&preamble.tools), parameters: None };
    ForeignConversation {
        program: PROGRAM,
        key,
        attached_to: None,
        copied_from: None,
        project: None,
        title: None,
        model: preamble.model.clone(),
        wire_format: transcript.wire_format,
        started_ms: at_ms,
        messages: transcript
            .messages
            .iter()
            .map(|message| ForeignMessage::new(message.clone(), at_ms))
            .collect(),
        compactions: Vec::new(),
        calls: Vec::new(),
        preamble: (stored != StoredPreamble::default()).then_some(stored),
        end: None,
    }
}
