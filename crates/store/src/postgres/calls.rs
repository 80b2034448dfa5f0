//! Calls and preambles, and what calls and tools add up to.

use std::collections::{BTreeMap, HashSet};

use throughline_tokens::Usage;
use tokio_postgres::Row;

use crate::call::{
    CallFilter, MISS_REASONS, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageKind,
    UsageTotal,
};
use crate::coding::int as stored;
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};

use super::connection::{Durability, ServerPool, Tx, WrittenAtOnce};
use super::error::{PgError, PgResult};
use super::rows::{chain_of, names, require_session, session, session_columns, unknown, write_progress};
use super::value::{self, SqlValue, count, flag, int, opt_count, opt_text, text, values};

const COMPRESSION_LEVEL: i32 = 3;
/// No part of a preamble is larger: a request is not.
const MAX_PART_BYTES: usize = 1 << 30;

/// Whether a preamble is stored.
pub(super) fn has_preamble(tx: &Tx<'_>, id: &PreambleId) -> PgResult<bool> {
    flag(&tx.query_one("SELECT EXISTS (SELECT 1 FROM preambles WHERE id = $1)", values![&id.0])?, 0)
}

/// Has a preamble stored; the same one, and the same part of one, is stored once.
pub(super) fn put_preamble(tx: &Tx<'_>, preamble: &StoredPreamble) -> PgResult<()> {
    let mut hashes: Vec<Option<Vec<u8>>> = Vec::new();
    let mut parts: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for part in [&preamble.system, &preamble.tools, &preamble.parameters] {
        let Some(text) = part else {
            hashes.push(None);
            continue;
        };
        let hash = blake3::hash(text.as_bytes()).as_bytes().to_vec();
        let packed = zstd::bulk::compress(text.as_bytes(), COMPRESSION_LEVEL).map_err(|error| {
            StoreError::Database { what: "packing a part of a preamble", source: Box::new(error) }
        })?;
        parts.insert(hash.clone(), packed);
        hashes.push(Some(hash));
    }
    // In the order of their hashes, so that two who store the same parts do not wait for each other.
    let (names, bodies): (Vec<Vec<u8>>, Vec<Vec<u8>>) = parts.into_iter().unzip();
    tx.later(
        "INSERT INTO preamble_parts (hash, bytes) SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT DO NOTHING",
        vec![SqlValue::Blobs(names), SqlValue::Blobs(bodies)],
    );
    let mut values = values![&preamble.id().0];
    values.extend(hashes.into_iter().map(SqlValue::Bytes));
    tx.later(
        "INSERT INTO preambles (id, system, tools, parameters) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        values,
    );
    Ok(())
}

pub(super) fn preamble(tx: &Tx<'_>, id: &PreambleId) -> PgResult<Option<StoredPreamble>> {
    let row = tx.query_opt(
        "SELECT (SELECT bytes FROM preamble_parts WHERE hash = system), \
         (SELECT bytes FROM preamble_parts WHERE hash = tools), \
         (SELECT bytes FROM preamble_parts WHERE hash = parameters) FROM preambles WHERE id = $1",
        values![&id.0],
    )?;
    let Some(row) = row else { return Ok(None) };
    let found = StoredPreamble { system: part(&row, 0)?, tools: part(&row, 1)?, parameters: part(&row, 2)? };
    // A part that is gone or altered would quietly make another request of it.
    if found.id() == *id {
        Ok(Some(found))
    } else {
        Err(PgError::unreadable("a preamble is not what it was"))
    }
}

fn part(row: &Row, at: usize) -> PgResult<Option<String>> {
    let Some(packed) = value::opt_bytes(row, at)? else { return Ok(None) };
    let size = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten().unwrap_or_default();
    let size = usize::try_from(size).unwrap_or(MAX_PART_BYTES).min(MAX_PART_BYTES);
    let text = zstd::bulk::decompress(packed, size).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Some).ok_or_else(|| PgError::unreadable("a part of a preamble cannot be read"))
}

