//! `lcm_grep`: searches every message of a conversation for words or a pattern, and returns the location of each hit.
//!
//! Words use the index of the record. For a pattern, the index is searched for the longest string that every match must
//! contain. A pattern without such a string is matched against the messages themselves, newest first and up to a limit
//! of bytes. Patterns run in linear time and are bounded in size.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use serde::Serialize;
use throughline_search::texts::TextPassage;
use throughline_store::{
    Hit, MessageRun, Millis, NodeHead, SearchMode, SearchQuery, SessionId, SummaryId, ViewItem,
};

use crate::recall::names::is_sentence;
use crate::recall::tools::RecallToolset;
use crate::recall::{RecallError, RecallReader, RecallResult, readable, unknown_node};

/// The kind of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepPattern {
    /// Words, or one literal string.
    #[default]
    Words,
    /// A regular expression.
    Regex,
}

/// A search.
#[derive(Clone, Debug, Default)]
pub struct GrepQuery {
    /// The text to search.
    pub text: String,
    /// The kind of search.
    pub pattern: GrepPattern,
    /// Only messages before this one.
    pub before: Option<u64>,
    /// The maximum number of hits, within the configured limit.
    pub limit: Option<usize>,
}

/// A matching message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepHit {
    /// Its position in the conversation.
    pub message: u64,
    /// The session it was appended to.
    pub session: SessionId,
    /// The author.
    pub role: String,
    /// When the message was recorded.
    pub at_ms: Millis,
    /// The nodes that cover it, from the one in view down to its leaf; empty if it is in view itself.
    pub nodes: Vec<SummaryId>,
    /// Whether the view shows it.
    pub in_view: bool,
    /// The passage.
    pub passage: String,
    /// The matched text: with it an expansion shows this place.
    pub found: String,
}

/// A passage of a node: text about messages, not from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeHit {
    /// The node.
    pub node: SummaryId,
    /// The position of the first message it covers.
    pub first_seq: u64,
    /// The position after the last.
    pub end_seq: u64,
    /// The passage.
    pub passage: String,
    /// The number of words of the question it contains, and the number of all.
    pub matched: (usize, usize),
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrepAnswer {
    /// The hits.
    pub hits: Vec<GrepHit>,
    /// Passages of nodes that answer a question of several words, best first.
    pub nodes: Vec<NodeHit>,
    /// Exact names of the conversation that its view no longer has, for a question of several words.
    pub names: Option<String>,
    /// Set if not everything was searched: only messages from this one on.
    pub looked_back_to: Option<u64>,
    /// Whether there are more matches.
    pub more: bool,
}

/// The maximum size of a compiled pattern in bytes.
const PATTERN_BYTES: usize = 1 << 20;
/// The maximum length of a pattern in characters.
const PATTERN_CHARS: usize = 1_000;
/// The maximum number of messages proposed by the index for a pattern.
const PROPOSED: usize = 400;
/// The maximum bytes of messages against which a pattern without a literal is matched.
const SCANNED_BYTES: usize = 4 << 20;
/// Number of messages read at once.
const SCANNED_AT_ONCE: u64 = 64;
/// The maximum number of node passages per search.
const NODE_HITS: usize = 3;
/// The maximum number of nodes read for them: those in view, then their children.
const MAX_NODES_READ: usize = 256;
/// Extra hits that are requested because some may be lookups, which are left out.
const MOST_LOOKUPS: usize = 64;
/// Characters shown before and after a hit.
const PASSAGE_CHARS: usize = 140;
/// The minimum length of a literal to search.
const LEAST_LITERAL_CHARS: usize = 3;

