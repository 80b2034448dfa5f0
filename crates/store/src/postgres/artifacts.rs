//! Large texts: in the database, in pieces, once for every owner; and who refers to them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::artifacts::extract::artifact_texts;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::ArtifactFile;
use crate::artifacts::pieces::pieces;
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner};
use crate::message::NewMessage;
use crate::message_codec::ArtifactTexts;

use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::rows::require_for_writing;
use super::search_index::{self, IndexKind, ListsOfRows};
use super::value::{self, SqlValue, count, int, text, values};

/// At most so many artifacts are named when a shortened name fits several.
const CANDIDATES: i64 = 20;
/// A good deal smaller than the fastest level, still faster than the network.
const COMPRESSION_LEVEL: i32 = 3;

/// Names texts that are about to be stored. They are packed when they are: see [`keep`].
pub(super) struct NamedTexts;

impl ArtifactTexts for NamedTexts {
    fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        let (bytes, lines) = (text.len() as u64, NewArtifact::count_lines(text));
        Ok((ArtifactId::of(text.as_bytes()), ArtifactFile { bytes, lines, stored_bytes: 0 }))
    }

    fn text(&self, id: &ArtifactId) -> Result<String> {
        Err(StoreError::UnknownArtifact { id: id.to_string() })
    }
}

/// A text with the session and message that refer to it.
pub(super) struct NewReference {
    pub(super) text: String,
    pub(super) session: u64,
    /// The message it was cut out of.
    pub(super) message: Option<i64>,
    pub(super) label: String,
    pub(super) at_ms: Millis,
}

/// A piece as it is stored.
struct PackedPiece {
    first_byte: u64,
    bytes: u64,
    first_line: u64,
    body: Vec<u8>,
    /// What it is found by.
    fingerprints: Vec<u8>,
}

/// The pieces of a text; their bodies are empty where the text itself is elsewhere.
fn pack(text: &str, is_elsewhere: bool) -> PgResult<Vec<PackedPiece>> {
    pieces(text)
        .map(|piece| {
            let body = match is_elsewhere {
                true => Vec::new(),
                false => zstd::bulk::compress(piece.text.as_bytes(), COMPRESSION_LEVEL).map_err(|error| {
                    StoreError::Database { what: "packing a text", source: Box::new(error) }
                })?,
            };
            Ok(PackedPiece {
                first_byte: piece.first_byte as u64,
                bytes: piece.text.len() as u64,
                first_line: piece.first_line,
                body,
                fingerprints: search_index::list_of(piece.text),
            })
        })
        .collect()
}

/// Stores texts with their references. A text that is stored already is not stored again.
pub(super) fn keep(tx: &Tx<'_>, owner: &Owner, new: &[NewReference]) -> PgResult<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut texts: Vec<(ArtifactId, &str)> = Vec::new();
    let names: Vec<ArtifactId> = new
        .iter()
        .map(|reference| {
            let id = ArtifactId::of(reference.text.as_bytes());
            if texts.iter().all(|(known, _)| *known != id) {
                texts.push((id.clone(), &reference.text));
            }
            id
        })
        .collect();
    let sizes = put_files(tx, owner, &mut texts)?;
    let mut numbers: HashMap<String, i64> = HashMap::new();
    // Twice at most, unless the same text is stored and deleted over and over at the same time.
    for _ in 0..8 {
        let missing: Vec<&(ArtifactId, &str)> =
            texts.iter().filter(|(id, _)| !numbers.contains_key(id.as_str())).collect();
        if missing.is_empty() {
            break;
        }
        put_rows(tx, owner, &missing, &sizes, &mut numbers)?;
    }
    let number_of = |id: &ArtifactId| {
        let number = numbers.get(id.as_str()).copied();
        number.ok_or_else(|| PgError::unreadable(format!("artifact {id} was not stored")))
    };
    tx.later(
        "INSERT INTO artifact_refs (owner, artifact, session, message, label, created_ms) \
         SELECT $1, r.* FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::text[], $6::int8[]) AS r \
         ON CONFLICT DO NOTHING",
        vec![
            owner.into(),
            SqlValue::ints(names.iter().map(number_of).collect::<PgResult<Vec<i64>>>()?),
            SqlValue::ints(new.iter().map(|reference| crate::coding::int(reference.session))),
            SqlValue::ints(new.iter().map(|reference| reference.message.unwrap_or(0))),
            SqlValue::texts(new.iter().map(|reference| &reference.label)),
            SqlValue::ints(new.iter().map(|reference| reference.at_ms)),
        ],
    );
    Ok(())
}

