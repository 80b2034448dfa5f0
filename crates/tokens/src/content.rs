//! The content of a message, a system prompt or a list of tools, as far as it determines the size.

use std::ops::{Add, AddAssign};

use crate::image::ImageTokens;
use crate::profile::TextProfile;

/// An additive measure of content in a wire format: the shapes of all its text, and the number of items around the text. It is independent
/// of the model; [`TokenModel::estimate_content`](crate::TokenModel::estimate_content) converts it to tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentProfile {
    /// All text: content, readable reasoning, names and arguments of calls, results, schemas.
    pub text: TextProfile,
    /// Messages.
    pub messages: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tool results.
    pub tool_results: u32,
    /// Tool definitions.
    pub tool_definitions: u32,
    /// Characters of reasoning that is available only encrypted.
    pub sealed_chars: u32,
    /// The images.
    pub images: ImageTokens,
    /// Bytes of the original JSON.
    pub json_bytes: u64,
}

impl ContentProfile {
    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { text, messages, tool_calls, tool_results, tool_definitions, sealed_chars, images, .. } =
            self;
        text.is_empty()
            && [messages, tool_calls, tool_results, tool_definitions, sealed_chars] == [&0; 5]
            && images.count == 0
    }
}

impl AddAssign for ContentProfile {
    fn add_assign(&mut self, other: Self) {
        self.text += other.text;
        self.messages = self.messages.saturating_add(other.messages);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.tool_results = self.tool_results.saturating_add(other.tool_results);
        self.tool_definitions = self.tool_definitions.saturating_add(other.tool_definitions);
        self.sealed_chars = self.sealed_chars.saturating_add(other.sealed_chars);
        self.images += other.images;
        self.json_bytes = self.json_bytes.saturating_add(other.json_bytes);
    }
}

impl Add for ContentProfile {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::iter::Sum for ContentProfile {
    fn sum<I: Iterator<Item = Self>>(profiles: I) -> Self {
        profiles.fold(Self::default(), Add::add)
    }
}
