//! Splits a request into the pieces that a cache counts, in the order in which a provider renders it: tools, system, messages.
//!
//! Every position has a hash of everything up to it, so two prompts share a prefix exactly as far as they share hashes. Marks are not
//! hashed; settings that invalidate a part of a prompt are hashed before that part. Messages recur in every request and are split only
//! once.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_tokens::{ContentProfile, Family, TokenModel};
use throughline_transcript::{Message, RawJson, Role, SharedText, WireFormat, decode_message};
use throughline_wire::Request;

use super::rules::CacheStyle;
use crate::cache_marks::CacheMarks;
use crate::cache_policy::CacheTtl;

/// A cache without marks finds a prefix that ends inside a message; long texts are split into slices of this size for it.
const SLICE_BYTES: usize = 512;
/// The memo is cleared when it has more messages than this.
const MOST_REMEMBERED: usize = 100_000;
const MEMBER: &str = "cache_control";
/// The member of a block that loads the definition of a tool.
const REFERENCE: &str = "tool_name";

/// A hash of everything up to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Chain([u8; 16]);

/// The end of a piece of a prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) chain: Chain,
    /// Tokens up to this position.
    pub(super) end_tokens: u64,
    pub(super) mark: Option<CacheTtl>,
}

/// A prompt split into pieces.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) positions: Vec<Position>,
    /// Tokens of tools and system prompt.
    pub(super) fixed_tokens: u64,
}

/// Marks that a provider refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkComplaint {
    /// Too many of them.
    #[error("a request may carry {most} cache marks, but this one carries {found}", most = CacheMarks::MOST)]
    TooMany {
        /// The number of marks.
        found: usize,
    },
    /// A mark for an hour follows one for five minutes.
    #[error("a cache mark for an hour follows one for five minutes")]
    LongBehindShort,
    /// A mark on a block that cannot carry one.
    #[error("a {kind} block cannot carry a cache mark")]
    NotThere {
        /// The block's type.
        kind: String,
    },
    /// A mark with an invalid lifetime.
    #[error("a cache mark with a lifetime that no provider offers: {mark}")]
    Unreadable {
        /// The mark.
        mark: String,
    },
}

/// A single piece.
#[derive(Clone, Copy, Debug)]
struct PromptPiece {
    hash: [u8; 16],
    tokens: u64,
    mark: Option<CacheTtl>,
    /// Whether the provider could place its own mark here.
    takes_mark: bool,
}

/// The pieces of a message, a system prompt or a list of tools.
#[derive(Debug, Default)]
struct Cut {
    pieces: Vec<PromptPiece>,
    has_image: bool,
    has_citations: bool,
}

/// Splits requests into pieces, and caches the pieces of texts.
#[derive(Debug)]
pub(super) struct PromptReader {
    in_slices: bool,
    known: HashMap<([u8; 16], Family), Arc<Cut>>,
}

impl PromptReader {
    pub(super) fn new(style: CacheStyle) -> Self {
        let in_slices = match style {
            CacheStyle::Automatic { .. } => true,
            CacheStyle::Marks | CacheStyle::None => false,
        };
        Self { in_slices, known: HashMap::new() }
    }