/// Has texts stored where they are not in the database; gives the sizes of their files.
///
/// Nobody collects them as garbage until the transaction ends: who does takes the same lock for itself, and then looks for a
/// row. So they are looked for only now, though they were sent before the transaction began: see [`send_ahead`].
fn put_files(tx: &Tx<'_>, owner: &Owner, texts: &mut [(ArtifactId, &str)]) -> PgResult<HashMap<String, u64>> {
    let mut sizes = HashMap::new();
    let Some(files) = tx.files_of(owner) else { return Ok(sizes) };
    let folder = ArtifactFiles::owner_folder(owner);
    // In one order, so that two transactions with the same texts do not wait for each other.
    texts.sort();
    for (id, text) in texts.iter() {
        tx.query("SELECT pg_advisory_xact_lock_shared($1)", values![lock_of(&folder, id)])?;
        let (_, file) = files.put(text)?;
        sizes.insert(id.to_string(), file.stored_bytes);
    }
    Ok(sizes)
}

/// Removes a text unless somebody refers to it by now. Whether it was removed.
pub(super) fn remove_unknown(
    tx: &Tx<'_>,
    folder: &str,
    owner: Option<&Owner>,
    id: &ArtifactId,
    remove: impl FnOnce() -> Result<()>,
) -> PgResult<bool> {
    tx.query("SELECT pg_advisory_xact_lock($1)", values![lock_of(folder, id)])?;
    let rows = match owner {
        Some(owner) => tx.query(
            "SELECT owner FROM artifacts WHERE owner = $1 AND name = $2",
            values![owner, id.as_str()],
        )?,
        // Nothing of theirs was stored a moment ago.
        None => tx.query("SELECT owner FROM artifacts WHERE name = $1", values![id.as_str()])?,
    };
    for row in &rows {
        if ArtifactFiles::owner_folder(&Owner::new(text(row, 0)?)) == folder {
            return Ok(false);
        }
    }
    remove()?;
    Ok(true)
}

/// Names of all texts, by owners.
pub(super) fn names(tx: &Tx<'_>) -> PgResult<HashMap<Owner, HashSet<String>>> {
    let mut names: HashMap<Owner, HashSet<String>> = HashMap::new();
    for row in tx.query("SELECT owner, name FROM artifacts", values![])? {
        names.entry(Owner::new(text(&row, 0)?)).or_default().insert(text(&row, 1)?);
    }
    Ok(names)
}