impl RecallReader<'_> {
    /// Searches a conversation.
    pub fn grep(&self, session: &SessionId, ask: &GrepQuery) -> RecallResult<GrepAnswer> {
        if ask.text.trim().is_empty() {
            return Err(RecallError::NothingAsked("say what to look for"));
        }
        let limit = ask.limit.unwrap_or(usize::MAX).clamp(1, self.limits.grep_hits.max(1));
        let mut answer = match ask.pattern {
            GrepPattern::Words => self.by_words(session, ask, limit)?,
            GrepPattern::Regex => self.by_pattern(session, ask, limit)?,
        };
        self.locate(session, &mut answer.hits)?;
        if ask.pattern == GrepPattern::Words && ask.before.is_none() {
            answer.nodes = self.node_passages(session, &ask.text)?;
            if is_sentence(&ask.text) {
                answer.names = self.names(session, &ask.text)?;
            }
        }
        Ok(answer)
    }

    fn search(
        &self,
        session: &SessionId,
        text: &str,
        mode: SearchMode,
        limit: usize,
    ) -> RecallResult<(Vec<Hit>, bool)> {
        let query = SearchQuery {
            text: text.to_owned(),
            mode,
            session: Some(session.clone()),
            limit: limit.saturating_add(MOST_LOOKUPS),
            ..SearchQuery::default()
        };
        let mut found = self.store.search(self.owner, &query)?;
        found.hits.retain(|hit| !RecallToolset::is_lookup(&hit.tools));
        found.hits.truncate(limit);
        Ok((found.hits, found.ranked_newest.is_some()))
    }

    fn by_words(&self, session: &SessionId, ask: &GrepQuery, limit: usize) -> RecallResult<GrepAnswer> {
        let text = ask.text.trim();
        // One more than is shown, to detect whether there are more; and enough to leave out those after `before`.
        let wanted = if ask.before.is_some() { PROPOSED } else { limit + 1 };
        let is_before = |hit: &Hit| ask.before.is_none_or(|before| hit.seq < before);
        // A single string is searched literally.
        if !text.contains(char::is_whitespace) {
            let (mut hits, mut cut) = self.search(session, text, SearchMode::Substring, wanted)?;
            let mut ranked = self.as_written(text, hits.iter().filter(|hit| is_before(hit)).take(wanted))?;
            if hits.len() >= wanted && ranked.iter().all(|(spelling, _)| *spelling == Spelling::Otherwise) {
                (hits, cut) = self.search(session, text, SearchMode::Substring, PROPOSED)?;
                ranked = self.as_written(text, hits.iter().filter(|hit| is_before(hit)))?;
            }
            if !hits.is_empty() {
                let more = ranked.len() > limit || cut;
                let hits = ranked.into_iter().map(|(_, hit)| hit).take(limit).collect();
                return Ok(GrepAnswer { hits, more, ..GrepAnswer::default() });
            }
        }
        let (mut hits, cut) = self.search(session, text, SearchMode::Words, wanted)?;
        hits.retain(is_before);
        let more = hits.len() > limit || cut;
        hits.truncate(limit);
        Ok(GrepAnswer { hits: hits.into_iter().map(from_index).collect(), more, ..GrepAnswer::default() })
    }

    /// Returns hits of one string, those with its exact spelling first: the index does not distinguish `Id` from `ID`.
    fn as_written<'h>(
        &self,
        text: &str,
        hits: impl Iterator<Item = &'h Hit>,
    ) -> RecallResult<Vec<(Spelling, GrepHit)>> {
        let mut ranked = Vec::new();
        for hit in hits {
            let mut shown = from_index(hit.clone());
            let stored = self.message(&hit.session, hit.seq)?;
            let whole = stored.and_then(|stored| stored.decode()).map(|message| readable(&message));
            let (spelling, at) =
                whole.as_deref().map_or((Spelling::Otherwise, 0), |whole| spelled(whole, text));
            if let Some(whole) = whole.filter(|_| spelling != Spelling::Otherwise) {
                (shown.passage, shown.found) = passage(&whole, at, at + text.len());
            }
            ranked.push((spelling, shown));
        }
        ranked.sort_by_key(|(spelling, _)| *spelling);
        Ok(ranked)
    }

    fn by_pattern(&self, session: &SessionId, ask: &GrepQuery, limit: usize) -> RecallResult<GrepAnswer> {
        let regex = compiled(&ask.text)?;
        let Some(literal) = longest_literal(&ask.text) else {
            return self.scan(session, &regex, ask.before, limit);
        };
        let (proposed, cut) = self.search(session, &literal, SearchMode::Substring, PROPOSED)?;
        let cut = cut || proposed.len() >= PROPOSED;
        let mut hits = Vec::new();
        for hit in proposed.iter().filter(|hit| ask.before.is_none_or(|before| hit.seq < before)) {
            if hits.len() > limit {
                break;
            }
            let Some(stored) = self.message(&hit.session, hit.seq)? else { continue };
            let Some(text) = stored.decode().map(|message| readable(&message)) else { continue };
            if let Some(found) = regex.find(&text) {
                let mut hit = from_index(hit.clone());
                (hit.passage, hit.found) = passage(&text, found.start(), found.end());
                hits.push(hit);
            }
        }
        let more = hits.len() > limit || cut;
        hits.truncate(limit);
        Ok(GrepAnswer { hits, more, ..GrepAnswer::default() })
    }

    /// Matches a pattern against messages, newest first, up to the limit.
    fn scan(
        &self,
        session: &SessionId,
        regex: &Regex,
        before: Option<u64>,
        limit: usize,
    ) -> RecallResult<GrepAnswer> {
        let mut hits: Vec<GrepHit> = Vec::new();
        let mut bytes = 0;
        for stretch in self.stretches(session)? {
            let mut end = before.map_or(stretch.end_seq, |before| stretch.end_seq.min(before));
            while end > stretch.session.first_seq {
                if bytes > SCANNED_BYTES || hits.len() > limit {
                    let more = hits.len() > limit;
                    hits.truncate(limit);
                    return Ok(GrepAnswer { hits, looked_back_to: Some(end), more, ..GrepAnswer::default() });
                }
                let first = end.saturating_sub(SCANNED_AT_ONCE).max(stretch.session.first_seq);
                let run = MessageRun { session: stretch.session.id.clone(), first_seq: first, end_seq: end };
                for stored in self.store.messages_of_run(self.owner, &run)?.iter().rev() {
                    bytes += stored.json.as_str().len();
                    if RecallToolset::is_lookup(&stored.tools) {
                        continue;
                    }
                    let Some(text) = stored.decode().map(|message| readable(&message)) else { continue };
                    if let Some(found) = regex.find(&text) {
                        let (passage, found) = passage(&text, found.start(), found.end());
                        hits.push(GrepHit {
                            message: stored.seq,
                            session: stored.session.clone(),
                            role: stored.role.name().to_owned(),
                            at_ms: stored.at_ms,
                            nodes: Vec::new(),
                            in_view: false,
                            passage,
                            found,
                        });
                    }
                }
                end = first;
            }
        }
        let more = hits.len() > limit;
        hits.truncate(limit);
        Ok(GrepAnswer { hits, more, ..GrepAnswer::default() })
    }

    /// Returns passages of nodes with several words of a question.
    fn node_passages(&self, session: &SessionId, question: &str) -> RecallResult<Vec<NodeHit>> {
        if !question.trim().contains(char::is_whitespace) {
            return Ok(Vec::new());
        }
        let mut nodes = self.top_nodes(session)?;
        let mut at = 0;
        while let Some(children) = nodes.get(at).map(|head| head.node.children.clone()) {
            at += 1;
            let known = |id: SummaryId| nodes.iter().any(|head| head.id == id);
            let below: Vec<SummaryId> =
                children.iter().map(|child| child.id).filter(|id| !known(*id)).collect();
            if nodes.len() + below.len() > MAX_NODES_READ {
                break;
            }
            nodes.extend(self.store.node_heads(self.owner, &below).map_err(unknown_node)?);
        }
        let mut documents = Vec::with_capacity(nodes.len());
        for head in &nodes {
            documents.push(self.store.summary(self.owner, head.id).map_err(unknown_node)?.document);
        }
        let found = TextPassage::rank(question, documents.iter().map(String::as_str), NODE_HITS);
        let hits = found.into_iter().filter(|passage| passage.matched.words > 1).filter_map(|passage| {
            let head = nodes.get(passage.text)?;
            Some(NodeHit {
                node: head.id,
                first_seq: head.sources.iter().map(|run| run.first_seq).min()?,
                end_seq: head.sources.iter().map(|run| run.end_seq).max()?,
                passage: passage.snippet.text,
                matched: (passage.matched.words, passage.matched.of),
            })
        });
        Ok(hits.collect())
    }

    /// Determines where each hit is: in the view, or below which nodes.
    fn locate(&self, session: &SessionId, hits: &mut [GrepHit]) -> RecallResult<()> {
        if hits.is_empty() {
            return Ok(());
        }
        let shown = self.store.view_items(self.owner, session)?;
        let is_shown = |hit: &GrepHit| {
            shown.iter().any(|item| match item {
                ViewItem::Range { session, first_seq, end_seq } => {
                    *session == hit.session
                        && hit.message >= *first_seq
                        && end_seq.is_none_or(|end| hit.message < end)
                }
                ViewItem::Rendition { session, seq, .. } => *session == hit.session && *seq == hit.message,
                ViewItem::Summary { .. } | ViewItem::Synthetic { .. } => false,
            })
        };
        let top = self.top_nodes(session)?;
        let mut known: HashMap<SummaryId, NodeHead> = HashMap::new();
        for hit in hits {
            hit.in_view = is_shown(hit);
            hit.nodes = self.path_to(&top, &hit.session, hit.message, &mut known)?;
        }
        Ok(())
    }

    /// Returns the nodes that cover a message, from the top down.
    pub(crate) fn path_to(
        &self,
        top: &[NodeHead],
        session: &SessionId,
        seq: u64,
        known: &mut HashMap<SummaryId, NodeHead>,
    ) -> RecallResult<Vec<SummaryId>> {
        let mut path = Vec::new();
        let mut next = top.iter().find(|node| node.covers(session, seq)).cloned();
        while let Some(node) = next.take() {
            path.push(node.id);
            for child in &node.node.children {
                if !(child.first_seq..child.end_seq).contains(&seq) {
                    continue;
                }
                if !known.contains_key(&child.id) {
                    let mut heads = self.store.node_heads(self.owner, &[child.id]).map_err(unknown_node)?;
                    known.extend(heads.pop().map(|head| (child.id, head)));
                }
                let below = known.get(&child.id).filter(|head| head.covers(session, seq));
                // Nothing is visited twice, even in a damaged record.
                if let Some(below) = below.filter(|below| !path.contains(&below.id)) {
                    next = Some(below.clone());
                    break;
                }
            }
        }
        Ok(path)
    }
}

