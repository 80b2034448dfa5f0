//! Sessions: opening, finding, listing, naming, ending.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, named_params, params_from_iter};

use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{
    ChainPosition, LinePart, attached, conversation, end_by_continuation, inherited_base, line,
    place_of_root, place_on, title_key,
};
use crate::sessions::session::{Conversation, EndReason, Link, LinkKind, NewSession, Session, SessionFilter};
use crate::views::assembly::{closed, settled};
use crate::views::item::ViewItem;

use super::error::{TxError, TxResult};
use super::rows::{
    CHAIN_COLUMN, count, find_session, int, members_of, require_session, session, session_at,
    session_columns, tip_of,
};
use super::views;

/// The maximum number of sessions named for an ambiguous reference.
const CANDIDATES: usize = 20;
/// Fewer chains are looked up individually.
const CHAINS_ONE_BY_ONE: usize = 100;
/// The reference to the most recently active conversation.
const LAST: &str = "last";

/// Opens a session at the position of its link, with the given view or the inherited one.
pub(super) fn open(conn: &Connection, new: NewSession, view: Option<Vec<ViewItem>>) -> TxResult<Session> {
    let Some(link) = &new.link else {
        let view = view.unwrap_or_default();
        let view = settled(view, &[], None, |_| Ok::<_, TxError>(None))?;
        return add(conn, &new, place_of_root(), None, view);
    };
    let parent = require_session(conn, &new.owner, &link.parent)?;
    let tip = tip_of(conn, parent.chain)?;
    let place = place_on(link, &parent, tip.as_ref().unwrap_or(&parent))?;
    let link = place.link.clone().unwrap_or_else(|| link.clone());
    let shared = LinePart::shared(&link, &parent);
    let base = if view.is_none() { inherited_base(&link, &parent) } else { None };
    if link.kind == LinkKind::Continuation {
        end(conn, &parent, &end_by_continuation(view.as_deref()), new.started_ms)?;
    }
    let view = match (view, shared) {
        (Some(view), shared) => {
            let line = shared.map_or(Ok(Vec::new()), |shared| line_of(conn, &new.owner, shared))?;
            settled(view, &line, None, |id| find_session(conn, &new.owner, id).map_err(TxError::from))?
        }
        (None, Some(shared)) => {
            let end = shared.end_in(&parent).unwrap_or(parent.first_seq);
            closed(views::items_of(conn, &parent)?, &parent.id, end)
        }
        (None, None) => Vec::new(),
    };
    add(conn, &new, place, base, view)
}

/// Adds a session at a known position with a known view; the run of its own messages follows the view.
pub(super) fn add(
    conn: &Connection,
    new: &NewSession,
    place: ChainPosition,
    base: Option<u64>,
    view: Vec<ViewItem>,
) -> TxResult<Session> {
    refuse_twins(conn, new)?;
    let parent = match &place.link {
        Some(link) => find_session(conn, &new.owner, &link.parent)?,
        None => None,
    };
    let origins = match &parent {
        Some(parent) => hangs_on(conn, parent)?,
        None => None,
    };
    let is_attached = match place.link.as_ref().map(|link| link.kind) {
        Some(LinkKind::Continuation) => origins.is_some_and(|(_, is_attached)| is_attached),
        kind => kind.is_some_and(LinkKind::is_attached),
    };
    if let Some(chain) = place.chain {
        conn.prepare_cached("UPDATE sessions SET is_tip = 0 WHERE chain = ?1 AND is_tip = 1")?
            .execute([int(chain)])?;
    }
    // The ordinal is known only after the insert; a session that starts a chain then refers to itself.
    conn.prepare_cached(
        "INSERT INTO sessions (id, owner, chain, base, tree, is_attached, parent, parent_id, link_kind, leaves_at, \
         first_seq, next_seq, started_ms, active_ms, model, title, title_key, program, origin_key, project, dialect) \
         VALUES (:id, :owner, :chain, :base, :tree, :is_attached, :parent, :parent_id, :link_kind, :leaves_at, \
         :first_seq, :first_seq, :started_ms, :started_ms, :model, :title, :title_key, :program, :origin_key, \
         :project, :dialect)",
    )?
    .execute(named_params! {
        ":id": new.id.as_str(),
        ":owner": new.owner.as_str(),
        ":chain": place.chain.map_or(0, int),
        ":base": base.map_or(0, int),
        ":tree": origins.map_or(0, |(tree, _)| tree),
        ":is_attached": is_attached,
        ":parent": parent.as_ref().map(|parent| int(parent.ordinal)),
        ":parent_id": place.link.as_ref().map(|link| link.parent.as_str()),
        ":link_kind": place.link.as_ref().map(|link| link.kind.name()),
        ":leaves_at": place.link.as_ref().map(|link| int(link.leaves_at)),
        ":first_seq": int(place.first_seq),
        ":started_ms": new.started_ms,
        ":model": new.model,
        ":title": new.title,
        ":title_key": new.title.as_deref().map(title_key),
        ":program": new.origin.program,
        ":origin_key": new.origin.key,
        ":project": new.origin.project,
        ":dialect": new.wire_format.name(),
    })?;
    let ordinal = conn.last_insert_rowid();
    conn.prepare_cached(
        "UPDATE sessions SET chain = CASE chain WHEN 0 THEN ordinal ELSE chain END, \
         base = CASE base WHEN 0 THEN ordinal ELSE base END, \
         tree = CASE tree WHEN 0 THEN ordinal ELSE tree END WHERE ordinal = ?1",
    )?
    .execute([ordinal])?;
    let opened = require_session(conn, &new.owner, &new.id)?;
    views::write_new(conn, &opened, view)?;
    Ok(opened)
}

