//! What a search reads of a record on a server. Rows are read many at a time: every question costs a journey.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use throughline_search::meaning::{Nearest, QuestionVector};
use throughline_search::segments::{IndexSegment, SegmentLayout};
use throughline_transcript::Role;
use tokio_postgres::Row;

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::record_search::source::{
    ArtifactReference, MessageRows, PieceRow, PieceRows, PlaceOrder, ScanStep, SearchRow, SearchSource,
    speaker_and_writer, tool_names,
};
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;

use super::artifacts::{elsewhere, unpack};
use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::open_lists::OpenRow;
use super::rows::{self, Access};
use super::search_index::IndexKind;
use super::search_lookup::{OpenSegments, PostgresLookup};
use super::sessions;
use super::value::{self, SqlValue, count, int, opt_text, text, values};

/// Rows that are read at once: a few first, for most searches need no more.
const FIRST_ROWS: usize = 64;
const MOST_ROWS: usize = 1_024;

macro_rules! row_columns {
    () => {
        "m.id, m.session, m.seq, m.role::int8, m.flags::int8, m.at_ms, m.hash, m.tools, m.coding::int8, m.origin"
    };
}

/// A message from a row of [`row_columns`]; `None` where it is damaged, which is for others to report.
fn search_row(row: &Row, index_row: i64) -> Option<SearchRow<'_>> {
    let (role, machine_written) = speaker_and_writer(int(row, 3).ok()?, int(row, 4).ok()?)?;
    Some(SearchRow {
        id: int(row, 0).ok()?,
        row: index_row,
        session: int(row, 1).ok()?,
        seq: count(row, 2).ok()?,
        role,
        machine_written,
        at_ms: int(row, 5).ok()?,
        hash: value::hash(row, 6).ok()?,
        tools: opt_text(row, 7).ok()?.map(Cow::Owned),
        coding: int(row, 8).ok()?,
        origin: value::bytes(row, 9).ok()?,
    })
}

/// The rows of one kind, at the moment of the search.
pub(super) struct IndexState {
    /// Segments that are sealed.
    pub(super) sealed: i64,
    /// Messages or pieces of the rows after these, in order.
    pub(super) open: Vec<OpenRow>,
    kind: IndexKind,
}

impl IndexState {
    /// The first row that is not in a sealed segment, counted from the first of its kind.
    pub(super) fn open_start(&self) -> i64 {
        let layout = self.kind.layout();
        self.sealed * layout.segment_rows() + self.kind.first_place(self.sealed) as i64
    }

    /// The first and the last row, where there are any.
    fn rows(&self) -> Option<(i64, i64)> {
        let first_row = self.kind.layout().first_row;
        let last = self.open_start() + self.open.len() as i64 - 1;
        (self.sealed > 0 || !self.open.is_empty()).then_some((first_row + 1, first_row + last))
    }
}

/// Ids that were read, by the range of rows they stand in.
type KnownIds = HashMap<(i64, i64), Rc<Vec<i64>>>;

/// The record on which an owner searches.
pub(super) struct PostgresSource<'a, 'c> {
    pub(super) tx: &'a Tx<'c>,
    pub(super) owner: &'a Owner,
    states: [OnceCell<IndexState>; 2],
    /// What the rows of sealed segments stand for, where it was asked.
    ids: RefCell<KnownIds>,
    /// The lists of the rows in no segment, by kind, once they were read.
    open: [OnceCell<OpenSegments>; 2],
    /// Rows that are read at once the next time: a search that went on so far goes on further, as a rule.
    batch: Cell<usize>,
}

impl<'a, 'c> PostgresSource<'a, 'c> {
    pub(super) fn new(tx: &'a Tx<'c>, owner: &'a Owner) -> Self {
        Self {
            tx,
            owner,
            states: Default::default(),
            ids: RefCell::default(),
            open: Default::default(),
            batch: Cell::new(FIRST_ROWS),
        }
    }