/// What those who store a text and those who remove it lock.
fn lock_of(folder: &str, id: &ArtifactId) -> i64 {
    let hash = blake3::hash(format!("{folder}/{id}").as_bytes());
    i64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// Has a service take the large texts of messages before a session is locked.
pub(super) fn send_ahead(
    files: Option<&ArtifactFiles>,
    owner: &Owner,
    messages: &[NewMessage],
) -> Result<()> {
    let Some(files) = files else { return Ok(()) };
    for text in messages.iter().flat_map(|new| artifact_texts(&new.message)) {
        files.of_owner(owner).put(&text.text)?;
    }
    Ok(())
}

/// Has rows for these artifacts, and notes their numbers; one that is being stored or deleted elsewhere may be left out.
fn put_rows(
    tx: &Tx<'_>,
    owner: &Owner,
    wanted: &[&(ArtifactId, &str)],
    sizes: &HashMap<String, u64>,
    numbers: &mut HashMap<String, i64>,
) -> PgResult<()> {
    let packed = wanted
        .iter()
        .map(|(id, text)| pack(text, sizes.contains_key(id.as_str())))
        .collect::<PgResult<Vec<_>>>()?;
    let stored = wanted.iter().zip(&packed).map(|((id, _), pieces)| match sizes.get(id.as_str()) {
        Some(bytes) => crate::coding::int(*bytes),
        None => pieces.iter().map(|piece| piece.body.len() as i64).sum(),
    });
    // A row that is found stays as long as this transaction lasts.
    let rows = tx.query(
        "WITH new AS (INSERT INTO artifacts (owner, name, n, bytes, lines, stored_bytes) \
             SELECT $1, t.name, nextval('artifact_numbers'), t.bytes, t.lines, t.stored \
             FROM unnest($2::text[], $3::int8[], $4::int8[], $5::int8[]) AS t (name, bytes, lines, stored) \
             ON CONFLICT DO NOTHING RETURNING name, n), \
         old AS (SELECT name, n FROM artifacts WHERE owner = $1 AND name = ANY ($2) FOR KEY SHARE) \
         SELECT name, n, true FROM new UNION ALL SELECT name, n, false FROM old",
        vec![
            owner.into(),
            SqlValue::texts(wanted.iter().map(|(id, _)| id.as_str())),
            SqlValue::ints(wanted.iter().map(|(_, text)| text.len() as i64)),
            SqlValue::ints(wanted.iter().map(|(_, text)| NewArtifact::count_lines(text) as i64)),
            SqlValue::ints(stored),
        ],
    )?;
    for row in &rows {
        let (name, number, is_new) = (text(row, 0)?, int(row, 1)?, value::flag(row, 2)?);
        if is_new
            && let Some(at) = wanted.iter().position(|(id, _)| id.as_str() == name)
            && let Some(pieces) = packed.get(at)
        {
            put_pieces(tx, owner, number, pieces);
        }
        numbers.insert(name, number);
    }
    Ok(())
}

fn put_pieces(tx: &Tx<'_>, owner: &Owner, artifact: i64, pieces: &[PackedPiece]) {
    tx.later(
        "WITH pieces AS (INSERT INTO artifact_pieces (owner, artifact, number, first_byte, bytes, first_line, body) \
             SELECT $1, $2, nextval('piece_numbers'), p.* FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::bytea[]) AS p \
             RETURNING number, first_byte) \
         INSERT INTO search_open (owner, kind, id, fingerprints) SELECT $1, 1, pieces.number, f.list \
         FROM pieces JOIN unnest($3::int8[], $7::bytea[]) AS f (first_byte, list) USING (first_byte)",
        vec![
            owner.into(),
            artifact.into(),
            SqlValue::ints(pieces.iter().map(|piece| crate::coding::int(piece.first_byte))),
            SqlValue::ints(pieces.iter().map(|piece| crate::coding::int(piece.bytes))),
            SqlValue::ints(pieces.iter().map(|piece| crate::coding::int(piece.first_line))),
            SqlValue::Blobs(pieces.iter().map(|piece| piece.body.clone()).collect()),
            SqlValue::Blobs(pieces.iter().map(|piece| piece.fingerprints.clone()).collect()),
        ],
    );
}

/// Stores a text that came by itself.
pub(super) fn put(tx: &Tx<'_>, owner: &Owner, new: &NewArtifact<'_>) -> PgResult<Artifact> {
    let session = require_for_writing(tx, owner, new.session)?;
    let reference = NewReference {
        text: new.text.to_owned(),
        session: session.ordinal,
        message: None,
        label: new.label.to_owned(),
        at_ms: new.at_ms,
    };
    keep(tx, owner, &[reference])?;
    require(tx, owner, &ArtifactId::of(new.text.as_bytes()))
}

/// An artifact as an owner knows it: by the first of their sessions that referred to it.
const AS_OWNER_KNOWS: &str = "SELECT a.name, a.bytes, a.lines, a.stored_bytes, r.label, r.created_ms, a.n \
     FROM artifacts a JOIN LATERAL (SELECT label, created_ms FROM artifact_refs f \
     WHERE f.owner = a.owner AND f.artifact = a.n ORDER BY f.session, f.message LIMIT 1) r ON true WHERE a.owner = $1";

fn from_row(row: &Row) -> PgResult<Artifact> {
    Ok(Artifact {
        id: ArtifactId::from_text(text(row, 0)?),
        bytes: count(row, 1)?,
        lines: count(row, 2)?,
        stored_bytes: count(row, 3)?,
        label: text(row, 4)?,
        created_ms: int(row, 5)?,
    })
}

/// An artifact that a session of this owner refers to, by its name or the beginning of it.
pub(super) fn require(tx: &Tx<'_>, owner: &Owner, id: &ArtifactId) -> PgResult<Artifact> {
    require_numbered(tx, owner, id).map(|(artifact, _)| artifact)
}

fn require_numbered(tx: &Tx<'_>, owner: &Owner, id: &ArtifactId) -> PgResult<(Artifact, i64)> {
    // Names are lower-case hexadecimal digits: what is not one begins none, and the next text after all that begin
    // with a prefix is the prefix with a character behind every digit.
    let prefix = id.as_str().trim().to_ascii_lowercase();
    if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(StoreError::UnknownArtifact { id: id.to_string() }.into());
    }
    let rows = tx.query(
        format!("{AS_OWNER_KNOWS} AND a.name >= $2 AND a.name < $3 ORDER BY a.name LIMIT $4"),
        values![owner, &prefix, format!("{prefix}g"), CANDIDATES],
    )?;
    match rows.as_slice() {
        [] => Err(StoreError::UnknownArtifact { id: id.to_string() }.into()),
        [only] => Ok((from_row(only)?, int(only, 6)?)),
        several => Err(StoreError::AmbiguousArtifact {
            id: id.to_string(),
            candidates: several
                .iter()
                .map(|row| from_row(row).map(|artifact| artifact.id))
                .collect::<PgResult<_>>()?,
        }
        .into()),
    }
}

