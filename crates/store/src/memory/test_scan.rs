//! A model of search for tests: it reads every text of the store in memory, and uses the same rules for matches, order and passages as the
//! other stores.

use std::cmp::Ordering;

use throughline_search::matching::Matcher;
use throughline_search::query::{ParsedQuery, SearchMethod};
use throughline_search::rank::{HitSource, RankedHit, SearchCandidate, best};
use throughline_search::snippet::{beginning, passage};
use throughline_search::{MatchedWords, SearchMode, Snippet};
use throughline_transcript::{ContentHash, Role};

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::pieces::pieces;
use crate::error::Result;
use crate::ids::{Millis, Owner};
use crate::message::StoredMessage;
use crate::search::request::{ArtifactLocation, Hit, Neighbour, SearchAnswer, SearchQuery};
use crate::search::searchable::searchable_text;
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;

use super::artifacts::{MemoryArtifact, MemoryReference};
use super::state::MemoryState;

/// The key of a candidate: a message by its number, or a piece of an artifact by the artifact's number and its own. Pieces come after
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TextKey {
    Message(u64),
    Piece(u64, usize),
}

/// The scope of a search.
struct MemoryScope<'a> {
    owner: &'a Owner,
    query: &'a SearchQuery,
    /// The line of the conversation to search; everything if there is none.
    line: Option<Vec<LinePart>>,
}

impl MemoryScope<'_> {
    fn admits(&self, session: &Session, seq: u64, role: Role, tools: &[String], at_ms: Millis) -> bool {
        let on_line = |line: &Vec<LinePart>| {
            line.iter().any(|stretch| stretch.end_in(session).is_some_and(|end| seq < end))
        };
        session.owner == *self.owner
            && self.line.as_ref().is_none_or(on_line)
            && self.query.admits(role, tools, at_ms)
    }
}

/// The location of a hit.
struct MemoryHit<'a> {
    session: &'a Session,
    message: u64,
    seq: u64,
    role: Role,
    tools: Vec<String>,
    at_ms: Millis,
}

impl MemoryState {
    pub(super) fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer> {
        let line = match &query.session {
            None => None,
            Some(id) => {
                let session = self.find(owner, id)?;
                let tip = self.tip(session.chain).unwrap_or(session);
                Some(self.line(owner, LinePart::through(tip)))
            }
        };
        let scope = MemoryScope { owner, query, line };
        let parsed = ParsedQuery::new(&query.text);
        let mut answer = SearchAnswer::default();
        for way in parsed.ways(query.mode) {
            let mut matcher = Matcher::new(&parsed, *way);
            let mut found = self.messages_that_fit(&scope, &mut matcher);
            found.extend(
                self.artifacts
                    .iter()
                    .filter_map(|(id, kept)| self.best_piece(&scope, id, kept, &mut matcher)),
            );
            if !found.is_empty() {
                let ranked = best(&found, query.limit());
                let of = parsed.wanted.len();
                let matched = (*way == SearchMethod::Words).then_some(MatchedWords { words: of, of });
                let shown = ranked.iter().filter_map(|hit| self.shown(&scope, &mut matcher, hit));
                answer.hits = shown.map(|hit| Hit { matched, ..hit }).collect();
                answer.as_substring = *way == SearchMethod::Substring && query.mode != SearchMode::Substring;
                break;
            }
        }
        Ok(answer)
    }

    fn messages_that_fit(
        &self,
        scope: &MemoryScope<'_>,
        matcher: &mut Matcher<'_>,
    ) -> Vec<SearchCandidate<TextKey>> {
        let mut found = Vec::new();
        for (session, message) in self.messages_of(scope.owner) {
            let role = message.speaker();
            if !scope.admits(session, message.seq, role, &message.tools, message.at_ms) {
                continue;
            }
            let ContentHash(content) = message.hash;
            found.extend(matcher.fit(&text_of(message)).map(|fit| SearchCandidate {
                key: TextKey::Message(message.id),
                content,
                fit,
                speaker: HitSource { role, machine_written: message.machine_written, in_artifact: false },
                at_ms: message.at_ms,
            }));
        }
        found
    }

    /// Returns the best matching piece of an artifact.
    fn best_piece(
        &self,
        scope: &MemoryScope<'_>,
        id: &ArtifactId,
        kept: &MemoryArtifact,
        matcher: &mut Matcher<'_>,
    ) -> Option<SearchCandidate<TextKey>> {
        let place = self.newest_reference(scope, kept)?;
        let mut content = [0; 32];
        content.iter_mut().zip(id.as_str().bytes()).for_each(|(to, from)| *to = from);
        let all: Vec<_> = pieces(&kept.text).enumerate().collect();
        let mut best: Option<SearchCandidate<TextKey>> = None;
        for (number, piece) in all.into_iter().rev() {
            let Some(fit) = matcher.fit(piece.text) else { continue };
            if best.as_ref().is_none_or(|best| !best.fit.outdoes(&fit)) {
                let speaker = HitSource { role: place.role, machine_written: false, in_artifact: true };
                let key = TextKey::Piece(kept.number, number);
                best = Some(SearchCandidate { key, content, fit, speaker, at_ms: place.at_ms });
            }
        }
        best
    }

