//! Measures the contents of a transcript, in items, characters and tokens, by kind, role, tool, group and message. Computes values and
//! prints nothing.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use throughline_compaction::{AbsentMark, Act, ActOutcome, CallAnswer, ToolFamily};
use throughline_transcript::{GroupKind, Groups, Message, Part, Role, Transcript};

use crate::ui::text::glimpse;

/// The width of a glimpse in columns; a table may show less.
const GLIMPSE_COLUMNS: usize = 120;

/// Counts tokens: by the estimate for a model family, or exactly.
pub(crate) trait MeasureTokens {
    /// Tokens of a text on its own.
    fn text(&self, text: &str) -> u64;
    /// Tokens of a system prompt that is separate from the messages, as JSON.
    fn system(&self, json: &str) -> u64;
    /// Tokens of a list of tool definitions, as JSON.
    fn tools(&self, json: &str) -> u64;
    /// Tokens of an image, given the block that contains it.
    fn image(&self, block: &str) -> u64;
    /// Tokens of a whole message, including its framing in the wire format.
    fn message(&self, message: &Message) -> u64;
}

/// The kind of a part of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContentKind {
    /// Instructions, before the messages or among them.
    SystemPrompt,
    /// Tool definitions.
    ToolSchemas,
    /// Text of a human.
    HumanText,
    /// Text that a program inserted into a user message.
    MachineText,
    /// Text of the model.
    AssistantText,
    /// The model's reasoning.
    Reasoning,
    /// Tool calls with their arguments.
    ToolCalls,
    /// Results of tools.
    ToolResults,
    /// Images, of users and of tools.
    Images,
    /// Content that is passed on without being parsed.
    Opaque,
    /// The framing of messages in the wire format.
    Framing,
}

impl ContentKind {
    /// The name in reports.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::SystemPrompt => "system prompt",
            Self::ToolSchemas => "tool schemas",
            Self::HumanText => "text, human",
            Self::MachineText => "text, injected",
            Self::AssistantText => "text, assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCalls => "tool calls",
            Self::ToolResults => "tool results",
            Self::Images => "images",
            Self::Opaque => "opaque",
            Self::Framing => "framing",
        }
    }
}

/// The number and size of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct KindTally {
    pub(crate) items: u64,
    pub(crate) characters: u64,
    pub(crate) tokens: u64,
}

impl KindTally {
    fn add(&mut self, characters: u64, tokens: u64) {
        self.items += 1;
        self.characters += characters;
        self.tokens += tokens;
    }
}

/// The size of one tool's calls and results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ToolTally {
    pub(crate) name: String,
    pub(crate) calls: KindTally,
    pub(crate) results: KindTally,
    /// Results that report a failure.
    pub(crate) failed: u64,
    pub(crate) largest_result_tokens: u64,
}

impl ToolTally {
    /// Tokens of calls and results.
    pub(crate) fn tokens(&self) -> u64 {
        self.calls.tokens + self.results.tokens
    }
}

/// The size of the groups of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct GroupTally {
    pub(crate) kind: &'static str,
    pub(crate) groups: u64,
    pub(crate) messages: u64,
    pub(crate) tokens: u64,
    pub(crate) open_calls: u64,
    /// The message range of the largest group, end exclusive.
    pub(crate) largest: (usize, usize),
    pub(crate) largest_tokens: u64,
}

/// One of the largest messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LargeMessage {
    /// Its index.
    pub(crate) message: usize,
    pub(crate) role: &'static str,
    /// The tools that it calls or has results of, without duplicates.
    pub(crate) tools: Vec<String>,
    pub(crate) characters: u64,
    pub(crate) tokens: u64,
    pub(crate) glimpse: String,
}

/// The measured contents of a transcript.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextBreakdown {
    pub(crate) total_tokens: u64,
    pub(crate) total_characters: u64,
    pub(crate) kinds: BTreeMap<ContentKind, KindTally>,
    pub(crate) roles: BTreeMap<Role, KindTally>,
    pub(crate) tools: Vec<ToolTally>,
    pub(crate) groups: Vec<GroupTally>,
    pub(crate) largest: Vec<LargeMessage>,
    /// Tokens of each message.
    pub(crate) sizes: Vec<u64>,
}

impl ContextBreakdown {
    /// Measures a transcript and lists the `top` largest messages.
    pub(crate) fn of(
        transcript: &Transcript,
        groups: &Groups,
        measure: &dyn MeasureTokens,
        top: usize,
    ) -> Self {
        let mut counter = BreakdownBuilder {
            measure,
            breakdown: Self::default(),
            tools: HashMap::new(),
            names: HashMap::new(),
            commands: HashMap::new(),
            pieces: Vec::new(),
        };
        counter.preamble(transcript);
        for (index, message) in transcript.messages.iter().enumerate() {
            counter.message(index, message);
        }
        let BreakdownBuilder { mut breakdown, tools, names, .. } = counter;
        breakdown.tools = tools.into_values().collect();
        breakdown.tools.sort_by(|a, b| b.tokens().cmp(&a.tokens()).then_with(|| a.name.cmp(&b.name)));
        breakdown.groups = tally_groups(groups, &breakdown.sizes);
        breakdown.largest = largest(&transcript.messages, &breakdown.sizes, &names, top);
        breakdown
    }
}

