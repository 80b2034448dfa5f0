//! The proposals of the index: the messages and pieces in blocks with the fingerprints of a question, newest first.
//!
//! A substring of one or two characters has no triples. It is searched at the beginning of words everywhere, and inside words in the newest
//! texts.

use std::ops::Range;

use throughline_search::fingerprint::{BlockSet, fingerprints_of_any, rarest_triples};
use throughline_search::query::ParsedQuery;
use throughline_search::segments::IndexSegment;

use super::blocks::QuestionBlocks;
use super::scope::SearchScope;
use super::source::{
    LookupTerms, MessageRows, PieceRows, ScanStep, SearchSource, SegmentLookup, SourceResult,
};
use super::state::{Bounds, SearchState};

/// The maximum number of fingerprints looked up at once; the first are the most significant. The texts decide about the rest.
const MAX_LOOKED_UP: usize = 40;
/// A conversation with fewer messages is read instead of looked up.
const SMALL_CONVERSATION: i64 = 3_000;

/// The known blocks of messages before a query is looked up, with the numbers of the question's words that every matching text has.
pub(super) type KnownBlocks<'b> = Option<(&'b QuestionBlocks, Vec<usize>)>;

/// Collects messages and pieces of artifacts with the words of a question.
pub(super) fn word_candidates<S: SearchSource>(
    source: &S,
    query: &ParsedQuery,
    known: &KnownBlocks<'_>,
    scope: &mut SearchScope<'_, S>,
    gathered: &mut SearchState<'_>,
) -> SourceResult<S, ()> {
    for look_up in query.look_ups() {
        let wanted: Vec<Vec<u32>> =
            look_up.iter().take(MAX_LOOKED_UP).flat_map(|one_of| fingerprints_of_any(one_of)).collect();
        messages_with(source, &wanted, known, scope, gathered)?;
        pieces_with(source, &wanted, scope, gathered)?;
    }
    Ok(())
}

/// Collects messages and pieces that contain a question as a substring.
pub(super) fn substring_candidates<S: SearchSource>(
    source: &S,
    query: &ParsedQuery,
    scope: &mut SearchScope<'_, S>,
    gathered: &mut SearchState<'_>,
) -> SourceResult<S, ()> {
    let wanted = each_alone(rarest_triples(&query.substring));
    if wanted.is_empty() && !query.wanted.is_empty() {
        // By words first, which are found everywhere.
        word_candidates(source, query, &None, scope, gathered)?;
    }
    if !read_small_conversation(source, scope, gathered)? {
        messages_with(source, &wanted, &None, scope, gathered)?;
    }
    pieces_with(source, &wanted, scope, gathered)
}

/// Returns fingerprints that are all required.
fn each_alone(fingerprints: impl IntoIterator<Item = u32>) -> Vec<Vec<u32>> {
    fingerprints.into_iter().map(|fingerprint| vec![fingerprint]).collect()
}

/// Examines the messages in blocks with the required fingerprints.
fn messages_with<S: SearchSource>(
    source: &S,
    wanted: &LookupTerms,
    known: &KnownBlocks<'_>,
    scope: &mut SearchScope<'_, S>,
    gathered: &mut SearchState<'_>,
) -> SourceResult<S, ()> {
    let wanted = [scope.fingerprints()?, wanted.to_vec()].concat();
    let mut bounds = Bounds::new(gathered);
    let segments = segments(source.message_rows()?);
    each_block(source, segments, &wanted, known, |rows| {
        source.each_message(MessageRows::NewestFirst(rows), |row| {
            if !bounds.admit_another(gathered) {
                return Ok(ScanStep::No);
            }
            gathered.look_at(row, scope)?;
            Ok(ScanStep::Yes)
        })
    })
}

