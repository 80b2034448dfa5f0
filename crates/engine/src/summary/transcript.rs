//! Renders messages for a model that summarises them: compact, masked, and never in their original form.
//!
//! Reasoning is left out, images become labels, long results keep their beginning and end. Secrets are masked before any text is cut,
//! because a part of a key is still secret. Not for: the marks between messages (`quote_mark`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use throughline_compaction::SummaryRequest;
use throughline_redact::Redactor;
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::{Message, Part, Role};

use super::quote_mark::QuoteMark;

/// Tokens of the line before a message.
const OPENING_TOKENS: u64 = 14;
/// The maximum length of program text inside a human message, independent of the available space.
const PROGRAM_CHARS: usize = 400;
/// The percentage of a shortened text that is kept from its beginning.
const BEGINNING_PERCENT: usize = 70;

/// Maximum lengths in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Of a human's or the assistant's text in one message.
    pub(crate) words: usize,
    /// Of the arguments of a tool call.
    pub(crate) arguments: usize,
    /// Of a tool result.
    pub(crate) result: usize,
}

impl Lengths {
    /// The lengths if there is enough space.
    pub(crate) const USUAL: Self = Self { words: 12_000, arguments: 1_200, result: 4_000 };

    /// Shorter lengths, tried in order if there is not.
    const SHORTER: [Self; 5] = [
        Self { words: 8_000, arguments: 800, result: 2_000 },
        Self { words: 6_000, arguments: 500, result: 1_000 },
        Self { words: 3_000, arguments: 300, result: 500 },
        Self { words: 1_200, arguments: 160, result: 240 },
        Self { words: 400, arguments: 80, result: 120 },
    ];
}

/// Rendered messages.
pub(crate) struct RenderedTranscript {
    pieces: BTreeMap<usize, TranscriptPiece>,
}

/// A rendered message.
struct TranscriptPiece {
    speaker: TranscriptSpeaker,
    blocks: Vec<TranscriptBlock>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TranscriptSpeaker {
    Person,
    Program,
    Assistant,
    Tool,
    Instructions,
}

impl TranscriptSpeaker {
    fn of(message: &Message) -> Self {
        if message.role().is_instructions() {
            Self::Instructions
        } else if message.has_results() {
            Self::Tool
        } else if message.is_human() {
            Self::Person
        } else if message.role() == Role::User {
            Self::Program
        } else {
            Self::Assistant
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Program => "program",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Instructions => "instructions",
        }
    }
}

enum TranscriptBlock {
    Words(String),
    Call { tool: String, arguments: String },
    Result { tool: String, failed: bool, text: String },
    Label(String),
}

impl RenderedTranscript {
    /// Renders everything that a request covers.
    pub(crate) fn of(request: &SummaryRequest<'_>, redactor: Option<&Redactor>) -> Self {
        // Secrets found in one place are masked everywhere.
        let widened = redactor.map(|_| Redactor::with_known_secrets(request.ledger.secrets()));
        let mask = |text: &str| match &widened {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        };
        let mut tools: HashMap<String, String> = HashMap::new();
        let mut pieces = BTreeMap::new();
        for index in request.summarised() {
            let Some(message) = request.messages.get(index) else { continue };
            for (id, name, _) in message.calls() {
                tools.insert(message.str(id).into_owned(), message.str(name).into_owned());
            }
            let piece = piece(message, &tools, &mask);
            if !piece.blocks.is_empty() {
                pieces.insert(index, piece);
            }
        }
        Self { pieces }
    }

    /// Returns all texts, for choosing a mark that occurs in none of them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.pieces.values().flat_map(|piece| &piece.blocks).flat_map(|block| {
            let (first, second) = match block {
                TranscriptBlock::Words(text) | TranscriptBlock::Label(text) => (text.as_str(), ""),
                TranscriptBlock::Call { tool, arguments } => (tool.as_str(), arguments.as_str()),
                TranscriptBlock::Result { tool, text, .. } => (tool.as_str(), text.as_str()),
            };
            [first, second]
        })
    }

    /// Returns the tokens of a message at the usual lengths.
    pub(crate) fn tokens(&self, message: usize, model: &TokenModel) -> u64 {
        let Some(piece) = self.pieces.get(&message) else { return 0 };
        OPENING_TOKENS.saturating_add(model.estimate(&TextProfile::of(&piece.written(Lengths::USUAL))))
    }

    /// Returns the messages of a span within this many tokens, shortened as needed; `None` if they cannot be shortened enough.
    pub(crate) fn within(
        &self,
        span: Range<usize>,
        mark: &QuoteMark,
        room_tokens: u64,
        model: &TokenModel,
    ) -> Option<String> {
        let lengths = std::iter::once(Lengths::USUAL).chain(Lengths::SHORTER);
        lengths
            .map(|lengths| self.written(span.clone(), mark, lengths))
            .find(|text| model.estimate(&TextProfile::of(text)) <= room_tokens)
    }

    fn written(&self, span: Range<usize>, mark: &QuoteMark, lengths: Lengths) -> String {
        let mut out = String::new();
        for (index, piece) in self.pieces.range(span) {
            out.push_str(&mark.line(&format!("{} {}", index + 1, piece.speaker.name())));
            out.push('\n');
            out.push_str(&piece.written(lengths));
        }
        out
    }
}