    /// Returns the positions of a request, in order, and the tokens before its messages.
    pub(super) fn read(&mut self, request: &Request, family: Family) -> Result<Layout, MarkComplaint> {
        let token_model = TokenModel::of(family);
        let mut row = Row::new();
        row.absorb("model", &request.model().unwrap_or_default());
        let (mut tools, mut searches) = (Vec::new(), Vec::new());
        let mut deferred = HashMap::new();
        for tool in request.tools().into_iter().flat_map(RawJson::elements) {
            // Not part of the prompt until a result refers to it.
            if is_deferred(tool) {
                let cut = self.cut(tool.0, family, |json| cut_tool(json, &token_model))?;
                let tokens: u64 = cut.pieces.iter().map(|piece| piece.tokens).sum();
                let name = tool.get("name").and_then(RawJson::as_text).unwrap_or_default();
                deferred.insert(name.into_owned(), tokens);
                continue;
            }
            let is_search = self.is_web_search(tool);
            (if is_search { &mut searches } else { &mut tools }).push(tool);
        }
        if self.in_slices {
            for name in ["prompt_cache_key", "response_format", "text"] {
                row.absorb(name, request.member(name).map_or("", |value| value.0));
            }
        }
        for tool in tools {
            let cut = self.cut(tool.0, family, |json| cut_tool(json, &token_model))?;
            row.push_all(&cut, self.in_slices);
        }
        let messages = request.messages();
        let leading = match request.wire_format() {
            WireFormat::Anthropic => 0,
            WireFormat::Chat | WireFormat::Responses => {
                messages.iter().take_while(|message| message.role().is_instructions()).count()
            }
        };
        let wire_format = request.wire_format();
        let mut cuts = Vec::with_capacity(messages.len());
        for message in messages {
            cuts.push(self.cut(message.json(), family, |_| cut_message(message, wire_format, &token_model))?);
        }
        self.absorb_for_system(request, &searches, &cuts, &mut row);
        for tool in searches {
            let cut = self.cut(tool.0, family, |json| cut_tool(json, &token_model))?;
            row.push_all(&cut, self.in_slices);
        }
        if let Some(system) = request.system() {
            let cut = self.cut(system.0, family, |json| cut_system(json, &token_model))?;
            row.push_all(&cut, self.in_slices);
        }
        for cut in cuts.iter().take(leading) {
            row.push_all(cut, self.in_slices);
        }
        let fixed_tokens = row.tokens;
        if !self.in_slices {
            for name in ["tool_choice", "thinking"] {
                row.absorb(name, request.member(name).map_or("", |value| value.0));
            }
            row.absorb("images", if cuts.iter().any(|cut| cut.has_image) { "some" } else { "none" });
        }
        for (cut, message) in cuts.iter().zip(messages).skip(leading) {
            row.push_all(cut, self.in_slices);
            if !deferred.is_empty() {
                row.add_tokens(referred_to(message.json(), &deferred));
            }
        }
        if let Some(mark) = request.member(MEMBER).filter(|mark| mark.0 != "null") {
            row.mark_last(ttl_of(mark)?);
        }
        Ok(Layout { positions: row.checked()?, fixed_tokens })
    }

    /// A search run by the provider belongs to the system part of the prompt, not to the tools.
    fn is_web_search(&self, tool: RawJson<'_>) -> bool {
        let kind = tool.get("type").and_then(RawJson::as_text);
        !self.in_slices && kind.is_some_and(|kind| kind.starts_with("web_search"))
    }

