//! A generated list of messages.

use std::fmt;

use throughline_transcript::{Message, Transcript, WireFormat, compact_json_string, decode_message_text};

use crate::notation::picture;

/// A conversation as a list of messages, each as the JSON that a client would send.
#[derive(Clone, PartialEq, Eq)]
pub struct GeneratedList {
    /// The wire format.
    pub wire_format: WireFormat,
    /// The messages or items.
    pub json: Vec<String>,
    /// The number of calls at the end without results.
    pub open_calls: usize,
    /// The position of the given summary, if there is one.
    pub summary_at: Option<usize>,
    /// The separator of messages in a document of this list's style.
    pub(crate) separator: &'static str,
}

impl GeneratedList {
    /// Creates a list of existing messages.
    #[must_use]
    pub fn of(wire_format: WireFormat, json: Vec<String>) -> Self {
        Self { wire_format, json, open_calls: 0, summary_at: None, separator: "," }
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.json.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Decodes the messages.
    ///
    /// # Panics
    ///
    /// If a message is not a JSON object, which is a mistake of the generator.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a generator that writes broken JSON has to fail its test loudly")]
    pub fn messages(&self) -> Vec<Message> {
        let decode = |json: &String| decode_message_text(json.clone()).expect("generated messages are JSON");
        self.json.iter().map(decode).collect()
    }

    /// The messages as a conversation without a source document.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        Transcript::from_messages(self.wire_format, self.messages())
    }

    /// The list as a JSON array.
    #[must_use]
    pub fn document(&self) -> String {
        let mut out = String::from("[");
        self.push_joined(self.separator, &mut out);
        out.push(']');
        out
    }

    /// The list with one message per line.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut out = String::new();
        self.push_joined("\n", &mut out);
        if !self.is_empty() {
            out.push('\n');
        }
        out
    }

    /// A request body with tools and a system prompt, if the wire format has a place for it.
    #[must_use]
    pub fn body(&self, system: &str) -> String {
        let system = compact_json_string(system);
        let (head, list, tools) = match self.wire_format {
            WireFormat::Chat => (String::new(), "messages", CHAT_TOOLS),
            WireFormat::Responses => (format!("\"instructions\":{system},"), "input", RESPONSES_TOOLS),
            WireFormat::Anthropic => {
                (format!("\"max_tokens\":4096,\"system\":{system},"), "messages", ANTHROPIC_TOOLS)
            }
        };
        format!("{{\"model\":\"test-model\",{head}\"{list}\":{},\"tools\":{tools}}}", self.document())
    }

    fn push_joined(&self, separator: &str, out: &mut String) {
        for (index, message) in self.json.iter().enumerate() {
            if index > 0 {
                out.push_str(separator);
            }
            out.push_str(message);
        }
    }
}

const CHAT_TOOLS: &str =
    r#"[{"type":"function","function":{"name":"terminal","parameters":{"type":"object"}}}]"#;
const RESPONSES_TOOLS: &str = r#"[{"type":"function","name":"shell","parameters":{"type":"object"}}]"#;
const ANTHROPIC_TOOLS: &str = r#"[{"name":"Bash","input_schema":{"type":"object"}}]"#;

impl fmt::Debug for GeneratedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} list of {} messages, {}", self.wire_format, self.len(), picture(&self.messages()))?;
        for (index, message) in self.json.iter().enumerate() {
            writeln!(f, "  {index:>3} {message}")?;
        }
        Ok(())
    }
}