    /// Returns the newest reference to an artifact within the scope. One without a message belongs to the last message before it in its
    /// session, or counts as a tool's answer.
    fn newest_reference(&self, scope: &MemoryScope<'_>, kept: &MemoryArtifact) -> Option<MemoryHit<'_>> {
        let mut ties: Vec<&MemoryReference> = kept.ties.iter().collect();
        ties.sort_by_key(|tie| std::cmp::Reverse((tie.session, tie.message)));
        ties.into_iter()
            .filter_map(|tie| {
                let session = self.sessions.get(&tie.session)?;
                let message = match tie.message {
                    Some(number) => self.messages.get(&number),
                    None => self.run(tie.session, 0, u64::MAX).last(),
                };
                Some(match message {
                    Some(message) => MemoryHit::of(session, message),
                    None => MemoryHit {
                        session,
                        message: 0,
                        seq: session.first_seq,
                        role: Role::Tool,
                        tools: Vec::new(),
                        at_ms: tie.artifact.created_ms,
                    },
                })
            })
            .find(|place| scope.admits(place.session, place.seq, place.role, &place.tools, place.at_ms))
    }

    fn shown(
        &self,
        scope: &MemoryScope<'_>,
        matcher: &mut Matcher<'_>,
        ranked: &RankedHit<TextKey>,
    ) -> Option<Hit> {
        match ranked.key {
            TextKey::Message(number) => {
                let message = self.messages.get(&number)?;
                let session = self.known(scope.owner, &message.session)?;
                let text = text_of(message);
                let snippet = passage(&text, &matcher.places(&text));
                Some(self.hit(scope, MemoryHit::of(session, message), ranked, snippet))
            }
            TextKey::Piece(artifact, number) => {
                let (id, kept) = self.artifacts.iter().find(|(_, kept)| kept.number == artifact)?;
                let place = self.newest_reference(scope, kept)?;
                let piece = pieces(&kept.text).nth(number)?;
                let marks = matcher.places(piece.text);
                let before = piece.text.get(..marks.first().map_or(0, |mark| mark.start)).unwrap_or_default();
                let line = piece.first_line + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
                let hit = self.hit(scope, place, ranked, passage(piece.text, &marks));
                Some(Hit { artifact: Some(ArtifactLocation { id: id.clone(), line }), ..hit })
            }
        }
    }

    fn hit(
        &self,
        scope: &MemoryScope<'_>,
        place: MemoryHit<'_>,
        ranked: &RankedHit<TextKey>,
        snippet: Snippet,
    ) -> Hit {
        let (before, after) = self.neighbours(scope, &place);
        Hit {
            session: place.session.id.clone(),
            title: self.members(place.session.chain).rev().find_map(|member| member.title.clone()),
            seq: place.seq,
            message: place.message,
            role: place.role.name(),
            tools: place.tools,
            at_ms: place.at_ms,
            score: ranked.score,
            matched: None,
            similarity: None,
            snippet,
            artifact: None,
            repeats: ranked.repeats,
            before,
            after,
        }
    }

    /// Returns the messages around a position in a conversation, in order.
    fn neighbours(&self, scope: &MemoryScope<'_>, place: &MemoryHit<'_>) -> (Vec<Neighbour>, Vec<Neighbour>) {
        let count = scope.query.neighbours as u64;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let Some(tip) = self.tip(place.session.chain).filter(|_| count > 0) else { return (before, after) };
        let (first, end) =
            (place.seq.saturating_sub(count), place.seq.saturating_add(count).saturating_add(1));
        for stretch in self.line(scope.owner, LinePart::through(tip)).iter().rev() {
            for member in self.members(stretch.chain) {
                let Some(end_here) = stretch.end_in(member) else { continue };
                for message in self.run(member.ordinal, first, end.min(end_here)) {
                    let text = beginning(&text_of(message));
                    let neighbour = Neighbour { seq: message.seq, role: message.speaker().name(), text };
                    match message.seq.cmp(&place.seq) {
                        Ordering::Less => before.push(neighbour),
                        Ordering::Equal => {}
                        Ordering::Greater => after.push(neighbour),
                    }
                }
            }
        }
        (before, after)
    }
}

impl<'a> MemoryHit<'a> {
    fn of(session: &'a Session, message: &StoredMessage) -> Self {
        Self {
            session,
            message: message.id,
            seq: message.seq,
            role: message.speaker(),
            tools: message.tools.clone(),
            at_ms: message.at_ms,
        }
    }
}

/// Returns the searched text of a message.
fn text_of(message: &StoredMessage) -> String {
    let mut text = String::new();
    if let Some(message) = message.decode() {
        searchable_text(&message, &mut text);
    }
    text
}