fn from_index(hit: Hit) -> GrepHit {
    let found = hit.snippet.marks.first().and_then(|(start, end)| hit.snippet.text.get(*start..*end));
    GrepHit {
        message: hit.seq,
        session: hit.session,
        role: hit.role.to_owned(),
        at_ms: hit.at_ms,
        nodes: Vec::new(),
        in_view: false,
        found: found.unwrap_or_default().to_owned(),
        passage: hit.snippet.text,
    }
}

/// How a string occurs in a text, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spelling {
    /// With the exact spelling, not inside a longer word.
    OwnWord,
    /// With the exact spelling.
    Within,
    /// With different case.
    Otherwise,
}

/// Returns the best occurrence of a string in a text, and its position.
fn spelled(text: &str, wanted: &str) -> (Spelling, usize) {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let stands_alone = |at: &usize| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        let after = text.get(at + wanted.len()..).and_then(|after| after.chars().next());
        !is_word(before) && !is_word(after)
    };
    let places = || text.match_indices(wanted).map(|(at, _)| at);
    match (places().find(stands_alone), places().next()) {
        (Some(at), _) => (Spelling::OwnWord, at),
        (None, Some(at)) => (Spelling::Within, at),
        (None, None) => (Spelling::Otherwise, 0),
    }
}