/// Artifacts that sessions of an owner's chain refer to, in the order they were first stored.
pub(super) fn of_chain(tx: &Tx<'_>, owner: &Owner, chain: i64) -> PgResult<Vec<Artifact>> {
    let rows = tx.query(
        format!(
            "{AS_OWNER_KNOWS} AND a.n IN (SELECT c.artifact FROM artifact_refs c JOIN sessions t \
             ON t.owner = c.owner AND t.ordinal = c.session WHERE c.owner = $1 AND t.chain = $2) ORDER BY a.n"
        ),
        values![owner, chain],
    )?;
    rows.iter().map(from_row).collect()
}

pub(super) fn unpack(body: &[u8], bytes: u64) -> PgResult<String> {
    let capacity = usize::try_from(bytes).unwrap_or_default();
    let unpacked =
        zstd::bulk::decompress(body, capacity).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    unpacked.ok_or_else(|| PgError::unreadable("a piece of an artifact cannot be read"))
}

/// Whole texts by their names. One that is not there is left out.
pub(super) fn texts(tx: &Tx<'_>, owner: &Owner, ids: Vec<ArtifactId>) -> PgResult<HashMap<String, String>> {
    let mut texts: HashMap<String, String> = HashMap::new();
    if ids.is_empty() {
        return Ok(texts);
    }
    let rows = tx.query(
        "SELECT a.name, p.body, p.bytes FROM artifacts a JOIN artifact_pieces p \
         ON p.owner = a.owner AND p.artifact = a.n WHERE a.owner = $1 AND p.owner = $1 AND a.name = ANY ($2) \
         ORDER BY a.n, p.first_byte",
        vec![owner.into(), SqlValue::texts(ids.iter().map(ArtifactId::as_str))],
    )?;
    for row in &rows {
        let (name, body) = (text(row, 0)?, value::bytes(row, 1)?);
        match (texts.entry(name), body.is_empty()) {
            (entry, false) => entry.or_default().push_str(&unpack(body, count(row, 2)?)?),
            (Entry::Vacant(free), true) => {
                let id = ArtifactId::from_text(free.key().as_str());
                free.insert(elsewhere(tx, owner, &id, ArtifactRange::All)?);
            }
            (Entry::Occupied(_), true) => {}
        }
    }
    for (name, text) in &texts {
        if ArtifactId::of(text.as_bytes()).as_str() != name {
            return Err(StoreError::ArtifactDamaged {
                id: name.clone(),
                problem: "not what its name says".to_owned(),
                path: "artifact_pieces".into(),
            }
            .into());
        }
    }
    Ok(texts)
}