pub(super) fn record(tx: &Tx<'_>, owner: &Owner, id: &SessionId, calls: &[NewCall]) -> PgResult<u64> {
    let answers = tx.queries(vec![
        (
            concat!(
                "SELECT ",
                session_columns!(),
                " FROM sessions WHERE owner = $1 AND id = $2 FOR NO KEY UPDATE"
            ),
            values![owner, id],
        ),
        ("SELECT nextval('call_numbers') FROM generate_series(1, $1)", values![calls.len() as i64]),
    ])?;
    let [sessions, numbers] = answers.as_slice() else { return Err(unknown(id)) };
    let mut session = session(sessions.first().ok_or_else(|| unknown(id))?)?;
    let numbers = numbers.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
    let added = insert(tx, owner, session.ordinal, calls, &numbers)?;
    for (call, _) in calls.iter().zip(&numbers).filter(|(_, number)| added.contains(number)) {
        let counters = &mut session.counters;
        counters.calls += 1;
        counters.usage += call.usage;
        match call.cost_micro_usd {
            Some(cost) => counters.cost_micro_usd = counters.cost_micro_usd.saturating_add(cost),
            None => counters.unpriced_calls += 1,
        }
        session.active_ms = session.active_ms.max(call.at_ms);
    }
    if !added.is_empty() {
        write_progress(tx, &session);
    }
    Ok(added.len() as u64)
}

/// Records one call. Returns the number of sessions found and of calls recorded; nothing is recorded if another call has the key.
const RECORD_ONE: &str = "SELECT * FROM record_call($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
     $18, $19, $20, $21, $22, $23, $24)";

/// Records a call in one exchange. Returns 0 if another call has its key.
pub(super) fn record_one(server: &ServerPool, owner: &Owner, id: &SessionId, call: &NewCall) -> Result<u64> {
    let values = values![
        owner,
        id,
        call.key.as_deref(),
        &call.model,
        &call.provider,
        &call.task,
        call.usage.input,
        call.usage.output,
        call.usage.cache_read,
        call.usage.cache_write,
        call.usage.reasoning,
        call.usage_kind == UsageKind::Estimated,
        call.usage_raw.as_deref(),
        call.cost_micro_usd,
        call.uncached_micro_usd,
        call.at_ms,
        call.latency_ms,
        call.first_token_ms,
        call.error.as_deref(),
        call.preamble.as_ref().map(|preamble| preamble.0.as_str()),
        call.sent_to_seq,
        call.cache_miss.as_deref(),
        call.access_token.as_deref(),
    ];
    let rows = match server.write_at_once("recording a call", Durability::Light, RECORD_ONE, &values)? {
        WrittenAtOnce::Answered(rows) => rows,
        WrittenAtOnce::Unanswered => return Ok(1),
    };
    let counts = rows.first().map(|row| Ok((count(row, 0)?, count(row, 1)?)));
    match counts.transpose().map_err(|error: PgError| server.failure(error, "recording a call"))? {
        Some((1, recorded)) => Ok(recorded),
        _ => Err(StoreError::UnknownSession { reference: id.to_string() }),
    }
}

/// Adds calls but for those whose keys are known already; the numbers of those that were added.
fn insert(
    tx: &Tx<'_>,
    owner: &Owner,
    session: u64,
    calls: &[NewCall],
    numbers: &[i64],
) -> PgResult<HashSet<i64>> {
    if calls.is_empty() {
        return Ok(HashSet::new());
    }
    let numbers_of =
        |number: &dyn Fn(&NewCall) -> u64| SqlValue::ints(calls.iter().map(|call| stored(number(call))));
    let maybe = |number: &dyn Fn(&NewCall) -> Option<u64>| {
        SqlValue::Ints(calls.iter().map(|call| number(call).map(stored)).collect())
    };
    let texts =
        |text: &dyn Fn(&NewCall) -> &str| SqlValue::texts(calls.iter().map(|call| text(call).to_owned()));
    let maybe_texts = |text: &dyn Fn(&NewCall) -> Option<String>| {
        SqlValue::Texts(calls.iter().map(|call| text(call).map(|text| value::stored_text(&text))).collect())
    };
    let rows = tx.query(
        "INSERT INTO calls (owner, session, id, key, model, provider, task, input, output, cache_read, cache_write, \
         reasoning, is_estimated, usage_raw, cost_micro_usd, uncached_micro_usd, at_ms, latency_ms, first_token_ms, \
         error, preamble, sent_to_seq, cache_miss, access_token) SELECT $1, $2, c.* FROM unnest($3::int8[], $4::text[], $5::text[], \
         $6::text[], $7::text[], $8::int8[], $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::bool[], \
         $14::text[], $15::int8[], $16::int8[], $17::int8[], $18::int8[], $19::int8[], $20::text[], $21::text[], \
         $22::int8[], $23::text[], $24::text[]) AS c ON CONFLICT DO NOTHING RETURNING id",
        vec![
            owner.into(),
            session.into(),
            SqlValue::ints(numbers.iter().copied()),
            maybe_texts(&|call| call.key.clone()),
            texts(&|call| &call.model),
            texts(&|call| &call.provider),
            texts(&|call| &call.task),
            numbers_of(&|call| call.usage.input),
            numbers_of(&|call| call.usage.output),
            numbers_of(&|call| call.usage.cache_read),
            numbers_of(&|call| call.usage.cache_write),
            numbers_of(&|call| call.usage.reasoning),
            SqlValue::Bools(calls.iter().map(|call| call.usage_kind == UsageKind::Estimated).collect()),
            maybe_texts(&|call| call.usage_raw.clone()),
            maybe(&|call| call.cost_micro_usd),
            maybe(&|call| call.uncached_micro_usd),
            SqlValue::ints(calls.iter().map(|call| call.at_ms)),
            maybe(&|call| call.latency_ms),
            maybe(&|call| call.first_token_ms),
            maybe_texts(&|call| call.error.clone()),
            maybe_texts(&|call| call.preamble.as_ref().map(|preamble| preamble.0.clone())),
            maybe(&|call| call.sent_to_seq),
            maybe_texts(&|call| call.cache_miss.clone()),
            maybe_texts(&|call| call.access_token.clone()),
        ],
    )?;
    rows.iter().map(|row| int(row, 0)).collect()
}

