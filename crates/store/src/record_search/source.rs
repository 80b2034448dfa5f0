//! What a search reads of a record. Every engine implements this; the rest of a search is the same for all.
//!
//! The index numbers rows in the order they came: messages from 0, pieces of artifacts from `ARTIFACT_ROWS`. Which message or piece a
//! number means is the engine's to say. Not for: writing the index.

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

/// What has to be in a block: of every set of fingerprints one.
pub(crate) type LookupTerms = [Vec<u32>];

/// Result of reading a record.
pub(crate) type SourceResult<S, T> = std::result::Result<T, <S as SearchSource>::Error>;

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanStep {
    Yes,
    No,
}

/// Messages that are to be read.
#[derive(Clone, Copy)]
pub(crate) enum MessageRows<'a> {
    /// All of the owner, and perhaps of others.
    All,
    /// Those of some chains.
    OfChains(&'a [i64]),
    /// Rows of the index, the newest first: ranges are given in that order.
    NewestFirst(&'a [Range<i64>]),
    /// Rows of the index, the ranges in this order.
    InOrder(&'a [Range<i64>]),
    /// One, by its id.
    One(i64),
    /// Places of a session.
    Places { session: i64, seqs: &'a Range<i64>, order: PlaceOrder },
}

/// The order of messages of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceOrder {
    First,
    Last,
}

/// Pieces of artifacts that are to be read.
#[derive(Clone, Copy)]
pub(crate) enum PieceRows<'a> {
    /// Rows of the index, the newest first: ranges are given in that order.
    NewestFirst(&'a [Range<i64>]),
    /// Rows of the index, the ranges in this order.
    InOrder(&'a [Range<i64>]),
    /// One, by its key.
    One(i64),
}

/// A record on which one owner searches, at one moment.
pub(crate) trait SearchSource {
    type Error: From<StoreError>;
    type Lookup<'s>: SegmentLookup<Error = Self::Error>
    where
        Self: 's;

    fn owner(&self) -> &Owner;
    /// A session of the owner; an error where there is none.
    fn require_session(&self, id: &SessionId) -> SourceResult<Self, Session>;
    fn find_session(&self, id: &SessionId) -> SourceResult<Self, Option<Session>>;
    /// A session by its ordinal, perhaps of another owner.
    fn session_at(&self, ordinal: u64) -> SourceResult<Self, Option<Session>>;
    fn tip_of(&self, chain: u64) -> SourceResult<Self, Option<Session>>;
    fn members_of(&self, chain: u64) -> SourceResult<Self, Vec<Session>>;
    fn line_of(&self, part: LinePart) -> SourceResult<Self, Vec<LinePart>>;
    /// Whether a session is the owner's: all that is asked of most of them.
    fn is_owners(&self, ordinal: i64) -> SourceResult<Self, bool>;
    /// Whether rows of other owners are among those that are read.
    fn has_other_owners(&self) -> SourceResult<Self, bool>;

    /// The first and the last row of messages, where there are any.
    fn message_rows(&self) -> SourceResult<Self, Option<(i64, i64)>>;
    /// The same of pieces.
    fn piece_rows(&self) -> SourceResult<Self, Option<(i64, i64)>>;
    /// How many messages some chains have.
    fn messages_of(&self, chains: &[i64]) -> SourceResult<Self, i64>;
    /// Messages that are going to be read by their ids, with so many beside each, and the sessions of their conversations: a source that
    /// is asked over a distance reads them at once.
    fn read_ahead(&self, messages: &[i64], beside: u64) -> SourceResult<Self, ()> {
        let _ = (messages, beside);
        Ok(())
    }
    /// So many rows are gathered, of several segments where one has fewer, before they are read.
    fn batch_rows(&self) -> i64 {
        1
    }
    /// The index as it is now.
    fn lookup(&self) -> SourceResult<Self, Self::Lookup<'_>>;

    /// Calls `look` with messages until it says no. Those that are damaged are left out.
    fn each_message(
        &self,
        rows: MessageRows<'_>,
        look: impl FnMut(&SearchRow<'_>) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ScanStep>;
    /// Sessions and places of the first messages of a range of rows.
    fn places_in(&self, rows: Range<i64>) -> SourceResult<Self, Vec<(i64, u64)>>;
    /// Calls `look` with pieces until it says no.
    fn each_piece(
        &self,
        rows: PieceRows<'_>,
        look: impl FnMut(&PieceRow) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ScanStep>;
    /// The text of a piece; `None` where it is missing or damaged, which is for others to report.
    fn piece_text(&self, piece: &PieceRow) -> SourceResult<Self, Option<String>>;
    /// Calls `look` with those who refer to an artifact, the newest first, until it says no.
    fn each_reference(
        &self,
        artifact: i64,
        look: impl FnMut(ArtifactReference) -> SourceResult<Self, ScanStep>,
    ) -> SourceResult<Self, ()>;

    /// The messages whose vectors are nearest to that of a question, in some chains or in all.
    fn nearest(
        &self,
        model: &str,
        question: &QuestionVector,
        chains: Option<Vec<i64>>,
    ) -> SourceResult<Self, Nearest>;
    /// Messages that have no vectors yet.
    fn vectors_waiting(&self, model: &str) -> SourceResult<Self, u64>;
}

/// Asks segments of an index, one after the other.
pub(crate) trait SegmentLookup {
    type Error;

    /// Segments that are going to be asked for some fingerprints: an index that is asked over a distance reads them at once.
    fn read_ahead(
        &mut self,
        segments: &[IndexSegment],
        wanted: &LookupTerms,
    ) -> std::result::Result<(), Self::Error> {
        let _ = (segments, wanted);
        Ok(())
    }
    /// The blocks of a segment that hold what is wanted, and perhaps a few others; best that first which tells most.
    fn of(
        &mut self,
        segment: IndexSegment,
        wanted: &LookupTerms,
    ) -> std::result::Result<BlockSet, Self::Error>;
    /// The blocks of a segment that hold one of the fingerprints of each of some words, word by word.
    fn by_word(
        &mut self,
        segment: IndexSegment,
        words: &LookupTerms,
    ) -> std::result::Result<Vec<BlockSet>, Self::Error>;
    /// Whether anything is known of a segment.
    fn knows(&self, segment: IndexSegment) -> std::result::Result<bool, Self::Error>;
}

/// A message as search reads it.
pub(crate) struct SearchRow<'r> {
    pub(crate) id: i64,
    /// Its row in the index, where it was asked for by that.
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
    /// Tools it calls or answers for.
    pub(crate) fn tools(&self) -> Result<Vec<String>> {
        tool_names(self.tools.as_deref())
    }

    pub(crate) fn speaker(&self) -> HitSource {
        HitSource { role: self.role, machine_written: self.machine_written, in_artifact: false }
    }

    /// Its JSON without the texts of artifacts; `None` where its bytes are damaged.
    pub(crate) fn json(&self) -> Option<Cow<'r, str>> {
        Some(unpack_skeleton(self.coding, self.origin).ok()?.json)
    }

    /// Its text; `None` where its bytes are damaged.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = String::new();
        read_text(self.json()?, &mut text)?;
        Some(text)
    }
}

/// Reads the text of a message with this JSON, in place of another.
pub(crate) fn read_text(json: Cow<'_, str>, text: &mut String) -> Option<()> {
    text.clear();
    text.reserve(json.len());
    searchable_text(&decode_message(SharedText::new(json.into_owned()))?, text);
    Some(())
}

/// Who speaks in a message of this role and these flags, and whether a program wrote it; `None` where there is no such role.
pub(crate) fn speaker_and_writer(role: i64, flags: i64) -> Option<(Role, bool)> {
    Some((speaker_of(role_of(role)?, flags), flags & MACHINE_WRITTEN != 0))
}

/// Names of tools from what was stored.
pub(crate) fn tool_names(text: Option<&str>) -> Result<Vec<String>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged { path: "".into(), problem: error.to_string() })
}

/// A piece of an artifact: where its text is.
pub(crate) struct PieceRow {
    /// What tells it from other pieces and from messages.
    pub(crate) key: i64,
    pub(crate) artifact: i64,
    pub(crate) name: ArtifactId,
    pub(crate) first_byte: u64,
    pub(crate) bytes: u64,
    pub(crate) first_line: u64,
}

/// Who refers to an artifact.
pub(crate) struct ArtifactReference {
    pub(crate) session: i64,
    pub(crate) message: u64,
    pub(crate) seq: u64,
    pub(crate) role: Role,
    pub(crate) tools: Vec<String>,
    pub(crate) at_ms: Millis,
}
