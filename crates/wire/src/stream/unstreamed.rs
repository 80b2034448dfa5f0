//! Reads a body that should have been a stream and is not: the whole answer, an error, or a page.

use throughline_transcript::WireFormat;

use crate::answer::{Answer, AnswerPart};
use crate::delta::Delta;
use crate::response::ResponseError;
use crate::stream::outcome::StreamError;

/// Reads such a body; `None` if it cannot be recognised.
pub(super) fn read(
    wire_format: WireFormat,
    body: &[u8],
    deltas: &mut Vec<Delta>,
) -> Result<Option<Answer>, StreamError> {
    match Answer::decode(wire_format, body) {
        Ok(answer) => {
            show(&answer, deltas);
            Ok(Some(answer))
        }
        Err(ResponseError::Upstream(error)) => Err(StreamError::Upstream(error)),
        Err(ResponseError::NotAnAnswer { expected, found }) => {
            Err(StreamError::NotAnEvent { expected, found })
        }
        Err(ResponseError::Empty | ResponseError::Syntax { .. }) => Ok(None),
    }
}

/// Reports an answer that arrived in one piece.
fn show(answer: &Answer, deltas: &mut Vec<Delta>) {
    if answer.id.is_some() || answer.model.is_some() {
        deltas.push(Delta::Started { id: answer.id.clone(), model: answer.model.clone() });
    }
    let mut call = 0;
    for part in &answer.parts {
        match part {
            AnswerPart::Text(text) => deltas.push(Delta::Text(text.clone())),
            AnswerPart::Refusal(text) => deltas.push(Delta::Refusal(text.clone())),
            AnswerPart::Reasoning { text, .. } if !text.is_empty() => {
                deltas.push(Delta::Reasoning(text.clone()));
            }
            AnswerPart::ToolCall(tool) => {
                deltas.push(Delta::ToolCallStart { call, id: tool.id.clone(), name: tool.name.clone() });
                if !tool.arguments.is_empty() {
                    deltas.push(Delta::ToolCallArguments { call, fragment: tool.arguments.clone() });
                }
                deltas.push(Delta::ToolCallEnd { call });
                call += 1;
            }
            AnswerPart::Reasoning { .. } | AnswerPart::Other { .. } => {}
        }
    }
}
