//! Sizes of messages, system prompts and tool definitions.
//!
//! A message is read once, part by part, straight out of its JSON; what comes out is a [`ContentProfile`] that answers
//! for any model. [`MessageSizes`] keeps the profiles of a conversation as it grows, [`SizeCache`] those of messages that come
//! back in every request.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_transcript::{Arguments, ContentHash, JsonStr, Message, Part, Preamble, Span};

use crate::content::ContentProfile;
use crate::image::{ImageTokens, sniff_base64_image};
use crate::model::TokenModel;
use crate::scan::Scanner;

/// How big one message is for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSize {
    /// Estimated tokens, with everything the wire adds.
    pub tokens: u64,
    /// Characters of text in it.
    pub chars: u64,
    /// Bytes of its JSON.
    pub bytes: u64,
    /// What it is made of.
    pub profile: ContentProfile,
}

impl MessageSize {
    /// Sizes a profile for a model.
    #[must_use]
    pub fn new(profile: ContentProfile, model: &TokenModel) -> Self {
        Self {
            tokens: model.estimate_content(&profile),
            chars: profile.text.chars(),
            bytes: profile.json_bytes,
            profile,
        }
    }
}

/// Reads a message.
#[must_use]
pub fn profile_message(message: &Message) -> ContentProfile {
    let mut reader = ProfileReader { message, scanner: Scanner::new(), found: ContentProfile::default() };
    reader.found.messages = 1;
    reader.found.json_bytes = message.json().len() as u64;
    reader.read_all(message.parts());
    let ProfileReader { scanner, mut found, .. } = reader;
    found.text = scanner.finish();
    found
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

    /// Arguments and unknown blocks: the text of the JSON, with the escapes of its strings read as characters, since
    /// providers do not hand a model doubly escaped text.
    fn read_json(&mut self, span: Span) {
        self.scanner.next_text();
        self.scanner.push_json(self.message.raw(span).as_bytes());
    }

    /// Readable reasoning counts as text; sealed reasoning by the length of what stands for it.
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

/// Size of the picture in an image block: the first string of it that decodes to a known header.
fn sniff_block(block: &str) -> Option<(u32, u32)> {
    // Anthropic holds the data in a member of its own, OpenAI in a data URL.
    let start = match block.find(";base64,") {
        Some(at) => at + ";base64,".len(),
        None => {
            let key = block.find("\"data\"")? + "\"data\"".len();
            key + block.get(key..)?.find('"')? + 1
        }
    };
    sniff_base64_image(block.get(start..)?.as_bytes())
}

/// Reads what stands before the messages: system prompt and tool definitions.
#[must_use]
pub fn profile_preamble(preamble: &Preamble) -> ContentProfile {
    let mut found = ContentProfile::default();
    if let Some(system) = &preamble.system {
        found += profile_system(system.as_str());
    }
    if let Some(tools) = &preamble.tools {
        found += profile_tools(tools.as_str());
    }
    found
}

/// Reads a system prompt: a JSON string, or a list of blocks.
#[must_use]
pub fn profile_system(json: &str) -> ContentProfile {
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
    ContentProfile {
        text: scanner.finish(),
        messages: 1,
        json_bytes: json.len() as u64,
        ..ContentProfile::default()
    }
}

/// Reads a list of tool definitions.
#[must_use]
pub fn profile_tools(json: &str) -> ContentProfile {
    let definitions = serde_json::from_str::<Vec<&RawValue>>(json).map_or(1, |tools| tools.len());
    let mut scanner = Scanner::new();
    scanner.push_json(json.as_bytes());
    ContentProfile {
        text: scanner.finish(),
        tool_definitions: u32::try_from(definitions).unwrap_or(u32::MAX),
        json_bytes: json.len() as u64,
        ..ContentProfile::default()
    }
}

fn inside_quotes(json: &str) -> &str {
    json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json)
}

/// The profiles of a conversation's messages, gathered as they are appended: each message is read once.
#[derive(Clone, Debug, Default)]
pub struct MessageSizes {
    profiles: Vec<ContentProfile>,
    total: ContentProfile,
    messages_read: u64,
}

impl MessageSizes {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the messages beyond those already known. `messages` is the whole conversation so far; what was there
    /// before is taken as unchanged.
    pub fn extend_to(&mut self, messages: &[Message]) {
        for message in messages.get(self.profiles.len()..).unwrap_or_default() {
            self.append(message);
        }
    }

    /// Reads one more message.
    pub fn append(&mut self, message: &Message) -> ContentProfile {
        let profile = profile_message(message);
        self.messages_read += 1;
        self.push(profile);
        profile
    }

    /// Adds a message whose profile is known.
    pub fn push(&mut self, profile: ContentProfile) {
        self.total += profile;
        self.profiles.push(profile);
    }

    /// One profile a message, in order.
    #[must_use]
    pub fn profiles(&self) -> &[ContentProfile] {
        &self.profiles
    }

    /// All messages together.
    #[must_use]
    pub fn total(&self) -> ContentProfile {
        self.total
    }

    /// Tokens of each message for a model.
    #[must_use]
    pub fn tokens(&self, model: &TokenModel) -> Vec<u64> {
        self.profiles.iter().map(|profile| model.estimate_content(profile)).collect()
    }

    /// How often a message was read, to see that none is read twice.
    #[must_use]
    pub fn messages_read(&self) -> u64 {
        self.messages_read
    }
}

/// Profiles by content, for callers that get the whole conversation with every request.
///
/// Bounded: holds between one and two times `capacity` messages, and forgets those that were not asked for lately.
#[derive(Clone, Debug)]
pub struct SizeCache {
    capacity: usize,
    recent: HashMap<ContentHash, ContentProfile>,
    older: HashMap<ContentHash, ContentProfile>,
    messages_read: u64,
}

impl SizeCache {
    /// An empty cache for about `capacity` messages.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), recent: HashMap::new(), older: HashMap::new(), messages_read: 0 }
    }

    /// The profile of a message, read only if it is not known.
    pub fn profile(&mut self, message: &Message) -> ContentProfile {
        self.profile_hashed(message.content_hash(), message)
    }

    /// As [`profile`](Self::profile), for callers that have the hash already.
    pub fn profile_hashed(&mut self, hash: ContentHash, message: &Message) -> ContentProfile {
        if let Some(known) = self.recent.get(&hash) {
            return *known;
        }
        let profile = self.older.remove(&hash).unwrap_or_else(|| {
            self.messages_read += 1;
            profile_message(message)
        });
        if self.recent.len() >= self.capacity {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(hash, profile);
        profile
    }

    /// How often a message was read, to see that none is read twice.
    #[must_use]
    pub fn messages_read(&self) -> u64 {
        self.messages_read
    }
}