    /// The lists of the rows that are in no segment.
    pub(super) fn open_segments(&self, kind: IndexKind) -> PgResult<&OpenSegments> {
        let [messages, pieces] = &self.open;
        let cell = match kind {
            IndexKind::Message => messages,
            IndexKind::Piece => pieces,
        };
        if let Some(open) = cell.get() {
            return Ok(open);
        }
        let state = self.state(kind)?;
        let held = self.tx.open_lists();
        let mut lists = held.known(self.owner, kind, &state.open);
        let missing: Vec<i64> =
            state.open.iter().filter(|row| !lists.contains_key(row)).map(|row| row.id).collect();
        if !missing.is_empty() {
            // Usually either all of them or a few at the end.
            let rows = self.tx.query(
                "SELECT id, xmin::text::int8, fingerprints FROM search_open WHERE owner = $1 AND kind = $2 AND id >= $3",
                values![self.owner, kind.code(), missing.iter().copied().min().unwrap_or_default()],
            )?;
            for row in &rows {
                let written = OpenRow { id: int(row, 0)?, written_by: int(row, 1)? };
                lists.insert(written, value::bytes(row, 2)?.into());
            }
            held.hold(self.owner, kind, lists.clone());
        }
        let layout = kind.layout();
        let mut open = OpenSegments::new();
        for (place, row) in (state.open_start()..).zip(&state.open) {
            let Some(list) = lists.remove(row) else { continue };
            let segment = IndexSegment::of_row(layout.first_row + place);
            let block = (place % layout.segment_rows()) / layout.block_rows;
            let blocks = open.entry(segment).or_default();
            blocks.entry(usize::try_from(block).unwrap_or_default()).or_default().push(list);
        }
        Ok(cell.get_or_init(|| open))
    }

    /// The rows of a kind.
    pub(super) fn state(&self, kind: IndexKind) -> PgResult<&IndexState> {
        let [messages, pieces] = &self.states;
        let cell = match kind {
            IndexKind::Message => messages,
            IndexKind::Piece => pieces,
        };
        if let Some(state) = cell.get() {
            return Ok(state);
        }
        let answers = self.tx.queries(vec![
            (
                "SELECT coalesce(max(segment) + 1, 0) FROM search_segments WHERE owner = $1 AND kind = $2",
                values![self.owner, kind.code()],
            ),
            (
                "SELECT id, xmin::text::int8 FROM search_open WHERE owner = $1 AND kind = $2 ORDER BY id",
                values![self.owner, kind.code()],
            ),
        ])?;
        let [sealed, open] = answers.as_slice() else {
            return Err(PgError::unreadable("the state of the index cannot be read"));
        };
        let sealed = sealed.first().map_or(Ok(0), |row| int(row, 0))?;
        let open = open.iter().map(|row| Ok(OpenRow { id: int(row, 0)?, written_by: int(row, 1)? }));
        let open = open.collect::<PgResult<Vec<OpenRow>>>()?;
        Ok(cell.get_or_init(|| IndexState { sealed, open, kind }))
    }

