//! Sessions: opening, finding, listing, naming, ending.
//!
//! Opening a session takes a shared lock on the families of its owner; moving or deleting families takes an exclusive one
//! ([`share_families`], [`own_families`]). So no session joins a family that is moved or deleted at the same time.

use std::collections::HashMap;

use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{
    ChainPosition, LinePart, attached, conversation, end_by_continuation, inherited_base, line,
    place_of_root, place_on, title_key,
};
use crate::sessions::session::{Conversation, EndReason, Link, LinkKind, NewSession, Session, SessionFilter};
use crate::views::assembly::{closed, settled};
use crate::views::item::ViewItem;

use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::rows::{
    Access, find_session, members_of, require_for_writing, require_session, session, session_at,
    session_columns, sessions, tip_of, unknown,
};
use super::value::{SqlValue, flag, int, text, values};
use super::views;

/// At most so many sessions are named when a reference fits several.
const CANDIDATES: i64 = 20;
/// The word for the most recently active conversation.
const LAST: &str = "last";
/// The kind of turn that is taken for the families of an owner.
const FAMILIES: i64 = 7_310_586_211;

/// Waits until no connection moves or deletes families of an owner, and keeps it so until the transaction ends.
pub(super) fn share_families(tx: &Tx<'_>, owner: &Owner) {
    tx.query_later("SELECT pg_advisory_xact_lock_shared(hashtextextended($1, $2))", values![owner, FAMILIES]);
}

/// Waits until no other connection opens, moves or deletes sessions of an owner, and keeps it so until the transaction ends.
pub(super) fn own_families(tx: &Tx<'_>, owner: &Owner) {
    tx.query_later("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", values![owner, FAMILIES]);
}

/// Opens a session where its link says, with a view that was given, or the one it inherits.
pub(super) fn open(tx: &Tx<'_>, new: &NewSession, view: Option<&[ViewItem]>) -> PgResult<Session> {
    let owner = &new.owner;
    share_families(tx, owner);
    let Some(link) = &new.link else {
        let view = settled(view.unwrap_or_default().to_vec(), &[], None, |_| Ok::<_, PgError>(None))?;
        return add(tx, new, place_of_root(), None, view);
    };
    let parent = require_for_writing(tx, owner, &link.parent)?;
    let tip = tip_of(tx, owner, parent.chain)?;
    let place = place_on(link, &parent, tip.as_ref().unwrap_or(&parent))?;
    let link = place.link.clone().unwrap_or_else(|| link.clone());
    let shared = LinePart::shared(&link, &parent);
    let base = if view.is_none() { inherited_base(&link, &parent) } else { None };
    if link.kind == LinkKind::Continuation {
        end(tx, &parent, &end_by_continuation(view), new.started_ms);
    }
    let view = match (view, shared) {
        (Some(view), shared) => {
            let line = shared.map_or(Ok(Vec::new()), |shared| line_of(tx, owner, shared))?;
            settled(view.to_vec(), &line, None, |id| find_session(tx, owner, id, Access::Read))?
        }
        (None, Some(shared)) => {
            let end = shared.end_in(&parent).unwrap_or(parent.first_seq);
            closed(views::items_of(tx, &parent)?, &parent.id, end)
        }
        (None, None) => Vec::new(),
    };
    add(tx, new, place, base, view)
}

