//! Placing cache marks: one on the system prompt, the others on the last messages that can carry one.
//!
//! Marks are placed on a copy as the last step before sending; stored messages never contain one of ours. So that a prefix is the same from
//! call to call once the marks are taken out, a text that could ever carry one is always written as a list of one block, marked or not:
//! which messages carry marks changes, the rest of the bytes does not.
//!
//! A client that places marks of its own keeps them and gets none of ours. Not for: deciding whether marks are useful (`cache_policy`).

use std::borrow::Cow;

use throughline_transcript::{Message, RawJson, Role, WireFormat};
use throughline_wire::Request;

use crate::cache_policy::{CacheTtl, MarkLayout};
use crate::json_edit::{inserted, offset_in, without_member};

/// A mark finds an older entry at most 20 blocks before it. A turn that adds more than this many gets a mark where the
/// call before it ended.
const BLOCKS_WITHOUT_INTERMEDIATE: usize = 15;
const MEMBER: &str = "cache_control";

/// The placement of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMarks {
    /// Where marks are placed.
    pub layout: MarkLayout,
    /// How long the marked prefix stays in the cache.
    pub ttl: CacheTtl,
}

/// A request without marks.
#[derive(Clone, Copy, Debug)]
pub struct UnmarkedRequest<'a> {
    /// The system prompt if it is outside the list of messages: a string or a list of blocks.
    pub system: Option<RawJson<'a>>,
    /// Blocks at the end of the system prompt that were added later. The mark goes before them, so that the prefix that
    /// was cached without them stays cached.
    pub notes_after_system: usize,
    /// Tool definitions.
    pub tools: Option<RawJson<'a>>,
    /// Whether the client asked the provider to place a mark at the end itself.
    pub has_automatic_mark: bool,
    /// The messages.
    pub messages: &'a [Message],
}

/// A request with its marks, ready to be written.
#[derive(Clone, Debug)]
pub struct Marked<'a> {
    /// The system prompt, if there is one.
    pub system: Option<Cow<'a, str>>,
    /// The messages.
    pub messages: Vec<Cow<'a, str>>,
    /// The positions of the marks.
    pub marks: PlacedMarks,
}

/// The positions of marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedMarks {
    /// Whether the system prompt carries one of ours.
    pub on_system: bool,
    /// Positions of messages that carry one of ours, in order.
    pub on_messages: Vec<usize>,
    /// The one of them that is an intermediate mark in a turn of many blocks.
    pub intermediate: Option<usize>,
    /// The number of marks the client placed. They are left as they are, and we add none.
    pub of_client: usize,
}

impl PlacedMarks {
    /// Whether any of the marks is ours.
    #[must_use]
    pub fn are_ours(&self) -> bool {
        self.on_system || !self.on_messages.is_empty()
    }
}

impl CacheMarks {
    /// The maximum number of marks that a provider accepts in one request.
    pub const MOST: usize = 4;