    /// Rows with the messages or pieces they stand for, in the same order; rows that stand for nothing are left out.
    fn resolve(&self, kind: IndexKind, rows: &[i64]) -> PgResult<Vec<(i64, i64)>> {
        let state = self.state(kind)?;
        let layout = kind.layout();
        let (first_row, size) = (layout.first_row, layout.segment_rows());
        let mut missing: Vec<i64> = rows.iter().map(|row| (row - first_row) / size).collect();
        missing.retain(|segment| {
            *segment < state.sealed && !self.ids.borrow().contains_key(&(kind.code(), *segment))
        });
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let found = self.tx.query(
                "SELECT segment, ids FROM search_segments WHERE owner = $1 AND kind = $2 AND segment = ANY ($3)",
                vec![self.owner.into(), kind.code().into(), SqlValue::ints(missing)],
            )?;
            for row in &found {
                let ids = Rc::new(value::ints(row, 1)?);
                self.ids.borrow_mut().insert((kind.code(), int(row, 0)?), ids);
            }
        }
        let ids = self.ids.borrow();
        let id_of = |row: i64| {
            let place = row - first_row;
            match place.checked_sub(state.open_start()).and_then(|at| usize::try_from(at).ok()) {
                Some(at) => state.open.get(at).map(|row| row.id),
                None => {
                    let ids = ids.get(&(kind.code(), place / size))?;
                    ids.get(usize::try_from(place % size).ok()?).copied()
                }
            }
        };
        Ok(rows.iter().filter_map(|row| Some((*row, id_of(*row).filter(|id| *id != 0)?))).collect())
    }

    /// Calls `look` with what `sql` finds of the rows of ranges, in their order, until it says no.
    fn scan(
        &self,
        kind: IndexKind,
        sql: &str,
        rows: impl Iterator<Item = i64>,
        mut look: impl FnMut(i64, &Row) -> PgResult<ScanStep>,
    ) -> PgResult<ScanStep> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let size = self.batch.get();
            let some: Vec<i64> = rows.by_ref().take(size.max(FIRST_ROWS)).collect();
            self.batch.set((size * 2).min(MOST_ROWS));
            let wanted = self.resolve(kind, &some)?;
            if wanted.is_empty() {
                continue;
            }
            let ids = SqlValue::ints(wanted.iter().map(|(_, id)| *id));
            let found = self.tx.query(sql, vec![self.owner.into(), ids])?;
            let mut by_id = HashMap::with_capacity(found.len());
            for row in &found {
                by_id.insert(int(row, 0)?, row);
            }
            for (index_row, id) in wanted {
                if let Some(row) = by_id.get(&id)
                    && look(index_row, row)? == ScanStep::No
                {
                    return Ok(ScanStep::No);
                }
            }
        }
        Ok(ScanStep::Yes)
    }
}

fn newest_first(ranges: &[Range<i64>]) -> impl Iterator<Item = i64> {
    ranges.iter().flat_map(|range| range.clone().rev())
}

fn in_order(ranges: &[Range<i64>]) -> impl Iterator<Item = i64> {
    ranges.iter().cloned().flatten()
}

macro_rules! messages {
    ($rest:literal) => {
        concat!("SELECT ", row_columns!(), " FROM messages m WHERE m.owner = $1 AND ", $rest)
    };
}

macro_rules! pieces {
    ($rest:literal) => {
        concat!(
            "SELECT p.number, p.artifact, a.name, p.first_byte, p.bytes, p.first_line FROM artifact_pieces p \
             JOIN artifacts a ON a.owner = p.owner AND a.n = p.artifact WHERE p.owner = $1 AND ",
            $rest
        )
    };
}

fn piece_row(row: &Row) -> PgResult<PieceRow> {
    Ok(PieceRow {
        key: SegmentLayout::ARTIFACT_ROWS + int(row, 0)?,
        artifact: int(row, 1)?,
        name: ArtifactId::from_text(text(row, 2)?),
        first_byte: count(row, 3)?,
        bytes: count(row, 4)?,
        first_line: count(row, 5)?,
    })
}

