//! Making the index from the texts: for a copy, and where the doctor found that rows are missing or too many.

use throughline_search::fingerprint::FingerprintList;

use crate::ids::Owner;

use super::artifacts;
use super::connection::Tx;
use super::error::PgResult;
use super::search_index::{IN_ORDER, IndexKind, ListsOfRows, TURN, fingerprints_of_messages, put_segment};
use super::value::{self, SqlValue, count, int, values};

/// Rows that are read at once when an index is made from the texts.
const ROWS_AT_ONCE: i64 = 512;

/// How many rows the index of an owner lacks, and how many it has for what is not there.
pub(super) struct IndexGaps {
    pub(super) owner: String,
    pub(super) missing: u64,
    pub(super) surplus: u64,
}

/// The owners whose index does not have exactly one row for every message or piece.
pub(super) fn gaps(tx: &Tx<'_>, kind: IndexKind) -> PgResult<Vec<IndexGaps>> {
    let (table, number) = match kind {
        IndexKind::Message => ("messages", "id"),
        IndexKind::Piece => ("artifact_pieces", "number"),
    };
    // A list of three bytes is that of a row that is gone.
    let rows = tx.query(
        format!(
            "WITH known AS (SELECT owner, id FROM search_open WHERE kind = $1 AND octet_length(fingerprints) > 3 \
                 UNION ALL SELECT owner, unnest(ids) FROM search_segments WHERE kind = $1) \
             SELECT owner, sum(missing)::int8, sum(surplus)::int8 FROM ( \
                 SELECT owner, 1 AS missing, 0 AS surplus FROM {table} t WHERE NOT EXISTS \
                     (SELECT 1 FROM known k WHERE k.owner = t.owner AND k.id = t.{number}) \
                 UNION ALL SELECT owner, 0, 1 FROM known k WHERE k.id <> 0 AND NOT EXISTS \
                     (SELECT 1 FROM {table} t WHERE t.owner = k.owner AND t.{number} = k.id) \
             ) AS gaps GROUP BY owner ORDER BY owner"
        ),
        values![kind.code()],
    )?;
    rows.iter()
        .map(|row| {
            Ok(IndexGaps { owner: value::text(row, 0)?, missing: count(row, 1)?, surplus: count(row, 2)? })
        })
        .collect()
}

/// Makes the index of an owner anew from the texts. What is written meanwhile brings its own rows.
pub(super) fn make_anew(tx: &Tx<'_>, owner: &Owner, kind: IndexKind) -> PgResult<()> {
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", values![owner, TURN]);
    for table in ["search_open", "search_segments", "search_slices"] {
        tx.later(format!("DELETE FROM {table} WHERE owner = $1 AND kind = $2"), values![owner, kind.code()]);
    }
    while extend(tx, owner, kind)? {}
    Ok(())
}

/// Indexes texts of an owner that come after those in segments: as many as make one, or what is left. Tells whether more may follow.
pub(super) fn extend(tx: &Tx<'_>, owner: &Owner, kind: IndexKind) -> PgResult<bool> {
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", values![owner, TURN]);
    tx.later(IN_ORDER, Vec::new());
    let next = tx.query_one(
        "SELECT coalesce(max(segment) + 1, 0), coalesce(max(last_id), 0) FROM search_segments WHERE owner = $1 AND kind = $2",
        values![owner, kind.code()],
    )?;
    let (segment, mut after) = (int(&next, 0)?, int(&next, 1)?);
    let size = kind.rows_of_segment(segment);
    let mut found: Vec<(i64, Vec<u8>)> = Vec::with_capacity(size);
    while found.len() < size {
        let limit = ROWS_AT_ONCE.min((size - found.len()) as i64);
        let (numbers, lists) = match kind {
            IndexKind::Message => lists_of_messages(tx, owner, after, limit)?,
            IndexKind::Piece => artifacts::lists_of_pieces(tx, owner, after, limit)?,
        };
        let Some(last) = numbers.last() else { break };
        after = *last;
        found.extend(lists);
    }
    if found.len() == size {
        put_segment(tx, owner, kind, segment, found.iter().map(|(id, list)| (*id, list.as_slice())));
        return Ok(true);
    }
    let (ids, lists): (Vec<i64>, Vec<Vec<u8>>) = found.into_iter().unzip();
    tx.later(
        "INSERT INTO search_open (owner, kind, id, fingerprints) \
         SELECT $1, $2, r.* FROM unnest($3::int8[], $4::bytea[]) AS r ON CONFLICT DO NOTHING",
        vec![owner.into(), kind.code().into(), SqlValue::ints(ids), SqlValue::Blobs(lists)],
    );
    Ok(false)
}

/// The next messages of an owner after a number.
fn lists_of_messages(tx: &Tx<'_>, owner: &Owner, after: i64, limit: i64) -> PgResult<ListsOfRows> {
    let rows = tx.query(
        "SELECT id FROM messages m WHERE owner = $1 AND id > $2 AND NOT EXISTS \
         (SELECT 1 FROM search_open o WHERE o.owner = $1 AND o.kind = 0 AND o.id = m.id) ORDER BY id LIMIT $3",
        values![owner, after, limit],
    )?;
    let ids = rows.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    let mut lists = fingerprints_of_messages(tx, owner, ids.iter().copied())?;
    lists.sort_unstable_by_key(|(id, _)| *id);
    Ok((
        ids,
        lists.into_iter().map(|(id, fingerprints)| (id, FingerprintList::encode(&fingerprints))).collect(),
    ))
}