/// Calls of an owner with the ids of their sessions. Conditions follow.
const CALLS: &str = "SELECT c.id, s.id, c.key, c.model, c.provider, c.task, c.input, c.output, c.cache_read, c.cache_write, \
     c.reasoning, c.is_estimated, c.usage_raw, c.cost_micro_usd, c.uncached_micro_usd, c.at_ms, c.latency_ms, \
     c.first_token_ms, c.error, c.preamble, c.sent_to_seq, c.cache_miss, c.access_token FROM calls c \
     JOIN sessions s ON s.owner = $1 AND s.ordinal = c.session WHERE c.owner = $1";

fn call(row: &Row) -> PgResult<StoredCall> {
    Ok(StoredCall {
        id: count(row, 0)?,
        session: SessionId::from_text(text(row, 1)?),
        call: NewCall {
            key: opt_text(row, 2)?,
            model: text(row, 3)?,
            provider: text(row, 4)?,
            task: text(row, 5)?,
            usage: Usage {
                input: count(row, 6)?,
                output: count(row, 7)?,
                cache_read: count(row, 8)?,
                cache_write: count(row, 9)?,
                reasoning: count(row, 10)?,
            },
            usage_kind: if flag(row, 11)? { UsageKind::Estimated } else { UsageKind::Measured },
            usage_raw: opt_text(row, 12)?,
            cost_micro_usd: opt_count(row, 13)?,
            uncached_micro_usd: opt_count(row, 14)?,
            at_ms: int(row, 15)?,
            latency_ms: opt_count(row, 16)?,
            first_token_ms: opt_count(row, 17)?,
            error: opt_text(row, 18)?,
            preamble: opt_text(row, 19)?.map(PreambleId),
            sent_to_seq: opt_count(row, 20)?,
            cache_miss: opt_text(row, 21)?,
            access_token: opt_text(row, 22)?,
        },
    })
}

/// The newest call of an owner that was answered under a key.
pub(super) fn by_key(tx: &Tx<'_>, owner: &Owner, key: &str) -> PgResult<Option<StoredCall>> {
    let row = tx.query_opt(
        format!("{CALLS} AND c.key = $2 AND c.error IS NULL ORDER BY c.id DESC LIMIT 1"),
        values![owner, key],
    )?;
    row.as_ref().map(call).transpose()
}