struct BreakdownBuilder<'a> {
    measure: &'a dyn MeasureTokens,
    breakdown: ContextBreakdown,
    tools: HashMap<String, ToolTally>,
    /// The tool of each call, by call id.
    names: HashMap<String, String>,
    /// The command of each call that ran one, by call id.
    commands: HashMap<String, String>,
    /// The parts of the current message.
    pieces: Vec<CountedPiece>,
}

struct CountedPiece {
    kind: ContentKind,
    characters: u64,
    tokens: u64,
}

impl BreakdownBuilder<'_> {
    fn count(&mut self, kind: ContentKind, characters: u64, tokens: u64) {
        self.pieces.push(CountedPiece { kind, characters, tokens });
    }

    /// Adds the parts of the current message to the totals and returns their characters.
    fn settle(&mut self) -> u64 {
        let mut all = 0;
        for CountedPiece { kind, characters, tokens } in self.pieces.drain(..) {
            self.breakdown.kinds.entry(kind).or_default().add(characters, tokens);
            self.breakdown.total_tokens += tokens;
            all += characters;
        }
        self.breakdown.total_characters += all;
        all
    }

    fn preamble(&mut self, transcript: &Transcript) {
        let preamble = &transcript.preamble;
        if let Some(system) = &preamble.system {
            let tokens = self.measure.system(system.as_str());
            self.count(ContentKind::SystemPrompt, characters(system.as_str()), tokens);
        }
        if let Some(tools) = &preamble.tools {
            let tokens = self.measure.tools(tools.as_str());
            self.count(ContentKind::ToolSchemas, characters(tools.as_str()), tokens);
        }
        self.settle();
    }

    fn message(&mut self, index: usize, message: &Message) {
        for part in message.parts() {
            self.part(index, message, part);
        }
        let whole = self.measure.message(message);
        let parts: u64 = self.pieces.iter().map(|piece| piece.tokens).sum();
        // The size of the whole message is what the gauge and the trigger use. A surplus over the parts counts as framing; if the rounded
        // parts are larger, the difference is subtracted from the largest part.
        if whole > parts {
            self.count(ContentKind::Framing, 0, whole - parts);
        } else if let Some(largest) = self.pieces.iter_mut().max_by_key(|piece| piece.tokens) {
            largest.tokens = largest.tokens.saturating_sub(parts - whole);
        }
        let characters = self.settle();
        self.breakdown.roles.entry(message.role()).or_default().add(characters, whole);
        self.breakdown.sizes.push(whole);
    }

    fn part(&mut self, index: usize, message: &Message, part: &Part) {
        match part {
            Part::Text(string) => {
                let text = message.str(*string);
                let kind = match message.role() {
                    Role::System | Role::Developer => ContentKind::SystemPrompt,
                    Role::Assistant => ContentKind::AssistantText,
                    Role::User if message.is_human() => ContentKind::HumanText,
                    _ => ContentKind::MachineText,
                };
                let tokens = self.measure.text(&text);
                self.count(kind, characters(&text), tokens);
            }
            Part::Reasoning { text, block } => {
                let visible = text.map(|text| message.str(text));
                // Signatures and encrypted reasoning are sent back unchanged, and count.
                let tokens = self.measure.text(message.raw(*block));
                let length =
                    visible.map_or_else(|| characters(message.raw(*block)), |text| characters(&text));
                self.count(ContentKind::Reasoning, length, tokens);
            }
            Part::ToolCall { id, name, arguments, .. } => {
                let name = message.str(*name).into_owned();
                let arguments = message.arguments_text(*arguments);
                let tokens = self.measure.text(&name) + self.measure.text(&arguments);
                let length = characters(&name) + characters(&arguments);
                self.count(ContentKind::ToolCalls, length, tokens);
                self.tool(&name).calls.add(length, tokens);
                let act = Act::read(&name, &arguments, 0);
                if act.family == ToolFamily::Run {
                    self.commands.insert(message.str(*id).into_owned(), act.target);
                }
                self.names.insert(message.str(*id).into_owned(), name);
            }
            Part::ToolResult { call_id, is_error, content, .. } => {
                self.result(index, message, &message.str(*call_id), *is_error, content);
            }
            Part::Image { block } => {
                let tokens = self.measure.image(message.raw(*block));
                self.count(ContentKind::Images, 0, tokens);
            }
            Part::Opaque { block, .. } => {
                let raw = message.raw(*block);
                let tokens = self.measure.text(raw);
                self.count(ContentKind::Opaque, characters(raw), tokens);
            }
        }
    }

    fn result(
        &mut self,
        index: usize,
        message: &Message,
        call_id: &str,
        is_error: Option<bool>,
        content: &[Part],
    ) {
        let name = self.names.get(call_id).cloned().unwrap_or_else(|| NO_CALL.to_owned());
        let text = message.result_text(content);
        let mut tokens = self.measure.text(&text);
        let length = characters(&text);
        self.count(ContentKind::ToolResults, length, tokens);
        for part in content {
            match part {
                Part::Image { block } => {
                    let image = self.measure.image(message.raw(*block));
                    self.count(ContentKind::Images, 0, image);
                    tokens += image;
                }
                Part::Opaque { block, .. } => {
                    let raw = message.raw(*block);
                    let opaque = self.measure.text(raw);
                    self.count(ContentKind::Opaque, characters(raw), opaque);
                    tokens += opaque;
                }
                _ => {}
            }
        }
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let command = self.commands.get(call_id).map_or("", String::as_str);
        let absent_mark = AbsentMark::of(&name);
        let answer =
            CallAnswer { family: ToolFamily::of(&name), command, text: &text, is_error, absent_mark };
        let failed = ActOutcome::read(&answer, number).failed();
        let tally = self.tool(&name);
        tally.results.add(length, tokens);
        tally.failed += u64::from(failed);
        tally.largest_result_tokens = tally.largest_result_tokens.max(tokens);
    }

    fn tool(&mut self, name: &str) -> &mut ToolTally {
        self.tools
            .entry(name.to_owned())
            .or_insert_with(|| ToolTally { name: name.to_owned(), ..ToolTally::default() })
    }
}

