//! The data that a search reads from a record. Every engine implements this; the rest of a search is the same for all.
//!
//! The index numbers rows in the order they came: messages from 0, pieces of artifacts from `ARTIFACT_ROWS`. The engine maps numbers to
//! messages and pieces. Not for: writing the index.

use std::borrow::Cow;
use std::ops::Range;

use throughline_search::fingerprint::BlockSet;
use throughline_search::meaning::{Nearest, QuestionVector};
use throughline_search::rank::HitSource;
use throughline_search::segments::IndexSegment;
use throughline_transcript::{Role, SharedText, decode_message};

use crate::artifacts::artifact::ArtifactId;
use crate::coding::{MACHINE_WRITTEN, role_of, speaker_of};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::message_codec::unpack_skeleton;
use crate::search::searchable::searchable_text;
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;

/// The requirements for a block: of every set of fingerprints at least one.
pub(crate) type LookupTerms = [Vec<u32>];

/// The result of reading a record.
pub(crate) type SourceResult<S, T> = std::result::Result<T, <S as SearchSource>::Error>;

/// Whether to continue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanStep {
    Yes,
    No,
}

/// The messages to read.
#[derive(Clone, Copy)]
pub(crate) enum MessageRows<'a> {
    /// All of the owner, possibly with others'.
    All,
    /// Those of some chains.
    OfChains(&'a [i64]),
    /// Rows of the index, newest first: ranges are given in that order.
    NewestFirst(&'a [Range<i64>]),
    /// Rows of the index, with the ranges in this order.
    InOrder(&'a [Range<i64>]),
    /// One, by its id.
    One(i64),
    /// Positions in a session.
    Places { session: i64, seqs: &'a Range<i64>, order: PlaceOrder },
}

/// The order of messages of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceOrder {
    First,
    Last,
}

/// The pieces of artifacts to read.
#[derive(Clone, Copy)]
pub(crate) enum PieceRows<'a> {
    /// Rows of the index, newest first: ranges are given in that order.
    NewestFirst(&'a [Range<i64>]),
    /// Rows of the index, with the ranges in this order.
    InOrder(&'a [Range<i64>]),
    /// One, by its key.
    One(i64),
}

/// A snapshot of a record, searched by one owner.
pub(crate) trait SearchSource {
    type Error: From<StoreError>;
    type Lookup<'s>: SegmentLookup<Error = Self::Error>
    where
        Self: 's;

    fn owner(&self) -> &Owner;
    /// Returns a session of the owner; an error if there is none.
    fn require_session(&self, id: &SessionId) -> SourceResult<Self, Session>;
    fn find_session(&self, id: &SessionId) -> SourceResult<Self, Option<Session>>;
    /// Returns a session by its ordinal, possibly of another owner.
    fn session_at(&self, ordinal: u64) -> SourceResult<Self, Option<Session>>;
    fn tip_of(&self, chain: u64) -> SourceResult<Self, Option<Session>>;
    fn members_of(&self, chain: u64) -> SourceResult<Self, Vec<Session>>;
    fn line_of(&self, part: LinePart) -> SourceResult<Self, Vec<LinePart>>;
    /// Whether a session is the owner's, which is all that is needed for most sessions.
    fn is_owners(&self, ordinal: i64) -> SourceResult<Self, bool>;
    /// Whether rows of other owners may be among those read.
    fn has_other_owners(&self) -> SourceResult<Self, bool>;

    /// Returns the first and the last row of messages, if there are any.
    fn message_rows(&self) -> SourceResult<Self, Option<(i64, i64)>>;
    /// The same for pieces.
    fn piece_rows(&self) -> SourceResult<Self, Option<(i64, i64)>>;
    /// Returns the number of messages in some chains.
    fn messages_of(&self, chains: &[i64]) -> SourceResult<Self, i64>;
    /// Returns how many rows, possibly of several segments, are collected before they are read.
    fn batch_rows(&self) -> i64 {
        1
    }
    /// Returns the index in its present state.
    fn lookup(&self) -> SourceResult<Self, Self::Lookup<'_>>;

    /// Calls `look` with messages until it stops. Damaged ones are left out.
    fn each_message(
        &self,
        rows: MessageRows<'_>,
        look: impl FnMut(&SearchRow<'_>) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ScanStep>;
    /// Returns sessions and positions of the first messages in a range of rows.
    fn places_in(&self, rows: Range<i64>) -> SourceResult<Self, Vec<(i64, u64)>>;
    /// Calls `look` with pieces until it stops.
    fn each_piece(
        &self,
        rows: PieceRows<'_>,
        look: impl FnMut(&PieceRow) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ScanStep>;
    /// Returns the text of a piece; `None` if it is missing or damaged, which other checks report.
    fn piece_text(&self, piece: &PieceRow) -> SourceResult<Self, Option<String>>;
    /// Calls `look` with the references to an artifact, newest first, until it stops.
    fn each_reference(
        &self,
        artifact: i64,
        look: impl FnMut(ArtifactReference) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ()>;

    /// Returns the messages whose vectors are nearest to that of a question, in some chains or in all.
    fn nearest(
        &self,
        model: &str,
        question: &QuestionVector,
        chains: Option<Vec<i64>>,
    ) -> SourceResult<Self, Nearest>;
    /// Returns the number of messages without vectors.
    fn vectors_waiting(&self, model: &str) -> SourceResult<Self, u64>;
}

/// Looks up the segments of an index in turn.
pub(crate) trait SegmentLookup {
    type Error;

    /// Returns the blocks of a segment that match, and possibly a few others; the most significant requirement should come first.
    fn of(
        &mut self,
        segment: IndexSegment,
        wanted: &LookupTerms,
    ) -> std::result::Result<BlockSet, Self::Error>;
    /// Returns the blocks of a segment with any of the fingerprints of each word, word by word.
    fn by_word(
        &mut self,
        segment: IndexSegment,
        words: &LookupTerms,
    ) -> std::result::Result<Vec<BlockSet>, Self::Error>;
    /// Whether a segment is indexed.
    fn knows(&self, segment: IndexSegment) -> std::result::Result<bool, Self::Error>;
}

/// A message as it is read by a search.
pub(crate) struct SearchRow<'r> {
    pub(crate) id: i64,
    /// Its row in the index, if it was requested by that.
    pub(crate) row: i64,
    pub(crate) session: i64,
    pub(crate) seq: u64,
    pub(crate) role: Role,
    pub(crate) machine_written: bool,
    pub(crate) at_ms: Millis,
    pub(crate) hash: [u8; 32],
    pub(crate) tools: Option<Cow<'r, str>>,
    pub(crate) coding: i64,
    pub(crate) origin: &'r [u8],
}

impl<'r> SearchRow<'r> {
    /// Returns the tools that it calls or whose results it has.
    pub(crate) fn tools(&self) -> Result<Vec<String>> {
        tool_names(self.tools.as_deref())
    }

    pub(crate) fn speaker(&self) -> HitSource {
        HitSource { role: self.role, machine_written: self.machine_written, in_artifact: false }
    }

    /// Returns its JSON without the texts of artifacts; `None` if its bytes are damaged.
    pub(crate) fn json(&self) -> Option<Cow<'r, str>> {
        Some(unpack_skeleton(self.coding, self.origin).ok()?.json)
    }

    /// Returns its text; `None` if its bytes are damaged.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = String::new();
        read_text(self.json()?, &mut text)?;
        Some(text)
    }
}

/// Replaces `text` with the text of the message in this JSON.
pub(crate) fn read_text(json: Cow<'_, str>, text: &mut String) -> Option<()> {
    text.clear();
    text.reserve(json.len());
    searchable_text(&decode_message(SharedText::new(json.into_owned()))?, text);
    Some(())
}

/// Returns the actual author of a message with this role and these flags, and whether a program wrote it; `None` for an unknown role.
pub(crate) fn speaker_and_writer(role: i64, flags: i64) -> Option<(Role, bool)> {
    Some((speaker_of(role_of(role)?, flags), flags & MACHINE_WRITTEN != 0))
}

/// Parses stored names of tools.
pub(crate) fn tool_names(text: Option<&str>) -> Result<Vec<String>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { path: "".into(), problem: error.to_string() })
}

/// A piece of an artifact, with the location of its text.
pub(crate) struct PieceRow {
    /// Its key, different from those of other pieces and of messages.
    pub(crate) key: i64,
    pub(crate) artifact: i64,
    pub(crate) name: ArtifactId,
    pub(crate) first_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) first_line: u64,
}

/// A reference to an artifact.
pub(crate) struct ArtifactReference {
    pub(crate) session: i64,
    pub(crate) message: u64,
    pub(crate) seq: u64,
    pub(crate) role: Role,
    pub(crate) tools: Vec<String>,
    pub(crate) at_ms: Millis,
}
