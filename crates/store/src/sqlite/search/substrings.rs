//! Candidates by substring: what the index of triples proposes, and one by one what it does not cover.
//!
//! A question of one or two characters is too short for that index. It is looked for at the beginning of words in
//! everything, and anywhere in what is newest.

use rusqlite::Connection;

use crate::artifact_folder::ArtifactFolder;
use crate::query::{IndexTerm, ParsedQuery};

use super::super::index::{grams_backlog, grams_position};
use super::super::trouble::Outcome;
use super::Gathered;
use super::candidates::{
    Row, expression_of, messages_of_index, pieces_of_index, row_columns, word_candidates,
};
use super::scope::Scope;

/// Triples the index is asked for: these narrow it down enough, and each costs a list to read.
const MAX_TRIPLES: usize = 8;
/// Messages that are read one by one for a question too short for the index.
const MAX_SCANNED: usize = 10_000;
/// A conversation of fewer messages is read through rather than looked up.
const SMALL_CONVERSATION: i64 = 3_000;

/// Gathers what holds a question as a substring. Returns how much the index does not cover.
pub(super) fn substring_candidates(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    query: &ParsedQuery,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<u64> {
    let triples = triples(&query.substring);
    if triples.is_empty() {
        // Words first: they are found wherever they are.
        if !query.wanted.is_empty() {
            word_candidates(conn, artifacts, query, scope, gathered)?;
        }
        scan_messages(conn, 0, MAX_SCANNED, scope, gathered)?;
        scan_pieces(conn, artifacts, Pieces::All, scope, gathered)?;
        return Ok(0);
    }
    let is_read_through = read_small_conversation(conn, scope, gathered)?;
    let unindexed = grams_backlog(conn)?;
    if unindexed > 0 {
        if !is_read_through {
            scan_messages(conn, grams_position(conn)?, usize::MAX, scope, gathered)?;
        }
        scan_pieces(conn, artifacts, Pieces::NotIndexed, scope, gathered)?;
    }
    let expression = expression_of(&triples);
    if !is_read_through {
        messages_of_index(
            conn,
            concat!(
                "SELECT ",
                row_columns!(),
                " FROM grams g CROSS JOIN messages m ON m.id = g.rowid
                  WHERE g.grams MATCH ?1 AND g.rowid < ?2 ORDER BY g.rowid DESC"
            ),
            &expression,
            scope,
            gathered,
        )?;
    }
    pieces_of_index(
        conn,
        artifacts,
        "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes FROM grams g
         CROSS JOIN artifact_pieces p ON p.row = g.rowid CROSS JOIN artifacts a ON a.n = p.artifact
         WHERE g.grams MATCH ?1 AND g.rowid >= ?2 ORDER BY g.rowid DESC",
        &expression,
        scope,
        gathered,
    )?;
    Ok(unindexed)
}

/// Looks at messages after `above` one by one, the newest `at_most`.
fn scan_messages(
    conn: &Connection,
    above: i64,
    at_most: usize,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<()> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM messages m WHERE m.id > ?1 ORDER BY m.id DESC"
    ))?;
    let mut rows = statement.query([above])?;
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        if looked_at == at_most || !gathered.has_room() {
            gathered.is_cut_short = true;
            break;
        }
        looked_at += 1;
        gathered.look_at(&Row::new(row)?, scope)?;
    }
    Ok(())
}

/// Looks at every message of the conversation that is searched, if it is one and it is small. Tells whether it did.
fn read_small_conversation(
    conn: &Connection,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<bool> {
    let Some(chains) = scope.chains() else { return Ok(false) };
    let mut messages = 0;
    let mut count =
        conn.prepare_cached("SELECT coalesce(sum(messages), 0) FROM sessions WHERE chain = ?1")?;
    for chain in &chains {
        messages += count.query_row([chain], |row| row.get::<_, i64>(0))?;
    }
    if messages > SMALL_CONVERSATION {
        return Ok(false);
    }
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM sessions s CROSS JOIN messages m ON m.session = s.ordinal WHERE s.chain = ?1"
    ))?;
    for chain in chains {
        let mut rows = statement.query([chain])?;
        while let Some(row) = rows.next()? {
            gathered.look_at(&Row::new(row)?, scope)?;
        }
    }
    Ok(true)
}

/// Which pieces of artifacts to read one by one.
enum Pieces {
    /// Any.
    All,
    /// Those the index does not cover.
    NotIndexed,
}

/// Looks at pieces of artifacts one by one, the newest.
fn scan_pieces(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    which: Pieces,
    scope: &mut Scope<'_>,
    gathered: &mut Gathered<'_>,
) -> Outcome<()> {
    let mut statement = conn.prepare_cached(match which {
        Pieces::All => {
            "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes
             FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact ORDER BY p.row DESC"
        }
        Pieces::NotIndexed => {
            "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes
             FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact WHERE p.has_grams = 0 ORDER BY p.row DESC"
        }
    })?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !gathered.may_read_piece() {
            break;
        }
        gathered.look_at_piece(conn, artifacts, row, scope)?;
    }
    Ok(())
}

/// The triples of characters to ask the index for: of a long question those that are rarest, by the look of them.
fn triples(substring: &str) -> Vec<IndexTerm> {
    let starts: Vec<usize> = substring.char_indices().map(|(at, _)| at).chain([substring.len()]).collect();
    let mut found: Vec<&str> =
        starts.windows(4).filter_map(|ends| substring.get(*ends.first()?..*ends.last()?)).collect();
    found.sort_unstable();
    found.dedup();
    found.sort_by_key(|triple| triple.chars().map(commonness).sum::<u32>());
    found.truncate(MAX_TRIPLES);
    found.into_iter().map(|triple| IndexTerm { term: triple.to_owned(), as_prefix: false }).collect()
}

/// How often a character is met, roughly, on a scale of doublings.
fn commonness(c: char) -> u32 {
    match c {
        ' ' => 9,
        'e' | 't' | 'a' => 8,
        'o' | 'i' | 'n' | 's' | 'r' => 7,
        'd' | 'h' | 'l' | 'u' | 'c' | 'm' => 6,
        'p' | 'f' | 'g' | 'b' | 'y' | 'w' | '.' => 5,
        'v' | 'k' | '0' | '1' | '2' | '/' | '_' | '-' | ',' | '"' => 4,
        'x' | 'j' | 'q' | 'z' | '3'..='9' | '!'..='~' => 3,
        _ => 1,
    }
}