/// A piece of a text that is not in the database.
pub(super) fn elsewhere(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ArtifactId,
    range: ArtifactRange,
) -> PgResult<String> {
    match tx.files_of(owner) {
        Some(files) => Ok(files.read(id, range)?),
        None => Err(StoreError::ArtifactDamaged {
            id: id.to_string(),
            problem: "not in the database".to_owned(),
            path: "artifact_pieces".into(),
        }
        .into()),
    }
}

/// A piece of an artifact. What lies beyond its end is left out.
pub(super) fn read(tx: &Tx<'_>, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> PgResult<String> {
    let (artifact, number) = require_numbered(tx, owner, id)?;
    match range {
        ArtifactRange::All => {
            let mut texts = texts(tx, owner, vec![artifact.id.clone()])?;
            match texts.remove(artifact.id.as_str()) {
                Some(text) => Ok(text),
                None if artifact.bytes == 0 => Ok(String::new()),
                None => Err(StoreError::ArtifactDamaged {
                    id: artifact.id.to_string(),
                    problem: "missing".to_owned(),
                    path: "artifact_pieces".into(),
                }
                .into()),
            }
        }
        ArtifactRange::Bytes { first, count: bytes } => {
            let end = first.saturating_add(bytes).min(artifact.bytes);
            let rows = tx.query(
                "SELECT body, bytes, first_byte FROM artifact_pieces WHERE owner = $1 AND artifact = $2 \
                 AND first_byte < $4 AND first_byte + bytes > $3 ORDER BY first_byte",
                values![owner, number, first, end],
            )?;
            if is_elsewhere(&rows)? {
                return elsewhere(tx, owner, &artifact.id, range);
            }
            let (text, offset) = joined(&rows)?;
            let first = first.saturating_sub(offset);
            let piece = ArtifactRange::Bytes { first, count: end.saturating_sub(offset + first) };
            Ok(piece.of(&text).to_owned())
        }
        ArtifactRange::Lines { first, count: lines } => {
            let first = first.max(1);
            let rows = tx.query(
                "SELECT body, bytes, first_line FROM (SELECT body, bytes, first_line, first_byte, \
                 lead(first_line) OVER (ORDER BY first_byte) AS next FROM artifact_pieces \
                 WHERE owner = $1 AND artifact = $2) AS p \
                 WHERE first_line < $4 AND (next IS NULL OR next >= $3) ORDER BY first_byte",
                values![owner, number, first, first.saturating_add(lines)],
            )?;
            if is_elsewhere(&rows)? {
                return elsewhere(tx, owner, &artifact.id, range);
            }
            let (text, first_line) = joined(&rows)?;
            let first = first.saturating_sub(first_line.max(1)) + 1;
            Ok(ArtifactRange::Lines { first, count: lines }.of(&text).to_owned())
        }
    }
}