fn look_at_all(
    rows: &[Row],
    mut look: impl FnMut(&SearchRow<'_>) -> PgResult<ScanStep>,
) -> PgResult<ScanStep> {
    for row in rows {
        if let Some(row) = search_row(row, 0)
            && look(&row)? == ScanStep::No
        {
            return Ok(ScanStep::No);
        }
    }
    Ok(ScanStep::Yes)
}

impl<'c> SearchSource for PostgresSource<'_, 'c> {
    type Error = PgError;
    type Lookup<'s>
        = PostgresLookup<'s, 'c>
    where
        Self: 's;

    fn owner(&self) -> &Owner {
        self.owner
    }

    fn require_session(&self, id: &SessionId) -> PgResult<Session> {
        rows::require_session(self.tx, self.owner, id)
    }

    fn find_session(&self, id: &SessionId) -> PgResult<Option<Session>> {
        rows::find_session(self.tx, self.owner, id, Access::Read)
    }

    fn session_at(&self, ordinal: u64) -> PgResult<Option<Session>> {
        rows::session_at(self.tx, self.owner, ordinal)
    }

    fn tip_of(&self, chain: u64) -> PgResult<Option<Session>> {
        rows::tip_of(self.tx, self.owner, chain)
    }

    fn members_of(&self, chain: u64) -> PgResult<Vec<Session>> {
        rows::members_of(self.tx, self.owner, chain)
    }

    fn line_of(&self, part: LinePart) -> PgResult<Vec<LinePart>> {
        sessions::line_of(self.tx, self.owner, part)
    }

    fn is_owners(&self, _ordinal: i64) -> PgResult<bool> {
        // Every question names the owner.
        Ok(true)
    }

    fn has_other_owners(&self) -> PgResult<bool> {
        Ok(false)
    }

    fn message_rows(&self) -> PgResult<Option<(i64, i64)>> {
        Ok(self.state(IndexKind::Message)?.rows())
    }

    fn piece_rows(&self) -> PgResult<Option<(i64, i64)>> {
        Ok(self.state(IndexKind::Piece)?.rows())
    }

    fn messages_of(&self, chains: &[i64]) -> PgResult<i64> {
        let row = self.tx.query_one(
            "SELECT coalesce(sum(messages), 0)::int8 FROM sessions WHERE owner = $1 AND chain = ANY ($2)",
            vec![self.owner.into(), SqlValue::ints(chains.iter().copied())],
        )?;
        int(&row, 0)
    }

    fn batch_rows(&self) -> i64 {
        self.batch.get() as i64
    }

    fn lookup(&self) -> PgResult<PostgresLookup<'_, 'c>> {
        Ok(PostgresLookup::new(self))
    }

    fn each_message(
        &self,
        rows: MessageRows<'_>,
        mut look: impl FnMut(&SearchRow<'_>) -> PgResult<ScanStep>,
    ) -> PgResult<ScanStep> {
        let by_row = |index_row: i64, row: &Row| match search_row(row, index_row) {
            Some(row) => look(&row),
            None => Ok(ScanStep::Yes),
        };
        let sql = messages!("m.id = ANY ($2)");
        match rows {
            MessageRows::NewestFirst(ranges) => {
                self.scan(IndexKind::Message, sql, newest_first(ranges), by_row)
            }
            MessageRows::InOrder(ranges) => self.scan(IndexKind::Message, sql, in_order(ranges), by_row),
            MessageRows::All => {
                let rows = self.tx.query(messages!("true ORDER BY m.id"), values![self.owner])?;
                look_at_all(&rows, look)
            }
            MessageRows::OfChains(chains) => {
                for chain in chains {
                    let rows = self.tx.query(
                        messages!(
                            "m.session IN (SELECT ordinal FROM sessions WHERE owner = $1 AND chain = $2) \
                             ORDER BY m.session, m.seq"
                        ),
                        values![self.owner, *chain],
                    )?;
                    if look_at_all(&rows, &mut look)? == ScanStep::No {
                        return Ok(ScanStep::No);
                    }
                }
                Ok(ScanStep::Yes)
            }
            MessageRows::One(id) => {
                let rows = self.tx.query(messages!("m.id = $2"), values![self.owner, id])?;
                look_at_all(&rows, look)
            }
            MessageRows::Places { session, seqs, order } => {
                let sql = match order {
                    PlaceOrder::First => {
                        messages!("m.session = $2 AND m.seq >= $3 AND m.seq < $4 ORDER BY m.seq")
                    }
                    PlaceOrder::Last => {
                        messages!("m.session = $2 AND m.seq >= $3 AND m.seq < $4 ORDER BY m.seq DESC")
                    }
                };
                let rows = self.tx.query(sql, values![self.owner, session, seqs.start, seqs.end])?;
                look_at_all(&rows, look)
            }
        }
    }

    fn places_in(&self, _rows: Range<i64>) -> PgResult<Vec<(i64, u64)>> {
        // A message and its row in the index are written by one statement each in one transaction.
        Ok(Vec::new())
    }

    fn each_piece(
        &self,
        rows: PieceRows<'_>,
        mut look: impl FnMut(&PieceRow) -> PgResult<ScanStep>,
    ) -> PgResult<ScanStep> {
        let by_row = |_: i64, row: &Row| look(&piece_row(row)?);
        let sql = pieces!("p.number = ANY ($2)");
        match rows {
            PieceRows::NewestFirst(ranges) => self.scan(IndexKind::Piece, sql, newest_first(ranges), by_row),
            PieceRows::InOrder(ranges) => self.scan(IndexKind::Piece, sql, in_order(ranges), by_row),
            PieceRows::One(key) => {
                let row = self.tx.query_opt(
                    pieces!("p.number = $2"),
                    values![self.owner, key - SegmentLayout::ARTIFACT_ROWS],
                )?;
                row.map_or(Ok(ScanStep::Yes), |row| look(&piece_row(&row)?))
            }
        }
    }

    fn piece_text(&self, piece: &PieceRow) -> PgResult<Option<String>> {
        let row = self.tx.query_opt(
            "SELECT body, bytes FROM artifact_pieces WHERE owner = $1 AND artifact = $2 AND first_byte = $3",
            values![self.owner, piece.artifact, piece.first_byte],
        )?;
        let Some(row) = row else { return Ok(None) };
        let (body, bytes) = (value::bytes(&row, 0)?, count(&row, 1)?);
        if body.is_empty() {
            let range = ArtifactRange::Bytes { first: piece.first_byte, count: bytes };
            return match elsewhere(self.tx, self.owner, &piece.name, range) {
                Ok(text) => Ok(Some(text)),
                // The doctor reports what is lost; what can be found is found.
                Err(PgError::Refused(StoreError::ArtifactDamaged { .. })) => Ok(None),
                Err(other) => Err(other),
            };
        }
        Ok(unpack(body, bytes).ok())
    }

    fn each_reference(
        &self,
        artifact: i64,
        mut look: impl FnMut(ArtifactReference) -> PgResult<ScanStep>,
    ) -> PgResult<()> {
        // An artifact that came by itself belongs to the last thing said in its session, or replaces a tool's answer.
        let rows = self.tx.query(
            "SELECT r.session, coalesce(m.id, 0), coalesce(m.seq, s.first_seq), coalesce(m.role, 4)::int8, m.tools, \
             coalesce(m.at_ms, r.created_ms), coalesce(m.flags, 0)::int8 \
             FROM artifact_refs r JOIN sessions s ON s.owner = r.owner AND s.ordinal = r.session \
             LEFT JOIN messages m ON m.owner = $1 AND m.id = CASE WHEN r.message <> 0 THEN r.message ELSE \
                 (SELECT l.id FROM messages l WHERE l.owner = $1 AND l.session = r.session ORDER BY l.seq DESC LIMIT 1) END \
             WHERE r.owner = $1 AND r.artifact = $2 ORDER BY r.session DESC, r.message DESC",
            values![self.owner, artifact],
        )?;
        for row in &rows {
            let reference = ArtifactReference {
                session: int(row, 0)?,
                message: count(row, 1)?,
                seq: count(row, 2)?,
                role: speaker_and_writer(int(row, 3)?, int(row, 6)?).map_or(Role::Tool, |(role, _)| role),
                tools: tool_names(opt_text(row, 4)?.as_deref())?,
                at_ms: int(row, 5)?,
            };
            if look(reference)? == ScanStep::No {
                break;
            }
        }
        Ok(())
    }

    fn nearest(&self, _: &str, _: &QuestionVector, _: Option<Vec<i64>>) -> PgResult<Nearest> {
        // No vectors are made here: see `docs/guide/fleet.md`.
        Ok(Nearest::default())
    }

    fn vectors_waiting(&self, _model: &str) -> PgResult<u64> {
        Ok(0)
    }
}
