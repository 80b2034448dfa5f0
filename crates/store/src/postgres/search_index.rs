//! The index of a record on a server, in the forms of `throughline_search::fingerprint`.
//!
//! Every owner has an index of their own, and its rows are numbered in the order of messages and pieces. What is new is in
//! `search_open`, one list of fingerprints a row, written together with its message or piece, so that writers do not wait for each other. Once an
//! owner has more such rows than a segment takes, the oldest become one: `search_segments` says which row belongs to which message or
//! piece, `search_slices` which blocks hold a fingerprint. Sealing a segment changes no answer, so it waits for no one and may be done
//! by anyone at any time. Not for: asking the index.

use std::collections::{BTreeMap, HashSet};

use throughline_search::belonging::Belonging;
use throughline_search::fingerprint::{FingerprintList, FingerprintSet};
use throughline_search::segments::IndexSegment;
use throughline_transcript::{Message, Role, SharedText, decode_message};

use crate::coding::{role_of, speaker_of};
use crate::ids::Owner;
use crate::message_codec::unpack_skeleton;
use crate::search::searchable::searchable_text;

use super::connection::Tx;
use super::error::PgResult;
pub(super) use super::index_kind::IndexKind;
use super::rows::names;
use super::value::{self, SqlValue, count, flag, int, opt_text, values};

/// Those who change the segments of an owner take turns under the owner's name and this number.
pub(super) const TURN: i64 = 7_310_586_211;

/// Rows are to be read along their index. A server that has not counted them yet may sort all of an owner's instead, for every segment.
pub(super) const IN_ORDER: &str = "SET LOCAL enable_sort = off";

/// New rows of the index, as they are written.
#[derive(Default)]
pub(super) struct NewRows {
    set: FingerprintSet,
    text: String,
    ids: Vec<i64>,
    lists: Vec<Vec<u8>>,
}

impl NewRows {
    /// Adds a message.
    pub(super) fn message(&mut self, id: i64, message: &Message, belonging: &Belonging<'_>) {
        self.text.clear();
        searchable_text(message, &mut self.text);
        belonging.add_to(&mut self.set);
        self.set.add_text(&self.text);
        self.ids.push(id);
        self.lists.push(FingerprintList::encode(&self.set.take()));
    }

    /// What the messages are found by, in order.
    pub(super) fn into_lists(self) -> Vec<Vec<u8>> {
        self.lists
    }

    /// Has the messages written.
    pub(super) fn write(self, tx: &Tx<'_>, owner: &Owner) {
        tx.later(
            "INSERT INTO search_open (owner, kind, id, fingerprints) \
             SELECT $1, 0, r.* FROM unnest($2::int8[], $3::bytea[]) AS r",
            vec![owner.into(), SqlValue::ints(self.ids), SqlValue::Blobs(self.lists)],
        );
    }
}

/// The list of fingerprints of a text that is not a message.
pub(super) fn list_of(text: &str) -> Vec<u8> {
    let mut set = FingerprintSet::default();
    set.add_text(text);
    FingerprintList::encode(&set.take())
}

/// Makes a segment of the oldest rows of an owner if there are more than it takes, and nobody else is at it. Tells whether it did.
pub(super) fn seal(tx: &Tx<'_>, owner: &Owner, kind: IndexKind) -> PgResult<bool> {
    let turn =
        tx.query_one("SELECT pg_try_advisory_xact_lock(hashtextextended($1, $2))", values![owner, TURN])?;
    if !flag(&turn, 0)? {
        return Ok(false);
    }
    let next = tx.query_one(
        "SELECT coalesce(max(segment) + 1, 0) FROM search_segments WHERE owner = $1 AND kind = $2",
        values![owner, kind.code()],
    )?;
    let segment = int(&next, 0)?;
    let size = kind.rows_of_segment(segment);
    tx.later(IN_ORDER, Vec::new());
    let rows = tx.query(
        "SELECT id, fingerprints FROM search_open WHERE owner = $1 AND kind = $2 ORDER BY id LIMIT $3 FOR UPDATE",
        values![owner, kind.code(), size as i64 + 1],
    )?;
    if rows.len() <= size {
        return Ok(false);
    }
    let mut sealed = Vec::with_capacity(size);
    for row in rows.iter().take(size) {
        sealed.push((int(row, 0)?, value::bytes(row, 1)?));
    }
    let ids: Vec<i64> = sealed.iter().map(|(id, _)| *id).collect();
    put_segment(tx, owner, kind, segment, sealed);
    tx.later(
        "DELETE FROM search_open WHERE owner = $1 AND kind = $2 AND id = ANY ($3)",
        vec![owner.into(), kind.code().into(), SqlValue::ints(ids)],
    );
    Ok(true)
}