/// Returns the passage around a hit, on one line, and the hit itself.
fn passage(text: &str, start: usize, end: usize) -> (String, String) {
    let before = text.get(..start).unwrap_or_default();
    let from = before.char_indices().rev().nth(PASSAGE_CHARS - 1).map_or(0, |(at, _)| at);
    let rest = text.get(start..).unwrap_or_default();
    let to = rest.char_indices().nth(PASSAGE_CHARS).map_or(text.len(), |(at, _)| start + at);
    let passage = text.get(from..to).unwrap_or_default();
    let found: String = text.get(start..end).unwrap_or_default().chars().take(PASSAGE_CHARS).collect();
    (passage.split_whitespace().collect::<Vec<_>>().join(" "), found)
}

fn compiled(pattern: &str) -> RecallResult<Regex> {
    let bad = |problem: String| RecallError::BadPattern { problem };
    if pattern.chars().count() > PATTERN_CHARS {
        return Err(bad(format!("it has more than {PATTERN_CHARS} characters")));
    }
    let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => bad("it is too large once it is worked out".to_owned()),
        // The last line has the message; those before show the position.
        other => bad(other.to_string().lines().last().unwrap_or_default().trim().to_owned()),
    })
}

/// Returns the longest literal in every match of a pattern.
fn longest_literal(pattern: &str) -> Option<String> {
    let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut longest = String::new();
    required(&hir, &mut longest);
    (longest.chars().count() >= LEAST_LITERAL_CHARS).then_some(longest)
}

fn required(hir: &Hir, longest: &mut String) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            // Line breaks may differ in the indexed text.
            let text = std::str::from_utf8(&literal.0).unwrap_or_default();
            for piece in text.split(char::is_control) {
                if piece.trim().len() > longest.len() {
                    *longest = piece.trim().to_owned();
                }
            }
        }
        HirKind::Capture(inside) => required(&inside.sub, longest),
        HirKind::Concat(parts) => parts.iter().for_each(|part| required(part, longest)),
        HirKind::Repetition(repeated) if repeated.min > 0 => required(&repeated.sub, longest),
        HirKind::Repetition(_)
        | HirKind::Alternation(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Empty => {}
    }
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