/// Returns the tree of a session, and whether its chain is attached to another conversation.
fn hangs_on(conn: &Connection, parent: &Session) -> rusqlite::Result<Option<(i64, bool)>> {
    conn.prepare_cached("SELECT tree, is_attached FROM sessions WHERE ordinal = ?1")?
        .query_row([int(parent.ordinal)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Fails if an id is taken, or a key of another program is used by a session already.
fn refuse_twins(conn: &Connection, new: &NewSession) -> TxResult<()> {
    let taken: Option<String> = conn
        .prepare_cached("SELECT id FROM sessions WHERE id = ?1")?
        .query_row([new.id.as_str()], |row| row.get(0))
        .optional()?;
    let by_origin = match &new.origin.key {
        Some(key) => by_origin(conn, &new.owner, &new.origin.program, key)?.map(|session| session.id),
        None => None,
    };
    match taken.map(SessionId::from_text).or(by_origin) {
        Some(id) => Err(StoreError::SessionExists { id }.into()),
        None => Ok(()),
    }
}

/// Returns the line that ends with a part, newest first.
pub(super) fn line_of(conn: &Connection, owner: &Owner, stretch: LinePart) -> TxResult<Vec<LinePart>> {
    let stretches = line(stretch, |ordinal| session_at(conn, ordinal), |id| find_session(conn, owner, id))?;
    Ok(stretches)
}

pub(super) fn by_origin(
    conn: &Connection,
    owner: &Owner,
    program: &str,
    key: &str,
) -> rusqlite::Result<Option<Session>> {
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = ?1 AND program = ?2 AND origin_key = ?3"
    ))?
    .query_row((owner.as_str(), program, key), session)
    .optional()
}

pub(super) fn all_by_origin(
    conn: &Connection,
    owner: &Owner,
    program: &str,
    key_start: &str,
) -> rusqlite::Result<Vec<Session>> {
    // As with ids, see `by_prefix`.
    let after = format!("{key_start}{}", char::MAX);
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = ?1 AND program = ?2 AND origin_key >= ?3 AND origin_key < ?4 ORDER BY ordinal"
    ))?
    .query_map((owner.as_str(), program, key_start, after), session)?
    .collect()
}

pub(super) fn resolve(conn: &Connection, owner: &Owner, reference: &str) -> TxResult<Session> {
    if let Some(session) = find_session(conn, owner, &SessionId::from_text(reference))? {
        return Ok(session);
    }
    let unknown = || StoreError::UnknownSession { reference: reference.to_owned() };
    if reference == LAST {
        return last(conn, owner)?.ok_or_else(|| unknown().into());
    }
    let by_prefix = if reference.is_empty() { Vec::new() } else { by_prefix(conn, owner, reference)? };
    if let [only] = by_prefix.as_slice() {
        return Ok(only.clone());
    }
    let by_title = by_title(conn, owner, reference)?;
    if let [only] = by_title.as_slice() {
        return Ok(only.clone());
    }
    // Ids with this prefix come first, because the reference looks like one.
    let fitting = if by_prefix.is_empty() { by_title } else { by_prefix };
    if fitting.is_empty() {
        return Err(unknown().into());
    }
    let candidates = fitting.into_iter().take(CANDIDATES).map(|session| session.id).collect();
    Err(StoreError::AmbiguousSession { reference: reference.to_owned(), candidates }.into())
}

