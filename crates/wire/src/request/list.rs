//! The messages of a request, and the writing of others in their place in the same style.
//!
//! `throughline_transcript` records the layout of a list (gaps, separators); here it is given only the list, so that the members around it
//! can change too.

use throughline_transcript::{DecodeError, DecodeOptions, Message, Transcript, decode};

use crate::request::error::RequestError;

/// The JSON around a text that is the whole input, for decoding it alone.
const TEXT_FRAME: (&str, &str) = ("{\"input\":", "}");

/// The messages of a request and their layout.
#[derive(Clone, Debug)]
pub(crate) enum RequestMessages {
    /// A list that was decoded.
    Read(Transcript),
    /// A text that stands for one user message.
    ReadText(Transcript),
    /// Messages set by the caller.
    Own(Vec<Message>),
}

impl RequestMessages {
    /// Decodes a list of messages. A syntax error is returned as `None`, because only the caller can determine its position in the body.
    pub(crate) fn read(json: &str, member: &'static str) -> Result<Option<Self>, RequestError> {
        match decode(json.as_bytes().to_vec(), &DecodeOptions::default()) {
            Ok(transcript) => Ok(Some(Self::Read(transcript))),
            Err(error) => not_syntax(error, member),
        }
    }

    /// Reads the text given in place of a list.
    pub(crate) fn read_text(json: &str, member: &'static str) -> Result<Option<Self>, RequestError> {
        let framed = [TEXT_FRAME.0, json, TEXT_FRAME.1].concat();
        match decode(framed.into_bytes(), &DecodeOptions::default()) {
            Ok(transcript) => Ok(Some(Self::ReadText(transcript))),
            Err(error) => not_syntax(error, member),
        }
    }

    pub(crate) fn messages(&self) -> &[Message] {
        match self {
            Self::Read(transcript) | Self::ReadText(transcript) => &transcript.messages,
            Self::Own(messages) => messages,
        }
    }

    /// Writes `items` in place of the list. Unchanged items keep their bytes and the bytes between them.
    pub(crate) fn write<'a>(&self, items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        match self {
            Self::Read(transcript) => transcript.write_document(items, out),
            Self::ReadText(transcript) => {
                let mut framed = Vec::new();
                transcript.write_document(items, &mut framed);
                let value = framed.get(TEXT_FRAME.0.len()..framed.len().saturating_sub(TEXT_FRAME.1.len()));
                out.extend_from_slice(value.unwrap_or_default());
            }
            Self::Own(_) => Transcript::write_list(items, out),
        }
    }
}

fn not_syntax(error: DecodeError, member: &'static str) -> Result<Option<RequestMessages>, RequestError> {
    match error {
        DecodeError::Syntax { .. } | DecodeError::Truncated { .. } => Ok(None),
        DecodeError::NotAMessage { index, detail } => {
            Err(RequestError::NotAMessage { member, index, detail })
        }
        // A list of messages is none of the other document types.
        other => Err(RequestError::NotAMessage { member, index: 0, detail: other.to_string() }),
    }
}
