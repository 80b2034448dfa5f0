//! Messages: appending them with their artifacts, and reading them back.

use throughline_search::belonging::Belonging;
use throughline_transcript::ContentHash;
use tokio_postgres::Row;

use crate::coding::{
    MACHINE_WRITTEN, RESULTS_ONLY, count as counted, int as stored, role_code, role_of, speaker_of,
};
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage, speaks_as};
use crate::message_codec::{self, PackedBody};
use crate::sessions::chain::LinePart;
use crate::sessions::version::{LastMessage, Version};
use crate::views::summary::MessageRun;

use super::append_once::KnownSession;
use super::artifacts::{self, NamedTexts, NewReference};
use super::commit::require_open;
use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::rows::{
    members_of, names_text, require_session, session, session_columns, unknown, write_progress,
};
use super::search_index::NewRows;
use super::sessions::line_of;
use super::value::{self, SqlValue, count, int, opt_int, text, values};
use super::views;

/// The session that is written to; no one else writes to it until the transaction ends.
const SESSION: &str =
    concat!("SELECT ", session_columns!(), " FROM sessions WHERE owner = $1 AND id = $2 FOR NO KEY UPDATE");
/// Numbers for so many messages.
const NUMBERS: &str = "SELECT nextval('message_numbers') FROM generate_series(1, $1)";

/// Appends messages to a session: one exchange finds the session and takes numbers, the commit carries the rest.
pub(super) fn append(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    messages: &[NewMessage],
) -> PgResult<AppendRange> {
    let answers =
        tx.queries(vec![(SESSION, values![owner, id]), (NUMBERS, values![messages.len() as i64])])?;
    let [sessions, numbers] = answers.as_slice() else { return Err(unknown(id)) };
    append_all(tx, owner, id, messages, sessions, numbers).map(|(appended, _)| appended)
}

/// The same, with what tells the last of the messages from others; `None` where there were none.
fn append_all(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    messages: &[NewMessage],
    sessions: &[Row],
    numbers: &[Row],
) -> PgResult<(AppendRange, Option<LastMessage>)> {
    let mut session = session(sessions.first().ok_or_else(|| unknown(id))?)?;
    require_open(tx, &session)?;
    let first_seq = session.next_seq;
    if messages.is_empty() {
        return Ok((AppendRange { first_seq, next_seq: first_seq }, None));
    }
    let mut last = None;
    let mut rows = MessageRows::default();
    let mut index = NewRows::default();
    let mut references = Vec::new();
    let mut renditions = Vec::new();
    for (number, new) in numbers.iter().zip(messages) {
        let number = int(number, 0)?;
        let hash = rows.add((session.ordinal, session.next_seq), number, new, &mut references)?;
        let (role, tools) = (speaks_as(&new.message), new.tools.as_slice());
        let belonging = Belonging { owner: owner.as_str(), chain: session.chain, role, tools };
        index.message(number, &new.message, &belonging);
        last = Some(LastMessage { id: counted(number), at_ms: new.at_ms, hash });
        renditions.extend(new.rendition.clone().map(|rendition| (session.next_seq, rendition)));
        session.next_seq += 1;
        session.active_ms = session.active_ms.max(new.at_ms);
        session.counters.messages += 1;
        session.counters.message_tokens = session.counters.message_tokens.saturating_add(new.tokens);
    }
    rows.write(tx, owner, session.ordinal);
    index.write(tx, owner);
    artifacts::keep(tx, owner, &references)?;
    write_progress(tx, &session);
    if !renditions.is_empty() {
        views::grow(tx, &session, renditions)?;
    }
    Ok((AppendRange { first_seq, next_seq: session.next_seq }, last))
}

/// Messages as columns, so that any number of them is one statement.
#[derive(Default)]
pub(super) struct MessageRows {
    seqs: Vec<i64>,
    ids: Vec<i64>,
    roles: Vec<i64>,
    flags: Vec<i64>,
    codings: Vec<i64>,
    times: Vec<i64>,
    tokens: Vec<i64>,
    hashes: Vec<Vec<u8>>,
    tools: Vec<Option<String>>,
    origins: Vec<Vec<u8>>,
}

impl MessageRows {
    /// Adds a message at a place of a session; the hash of its bytes.
    pub(super) fn add(
        &mut self,
        (session, seq): (u64, u64),
        number: i64,
        new: &NewMessage,
        references: &mut Vec<NewReference>,
    ) -> PgResult<ContentHash> {
        let message = &new.message;
        let hash = message.content_hash();
        let PackedBody { coding, bytes, artifacts } = message_codec::pack(message, &NamedTexts)?;
        let mut flags = if message.is_machine_written() { MACHINE_WRITTEN } else { 0 };
        if speaks_as(message) != message.role() {
            flags |= RESULTS_ONLY;
        }
        references.extend(artifacts.into_iter().map(|artifact| NewReference {
            text: artifact.text.into_owned(),
            session,
            message: Some(number),
            // A message answers for one tool, as a rule; which of several a text came from is not worth another column.
            label: new.tools.first().cloned().unwrap_or_default(),
            at_ms: new.at_ms,
        }));
        self.seqs.push(stored(seq));
        self.ids.push(number);
        self.roles.push(role_code(message.role()));
        self.flags.push(flags);
        self.codings.push(coding);
        self.times.push(new.at_ms);
        self.tokens.push(stored(new.tokens));
        self.hashes.push(hash.0.to_vec());
        self.tools.push(names_text(&new.tools)?.map(|names| value::stored_text(&names)));
        self.origins.push(bytes.into_owned());
        Ok(hash)
    }