/// Returns the most recently active conversation that is not a sub-agent, or else any. Never a side call.
fn last(conn: &Connection, owner: &Owner) -> TxResult<Option<Session>> {
    let filter = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    if let Some(tip) = tips(conn, owner, &filter)?.pop() {
        return Ok(Some(tip));
    }
    let sub_agent = conn
        .prepare_cached(concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = ?1 AND is_tip = 1 AND EXISTS (SELECT 1 FROM sessions AS root \
             WHERE root.ordinal = sessions.chain AND root.link_kind IS NOT ?2 AND root.link_kind IS NOT ?3) \
             ORDER BY active_ms DESC, ordinal DESC LIMIT 1"
        ))?
        .query_row((owner.as_str(), LinkKind::SideCall.name(), LinkKind::SideBranch.name()), session)
        .optional()?;
    Ok(sub_agent)
}

/// Returns sessions with this id prefix, newest first; one more than are ever named.
fn by_prefix(conn: &Connection, owner: &Owner, prefix: &str) -> rusqlite::Result<Vec<Session>> {
    // The ids with a prefix range from it to the prefix followed by the greatest character.
    let after = format!("{prefix}{}", char::MAX);
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE id >= ?1 AND id < ?2 AND owner = ?3 ORDER BY ordinal DESC LIMIT ?4"
    ))?
    .query_map((prefix, after, owner.as_str(), (CANDIDATES + 1) as i64), session)?
    .collect()
}

/// Returns the newest session of every chain with this title, newest first.
fn by_title(conn: &Connection, owner: &Owner, title: &str) -> rusqlite::Result<Vec<Session>> {
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE ordinal IN (SELECT max(ordinal) FROM sessions WHERE owner = ?1 AND title_key = ?2 \
         GROUP BY chain) ORDER BY ordinal DESC LIMIT ?3"
    ))?
    .query_map((owner.as_str(), title_key(title), (CANDIDATES + 1) as i64), session)?
    .collect()
}

/// Returns the newest sessions of matching conversations, the most recently active first.
fn tips(conn: &Connection, owner: &Owner, filter: &SessionFilter) -> rusqlite::Result<Vec<Session>> {
    let mut sql = String::from(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = ?1 AND is_tip = 1"
    ));
    let mut values = vec![Value::from(owner.as_str().to_owned())];
    if !filter.include_attached {
        sql.push_str(" AND is_attached = 0");
    }
    if let Some(since_ms) = filter.since_ms {
        values.push(Value::from(since_ms));
        sql.push_str(&format!(" AND active_ms >= ?{}", values.len()));
    }
    if let Some(until_ms) = filter.until_ms {
        values.push(Value::from(until_ms));
        sql.push_str(&format!(" AND active_ms < ?{}", values.len()));
    }
    for (column, wanted) in
        [("program", &filter.program), ("model", &filter.model), ("project", &filter.project)]
    {
        if let Some(wanted) = wanted {
            values.push(Value::from(wanted.clone()));
            sql.push_str(&format!(" AND {column} = ?{}", values.len()));
        }
    }
    if let Some(after) = filter.after {
        values.push(Value::from(after.active_ms));
        values.push(Value::from(int(after.ordinal)));
        let (active, ordinal) = (values.len() - 1, values.len());
        sql.push_str(&format!(" AND (active_ms, ordinal) < (?{active}, ?{ordinal})"));
    }
    sql.push_str(" ORDER BY active_ms DESC, ordinal DESC");
    if let Some(limit) = filter.limit {
        values.push(Value::from(int(limit as u64)));
        sql.push_str(&format!(" LIMIT ?{}", values.len()));
    }
    conn.prepare_cached(&sql)?.query_map(params_from_iter(values), session)?.collect()
}