    /// Hashes the settings that invalidate system prompt and messages without being part of them.
    fn absorb_for_system(
        &self,
        request: &Request,
        searches: &[RawJson<'_>],
        cuts: &[Arc<Cut>],
        row: &mut Row,
    ) {
        if self.in_slices {
            return;
        }
        row.absorb("web_search", if searches.is_empty() { "off" } else { "on" });
        row.absorb("citations", if cuts.iter().any(|cut| cut.has_citations) { "on" } else { "off" });
        row.absorb("speed", request.member("speed").map_or("", |value| value.0));
    }

    /// Returns the pieces of a text. A known text is not split again.
    fn cut(
        &mut self,
        json: &str,
        family: Family,
        cut: impl FnOnce(&str) -> Result<Cut, MarkComplaint>,
    ) -> Result<Arc<Cut>, MarkComplaint> {
        let key = (digest(&[json.as_bytes()]), family);
        if let Some(known) = self.known.get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut made = cut(json)?;
        if self.in_slices {
            made.pieces = sliced(json, &made.pieces);
        }
        if self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        let made = Arc::new(made);
        self.known.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

/// A list of positions under construction.
struct Row {
    positions: Vec<Position>,
    takes_mark: Vec<bool>,
    chain: Chain,
    tokens: u64,
}

impl Row {
    fn new() -> Self {
        Self { positions: Vec::new(), takes_mark: Vec::new(), chain: Chain([0; 16]), tokens: 0 }
    }

    /// Hashes a value that the model does not read, but that separates prompts from here on.
    fn absorb(&mut self, name: &str, value: &str) {
        self.chain = Chain(digest(&[&self.chain.0, name.as_bytes(), b"=", value.as_bytes()]));
    }

    fn push_all(&mut self, cut: &Cut, in_slices: bool) {
        for piece in &cut.pieces {
            self.chain = Chain(digest(&[&self.chain.0, &piece.hash]));
            self.tokens = self.tokens.saturating_add(piece.tokens);
            let mark = piece.mark.filter(|_| !in_slices);
            self.positions.push(Position { chain: self.chain, end_tokens: self.tokens, mark });
            self.takes_mark.push(piece.takes_mark);
        }
    }

    /// Adds tokens at the end of the last piece.
    fn add_tokens(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        if let Some(last) = self.positions.last_mut() {
            last.end_tokens = self.tokens;
        }
    }

    /// Places a mark for the whole request on the last piece that can carry one.
    fn mark_last(&mut self, ttl: CacheTtl) {
        let last = self.takes_mark.iter().rposition(|takes| *takes);
        if let Some(position) = last.and_then(|at| self.positions.get_mut(at)) {
            position.mark.get_or_insert(ttl);
        }
    }

    fn checked(self) -> Result<Vec<Position>, MarkComplaint> {
        let marks: Vec<CacheTtl> = self.positions.iter().filter_map(|position| position.mark).collect();
        if marks.len() > CacheMarks::MOST {
            return Err(MarkComplaint::TooMany { found: marks.len() });
        }
        let short = marks.iter().position(|ttl| *ttl == CacheTtl::FiveMinutes);
        if short.is_some_and(|at| marks.iter().skip(at).any(|ttl| *ttl == CacheTtl::OneHour)) {
            return Err(MarkComplaint::LongBehindShort);
        }
        Ok(self.positions)
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut short = [0; 16];
    hasher.finalize_xof().fill(&mut short);
    short
}

/// Returns the mark on a block or inside it.
fn mark_on(block: RawJson<'_>) -> Result<Option<CacheTtl>, MarkComplaint> {
    if memchr::memmem::find(block.0.as_bytes(), MEMBER.as_bytes()).is_none() {
        return Ok(None);
    }
    let inside = block.get("content").into_iter().flat_map(RawJson::elements);
    let holders = std::iter::once(block).chain(inside.filter(|inner| inner.0.starts_with('{')));
    let marks = holders.filter_map(|holder| holder.get(MEMBER)).filter(|mark| mark.0 != "null");
    marks.last().map(ttl_of).transpose()
}

fn ttl_of(mark: RawJson<'_>) -> Result<CacheTtl, MarkComplaint> {
    let unreadable = || MarkComplaint::Unreadable { mark: mark.0.to_owned() };
    if mark.get("type").and_then(RawJson::as_text).as_deref() != Some("ephemeral") {
        return Err(unreadable());
    }
    match mark.get("ttl").and_then(RawJson::as_text) {
        None => Ok(CacheTtl::FiveMinutes),
        Some(word) => CacheTtl::parse(&word).ok_or_else(unreadable),
    }
}

/// Whether a definition is loaded only at a reference.
fn is_deferred(tool: RawJson<'_>) -> bool {
    tool.get("defer_loading").is_some_and(|deferred| deferred.0 == "true")
}

/// Returns the tokens of the definitions that the results in a message refer to.
fn referred_to(message: &str, deferred: &HashMap<String, u64>) -> u64 {
    if memchr::memmem::find(message.as_bytes(), REFERENCE.as_bytes()).is_none() {
        return 0;
    }
    let blocks = RawJson(message).get("content").into_iter().flat_map(RawJson::elements);
    let inside = blocks.filter_map(|block| block.get("content")).flat_map(RawJson::elements);
    let names = inside.filter_map(|reference| reference.get(REFERENCE)?.as_text());
    names.filter_map(|name| deferred.get(&*name)).sum()
}

fn cut_tool(json: &str, model: &TokenModel) -> Result<Cut, MarkComplaint> {
    let bare = CacheMarks::removed_from(json);
    let tokens = model.estimate_content(&ContentProfile::of_tools(&format!("[{bare}]")));
    let hash = digest(&[b"tool", bare.as_bytes()]);
    let piece = PromptPiece { hash, tokens, mark: mark_on(RawJson(json))?, takes_mark: true };
    Ok(Cut { pieces: vec![piece], ..Cut::default() })
}

fn cut_system(json: &str, model: &TokenModel) -> Result<Cut, MarkComplaint> {
    let mut cut = Cut::default();
    let whole = RawJson(json);
    let blocks: Vec<RawJson<'_>> =
        if json.starts_with('[') { whole.elements().collect() } else { vec![whole] };
    for block in blocks {
        let is_first = cut.pieces.is_empty();
        let bare = CacheMarks::removed_from(block.0);
        let mut profile = ContentProfile::of_system(&if block.0.starts_with('{') {
            format!("[{bare}]")
        } else {
            bare.to_string()
        });
        profile.messages = u32::from(is_first);
        let hash = digest(&[b"system", &rendered(&bare)]);
        cut.pieces.push(piece_of(block, hash, model.estimate_content(&profile))?);
    }
    Ok(cut)
}

fn cut_message(message: &Message, wire_format: WireFormat, model: &TokenModel) -> Result<Cut, MarkComplaint> {
    let mut cut = Cut { has_image: message.has_image(), ..Cut::default() };
    let json = RawJson(message.json());
    let whole = || vec![(json, message.json().to_owned())];
    let role = message.role().name();
    let blocks: Vec<(RawJson<'_>, String)> = match wire_format {
        WireFormat::Responses => whole(),
        WireFormat::Chat if message.role() == Role::Tool => whole(),
        WireFormat::Chat | WireFormat::Anthropic => {
            let content = json.get("content");
            let listed =
                content.filter(|content| content.0.starts_with('[')).map(|list| list.elements().collect());
            let blocks: Vec<RawJson<'_>> = listed.unwrap_or_else(|| content.into_iter().collect());
            let blocks = blocks.into_iter().filter(|block| block.0 != "null");
            let calls = json.get("tool_calls").into_iter().flat_map(RawJson::elements);
            let as_message = |block: RawJson<'_>| match block.0.starts_with('"') {
                true => format!("{{\"role\":\"{role}\",\"content\":{}}}", block.0),
                false => format!("{{\"role\":\"{role}\",\"content\":[{}]}}", block.0),
            };
            let calls =
                calls.map(|call| (call, format!("{{\"role\":\"assistant\",\"tool_calls\":[{}]}}", call.0)));
            blocks.map(|block| (block, as_message(block))).chain(calls).collect()
        }
    };
    // A message without content consists only of its other members.
    let blocks = if blocks.is_empty() { whole() } else { blocks };
    for (block, alone) in blocks {
        let is_first = cut.pieces.is_empty();
        let bare = CacheMarks::removed_from(block.0);
        let alone = decode_message(SharedText::new(CacheMarks::removed_from(&alone).into_owned()));
        let mut profile = alone.map(|alone| ContentProfile::of_message(&alone)).unwrap_or_default();
        profile.messages = u32::from(is_first);
        let start: &[u8] = if is_first { b"message" } else { b"further" };
        let hash = digest(&[start, role.as_bytes(), &rendered(&bare)]);
        cut.has_citations |= cites(block);
        cut.pieces.push(piece_of(block, hash, model.estimate_content(&profile))?);
    }
    Ok(cut)
}

fn piece_of(block: RawJson<'_>, hash: [u8; 16], tokens: u64) -> Result<PromptPiece, MarkComplaint> {
    let mark = mark_on(block)?;
    let kind = block.get("type").and_then(RawJson::as_text).unwrap_or_default();
    let is_empty =
        kind == "text" && block.get("text").and_then(RawJson::as_text).is_none_or(|text| text.is_empty());
    let takes_mark = !is_empty && !kind.contains("thinking");
    if mark.is_some() && !takes_mark {
        let kind = if is_empty { "empty text".to_owned() } else { kind.into_owned() };
        return Err(MarkComplaint::NotThere { kind });
    }
    Ok(PromptPiece { hash, tokens, mark, takes_mark })
}

/// Returns a block as the model receives it, as far as known: a text is the same as a string and as a block.
fn rendered(block: &str) -> Vec<u8> {
    let value = RawJson(block);
    let text = if block.starts_with('"') {
        value.as_text()
    } else {
        let is_text = value.get("type").and_then(RawJson::as_text).is_some_and(|kind| kind == "text");
        let is_plain = || value.members().all(|(name, _)| matches!(&*name, "type" | "text"));
        (is_text && is_plain()).then(|| value.get("text").and_then(RawJson::as_text)).flatten()
    };
    match text {
        Some(text) => [b"text:", text.as_bytes()].concat(),
        None => block.as_bytes().to_vec(),
    }
}

fn cites(block: RawJson<'_>) -> bool {
    let citations = block.get("citations");
    citations.and_then(|citations| citations.get("enabled")).is_some_and(|enabled| enabled.0 == "true")
}

/// Splits a text further: its slices share the tokens of its pieces in proportion to their bytes.
fn sliced(json: &str, pieces: &[PromptPiece]) -> Vec<PromptPiece> {
    let tokens: u64 = pieces.iter().map(|piece| piece.tokens).sum();
    let bare = CacheMarks::removed_from(json);
    let slices: Vec<&[u8]> = bare.as_bytes().chunks(SLICE_BYTES).collect();
    let (mut bytes, mut given) = (0u64, 0u64);
    let all_bytes = bare.len().max(1) as u64;
    slices
        .into_iter()
        .map(|slice| {
            bytes += slice.len() as u64;
            let up_to = tokens.saturating_mul(bytes) / all_bytes;
            let share = up_to.saturating_sub(given);
            given = up_to;
            PromptPiece { hash: digest(&[slice]), tokens: share, mark: None, takes_mark: false }
        })
        .collect()
}

/// Returns a chain that is different for each number.
#[cfg(test)]
pub(super) fn test_chain(number: usize) -> Chain {
    Chain(digest(&[&number.to_be_bytes()]))
}