/// Has a segment written, of rows with what each is found by.
pub(super) fn put_segment<'l>(
    tx: &Tx<'_>,
    owner: &Owner,
    kind: IndexKind,
    segment: i64,
    rows: impl IntoIterator<Item = (i64, &'l [u8])>,
) {
    let first = kind.first_place(segment);
    let mut ids = vec![0; first];
    let mut blocks: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let (mut first_id, mut last_id) = (None, 0);
    for (place, (id, list)) in (first..).zip(rows) {
        let list = FingerprintList::new(list);
        let is_gone = list.as_ref().is_some_and(|list| list.iter().next().is_none());
        first_id.get_or_insert(id);
        last_id = id;
        ids.push(if is_gone { 0 } else { id });
        if let Some(list) = list {
            blocks.entry(place / kind.layout().block_rows as usize).or_default().extend(list.iter());
        }
    }
    for fingerprints in blocks.values_mut() {
        fingerprints.sort_unstable();
        fingerprints.dedup();
    }
    put_slices(tx, owner, kind, segment, &blocks);
    tx.later(
        "INSERT INTO search_segments (owner, kind, segment, first_id, last_id, ids) VALUES ($1, $2, $3, $4, $5, $6)",
        vec![
            owner.into(),
            kind.code().into(),
            segment.into(),
            first_id.unwrap_or_default().into(),
            last_id.into(),
            SqlValue::ints(ids),
        ],
    );
}

fn put_slices(tx: &Tx<'_>, owner: &Owner, kind: IndexKind, segment: i64, blocks: &BTreeMap<usize, Vec<u32>>) {
    let fingerprints: Vec<(usize, &[u32])> =
        blocks.iter().map(|(place, fingerprints)| (*place, fingerprints.as_slice())).collect();
    let (numbers, entries): (Vec<i64>, Vec<Vec<u8>>) = (0..)
        .zip(IndexSegment::slices(&fingerprints, kind.layout().segment_blocks as usize))
        .filter(|(_, entries)| !entries.is_empty())
        .unzip();
    tx.later(
        "INSERT INTO search_slices (owner, kind, segment, slice, entries) \
         SELECT $1, $2, $3, s.* FROM unnest($4::int8[], $5::bytea[]) AS s",
        vec![
            owner.into(),
            kind.code().into(),
            segment.into(),
            SqlValue::ints(numbers),
            SqlValue::Blobs(entries),
        ],
    );
}

/// Numbers of rows, and what those of them are found by that can be read.
pub(super) type ListsOfRows = (Vec<i64>, Vec<(i64, Vec<u8>)>);

/// Takes messages or pieces out of the index, while their rows are still there.
pub(super) fn forget(tx: &Tx<'_>, owner: &Owner, kind: IndexKind, ids: &[i64]) -> PgResult<()> {
    let (Some(least), Some(most)) = (ids.iter().min(), ids.iter().max()) else { return Ok(()) };
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", values![owner, TURN]);
    // A row that is gone keeps its place, as in a sealed segment: the blocks of the others stay as they are.
    tx.later(
        "UPDATE search_open SET fingerprints = $4 WHERE owner = $1 AND kind = $2 AND id = ANY ($3)",
        vec![
            owner.into(),
            kind.code().into(),
            SqlValue::ints(ids.iter().copied()),
            SqlValue::from(FingerprintList::encode(&[])),
        ],
    );
    let gone: HashSet<i64> = ids.iter().copied().collect();
    let segments = tx.query(
        "SELECT segment, ids FROM search_segments WHERE owner = $1 AND kind = $2 AND first_id <= $3 AND last_id >= $4",
        values![owner, kind.code(), *most, *least],
    )?;
    for row in &segments {
        let mut ids = value::ints(row, 1)?;
        if ids.iter().any(|id| gone.contains(id)) {
            let segment = int(row, 0)?;
            forget_in_segment(tx, owner, kind, segment, &mut ids, &gone)?;
        }
    }
    Ok(())
}