    /// Places marks on a request.
    #[must_use]
    pub fn place<'a>(&self, request: &UnmarkedRequest<'a>) -> Marked<'a> {
        let of_client = count_client_marks(request);
        if of_client > 0 {
            return keep_client_marks(request, of_client);
        }
        let system = request.system.map(|system| self.system(system, request.notes_after_system));
        let on_system = system.as_ref().is_some_and(|system| system.is_marked);
        // In the chat format, the system prompt is a message.
        let leading = request.messages.first().filter(|first| !on_system && self.leads(first));
        let has_lead = leading.is_some();
        let taken = usize::from(on_system || has_lead);
        let (on_messages, intermediate) = self.rolling(request.messages, CacheMarks::MOST - taken);
        let messages = request.messages.iter().enumerate().map(|(index, message)| {
            let is_marked = on_messages.contains(&index) || (has_lead && index == 0);
            if is_marked { self.marked(message) } else { CacheMarks::block_form(self.layout, message) }
        });
        let messages = messages.collect();
        let marks = PlacedMarks { on_system: on_system || has_lead, on_messages, intermediate, of_client: 0 };
        Marked { system: system.map(|system| system.json), messages, marks }
    }

    /// Returns the body of a request with these messages, marked. The request itself is unchanged, so that it can be sent again with other
    /// messages.
    #[must_use]
    pub fn encode(
        &self,
        request: &mut Request,
        messages: &[Message],
        notes_after_system: usize,
    ) -> (Vec<u8>, PlacedMarks) {
        let system = request.system().map(|system| system.0.to_owned());
        let tools = request.tools().map(|tools| tools.0.to_owned());
        let unmarked = UnmarkedRequest {
            system: system.as_deref().map(RawJson),
            notes_after_system,
            tools: tools.as_deref().map(RawJson),
            has_automatic_mark: request.member(MEMBER).is_some_and(|mark| mark.0 != "null"),
            messages,
        };
        let Marked { system: marked_system, messages, marks } = self.place(&unmarked);
        let name = system_member(request.wire_format());
        let set = |request: &mut Request, json: &str| {
            // The JSON was checked before, so this cannot fail.
            let _ = name.map(|name| request.set_member(name, json));
        };
        if let Some(json) = marked_system.filter(|json| Some(&**json) != system.as_deref()) {
            set(request, &json);
        }
        let body = request.with_messages(messages.iter().map(|message| &**message));
        if let Some(json) = &system {
            set(request, json);
        }
        (body, marks)
    }

    /// Whether a message is a system prompt that can carry a mark.
    fn leads(&self, first: &Message) -> bool {
        first.role().is_instructions() && self.spot(first).is_some()
    }

    /// Returns the messages that get a moving mark, and the one among them with an intermediate mark in a turn of many blocks.
    fn rolling(&self, messages: &[Message], budget: usize) -> (Vec<usize>, Option<usize>) {
        let can_carry = |index: &usize| messages.get(*index).is_some_and(|message| self.can_roll(message));
        let mut rolling: Vec<usize> = (0..messages.len()).rev().filter(can_carry).take(budget).collect();
        let mut intermediate = None;
        if let Some(end) = self.end_of_call_before(messages)
            && !rolling.contains(&end)
            && blocks_after(messages, end) > BLOCKS_WITHOUT_INTERMEDIATE
            && let Some(oldest) = rolling.last_mut()
        {
            *oldest = end;
            intermediate = Some(end);
        }
        rolling.reverse();
        (rolling, intermediate)
    }

    /// Returns the last message that the previous call could mark: the one before the model's last answer.
    fn end_of_call_before(&self, messages: &[Message]) -> Option<usize> {
        let is_answer = |message: &Message| message.role() == Role::Assistant;
        let last_answer = messages.iter().rposition(is_answer)?;
        let before = messages.get(..last_answer)?;
        let rest = before.iter().rev().skip_while(|message| is_answer(message)).count();
        before.get(..rest)?.iter().rposition(|message| self.can_roll(message))
    }

    /// Whether a message can carry a moving mark.
    fn can_roll(&self, message: &Message) -> bool {
        !message.role().is_instructions() && self.spot(message).is_some()
    }

    /// Returns where a mark can be placed in a message.
    fn spot(&self, message: &Message) -> Option<MarkTarget> {
        if !takes_blocks(self.layout, message.role()) {
            return None;
        }
        let content = message.content_span()?;
        let value = message.raw(content);
        match value.as_bytes().first()? {
            b'"' => (!is_blank(value)).then_some(MarkTarget::Text),
            b'[' => {
                let carrying =
                    RawJson(value).elements().filter(|block| may_carry(self.layout, *block)).last()?;
                closing_brace(message.json(), carrying)
                    .map(|closing_brace| MarkTarget::Block { closing_brace })
            }
            _ => None,
        }
    }

    fn marked<'a>(&self, message: &'a Message) -> Cow<'a, str> {
        match self.spot(message) {
            Some(MarkTarget::Text) => text_as_blocks(message, Some(self.ttl)),
            Some(MarkTarget::Block { closing_brace }) => {
                Cow::Owned(inserted(message.json(), closing_brace, &self.member()))
            }
            None => Cow::Borrowed(message.json()),
        }
    }

    /// Returns the member to insert at the end of a block.
    fn member(&self) -> String {
        [",\"", MEMBER, "\":", self.ttl.marker()].concat()
    }

    /// Returns a system prompt as a list of blocks, with a mark on the last block before the notes that can carry one.
    fn system<'a>(&self, system: RawJson<'a>, notes: usize) -> MarkedSystem<'a> {
        let system = RawJson(system.0.trim());
        match system.0.as_bytes().first() {
            Some(b'"') if !is_blank(system.0) => {
                let member = self.member();
                let pieces = ["[{\"type\":\"text\",\"text\":", system.0, &member, "}]"];
                MarkedSystem { json: Cow::Owned(pieces.concat()), is_marked: true }
            }
            Some(b'[') => {
                let blocks: Vec<RawJson<'_>> = system.elements().collect();
                let before = blocks.len().saturating_sub(notes);
                let carrying = blocks.iter().take(before).rev().find(|block| may_carry(self.layout, **block));
                let closing = carrying.and_then(|block| closing_brace(system.0, *block));
                match closing {
                    Some(at) => MarkedSystem {
                        json: Cow::Owned(inserted(system.0, at, &self.member())),
                        is_marked: true,
                    },
                    None => MarkedSystem { json: Cow::Borrowed(system.0), is_marked: false },
                }
            }
            _ => MarkedSystem { json: Cow::Borrowed(system.0), is_marked: false },
        }
    }
}