pub(super) fn conversations(
    conn: &Connection,
    owner: &Owner,
    filter: &SessionFilter,
) -> rusqlite::Result<Vec<Conversation>> {
    let tips = tips(conn, owner, filter)?;
    // Most chains have one member, which is loaded already.
    let longer = tips.iter().filter(|tip| tip.ordinal != tip.chain).map(|tip| tip.chain);
    let mut chains: HashMap<u64, Vec<Session>> = longer.map(|chain| (chain, Vec::new())).collect();
    if chains.len() < CHAINS_ONE_BY_ONE {
        for (chain, members) in &mut chains {
            *members = members_of(conn, *chain)?;
        }
    } else {
        add_all_members(conn, &mut chains)?;
    }
    Ok(tips
        .into_iter()
        .filter_map(|tip| conversation(chains.remove(&tip.chain).unwrap_or_else(|| vec![tip])))
        .collect())
}

/// Loads the members of many chains in one pass over all sessions.
fn add_all_members(conn: &Connection, chains: &mut HashMap<u64, Vec<Session>>) -> rusqlite::Result<()> {
    let mut statement =
        conn.prepare_cached(concat!("SELECT ", session_columns!(), " FROM sessions ORDER BY ordinal"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(members) = chains.get_mut(&count(row.get(CHAIN_COLUMN)?)) {
            members.push(session(row)?);
        }
    }
    Ok(())
}

pub(super) fn family(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Vec<Session>> {
    let one = require_session(conn, owner, id)?;
    let family = conn
        .prepare_cached(concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE tree = (SELECT tree FROM sessions WHERE ordinal = ?1) ORDER BY ordinal"
        ))?
        .query_map([int(one.ordinal)], session)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(family)
}

/// Attaches a conversation without a parent to another.
pub(super) fn attach(conn: &Connection, owner: &Owner, id: &SessionId, link: &Link) -> TxResult<Session> {
    let one = require_session(conn, owner, id)?;
    let parent = require_session(conn, owner, &link.parent)?;
    let root = session_at(conn, one.chain)?.unwrap_or_else(|| one.clone());
    let tree_of = |session: &Session| -> rusqlite::Result<i64> {
        conn.prepare_cached("SELECT tree FROM sessions WHERE ordinal = ?1")?
            .query_row([int(session.ordinal)], |row| row.get(0))
    };
    let (own_tree, tree) = (tree_of(&root)?, tree_of(&parent)?);
    let link = attached(&root, link, own_tree == tree)?;
    conn.prepare_cached(
        "UPDATE sessions SET parent = ?1, parent_id = ?2, link_kind = ?3, leaves_at = ?4 WHERE ordinal = ?5",
    )?
    .execute((
        int(parent.ordinal),
        link.parent.as_str(),
        link.kind.name(),
        int(link.leaves_at),
        int(root.ordinal),
    ))?;
    conn.prepare_cached("UPDATE sessions SET is_attached = 1 WHERE chain = ?1")?
        .execute([int(root.chain)])?;
    conn.prepare_cached("UPDATE sessions SET tree = ?1 WHERE tree = ?2")?.execute((tree, own_tree))?;
    require_session(conn, owner, id)
}

pub(super) fn rename(conn: &Connection, owner: &Owner, id: &SessionId, title: Option<&str>) -> TxResult<()> {
    let one = require_session(conn, owner, id)?;
    conn.prepare_cached("UPDATE sessions SET title = ?1, title_key = ?2 WHERE chain = ?3")?.execute((
        title,
        title.map(title_key),
        int(one.chain),
    ))?;
    Ok(())
}

/// Ends an open session; the time of its end counts as activity.
pub(super) fn end(
    conn: &Connection,
    session: &Session,
    reason: &EndReason,
    at_ms: Millis,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE sessions SET ended_ms = ?1, end_reason = ?2, active_ms = max(active_ms, ?1) \
         WHERE ordinal = ?3 AND ended_ms IS NULL",
    )?
    .execute((at_ms, reason.as_str(), int(session.ordinal)))
    .map(drop)
}

/// Ids of sessions by ordinal, looked up once each.
#[derive(Default)]
pub(super) struct SessionIds {
    known: HashMap<i64, SessionId>,
}

impl SessionIds {
    pub(super) fn get(&mut self, conn: &Connection, ordinal: i64) -> TxResult<SessionId> {
        if let Some(id) = self.known.get(&ordinal) {
            return Ok(id.clone());
        }
        let id: Option<String> = conn
            .prepare_cached("SELECT id FROM sessions WHERE ordinal = ?1")?
            .query_row([ordinal], |row| row.get(0))
            .optional()?;
        let id = id.ok_or_else(|| TxError::unreadable(format!("there is no session {ordinal}")))?;
        let id = SessionId::from_text(id);
        self.known.insert(ordinal, id.clone());
        Ok(id)
    }
}