/// Takes rows out of a segment. A block of which a row stays is made anew from what that says.
fn forget_in_segment(
    tx: &Tx<'_>,
    owner: &Owner,
    kind: IndexKind,
    segment: i64,
    ids: &mut [i64],
    gone: &HashSet<i64>,
) -> PgResult<()> {
    let segment_blocks = kind.layout().segment_blocks as usize;
    let rows = tx.query(
        "SELECT slice::int8, entries FROM search_slices WHERE owner = $1 AND kind = $2 AND segment = $3 ORDER BY slice",
        values![owner, kind.code(), segment],
    )?;
    let mut blocks: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for row in &rows {
        // What is damaged is left out: the texts of these messages are not found until the index is made anew.
        IndexSegment::unfold_slice(
            count(row, 0)? as usize,
            value::bytes(row, 1)?,
            segment_blocks,
            |block, fingerprint| {
                blocks.entry(block).or_default().push(fingerprint);
            },
        );
    }
    let mut stay = Vec::new();
    let block_rows = kind.layout().block_rows as usize;
    for (block, ids) in ids.chunks_mut(block_rows).enumerate() {
        if !ids.iter().any(|id| gone.contains(id)) {
            continue;
        }
        ids.iter_mut().filter(|id| gone.contains(id)).for_each(|id| *id = 0);
        blocks.remove(&block);
        stay.extend(ids.iter().filter(|id| **id != 0).map(|id| (*id, block)));
    }
    for (id, fingerprints) in fingerprints_of_messages(tx, owner, stay.iter().map(|(id, _)| *id))? {
        if let Some((_, block)) = stay.iter().find(|(known, _)| *known == id) {
            blocks.entry(*block).or_default().extend(fingerprints);
        }
    }
    for fingerprints in blocks.values_mut() {
        fingerprints.sort_unstable();
        fingerprints.dedup();
    }
    tx.later(
        "DELETE FROM search_slices WHERE owner = $1 AND kind = $2 AND segment = $3",
        values![owner, kind.code(), segment],
    );
    put_slices(tx, owner, kind, segment, &blocks);
    tx.later(
        "UPDATE search_segments SET ids = $4 WHERE owner = $1 AND kind = $2 AND segment = $3",
        vec![owner.into(), kind.code().into(), segment.into(), SqlValue::ints(ids.iter().copied())],
    );
    Ok(())
}

/// What messages are found by, as their rows say it: without the texts that are stored as artifacts, whose pieces have rows of their
/// own.
pub(super) fn fingerprints_of_messages(
    tx: &Tx<'_>,
    owner: &Owner,
    ids: impl Iterator<Item = i64>,
) -> PgResult<Vec<(i64, Vec<u32>)>> {
    let ids: Vec<i64> = ids.collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx.query(
        // Not a join: a server that has not counted the rows yet begins it with all sessions of the owner.
        "SELECT * FROM (SELECT m.id, (SELECT s.chain FROM sessions s WHERE s.owner = $1 AND s.ordinal = m.session) AS chain, \
         m.role::int8, m.flags::int8, m.tools, m.coding::int8, m.origin FROM messages m WHERE m.owner = $1 AND m.id = ANY ($2)) AS f \
         WHERE f.chain IS NOT NULL",
        vec![owner.into(), SqlValue::ints(ids)],
    )?;
    let mut set = FingerprintSet::default();
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let role = speaker_of(role_of(int(row, 2)?).unwrap_or(Role::Other), int(row, 3)?);
        let tools = names(opt_text(row, 4)?.as_deref()).unwrap_or_default();
        Belonging { owner: owner.as_str(), chain: count(row, 1)?, role, tools: &tools }.add_to(&mut set);
        let skeleton = unpack_skeleton(int(row, 5)?, value::bytes(row, 6)?).ok();
        let message =
            skeleton.and_then(|skeleton| decode_message(SharedText::new(skeleton.json.into_owned())));
        if let Some(message) = message {
            let mut text = String::new();
            searchable_text(&message, &mut text);
            set.add_text(&text);
        }
        found.push((int(row, 0)?, set.take()));
    }
    Ok(found)
}