    /// The columns from `seq` on, without the numbers of messages.
    pub(super) fn columns(self) -> [SqlValue; 9] {
        [
            SqlValue::ints(self.seqs),
            SqlValue::ints(self.roles),
            SqlValue::ints(self.flags),
            SqlValue::ints(self.codings),
            SqlValue::ints(self.times),
            SqlValue::ints(self.tokens),
            SqlValue::Blobs(self.hashes),
            SqlValue::Texts(self.tools),
            SqlValue::Blobs(self.origins),
        ]
    }

    fn write(mut self, tx: &Tx<'_>, owner: &Owner, session: u64) {
        let ids = SqlValue::ints(std::mem::take(&mut self.ids));
        tx.later(
            "INSERT INTO messages (owner, session, id, seq, role, flags, coding, at_ms, tokens, hash, tools, origin) \
             SELECT $1, $2, m.* FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], \
             $9::int8[], $10::bytea[], $11::text[], $12::bytea[]) AS m",
            [vec![owner.into(), session.into(), ids], self.columns().into()].concat(),
        );
    }
}

/// The newest session of the chain of a session, and the last message of that: this is asked before every request of a gateway.
const VERSION: &str = "SELECT * FROM conversation_version($1, $2)";

/// The version of the conversation a session belongs to, and what stays the same of its newest session.
pub(super) fn version(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<(Version, KnownSession)> {
    let row = tx.query_opt(VERSION, values![owner, id])?.ok_or_else(|| unknown(id))?;
    Ok((version_of(&row)?, KnownSession { ordinal: count(&row, 5)?, chain: count(&row, 6)? }))
}

/// The number of the message at a place of a session.
pub(super) fn number_at(tx: &Tx<'_>, owner: &Owner, session: u64, seq: i64) -> PgResult<Option<i64>> {
    let row = tx.query_opt(
        "SELECT id FROM messages WHERE owner = $1 AND session = $2 AND seq = $3",
        values![owner, session, seq],
    )?;
    row.map(|row| int(&row, 0)).transpose()
}

fn version_of(row: &Row) -> PgResult<Version> {
    let last = match opt_int(row, 2)? {
        None => None,
        Some(id) => Some(LastMessage {
            id: counted(id),
            at_ms: int(row, 3)?,
            hash: ContentHash(value::hash(row, 4)?),
        }),
    };
    Ok(Version { tip: SessionId::from_text(text(row, 0)?), next_seq: count(row, 1)?, last })
}

/// Appends messages if the conversation is at this version.
pub(super) fn append_at(
    tx: &Tx<'_>,
    owner: &Owner,
    expected: &Version,
    messages: &[NewMessage],
) -> PgResult<Version> {
    let id = &expected.tip;
    // The version is read under the lock of the session: the previous holder has committed.
    let answers = tx.queries(vec![
        (SESSION, values![owner, id]),
        (VERSION, values![owner, id]),
        (NUMBERS, values![messages.len() as i64]),
    ])?;
    let [sessions, versions, numbers] = answers.as_slice() else { return Err(unknown(id)) };
    let now = version_of(versions.first().ok_or_else(|| unknown(id))?)?;
    if now != *expected {
        return Err(StoreError::VersionConflict { id: id.clone(), tip: now.tip }.into());
    }
    let (appended, last) = append_all(tx, owner, id, messages, sessions, numbers)?;
    Ok(Version { tip: id.clone(), next_seq: appended.next_seq, last: last.or(expected.last) })
}

/// Messages appended to this very session.
pub(super) fn of_session(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<StoredMessage>> {
    run_of(tx, owner, id, 0, i64::MAX)
}

/// The messages of a run.
pub(super) fn of_run(tx: &Tx<'_>, owner: &Owner, run: &MessageRun) -> PgResult<Vec<StoredMessage>> {
    run_of(tx, owner, &run.session, stored(run.first_seq), stored(run.end_seq))
}

fn run_of(tx: &Tx<'_>, owner: &Owner, id: &SessionId, first: i64, end: i64) -> PgResult<Vec<StoredMessage>> {
    Ok(views::read_runs(tx, owner, &[(id, first, end)])?.pop().unwrap_or_default())
}

/// Messages of a session without their bytes.
pub(super) fn heads(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<MessageHead>> {
    let session = require_session(tx, owner, id)?;
    let rows = tx.query(
        "SELECT seq, role::int8, flags::int8, tokens, at_ms FROM messages WHERE owner = $1 AND session = $2 ORDER BY seq",
        values![owner, session.ordinal],
    )?;
    rows.iter()
        .map(|row| {
            let role = int(row, 1)?;
            let role =
                role_of(role).ok_or_else(|| PgError::unreadable(format!("there is no role {role}")))?;
            Ok(MessageHead {
                seq: count(row, 0)?,
                speaker: speaker_of(role, int(row, 2)?),
                tokens: count(row, 3)?,
                at_ms: int(row, 4)?,
            })
        })
        .collect()
}

/// Everything that was said up to and including a session.
pub(super) fn transcript(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<StoredMessage>> {
    let session = require_session(tx, owner, id)?;
    let mut runs = Vec::new();
    for stretch in line_of(tx, owner, LinePart::through(&session))?.iter().rev() {
        for member in members_of(tx, owner, stretch.chain)? {
            let Some(end) = stretch.end_in(&member) else { continue };
            runs.push((stored(member.ordinal), member.id, 0, stored(end)));
        }
    }
    Ok(views::runs_at(tx, owner, &runs)?.into_iter().flatten().collect())
}