/// Examines the pieces of artifacts with the required fingerprints. Of each artifact the best matching piece is used.
fn pieces_with<S: SearchSource>(
    source: &S,
    wanted: &LookupTerms,
    scope: &mut SearchScope<'_, S>,
    gathered: &mut SearchState<'_>,
) -> SourceResult<S, ()> {
    let segments = segments(source.piece_rows()?);
    each_block(source, segments, wanted, &None, |rows| {
        source.each_piece(PieceRows::NewestFirst(rows), |piece| {
            if !gathered.may_read_piece() {
                return Ok(ScanStep::No);
            }
            gathered.look_at_piece(source, piece, scope)?;
            Ok(ScanStep::Yes)
        })
    })
}

/// Returns the segments from the first row to the last.
pub(super) fn segments(rows: Option<(i64, i64)>) -> Vec<IndexSegment> {
    match rows {
        Some((first, last)) => IndexSegment::of_row(first).through(IndexSegment::of_row(last)).collect(),
        None => Vec::new(),
    }
}

/// Records messages that are not indexed at all: the index was damaged, or another program removed parts of it.
pub(super) fn note_unindexed<S: SearchSource>(
    source: &S,
    known: Option<&QuestionBlocks>,
    scope: &mut SearchScope<'_, S>,
) -> SourceResult<S, ()> {
    let lookup = source.lookup()?;
    for segment in segments(source.message_rows()?) {
        if known.is_some_and(|blocks| blocks.knows(segment)) || lookup.knows(segment)? {
            continue;
        }
        for (session, seq) in source.places_in(segment.rows())? {
            if scope.admits_place(session, seq)? {
                scope.note_unseen(session, seq);
            }
        }
    }
    Ok(())
}

/// Calls `look` with the rows of matching blocks, newest first, until it has enough. A remote source gets the rows of several segments
/// together, few at first.
fn each_block<S: SearchSource>(
    source: &S,
    segments: Vec<IndexSegment>,
    wanted: &LookupTerms,
    known: &KnownBlocks<'_>,
    mut look: impl FnMut(&[Range<i64>]) -> SourceResult<S, ScanStep>,
) -> SourceResult<S, ()> {
    let mut holders = source.lookup()?;
    let mut runs: Vec<Range<i64>> = Vec::new();
    for segment in segments.into_iter().rev() {
        let within = known.as_ref().map(|(blocks, words)| blocks.with_all(segment, words));
        if within.as_ref().is_some_and(BlockSet::is_empty) {
            continue;
        }
        let mut found = holders.of(segment, wanted)?;
        within.iter().for_each(|within| found.keep(within));
        // Adjacent blocks are read as one.
        for block in found.descending() {
            let rows = segment.rows_of(block);
            match runs.last_mut() {
                Some(run) if rows.end == run.start => run.start = rows.start,
                _ => runs.push(rows),
            }
        }
        if runs.iter().map(|run| run.end - run.start).sum::<i64>() >= source.batch_rows() {
            if look(&runs)? == ScanStep::No {
                return Ok(());
            }
            runs.clear();
        }
    }
    if !runs.is_empty() {
        look(&runs)?;
    }
    Ok(())
}

/// Whether the scope is so small that it is read instead of looked up.
pub(super) fn is_small<S: SearchSource>(source: &S, scope: &SearchScope<'_, S>) -> SourceResult<S, bool> {
    let messages = match scope.chains() {
        Some(chains) => source.messages_of(&chains)?,
        None => source.message_rows()?.map_or(0, |(first, last)| last - first),
    };
    Ok(messages <= SMALL_CONVERSATION)
}

/// Examines every message of the searched conversation, if there is one and it is small. Returns whether it did.
fn read_small_conversation<S: SearchSource>(
    source: &S,
    scope: &mut SearchScope<'_, S>,
    gathered: &mut SearchState<'_>,
) -> SourceResult<S, bool> {
    let Some(chains) = scope.chains() else { return Ok(false) };
    if source.messages_of(&chains)? > SMALL_CONVERSATION {
        return Ok(false);
    }
    source.each_message(MessageRows::OfChains(&chains), |row| {
        gathered.look_at(row, scope)?;
        Ok(ScanStep::Yes)
    })?;
    Ok(true)
}