/// Adds a session whose place and view have been found; the run of its own messages is put after the view.
pub(super) fn add(
    tx: &Tx<'_>,
    new: &NewSession,
    place: ChainPosition,
    base: Option<u64>,
    view: Vec<ViewItem>,
) -> PgResult<Session> {
    let owner = &new.owner;
    let origins = match &place.link {
        Some(link) => origins_of(tx, owner, &link.parent)?,
        None => None,
    };
    let is_attached = match place.link.as_ref().map(|link| link.kind) {
        Some(LinkKind::Continuation) => origins.as_ref().is_some_and(|origins| origins.is_attached),
        kind => kind.is_some_and(LinkKind::is_attached),
    };
    if let Some(chain) = place.chain {
        tx.later(
            "UPDATE sessions SET is_tip = false WHERE owner = $1 AND chain = $2 AND is_tip",
            values![owner, chain],
        );
    }
    // Sessions that begin something name themselves: zero is replaced by the ordinal that is assigned here.
    let rows = tx.query(
        concat!(
            "INSERT INTO sessions (ordinal, id, owner, chain, base, tree, is_attached, parent, parent_id, link_kind, \
             leaves_at, first_seq, next_seq, started_ms, active_ms, model, title, title_key, program, origin_key, \
             project, dialect) SELECT n, $1, $2, coalesce($3, n), coalesce($4, n), coalesce($5, n), $6, $7, $8, $9, \
             $10, $11, $11, $12, $12, $13, $14, $15, $16, $17, $18, $19 \
             FROM nextval(pg_get_serial_sequence('sessions', 'ordinal')) AS n \
             ON CONFLICT DO NOTHING RETURNING ",
            session_columns!()
        ),
        values![
            &new.id,
            owner,
            place.chain,
            base,
            origins.as_ref().map(|origins| origins.tree),
            is_attached,
            origins.as_ref().map(|origins| origins.ordinal),
            place.link.as_ref().map(|link| link.parent.as_str()),
            place.link.as_ref().map(|link| link.kind.name()),
            place.link.as_ref().map(|link| link.leaves_at),
            place.first_seq,
            new.started_ms,
            new.model.as_deref(),
            new.title.as_deref(),
            new.title.as_deref().map(title_key).as_deref(),
            &new.origin.program,
            new.origin.key.as_deref(),
            new.origin.project.as_deref(),
            new.wire_format.name(),
        ],
    )?;
    let Some(row) = rows.first() else { return Err(twin_of(tx, new)?) };
    let opened = session(row)?;
    views::write_new(tx, &opened, view)?;
    Ok(opened)
}

/// What a session takes over from the one it hangs on.
struct Origins {
    ordinal: i64,
    tree: i64,
    is_attached: bool,
}

fn origins_of(tx: &Tx<'_>, owner: &Owner, parent: &SessionId) -> PgResult<Option<Origins>> {
    let row = tx.query_opt(
        "SELECT ordinal, tree, is_attached FROM sessions WHERE owner = $1 AND id = $2",
        values![owner, parent],
    )?;
    row.map(|row| Ok(Origins { ordinal: int(&row, 0)?, tree: int(&row, 1)?, is_attached: flag(&row, 2)? }))
        .transpose()
}

/// The refusal of an id that is taken, or of a key of another program that leads to a session already.
fn twin_of(tx: &Tx<'_>, new: &NewSession) -> PgResult<PgError> {
    // An id may belong to another owner; the error does not say so.
    let row = tx.query_opt("SELECT id FROM sessions WHERE id = $1", values![&new.id])?;
    let by_origin = match (&row, &new.origin.key) {
        (None, Some(key)) => by_origin(tx, &new.owner, &new.origin.program, key)?.map(|session| session.id),
        _ => None,
    };
    Ok(StoreError::SessionExists { id: by_origin.unwrap_or_else(|| new.id.clone()) }.into())
}

/// The line behind a stretch, newest first.
pub(super) fn line_of(tx: &Tx<'_>, owner: &Owner, stretch: LinePart) -> PgResult<Vec<LinePart>> {
    line(stretch, |ordinal| session_at(tx, owner, ordinal), |id| find_session(tx, owner, id, Access::Read))
}

pub(super) fn by_origin(tx: &Tx<'_>, owner: &Owner, program: &str, key: &str) -> PgResult<Option<Session>> {
    let sql = concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = $1 AND program = $2 AND origin_key = $3"
    );
    tx.query_opt(sql, values![owner, program, key])?.as_ref().map(session).transpose()
}

pub(super) fn all_by_origin(
    tx: &Tx<'_>,
    owner: &Owner,
    program: &str,
    key_start: &str,
) -> PgResult<Vec<Session>> {
    sessions(
        tx,
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = $1 AND program = $2 AND origin_key >= $3 AND origin_key < $4 ORDER BY ordinal"
        ),
        values![owner, program, key_start, after(key_start)],
    )
}

/// A text behind all that begin with another.
fn after(start: &str) -> String {
    format!("{start}{}", char::MAX)
}

pub(super) fn resolve(tx: &Tx<'_>, owner: &Owner, reference: &str) -> PgResult<Session> {
    if let Some(session) = find_session(tx, owner, &SessionId::from_text(reference), Access::Read)? {
        return Ok(session);
    }
    let unknown = || unknown(&SessionId::from_text(reference));
    if reference == LAST {
        return last(tx, owner)?.ok_or_else(unknown);
    }
    let by_prefix = if reference.is_empty() { Vec::new() } else { by_prefix(tx, owner, reference)? };
    if let [only] = by_prefix.as_slice() {
        return Ok(only.clone());
    }
    let by_title = by_title(tx, owner, reference)?;
    if let [only] = by_title.as_slice() {
        return Ok(only.clone());
    }
    // Ids that begin so come first: what was typed looks like one.
    let fitting = if by_prefix.is_empty() { by_title } else { by_prefix };
    if fitting.is_empty() {
        return Err(unknown());
    }
    let shown = usize::try_from(CANDIDATES).unwrap_or_default();
    let candidates = fitting.into_iter().take(shown).map(|session| session.id).collect();
    Err(StoreError::AmbiguousSession { reference: reference.to_owned(), candidates }.into())
}

