//! Sizes of messages, system prompts and tool definitions.
//!
//! A message is read once, part by part, directly from its JSON. The result is a [`ContentProfile`], from which the size for any model is
//! computed.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_transcript::{Arguments, JsonStr, Message, Part, Preamble, Span};

use crate::content::ContentProfile;
use crate::image::{ImageTokens, sniff_base64_image};
use crate::scan::Scanner;

impl ContentProfile {
    /// Profiles a message.
    #[must_use]
    pub fn of_message(message: &Message) -> Self {
        let mut reader = ProfileReader { message, scanner: Scanner::new(), found: Self::default() };
        reader.found.messages = 1;
        reader.found.json_bytes = message.json().len() as u64;
        reader.read_all(message.parts());
        let ProfileReader { scanner, mut found, .. } = reader;
        found.text = scanner.finish();
        found
    }

    /// Profiles the parts before the messages: the system prompt and tool definitions.
    #[must_use]
    pub fn of_preamble(preamble: &Preamble) -> Self {
        let mut found = Self::default();
        if let Some(system) = &preamble.system {
            found += Self::of_system(system.as_str());
        }
        if let Some(tools) = &preamble.tools {
            found += Self::of_tools(tools.as_str());
        }
        found
    }

    /// Profiles a system prompt: a JSON string, or a list of blocks.
    #[must_use]
    pub fn of_system(json: &str) -> Self {
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow)]
            text: Option<&'a RawValue>,
        }
        let mut scanner = Scanner::new();
        match serde_json::from_str::<Vec<Block<'_>>>(json) {
            Ok(blocks) => {
                for text in blocks.iter().filter_map(|block| block.text) {
                    scanner.next_text();
                    scanner.push_json(inside_quotes(text.get()).as_bytes());
                }
            }
            Err(_) => scanner.push_json(inside_quotes(json.trim()).as_bytes()),
        }
        Self { text: scanner.finish(), messages: 1, json_bytes: json.len() as u64, ..Self::default() }
    }

    /// Profiles a list of tool definitions.
    #[must_use]
    pub fn of_tools(json: &str) -> Self {
        let definitions = serde_json::from_str::<Vec<&RawValue>>(json).map_or(1, |tools| tools.len());
        let mut scanner = Scanner::new();
        scanner.push_json(json.as_bytes());
        Self {
            text: scanner.finish(),
            tool_definitions: u32::try_from(definitions).unwrap_or(u32::MAX),
            json_bytes: json.len() as u64,
            ..Self::default()
        }
    }
}

struct ProfileReader<'a> {
    message: &'a Message,
    scanner: Scanner,
    found: ContentProfile,
}

impl ProfileReader<'_> {
    fn read_all(&mut self, parts: &[Part]) {
        for part in parts {
            self.read(part);
        }
    }

    fn read(&mut self, part: &Part) {
        match part {
            Part::Text(text) => self.read_string(*text),
            Part::Reasoning { text, block } => self.read_reasoning(*text, *block),
            Part::ToolCall { name, arguments, .. } => {
                self.found.tool_calls += 1;
                self.read_string(*name);
                match arguments {
                    Arguments::Json(span) => self.read_json(*span),
                    Arguments::Text(text) => self.read_string(*text),
                    Arguments::Absent => {}
                }
            }
            Part::ToolResult { content, .. } => {
                self.found.tool_results += 1;
                self.read_all(content);
            }
            Part::Image { block } => {
                self.found.images += ImageTokens::one(sniff_block(self.message.raw(*block)));
            }
            Part::Opaque { block, .. } => self.read_json(*block),
        }
    }

    fn read_string(&mut self, string: JsonStr) {
        let raw = string.raw(self.message.json()).as_bytes();
        self.scanner.next_text();
        if string.escaped {
            self.scanner.push_json(raw);
        } else {
            self.scanner.push(raw);
        }
    }

    /// Reads arguments and unknown blocks: the text of the JSON with the escapes of its strings decoded, because providers do not send
    /// doubly escaped text to a model.
    fn read_json(&mut self, span: Span) {
        self.scanner.next_text();
        self.scanner.push_json(self.message.raw(span).as_bytes());
    }

    /// Reads reasoning: readable reasoning counts as text, encrypted reasoning by the length of its encrypted form.
    fn read_reasoning(&mut self, text: Option<JsonStr>, block: Span) {
        match text.filter(|text| !text.span.is_empty()) {
            Some(text) => self.read_string(text),
            None => {
                let chars = u32::try_from(block.len()).unwrap_or(u32::MAX);
                self.found.sealed_chars = self.found.sealed_chars.saturating_add(chars);
            }
        }
    }
}

/// Returns the size of the image in an image block: from its first string that decodes to a known header.
fn sniff_block(block: &str) -> Option<(u32, u32)> {
    // Anthropic has the data in a member of its own, OpenAI in a data URL.
    let start = match block.find(";base64,") {
        Some(at) => at + ";base64,".len(),
        None => {
            let key = block.find("\"data\"")? + "\"data\"".len();
            key + block.get(key..)?.find('"')? + 1
        }
    };
    sniff_base64_image(block.get(start..)?.as_bytes())
}

fn inside_quotes(json: &str) -> &str {
    json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json)
}