impl TranscriptPiece {
    fn written(&self, lengths: Lengths) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            match block {
                TranscriptBlock::Words(text) => {
                    let most = if self.speaker == TranscriptSpeaker::Program {
                        PROGRAM_CHARS
                    } else {
                        lengths.words
                    };
                    out.push_str(&shortened(text, most));
                }
                TranscriptBlock::Call { tool, arguments } => {
                    out.push_str(&format!("[calls {tool}: {}]", shortened(arguments, lengths.arguments)));
                }
                TranscriptBlock::Result { tool, failed, text } => {
                    let failed = if *failed { ", failed" } else { "" };
                    out.push_str(&format!("[{tool}{failed}] {}", shortened(text, lengths.result)));
                }
                TranscriptBlock::Label(label) => out.push_str(&format!("[{label}]")),
            }
            out.push('\n');
        }
        out
    }
}

fn piece(
    message: &Message,
    tools: &HashMap<String, String>,
    mask: &dyn Fn(&str) -> String,
) -> TranscriptPiece {
    let speaker = TranscriptSpeaker::of(message);
    let mut blocks = Vec::new();
    let words = |text: &str, blocks: &mut Vec<TranscriptBlock>| {
        if !text.trim().is_empty() {
            blocks.push(TranscriptBlock::Words(mask(text.trim())));
        }
    };
    if speaker == TranscriptSpeaker::Person {
        // Text that programs added to a human message is not the user's.
        words(&message.human_words().unwrap_or_default(), &mut blocks);
    }
    for part in message.parts() {
        match part {
            Part::Text(text) if speaker != TranscriptSpeaker::Person => {
                words(&message.str(*text), &mut blocks)
            }
            Part::Text(_) | Part::Reasoning { .. } => {}
            Part::ToolCall { name, arguments, .. } => blocks.push(TranscriptBlock::Call {
                tool: message.str(*name).into_owned(),
                arguments: mask(&message.arguments_text(*arguments)),
            }),
            Part::ToolResult { call_id, is_error, content, .. } => {
                let tool = tools.get(message.str(*call_id).as_ref());
                blocks.push(TranscriptBlock::Result {
                    tool: tool.cloned().unwrap_or_else(|| "a tool".to_owned()),
                    failed: *is_error == Some(true),
                    text: mask(&message.result_text(content)),
                });
                let pictures = content.iter().filter(|part| matches!(part, Part::Image { .. })).count();
                blocks.extend((0..pictures).map(|_| TranscriptBlock::Label("picture".to_owned())));
            }
            Part::Image { .. } => blocks.push(TranscriptBlock::Label("picture".to_owned())),
            Part::Opaque { kind, .. } => {
                let kind =
                    kind.map_or_else(|| "something else".to_owned(), |kind| message.str(kind).into_owned());
                blocks.push(TranscriptBlock::Label(mask(&kind)));
            }
        }
    }
    TranscriptPiece { speaker, blocks }
}

/// Returns the beginning and end of a text, with the number of omitted characters between them.
pub(crate) fn shortened(text: &str, most_chars: usize) -> String {
    let chars = text.chars().count();
    if chars <= most_chars {
        return text.to_owned();
    }
    let beginning = most_chars * BEGINNING_PERCENT / 100;
    let end = most_chars - beginning;
    let cut = |count: usize| text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    let (first, last) = (cut(beginning), cut(chars - end));
    let left_out = chars - most_chars;
    let (first, last) = (text.get(..first).unwrap_or_default(), text.get(last..).unwrap_or_default());
    format!("{first} [... {left_out} characters left out ...] {last}")
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