/// Returns the name of the system prompt's member, if it is outside the list and may be a list of blocks.
fn system_member(wire_format: WireFormat) -> Option<&'static str> {
    match wire_format {
        WireFormat::Anthropic => Some("system"),
        WireFormat::Chat | WireFormat::Responses => None,
    }
}

/// Returns the offset of the brace that closes a block.
fn closing_brace(text: &str, block: RawJson<'_>) -> Option<usize> {
    (offset_in(text, block.0)? + block.0.len()).checked_sub(1)
}

/// The place for a mark in a message.
enum MarkTarget {
    /// In the block that the text becomes.
    Text,
    /// Before the closing brace of a block.
    Block { closing_brace: usize },
}

struct MarkedSystem<'a> {
    json: Cow<'a, str>,
    is_marked: bool,
}

impl CacheMarks {
    /// Returns a message in the form in which it is sent where marks are used: a text is a list of one block.
    #[must_use]
    pub fn block_form(layout: MarkLayout, message: &Message) -> Cow<'_, str> {
        let is_text = message.content_span().is_some_and(|content| {
            let value = message.raw(content);
            value.starts_with('"') && !is_blank(value)
        });
        if is_text && takes_blocks(layout, message.role()) {
            text_as_blocks(message, None)
        } else {
            Cow::Borrowed(message.json())
        }
    }
}

fn text_as_blocks(message: &Message, mark: Option<CacheTtl>) -> Cow<'_, str> {
    let json = message.json();
    let Some(content) = message.content_span() else { return Cow::Borrowed(json) };
    let (start, end) = (content.start as usize, content.end as usize);
    let (Some(before), Some(after)) = (json.get(..start), json.get(end..)) else {
        return Cow::Borrowed(json);
    };
    let text = message.raw(content);
    let open = "[{\"type\":\"text\",\"text\":";
    Cow::Owned(match mark {
        Some(ttl) => [before, open, text, ",\"", MEMBER, "\":", ttl.marker(), "}]", after].concat(),
        None => [before, open, text, "}]", after].concat(),
    })
}

/// Whether the content of such a message may be a list of blocks. A system message inside an Anthropic list is not changed: some models
/// that accept it accept no marks on it.
fn takes_blocks(layout: MarkLayout, role: Role) -> bool {
    match layout {
        MarkLayout::Anthropic => matches!(role, Role::User | Role::Assistant),
        MarkLayout::ChatParts => role != Role::Other,
    }
}

/// Whether a block may carry a mark: not reasoning, empty text, unknown types, or a block whose mark the client set to `null`.
fn may_carry(layout: MarkLayout, block: RawJson<'_>) -> bool {
    let Some(kind) = block.get("type").and_then(RawJson::as_text) else { return false };
    let is_text = kind == "text";
    let takes_marks = match layout {
        MarkLayout::Anthropic => {
            matches!(&*kind, "text" | "image" | "document" | "search_result" | "tool_use" | "tool_result")
                || matches!(&*kind, "server_tool_use" | "mcp_tool_use")
                || kind.ends_with("_tool_result")
        }
        MarkLayout::ChatParts => is_text,
    };
    let is_empty = is_text && block.get("text").is_none_or(|text| is_blank(text.0));
    takes_marks && !is_empty && block.get(MEMBER).is_none()
}