/// The tool name for a result without a call in the list.
const NO_CALL: &str = "(no call)";

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

fn group_word(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Instructions => "instructions",
        GroupKind::Human => "human",
        GroupKind::Machine => "injected",
        GroupKind::Step => "step",
        GroupKind::Other => "other",
    }
}

fn tally_groups(groups: &Groups, sizes: &[u64]) -> Vec<GroupTally> {
    let order =
        [GroupKind::Instructions, GroupKind::Human, GroupKind::Machine, GroupKind::Step, GroupKind::Other];
    let mut tallies = Vec::new();
    for kind in order {
        let mut tally: Option<GroupTally> = None;
        for group in groups.as_slice().iter().filter(|group| group.kind == kind) {
            let tokens: u64 = sizes.get(group.start..group.end).unwrap_or_default().iter().sum();
            let tally = tally.get_or_insert_with(|| GroupTally {
                kind: group_word(kind),
                groups: 0,
                messages: 0,
                tokens: 0,
                open_calls: 0,
                largest: (group.start, group.end),
                largest_tokens: tokens,
            });
            tally.groups += 1;
            tally.messages += (group.end - group.start) as u64;
            tally.tokens += tokens;
            tally.open_calls += group.open_calls as u64;
            if tokens > tally.largest_tokens {
                (tally.largest, tally.largest_tokens) = ((group.start, group.end), tokens);
            }
        }
        tallies.extend(tally);
    }
    tallies
}

fn largest(
    messages: &[Message],
    sizes: &[u64],
    names: &HashMap<String, String>,
    top: usize,
) -> Vec<LargeMessage> {
    let mut order: Vec<usize> = (0..messages.len()).collect();
    let tokens_of = |index: usize| sizes.get(index).copied().unwrap_or_default();
    order.sort_by(|a, b| tokens_of(*b).cmp(&tokens_of(*a)).then(a.cmp(b)));
    order.truncate(top);
    order
        .into_iter()
        .filter_map(|index| {
            let message = messages.get(index)?;
            Some(LargeMessage {
                message: index,
                role: message.role().name(),
                tools: tools_of(message, names),
                characters: characters(message.json()),
                tokens: tokens_of(index),
                glimpse: glimpse_of(message),
            })
        })
        .collect()
}

fn tools_of(message: &Message, names: &HashMap<String, String>) -> Vec<String> {
    let called = message.calls().map(|(_, name, _)| message.str(name).into_owned());
    let answered = message
        .answered()
        .map(|id| names.get(message.str(id).as_ref()).cloned().unwrap_or_else(|| NO_CALL.to_owned()));
    let mut tools: Vec<String> = Vec::new();
    for tool in called.chain(answered) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    tools
}

/// The most informative line of a message, from its largest readable part.
fn glimpse_of(message: &Message) -> String {
    let mut best: (usize, String) = (0, String::new());
    for part in message.parts() {
        let (weight, text) = match part {
            Part::Text(string) => (string.span.len(), message.str(*string)),
            Part::Reasoning { text: Some(text), .. } => (text.span.len(), message.str(*text)),
            Part::ToolCall { arguments, block, .. } => (block.len(), message.arguments_text(*arguments)),
            Part::ToolResult { content, value, .. } => (value.len(), message.result_text(content)),
            Part::Reasoning { text: None, block } | Part::Image { block } | Part::Opaque { block, .. } => {
                (block.len(), message.raw(*block).into())
            }
        };
        if weight > best.0 {
            best = (weight, glimpse(&text, GLIMPSE_COLUMNS));
        }
    }
    best.1
}

#[cfg(test)]
#[path = "context_breakdown_tests.rs"]
mod tests;
