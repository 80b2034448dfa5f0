//! What an answer shows of its hits: the passage, where it stands, and what was said around it.

use rusqlite::{Connection, OptionalExtension};

use crate::artifact_folder::ArtifactFolder;
use crate::chain::Stretch;
use crate::matching::Matcher;
use crate::rank::Ranked;
use crate::search::{ArtifactPlace, Hit, Neighbour, Snippet};
use crate::snippet::{beginning, passage};

use super::super::index::{ARTIFACT_ROWS, PieceText};
use super::super::rows::{int, members_of, tip_of};
use super::super::sessions::line_of;
use super::super::trouble::Outcome;
use super::candidates::{ArtifactReference, Row, newest_reference, row_columns};
use super::scope::Scope;

/// Hits as they are shown.
pub(super) fn shown(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    scope: &mut Scope<'_>,
    matcher: &mut Matcher<'_>,
    ranked: &[Ranked<i64>],
) -> Outcome<Vec<Hit>> {
    let mut hits = Vec::with_capacity(ranked.len());
    for hit in ranked {
        hits.extend(if hit.key < ARTIFACT_ROWS {
            message_hit(conn, scope, matcher, hit)?
        } else {
            artifact_hit(conn, artifacts, scope, matcher, hit)?
        });
    }
    Ok(hits)
}

fn message_hit(
    conn: &Connection,
    scope: &mut Scope<'_>,
    matcher: &mut Matcher<'_>,
    ranked: &Ranked<i64>,
) -> Outcome<Option<Hit>> {
    let mut statement =
        conn.prepare_cached(concat!("SELECT ", row_columns!(), " FROM messages m WHERE m.id = ?1"))?;
    let mut rows = statement.query([ranked.key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Row::new(row)?;
    let Some(snippet) = row.with_text(|text| passage(text, &matcher.places(text))) else { return Ok(None) };
    let place = Place {
        session: row.session,
        message: u64::try_from(row.id).unwrap_or_default(),
        seq: row.seq,
        role: row.role.name(),
        tools: row.tools()?,
        at_ms: row.at_ms,
    };
    place.hit(conn, scope, ranked, snippet)
}

fn artifact_hit(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    scope: &mut Scope<'_>,
    matcher: &mut Matcher<'_>,
    ranked: &Ranked<i64>,
) -> Outcome<Option<Hit>> {
    let mut statement = conn.prepare_cached(
        "SELECT p.artifact, p.first_line, a.name, p.first_byte, p.bytes
         FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact WHERE p.row = ?1",
    )?;
    let mut rows = statement.query([ranked.key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let piece = PieceText::from_row(row, 2)?;
    let Ok(text) = piece.read(artifacts) else { return Ok(None) };
    let Some(reference) = newest_reference(conn, row.get(0)?, scope)? else { return Ok(None) };
    let marks = matcher.places(&text);
    let before = text.get(..marks.first().map_or(0, |mark| mark.start)).unwrap_or_default();
    let line = row.get::<_, u64>(1)? + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
    let ArtifactReference { session, message, seq, role, tools, at_ms } = reference;
    let place = Place { session, message, seq, role: role.name(), tools, at_ms };
    let hit = place.hit(conn, scope, ranked, passage(&text, &marks))?;
    Ok(hit.map(|hit| Hit { artifact: Some(ArtifactPlace { id: piece.artifact, line }), ..hit }))
}

/// Where a hit stands.
struct Place {
    session: i64,
    message: u64,
    seq: u64,
    role: &'static str,
    tools: Vec<String>,
    at_ms: i64,
}

impl Place {
    fn hit(
        self,
        conn: &Connection,
        scope: &mut Scope<'_>,
        ranked: &Ranked<i64>,
        snippet: Snippet,
    ) -> Outcome<Option<Hit>> {
        let Some(session) = scope.session(self.session)? else { return Ok(None) };
        let (id, chain) = (session.id.clone(), session.chain);
        let (before, after) = neighbours(conn, scope, chain, self.seq)?;
        Ok(Some(Hit {
            session: id,
            title: title(conn, chain)?,
            seq: self.seq,
            message: self.message,
            role: self.role,
            tools: self.tools,
            at_ms: self.at_ms,
            score: ranked.score,
            snippet,
            artifact: None,
            repeats: ranked.repeats,
            before,
            after,
        }))
    }
}

/// Title of the newest session of a chain that has one.
fn title(conn: &Connection, chain: u64) -> Outcome<Option<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT title FROM sessions WHERE chain = ?1 AND title IS NOT NULL ORDER BY ordinal DESC LIMIT 1",
    )?;
    Ok(statement.query_row([int(chain)], |row| row.get(0)).optional()?)
}

/// Messages around a place in a conversation, in order.
fn neighbours(
    conn: &Connection,
    scope: &Scope<'_>,
    chain: u64,
    seq: u64,
) -> Outcome<(Vec<Neighbour>, Vec<Neighbour>)> {
    let count = scope.query.neighbours as u64;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let Some(tip) = (if count == 0 { None } else { tip_of(conn, chain)? }) else {
        return Ok((before, after));
    };
    let (first, end) = (seq.saturating_sub(count), seq.saturating_add(count).saturating_add(1));
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM messages m WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq"
    ))?;
    for stretch in line_of(conn, scope.owner(), Stretch::through(&tip))?.iter().rev() {
        for member in members_of(conn, stretch.chain)? {
            let Some(end_here) = stretch.end_in(&member) else { continue };
            if member.next_seq <= first || member.first_seq >= end {
                continue;
            }
            let mut rows = statement.query([int(member.ordinal), int(first), int(end.min(end_here))])?;
            while let Some(row) = rows.next()? {
                let row = Row::new(row)?;
                let text = row.with_text(beginning).unwrap_or_default();
                let neighbour = Neighbour { seq: row.seq, role: row.role.name(), text };
                match row.seq.cmp(&seq) {
                    std::cmp::Ordering::Less => before.push(neighbour),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => after.push(neighbour),
                }
            }
        }
    }
    Ok((before, after))
}