/// Whether a JSON string is blank. Stops at the first non-blank character.
fn is_blank(string: &str) -> bool {
    let mut inside = string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    while let Some(first) = inside.chars().next() {
        let used = match first {
            '\\' => match inside.as_bytes().get(1) {
                Some(b'n' | b't' | b'r' | b'f') => 2,
                Some(b'u') => {
                    let code = inside.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                    if !code.and_then(char::from_u32).is_some_and(char::is_whitespace) {
                        return false;
                    }
                    6
                }
                _ => return false,
            },
            _ if first.is_whitespace() => first.len_utf8(),
            _ => return false,
        };
        inside = inside.get(used..).unwrap_or_default();
    }
    true
}

/// Returns the number of content blocks in the messages after a position.
fn blocks_after(messages: &[Message], at: usize) -> usize {
    messages.iter().skip(at + 1).map(|message| message.parts().len()).sum()
}

impl CacheMarks {
    /// Returns a message, system prompt or list of tools without any marks; all other bytes are unchanged.
    #[must_use]
    pub fn removed_from(json: &str) -> Cow<'_, str> {
        if !mentions_marks(json) {
            return Cow::Borrowed(json);
        }
        without_member(json, MEMBER, marked_objects(RawJson(json)))
    }

    /// Returns the number of marks on a message, system prompt or list of tools.
    #[must_use]
    pub fn count_in(json: &str) -> usize {
        if !mentions_marks(json) {
            return 0;
        }
        let marks = marked_objects(RawJson(json)).into_iter().filter_map(|object| object.get(MEMBER));
        marks.filter(|mark| mark.0 != "null").count()
    }
}

fn mentions_marks(json: &str) -> bool {
    memchr::memmem::find(json.as_bytes(), MEMBER.as_bytes()).is_some()
}

/// Returns the objects of a message, a list of blocks or a list of tools that may carry marks: itself, its blocks, and theirs.
fn marked_objects(value: RawJson<'_>) -> Vec<RawJson<'_>> {
    let mut found = Vec::new();
    // White space around the document belongs to no element.
    let mut open = vec![(RawJson(value.0.trim()), 0u8)];
    while let Some((value, depth)) = open.pop() {
        if value.0.starts_with('[') {
            open.extend(value.elements().map(|element| (element, depth + 1)));
        } else if value.0.starts_with('{') {
            found.push(value);
            if depth < 4
                && let Some(content) = value.get("content")
            {
                open.push((content, depth + 1));
            }
        }
    }
    found
}

fn count_client_marks(request: &UnmarkedRequest<'_>) -> usize {
    let apart =
        [request.system, request.tools].into_iter().flatten().map(|json| CacheMarks::count_in(json.0));
    let within = request.messages.iter().map(|message| CacheMarks::count_in(message.json()));
    apart.chain(within).sum::<usize>() + usize::from(request.has_automatic_mark)
}

/// Leaves the marks of a client unchanged. If there are more than a provider accepts (the messages of several requests together), the
/// oldest are removed.
fn keep_client_marks<'a>(request: &UnmarkedRequest<'a>, of_client: usize) -> Marked<'a> {
    let mut surplus = of_client.saturating_sub(CacheMarks::MOST);
    let messages: Vec<Cow<'a, str>> = request
        .messages
        .iter()
        .map(|message| {
            let here = if surplus > 0 { CacheMarks::count_in(message.json()) } else { 0 };
            if here == 0 {
                return Cow::Borrowed(message.json());
            }
            surplus = surplus.saturating_sub(here);
            CacheMarks::removed_from(message.json())
        })
        .collect();
    let kept = [request.system, request.tools]
        .into_iter()
        .flatten()
        .map(|json| CacheMarks::count_in(json.0))
        .sum::<usize>()
        + messages.iter().map(|message| CacheMarks::count_in(message)).sum::<usize>()
        + usize::from(request.has_automatic_mark);
    let marks = PlacedMarks { of_client: kept, ..PlacedMarks::default() };
    Marked { system: request.system.map(|system| Cow::Borrowed(system.0)), messages, marks }
}

#[cfg(test)]
#[path = "cache_marks_tests.rs"]
mod tests;