pub(super) fn of_chain(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<StoredCall>> {
    let chain = require_session(tx, owner, id)?.chain;
    let rows = tx.query(format!("{CALLS} AND s.chain = $2 ORDER BY c.id"), values![owner, chain])?;
    rows.iter().map(call).collect()
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What calls are grouped by, as an expression of the database.
fn group_expression(by: UsageBy) -> String {
    match by {
        UsageBy::Everything => "''::text".to_owned(),
        // The number of the day, rounded down also before 1970.
        UsageBy::Day { offset_minutes } => {
            let shifted = format!("(c.at_ms + ({}))", i64::from(offset_minutes) * 60_000);
            format!("(({shifted} - (({shifted} % {DAY_MS}) + {DAY_MS}) % {DAY_MS}) / {DAY_MS})")
        }
        UsageBy::Model => "c.model".to_owned(),
        UsageBy::Project => "coalesce(s.project, '')".to_owned(),
        UsageBy::Task => "c.task".to_owned(),
        UsageBy::Program => "s.program".to_owned(),
        UsageBy::AccessToken => "coalesce(c.access_token, '')".to_owned(),
        UsageBy::CacheMiss => {
            let cases = MISS_REASONS
                .iter()
                .map(|(part, reason)| format!("WHEN strpos(c.cache_miss, '{part}') > 0 THEN '{reason}' "));
            format!("CASE {}ELSE coalesce(c.cache_miss, '') END", cases.collect::<String>())
        }
    }
}

/// A sum in two columns, the high and the low part of every number apart: absurd figures must not overflow it.
fn sum_columns(expression: &str) -> String {
    format!("sum(coalesce({expression}, 0) >> 20)::int8, sum(coalesce({expression}, 0) & 1048575)::int8")
}

fn get_sum(row: &Row, column: usize) -> PgResult<u64> {
    Ok(count(row, column)?.saturating_mul(1 << 20).saturating_add(count(row, column + 1)?))
}

pub(super) fn usage(
    tx: &Tx<'_>,
    owner: &Owner,
    filter: &CallFilter,
    by: UsageBy,
) -> PgResult<Vec<UsageTotal>> {
    let sums = [
        "c.input",
        "c.output",
        "c.cache_read",
        "c.cache_write",
        "c.reasoning",
        "c.cost_micro_usd",
        // Without a price there is nothing to compare; without a figure of its own, the cache changed nothing.
        "CASE WHEN c.cost_micro_usd IS NULL THEN 0 ELSE coalesce(c.uncached_micro_usd, c.cost_micro_usd) END",
        "c.latency_ms",
    ]
    .map(sum_columns)
    .join(", ");
    let mut sql = format!(
        "SELECT {} AS name, count(*), count(c.error), count(*) FILTER (WHERE c.is_estimated), \
         count(*) FILTER (WHERE c.cost_micro_usd IS NULL), count(DISTINCT c.session), {sums} \
         FROM calls c JOIN sessions s ON s.owner = $1 AND s.ordinal = c.session WHERE c.owner = $1",
        group_expression(by)
    );
    let mut values = values![owner];
    if let Some(id) = &filter.chain_of {
        values.push(chain_of(tx, owner, id)?.into());
        sql.push_str(&format!(" AND s.chain = ${}", values.len()));
    }
    for (bound, comparison) in [(filter.since_ms, ">="), (filter.until_ms, "<")] {
        if let Some(bound) = bound {
            values.push(bound.into());
            sql.push_str(&format!(" AND c.at_ms {comparison} ${}", values.len()));
        }
    }
    sql.push_str(" GROUP BY 1 ORDER BY 1");
    let rows = tx.query(sql, values)?;
    rows.iter()
        .map(|row| {
            Ok(UsageTotal {
                group: match by {
                    UsageBy::Day { .. } => UsageBy::day_name(int(row, 0)?.saturating_mul(DAY_MS), 0),
                    _ => text(row, 0)?,
                },
                calls: count(row, 1)?,
                failed: count(row, 2)?,
                estimated: count(row, 3)?,
                unpriced: count(row, 4)?,
                sessions: count(row, 5)?,
                usage: Usage {
                    input: get_sum(row, 6)?,
                    output: get_sum(row, 8)?,
                    cache_read: get_sum(row, 10)?,
                    cache_write: get_sum(row, 12)?,
                    reasoning: get_sum(row, 14)?,
                },
                cost_micro_usd: get_sum(row, 16)?,
                uncached_micro_usd: get_sum(row, 18)?,
                latency_ms: get_sum(row, 20)?,
            })
        })
        .collect()
}

pub(super) fn tool_counts(tx: &Tx<'_>, owner: &Owner, since_ms: Option<Millis>) -> PgResult<Vec<ToolCount>> {
    // Messages and tokens by the list of tools as it is stored: there are few different ones.
    let rows = tx.query(
        "SELECT tools, count(*), least(sum(tokens), 9223372036854775807)::int8 FROM messages \
         WHERE owner = $1 AND at_ms >= $2 AND tools IS NOT NULL GROUP BY tools",
        values![owner, since_ms.unwrap_or(Millis::MIN)],
    )?;
    let mut by_tool: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in &rows {
        let (messages, tokens) = (count(row, 1)?, count(row, 2)?);
        for tool in names(opt_text(row, 0)?.as_deref())? {
            let counts = by_tool.entry(tool).or_default();
            counts.0 += messages;
            counts.1 = counts.1.saturating_add(tokens);
        }
    }
    let mut counts: Vec<ToolCount> =
        by_tool.into_iter().map(|(tool, (messages, tokens))| ToolCount { tool, messages, tokens }).collect();
    counts.sort_by(|one, other| other.messages.cmp(&one.messages).then_with(|| one.tool.cmp(&other.tool)));
    Ok(counts)
}
