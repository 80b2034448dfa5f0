//! Writes Server-Sent Events.

/// Data that ends a stream on the OpenAI wires.
pub(crate) const DONE: &str = "[DONE]";

/// One event, without its framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireEvent {
    /// The `event` field; absent in the chat format.
    pub name: Option<String>,
    /// The `data` field.
    pub data: String,
}

impl WireEvent {
    /// An event without a name.
    #[must_use]
    pub fn unnamed(data: impl Into<String>) -> Self {
        Self { name: None, data: data.into() }
    }

    /// An event with a name.
    #[must_use]
    pub fn named(name: impl Into<String>, data: impl Into<String>) -> Self {
        Self { name: Some(name.into()), data: data.into() }
    }

    /// The bytes of this event.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.len() + 32);
        Self::append(self.name.as_deref(), &self.data, &mut out);
        out
    }

    /// Appends an event. Line breaks in the data become several `data` fields, which a reader joins again; a line break in a name would end
    /// it and is dropped.
    pub fn append(name: Option<&str>, data: &str, out: &mut Vec<u8>) {
        if let Some(name) = name {
            out.extend_from_slice(b"event: ");
            out.extend(name.bytes().filter(|byte| !is_line_break(*byte)));
            out.push(b'\n');
        }
        for line in lines(data) {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
    }

    /// Appends a comment, which readers ignore: a keep-alive message.
    pub fn append_comment(text: &str, out: &mut Vec<u8>) {
        for line in lines(text) {
            out.extend_from_slice(b": ");
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

/// Returns the lines of a text, separated by any of the three line breaks of the format.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = memchr::memchr2(b'\n', b'\r', text.as_bytes()) else { return rest.take() };
        let (line, after) = text.split_at(at);
        rest = Some(after.strip_prefix("\r\n").unwrap_or(after.get(1..).unwrap_or_default()));
        Some(line)
    })
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