/// The most recently active conversation that is not a sub-agent; if there is none, any. Never a side call.
fn last(tx: &Tx<'_>, owner: &Owner) -> PgResult<Option<Session>> {
    let filter = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    if let Some(tip) = tips(tx, owner, &filter)?.pop() {
        return Ok(Some(tip));
    }
    let sql = concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = $1 AND is_tip AND EXISTS (SELECT 1 FROM sessions AS root \
         WHERE root.owner = $1 AND root.ordinal = sessions.chain AND root.link_kind IS DISTINCT FROM $2 \
         AND root.link_kind IS DISTINCT FROM $3) ORDER BY active_ms DESC, ordinal DESC LIMIT 1"
    );
    let row = tx.query_opt(sql, values![owner, LinkKind::SideCall.name(), LinkKind::SideBranch.name()])?;
    row.as_ref().map(session).transpose()
}

/// Sessions whose id begins so, newest first; one more than are ever named.
fn by_prefix(tx: &Tx<'_>, owner: &Owner, prefix: &str) -> PgResult<Vec<Session>> {
    sessions(
        tx,
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = $1 AND id >= $2 AND id < $3 ORDER BY ordinal DESC LIMIT $4"
        ),
        values![owner, prefix, after(prefix), CANDIDATES + 1],
    )
}

/// The newest session of every chain that has this title in it, newest first.
fn by_title(tx: &Tx<'_>, owner: &Owner, title: &str) -> PgResult<Vec<Session>> {
    sessions(
        tx,
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = $1 AND ordinal IN (SELECT max(ordinal) FROM sessions WHERE owner = $1 \
             AND title_key = $2 GROUP BY chain) ORDER BY ordinal DESC LIMIT $3"
        ),
        values![owner, title_key(title), CANDIDATES + 1],
    )
}

/// The newest sessions of the conversations that fit, the most recently active first.
fn tips(tx: &Tx<'_>, owner: &Owner, filter: &SessionFilter) -> PgResult<Vec<Session>> {
    let mut sql =
        String::from(concat!("SELECT ", session_columns!(), " FROM sessions WHERE owner = $1 AND is_tip"));
    let mut values = values![owner];
    let mut add = |sql: &mut String, condition: &str, value: SqlValue| {
        values.push(value);
        sql.push_str(&format!(" AND {condition} ${}", values.len()));
    };
    if !filter.include_attached {
        sql.push_str(" AND NOT is_attached");
    }
    if let Some(since_ms) = filter.since_ms {
        add(&mut sql, "active_ms >=", since_ms.into());
    }
    if let Some(until_ms) = filter.until_ms {
        add(&mut sql, "active_ms <", until_ms.into());
    }
    for (condition, wanted) in
        [("program =", &filter.program), ("model =", &filter.model), ("project =", &filter.project)]
    {
        if let Some(wanted) = wanted {
            add(&mut sql, condition, wanted.into());
        }
    }
    if let Some(place) = filter.after {
        add(&mut sql, "(active_ms, ordinal) < (", place.active_ms.into());
        values.push(place.ordinal.into());
        sql.push_str(&format!(", ${})", values.len()));
    }
    sql.push_str(" ORDER BY active_ms DESC, ordinal DESC");
    if let Some(limit) = filter.limit {
        values.push((limit as u64).into());
        sql.push_str(&format!(" LIMIT ${}", values.len()));
    }
    sessions(tx, &sql, values)
}

pub(super) fn conversations(
    tx: &Tx<'_>,
    owner: &Owner,
    filter: &SessionFilter,
) -> PgResult<Vec<Conversation>> {
    let tips = tips(tx, owner, filter)?;
    // Most chains have one member, which is at hand already.
    let longer: Vec<u64> = tips.iter().filter(|tip| tip.ordinal != tip.chain).map(|tip| tip.chain).collect();
    let mut chains: HashMap<u64, Vec<Session>> = HashMap::new();
    if !longer.is_empty() {
        let members = sessions(
            tx,
            concat!(
                "SELECT ",
                session_columns!(),
                " FROM sessions WHERE owner = $1 AND chain = ANY ($2) ORDER BY ordinal"
            ),
            vec![owner.into(), SqlValue::ints(longer.into_iter().map(crate::coding::int))],
        )?;
        for member in members {
            chains.entry(member.chain).or_default().push(member);
        }
    }
    Ok(tips
        .into_iter()
        .filter_map(|tip| conversation(chains.remove(&tip.chain).unwrap_or_else(|| vec![tip])))
        .collect())
}

