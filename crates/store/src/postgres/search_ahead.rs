//! Reads the rows that a search needs in one exchange with the server: messages, their neighbours, and their conversations.
//!
//! A search reads one snapshot, so the rows stay valid until it ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use tokio_postgres::Row;

use crate::coding::int as stored;
use crate::ids::Owner;
use crate::record_search::source::PlaceOrder;
use crate::sessions::session::Session;

use super::connection::Tx;
use super::error::PgResult;
use super::rows::{session, session_columns};
use super::search_source::row_columns;
use super::value::{SqlValue, int};

/// Messages with up to $3 neighbours of the same session on either side. `OFFSET 0` keeps the server from joining whole sessions.
const WITH_NEIGHBOURS: &str = concat!(
    "SELECT n.* FROM (SELECT h.session, h.seq FROM messages h WHERE h.owner = $1 AND h.id = ANY ($2)) AS hit \
     CROSS JOIN LATERAL (SELECT ",
    row_columns!(),
    " FROM messages m WHERE m.owner = $1 AND m.session = hit.session AND m.seq >= hit.seq - $3 AND m.seq <= hit.seq + $3 OFFSET 0) AS n"
);
/// All sessions of the chains that contain these messages.
const THEIR_CHAINS: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions WHERE owner = $1 AND chain = ANY (ARRAY(SELECT s.chain FROM sessions s WHERE s.owner = $1 AND s.ordinal = \
     ANY (ARRAY(SELECT h.session FROM messages h WHERE h.owner = $1 AND h.id = ANY ($2))))) ORDER BY ordinal"
);

/// The most neighbours read on either side of a message; a search that shows more reads the others separately.
const MOST_BESIDE: u64 = 64;

/// Rows and sessions that were read ahead.
#[derive(Default)]
pub(super) struct ReadAhead {
    read: RefCell<AheadRows>,
}

#[derive(Default)]
struct AheadRows {
    /// Messages by session and sequence number.
    rows: HashMap<i64, BTreeMap<i64, Rc<Row>>>,
    /// Session and sequence number of each message, by id.
    places: HashMap<i64, (i64, i64)>,
    /// Ranges of sequence numbers that were read completely, by session.
    covered: HashMap<i64, Vec<Range<i64>>>,
    /// Sessions by chain, the oldest first.
    chains: HashMap<u64, Vec<Session>>,
    /// The chain of each session.
    chain_of: HashMap<u64, u64>,
}

impl ReadAhead {
    /// Reads messages with up to `beside` neighbours on either side, and their conversations.
    pub(super) fn read(&self, tx: &Tx<'_>, owner: &Owner, ids: &[i64], beside: u64) -> PgResult<()> {
        let beside = stored(beside.min(MOST_BESIDE));
        let mut ids = ids.to_vec();
        ids.retain(|id| !self.read.borrow().has(*id, beside));
        if ids.is_empty() {
            return Ok(());
        }
        let values = vec![owner.into(), SqlValue::ints(ids.iter().copied())];
        let answers = tx.queries(vec![
            (WITH_NEIGHBOURS, [values.clone(), vec![beside.into()]].concat()),
            (THEIR_CHAINS, values),
        ])?;
        let mut answers = answers.into_iter();
        let (rows, sessions) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
        let mut read = self.read.borrow_mut();
        for row in rows {
            let (id, session, seq) = (int(&row, 0)?, int(&row, 1)?, int(&row, 2)?);
            read.places.insert(id, (session, seq));
            read.rows.entry(session).or_default().insert(seq, Rc::new(row));
        }
        for id in ids {
            if let Some((session, seq)) = read.places.get(&id).copied() {
                let covered = read.covered.entry(session).or_default();
                covered.push(seq.saturating_sub(beside)..seq.saturating_add(beside + 1));
            }
        }
        let mut chains: HashMap<u64, Vec<Session>> = HashMap::new();
        for row in &sessions {
            let session = session(row)?;
            read.chain_of.insert(session.ordinal, session.chain);
            chains.entry(session.chain).or_default().push(session);
        }
        read.chains.extend(chains);
        Ok(())
    }

    /// Returns a message by its id, if it was read.
    pub(super) fn message(&self, id: i64) -> Option<Rc<Row>> {
        let read = self.read.borrow();
        let (session, seq) = read.places.get(&id)?;
        read.rows.get(session)?.get(seq).cloned()
    }

    /// Returns the messages at the start of a range of sequence numbers that were read, in this order, and the rest of the range.
    pub(super) fn first_of(
        &self,
        session: i64,
        places: &Range<i64>,
        order: PlaceOrder,
    ) -> (Vec<Rc<Row>>, Range<i64>) {
        let read = self.read.borrow();
        let first = match order {
            PlaceOrder::First => places.start,
            PlaceOrder::Last => places.end.saturating_sub(1),
        };
        let covered = read.covered.get(&session).into_iter().flatten().find(|range| range.contains(&first));
        let (Some(covered), Some(rows), false) = (covered, read.rows.get(&session), places.is_empty()) else {
            return (Vec::new(), places.clone());
        };
        let read = covered.start.max(places.start)..covered.end.min(places.end);
        let found = rows.range(read.clone()).map(|(_, row)| Rc::clone(row));
        match order {
            PlaceOrder::First => (found.collect(), read.end..places.end),
            PlaceOrder::Last => (found.rev().collect(), places.start..read.start),
        }
    }

    /// Returns a session by its ordinal, if it was read.
    pub(super) fn session(&self, ordinal: u64) -> Option<Session> {
        let read = self.read.borrow();
        let members = read.chains.get(read.chain_of.get(&ordinal)?)?;
        members.iter().find(|session| session.ordinal == ordinal).cloned()
    }

    /// Returns the sessions of a chain, the oldest first, if they were read.
    pub(super) fn members(&self, chain: u64) -> Option<Vec<Session>> {
        self.read.borrow().chains.get(&chain).cloned()
    }
}

impl AheadRows {
    /// Whether a message was read with `beside` neighbours on either side.
    fn has(&self, id: i64, beside: i64) -> bool {
        let Some((session, seq)) = self.places.get(&id) else { return false };
        let wanted = seq.saturating_sub(beside)..seq.saturating_add(beside);
        self.covered
            .get(session)
            .into_iter()
            .flatten()
            .any(|range| range.contains(&wanted.start) && range.contains(&wanted.end))
    }
}
