//! Counts what the generated cases of a test run contained, for a table and for checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline_transcript::{Groups, Message, Part, Role, WireFormat};

/// The roles before and after a boundary between messages. `None` is the edge of the list.
pub type Seam = (Option<Role>, Option<Role>);

/// Counts the contents of cases. Shared by reference, so that closures of property tests can use it.
#[derive(Default)]
pub struct Coverage {
    counts: Mutex<Counts>,
}

#[derive(Default, Clone)]
struct Counts {
    lists: usize,
    messages: usize,
    seams: BTreeMap<(&'static str, &'static str), usize>,
    parts: BTreeMap<&'static str, usize>,
    traits: BTreeMap<&'static str, usize>,
    notes: BTreeMap<String, usize>,
    sizes: BTreeMap<usize, usize>,
}

impl Coverage {
    /// Creates empty counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a list: its size, its parts, and the pairs of roles of neighbouring messages.
    pub fn list(&self, messages: &[Message]) {
        let mut counts = self.counts();
        counts.lists += 1;
        counts.messages += messages.len();
        *counts.sizes.entry(messages.len().next_power_of_two()).or_default() += 1;
        for message in messages {
            counts.message(message);
        }
        for group in Groups::of(messages).as_slice() {
            let calls: usize = messages[group.start..group.end].iter().map(|m| m.calls().count()).sum();
            counts.mark(calls > 1, "parallel calls");
            counts.mark(calls > 4, "more than four calls");
            counts.mark(group.open_calls > 0, "open calls");
        }
        for pair in messages.windows(2) {
            let (left, right) = (pair[0].role(), pair[1].role());
            *counts.seams.entry((left.name(), right.name())).or_default() += 1;
        }
    }

    /// Counts the pair of roles at one boundary: before message `at` and at it.
    pub fn seam(&self, messages: &[Message], at: usize) {
        let before = at.checked_sub(1).and_then(|index| messages.get(index)).map(Message::role);
        let after = messages.get(at).map(Message::role);
        self.seam_of((before, after));
    }

    /// Counts a pair of roles.
    pub fn seam_of(&self, (before, after): Seam) {
        let word = |role: Option<Role>| role.map_or("(edge)", Role::name);
        *self.counts().seams.entry((word(before), word(after))).or_default() += 1;
    }

    /// Counts anything else that a test needs to reach, such as a kind of rendition.
    pub fn note(&self, what: impl Into<String>) {
        *self.counts().notes.entry(what.into()).or_default() += 1;
    }

    /// The number of occurrences of a note, a part or a trait.
    #[must_use]
    pub fn count(&self, what: &str) -> usize {
        let counts = self.counts();
        let known = counts.parts.get(what).or_else(|| counts.traits.get(what));
        known.or_else(|| counts.notes.get(what)).copied().unwrap_or(0)
    }

    /// The number of occurrences of a pair of roles.
    #[must_use]
    pub fn seam_count(&self, before: Role, after: Role) -> usize {
        self.counts().seams.get(&(before.name(), after.name())).copied().unwrap_or(0)
    }

    /// The pairs of roles that can be neighbours in a wire format and did not occur.
    #[must_use]
    pub fn missing_seams(&self, wire_format: WireFormat) -> Vec<(Role, Role)> {
        possible_seams(wire_format).into_iter().filter(|(a, b)| self.seam_count(*a, *b) == 0).collect()
    }
}

/// Every pair of roles that can be neighbours in a valid list of this wire format.
#[must_use]
pub fn possible_seams(wire_format: WireFormat) -> Vec<(Role, Role)> {
    let roles: &[Role] = match wire_format {
        WireFormat::Chat => &[Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool],
        WireFormat::Responses => {
            &[Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Other]
        }
        WireFormat::Anthropic => &[Role::System, Role::User, Role::Assistant],
    };
    let mut pairs = Vec::new();
    for before in roles {
        for after in roles {
            // A result only follows its call or another result.
            if *after == Role::Tool && !matches!(before, Role::Assistant | Role::Tool) {
                continue;
            }
            pairs.push((*before, *after));
        }
    }
    pairs
}

impl Counts {
    fn message(&mut self, message: &Message) {
        for part in message.parts() {
            *self.parts.entry(part_name(part)).or_default() += 1;
            if let Part::ToolResult { content, is_error, .. } = part {
                for inner in content {
                    *self.parts.entry(inner_name(inner)).or_default() += 1;
                }
                self.mark(*is_error == Some(true), "result marked as error");
                self.mark(content.is_empty(), "result without content");
            }
        }
        let calls = message.calls().count();
        let words = message.text();
        self.mark(message.is_human(), "human");
        self.mark(message.is_machine_written(), "machine-written");
        self.mark(message.has_results() && message.is_human(), "results with human words");
        self.mark(message.has_image(), "image");
        self.mark(message.json().len() > 8_000, "over 8,000 bytes");
        self.mark(
            message.role() == Role::Assistant && calls == 0 && words.is_empty(),
            "answer without words",
        );
        self.mark(!message.json().is_ascii(), "beyond ASCII");
        self.mark(message.json().contains("\\u"), "escaped characters");
        self.mark(message.json().contains("\"x_"), "unknown members");
    }

    fn mark(&mut self, holds: bool, what: &'static str) {
        if holds {
            *self.traits.entry(what).or_default() += 1;
        }
    }
}

fn part_name(part: &Part) -> &'static str {
    match part {
        Part::Text(_) => "text",
        Part::Reasoning { text: Some(_), .. } => "reasoning, readable",
        Part::Reasoning { text: None, .. } => "reasoning, sealed",
        Part::ToolCall { .. } => "tool call",
        Part::ToolResult { .. } => "tool result",
        Part::Image { .. } => "image",
        Part::Opaque { .. } => "unknown block",
    }
}

fn inner_name(part: &Part) -> &'static str {
    match part {
        Part::Image { .. } => "image in a result",
        Part::Text(_) => "text in a result",
        _ => "other in a result",
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts().clone();
        writeln!(f, "{} lists, {} messages", counts.lists, counts.messages)?;
        let sizes: Vec<String> =
            counts.sizes.iter().map(|(upto, lists)| format!("up to {upto}: {lists}")).collect();
        writeln!(f, "lists by size: {}", sizes.join(", "))?;
        let columns: Vec<&str> = {
            let mut names: Vec<&str> = counts.seams.keys().map(|(_, after)| *after).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        write!(f, "\n{:<12}", "before\\after")?;
        for column in &columns {
            write!(f, "{column:>11}")?;
        }
        let mut row = "";
        for (before, _) in counts.seams.keys() {
            if *before == row {
                continue;
            }
            row = before;
            write!(f, "\n{before:<12}")?;
            for column in &columns {
                let count = counts.seams.get(&(row, *column)).copied().unwrap_or(0);
                write!(f, "{count:>11}")?;
            }
        }
        writeln!(f, "\n")?;
        let parts = counts.parts.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let traits = counts.traits.iter().map(|(name, count)| ((*name).to_owned(), *count));
        for (name, count) in parts.chain(traits).chain(counts.notes.clone()) {
            writeln!(f, "{count:>9}  {name}")?;
        }
        Ok(())
    }
}