pub(super) fn family(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<Session>> {
    let family = sessions(
        tx,
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = $1 AND tree = (SELECT tree FROM sessions WHERE owner = $1 AND id = $2) \
             ORDER BY ordinal"
        ),
        values![owner, id],
    )?;
    if family.is_empty() { Err(unknown(id)) } else { Ok(family) }
}

/// Has a conversation that hangs on nothing hang on another.
pub(super) fn attach(tx: &Tx<'_>, owner: &Owner, id: &SessionId, link: &Link) -> PgResult<Session> {
    own_families(tx, owner);
    let one = require_session(tx, owner, id)?;
    let parent = require_session(tx, owner, &link.parent)?;
    let root = session_at(tx, owner, one.chain)?.unwrap_or_else(|| one.clone());
    let tree_of = |session: &Session| -> PgResult<i64> {
        let row = tx.query_one(
            "SELECT tree FROM sessions WHERE owner = $1 AND ordinal = $2",
            values![owner, session.ordinal],
        )?;
        int(&row, 0)
    };
    let (own_tree, tree) = (tree_of(&root)?, tree_of(&parent)?);
    let link = attached(&root, link, own_tree == tree)?;
    tx.later(
        "UPDATE sessions SET parent = $3, parent_id = $4, link_kind = $5, leaves_at = $6 \
         WHERE owner = $1 AND ordinal = $2",
        values![owner, root.ordinal, parent.ordinal, &link.parent, link.kind.name(), link.leaves_at],
    );
    tx.later(
        "UPDATE sessions SET is_attached = true WHERE owner = $1 AND chain = $2",
        values![owner, root.chain],
    );
    tx.later("UPDATE sessions SET tree = $3 WHERE owner = $1 AND tree = $2", values![owner, own_tree, tree]);
    require_session(tx, owner, id)
}

pub(super) fn rename(tx: &Tx<'_>, owner: &Owner, id: &SessionId, title: Option<&str>) -> PgResult<()> {
    let changed = tx.execute(
        "UPDATE sessions SET title = $3, title_key = $4 WHERE owner = $1 \
         AND chain = (SELECT chain FROM sessions WHERE owner = $1 AND id = $2)",
        values![owner, id, title, title.map(title_key).as_deref()],
    )?;
    if changed == 0 { Err(unknown(id)) } else { Ok(()) }
}

/// Has a session ended that has not; the time of its end counts as activity.
pub(super) fn end(tx: &Tx<'_>, session: &Session, reason: &EndReason, at_ms: Millis) {
    tx.later(
        "UPDATE sessions SET ended_ms = $3, end_reason = $4, active_ms = greatest(active_ms, $3) \
         WHERE owner = $1 AND ordinal = $2 AND ended_ms IS NULL",
        values![&session.owner, session.ordinal, at_ms, reason.as_str()],
    );
}

/// The sessions of a chain, none of which anybody else writes to until the transaction ends.
pub(super) fn members_for_writing(tx: &Tx<'_>, owner: &Owner, chain: u64) -> PgResult<Vec<Session>> {
    let mut known = 0;
    loop {
        // Another process may have continued the chain meanwhile; then its new session has to be locked too.
        let locked = tx.query(
            "SELECT ordinal, id FROM sessions WHERE owner = $1 AND chain = $2 ORDER BY ordinal FOR NO KEY UPDATE",
            values![owner, chain],
        )?;
        let members = members_of(tx, owner, chain)?;
        if members.len() == locked.len() || members.len() == known {
            return Ok(members);
        }
        known = members.len();
    }
}

/// What a deletion finds of sessions: their ids by their ordinals.
pub(super) fn ids_by_ordinal(
    tx: &Tx<'_>,
    sql: &str,
    values: Vec<SqlValue>,
) -> PgResult<std::collections::BTreeMap<i64, SessionId>> {
    tx.query(sql, values)?.iter().map(|row| Ok((int(row, 0)?, SessionId::from_text(text(row, 1)?)))).collect()
}