/// The next pieces of an owner after a number, for the index.
pub(super) fn lists_of_pieces(tx: &Tx<'_>, owner: &Owner, after: i64, limit: i64) -> PgResult<ListsOfRows> {
    let rows = tx.query(
        "SELECT p.number, p.body, p.bytes, p.first_byte, a.name FROM artifact_pieces p \
         JOIN artifacts a ON a.owner = p.owner AND a.n = p.artifact \
         WHERE p.owner = $1 AND p.number > $2 AND NOT EXISTS \
         (SELECT 1 FROM search_open o WHERE o.owner = $1 AND o.kind = 1 AND o.id = p.number) ORDER BY p.number LIMIT $3",
        values![owner, after, limit],
    )?;
    let (mut numbers, mut lists) = (Vec::new(), Vec::new());
    for row in &rows {
        let (number, body, bytes) = (int(row, 0)?, value::bytes(row, 1)?, count(row, 2)?);
        let piece = match body.is_empty() {
            true => {
                let range = ArtifactRange::Bytes { first: count(row, 3)?, count: bytes };
                elsewhere(tx, owner, &ArtifactId::from_text(text(row, 4)?), range)
            }
            false => unpack(body, bytes),
        };
        numbers.push(number);
        // What cannot be read cannot be found; the doctor names it as lost.
        lists.extend(piece.ok().map(|piece| (number, search_index::list_of(&piece))));
    }
    Ok((numbers, lists))
}

/// Whether the bodies of pieces are empty, because the text is not in the database.
fn is_elsewhere(rows: &[Row]) -> PgResult<bool> {
    rows.first().map_or(Ok(false), |row| Ok(value::bytes(row, 0)?.is_empty()))
}

/// The text of pieces that follow one another, and where the first begins.
fn joined(rows: &[Row]) -> PgResult<(String, u64)> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&unpack(value::bytes(row, 0)?, count(row, 1)?)?);
    }
    let start = rows.first().map_or(Ok(0), |row| count(row, 2))?;
    Ok((text, start))
}

/// Takes away the references of sessions, and the artifacts without references.
pub(super) fn release_sessions(tx: &Tx<'_>, owner: &Owner, sessions: &[i64]) -> PgResult<()> {
    // First all of them are held, so that nobody refers to one that is about to go.
    let rows = tx.query(
        "SELECT n FROM artifacts WHERE owner = $1 AND n IN (SELECT artifact FROM artifact_refs WHERE owner = $1 \
         AND session = ANY ($2)) ORDER BY n FOR UPDATE",
        vec![owner.into(), SqlValue::ints(sessions.iter().copied())],
    )?;
    let numbers = rows.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    tx.later(
        "DELETE FROM artifact_refs WHERE owner = $1 AND session = ANY ($2)",
        vec![owner.into(), SqlValue::ints(sessions.iter().copied())],
    );
    let orphans = tx.query(
        "DELETE FROM artifacts AS a WHERE owner = $1 AND n = ANY ($2) AND NOT EXISTS \
         (SELECT 1 FROM artifact_refs r WHERE r.owner = $1 AND r.artifact = a.n) RETURNING n",
        vec![owner.into(), SqlValue::ints(numbers)],
    )?;
    let orphans = orphans.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    if orphans.is_empty() {
        return Ok(());
    }
    let pieces = tx.query(
        "SELECT number FROM artifact_pieces WHERE owner = $1 AND artifact = ANY ($2)",
        vec![owner.into(), SqlValue::ints(orphans.iter().copied())],
    )?;
    let pieces = pieces.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    search_index::forget(tx, owner, IndexKind::Piece, &pieces)?;
    tx.later(
        "DELETE FROM artifact_pieces WHERE owner = $1 AND artifact = ANY ($2)",
        vec![owner.into(), SqlValue::ints(orphans)],
    );
    Ok(())
}
