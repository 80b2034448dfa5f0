//! Calls and preambles, and the totals of calls and tools.

use std::collections::{BTreeMap, HashMap};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params_from_iter};
use throughline_tokens::Usage;

use crate::call::{
    CallFilter, MISS_REASONS, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageKind,
    UsageTotal,
};
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::session::Session;

use super::error::{TxError, TxResult};
use super::rows::{count, int, names, require_session, write_progress};
use super::sessions::SessionIds;

const COMPRESSION_LEVEL: i32 = 3;
/// The maximum size of a preamble part, which exceeds that of a request.
const MAX_PART_BYTES: usize = 1 << 30;

pub(super) fn put_preamble(conn: &Connection, preamble: &StoredPreamble) -> TxResult<PreambleId> {
    let id = preamble.id();
    let is_known: bool = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM preambles WHERE id = ?1)")?
        .query_row([&id.0], |row| row.get(0))?;
    if !is_known {
        let system = put_part(conn, preamble.system.as_deref())?;
        let tools = put_part(conn, preamble.tools.as_deref())?;
        let parameters = put_part(conn, preamble.parameters.as_deref())?;
        conn.prepare_cached("INSERT INTO preambles (id, system, tools, parameters) VALUES (?1, ?2, ?3, ?4)")?
            .execute((&id.0, system, tools, parameters))?;
    }
    Ok(id)
}

/// Stores a part of a preamble under its hash, once, and returns the hash.
fn put_part(conn: &Connection, part: Option<&str>) -> TxResult<Option<[u8; 32]>> {
    let Some(text) = part else { return Ok(None) };
    let hash = *blake3::hash(text.as_bytes()).as_bytes();
    let is_known: bool = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM preamble_parts WHERE hash = ?1)")?
        .query_row([hash], |row| row.get(0))?;
    if !is_known {
        let bytes = zstd::bulk::compress(text.as_bytes(), COMPRESSION_LEVEL).map_err(unpackable)?;
        conn.prepare_cached("INSERT INTO preamble_parts (hash, bytes) VALUES (?1, ?2)")?
            .execute((hash, bytes))?;
    }
    Ok(Some(hash))
}

fn unpackable(error: std::io::Error) -> TxError {
    TxError::unreadable(format!("a part of a preamble: {error}"))
}

pub(super) fn preamble(conn: &Connection, id: &PreambleId) -> TxResult<Option<StoredPreamble>> {
    let parts: Option<[Option<Vec<u8>>; 3]> = conn
        .prepare_cached(
            "SELECT (SELECT bytes FROM preamble_parts WHERE hash = system), \
             (SELECT bytes FROM preamble_parts WHERE hash = tools), \
             (SELECT bytes FROM preamble_parts WHERE hash = parameters) FROM preambles WHERE id = ?1",
        )?
        .query_row([&id.0], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
        .optional()?;
    let Some([system, tools, parameters]) = parts else { return Ok(None) };
    let found = StoredPreamble { system: part(system)?, tools: part(tools)?, parameters: part(parameters)? };
    // A missing or altered part would silently change the request.
    if found.id() == *id {
        Ok(Some(found))
    } else {
        Err(TxError::unreadable("a preamble is not what it was"))
    }
}

fn part(bytes: Option<Vec<u8>>) -> TxResult<Option<String>> {
    let Some(bytes) = bytes else { return Ok(None) };
    let text = zstd::bulk::decompress(&bytes, content_bytes(&bytes)).map_err(unpackable)?;
    String::from_utf8(text).map(Some).map_err(|error| TxError::unreadable(error.to_string()))
}

fn content_bytes(compressed: &[u8]) -> usize {
    let size = zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten().unwrap_or_default();
    usize::try_from(size).unwrap_or(MAX_PART_BYTES).min(MAX_PART_BYTES)
}

pub(super) fn record(conn: &Connection, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> TxResult<u64> {
    let mut session = require_session(conn, owner, id)?;
    let mut added = 0;
    for call in calls {
        if !insert(conn, &session, &call)? {
            continue;
        }
        let counters = &mut session.counters;
        counters.calls += 1;
        counters.usage += call.usage;
        match call.cost_micro_usd {
            Some(cost) => counters.cost_micro_usd = counters.cost_micro_usd.saturating_add(cost),
            None => counters.unpriced_calls += 1,
        }
        session.active_ms = session.active_ms.max(call.at_ms);
        added += 1;
    }
    if added > 0 {
        write_progress(conn, &session)?;
    }
    Ok(added)
}

/// Adds a call, unless its key exists.
fn insert(conn: &Connection, session: &Session, call: &NewCall) -> rusqlite::Result<bool> {
    let inserted = conn
        .prepare_cached(
            "INSERT INTO calls (session, key, model, provider, task, input, output, cache_read, cache_write, \
             reasoning, is_estimated, usage_raw, cost_micro_usd, uncached_micro_usd, at_ms, latency_ms, \
             first_token_ms, error, preamble, sent_to_seq, cache_miss, access_token) \
             VALUES (:session, :key, :model, :provider, :task, :input, :output, :cache_read, :cache_write, \
             :reasoning, :is_estimated, :usage_raw, :cost, :uncached, :at_ms, :latency_ms, :first_token_ms, \
             :error, :preamble, :sent_to_seq, :cache_miss, :access_token) ON CONFLICT DO NOTHING",
        )?
        .execute(named_params! {
            ":session": int(session.ordinal),
            ":key": call.key,
            ":model": call.model,
            ":provider": call.provider,
            ":task": call.task,
            ":input": int(call.usage.input),
            ":output": int(call.usage.output),
            ":cache_read": int(call.usage.cache_read),
            ":cache_write": int(call.usage.cache_write),
            ":reasoning": int(call.usage.reasoning),
            ":is_estimated": call.usage_kind == UsageKind::Estimated,
            ":usage_raw": call.usage_raw,
            ":cost": call.cost_micro_usd.map(int),
            ":uncached": call.uncached_micro_usd.map(int),
            ":at_ms": call.at_ms,
            ":latency_ms": call.latency_ms.map(int),
            ":first_token_ms": call.first_token_ms.map(int),
            ":error": call.error,
            ":preamble": call.preamble.as_ref().map(|preamble| &preamble.0),
            ":sent_to_seq": call.sent_to_seq.map(int),
            ":cache_miss": call.cache_miss,
            ":access_token": call.access_token,
        })?;
    Ok(inserted > 0)
}

macro_rules! call_columns {
    () => {
        "calls.id, calls.session, key, calls.model, provider, task, calls.input, calls.output, \
         calls.cache_read, calls.cache_write, calls.reasoning, is_estimated, usage_raw, calls.cost_micro_usd, \
         uncached_micro_usd, at_ms, latency_ms, first_token_ms, error, preamble, sent_to_seq, cache_miss, \
         access_token"
    };
}

/// Returns the newest answered call of an owner with this key.
pub(super) fn by_key(conn: &Connection, owner: &Owner, key: &str) -> TxResult<Option<StoredCall>> {
    // Keys are indexed by session, so each session of the owner is looked up: about a microsecond each.
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        call_columns!(),
        " FROM sessions CROSS JOIN calls ON calls.session = ordinal AND key = ?1 \
         WHERE owner = ?2 AND error IS NULL ORDER BY calls.id DESC LIMIT 1"
    ))?;
    let mut rows = statement.query((key, owner.as_str()))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let session = SessionIds::default().get(conn, row.get(1)?)?;
    Ok(Some(StoredCall { id: row.get(0).map(count)?, session, call: call(row)? }))
}

pub(super) fn of_chain(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Vec<StoredCall>> {
    let chain = require_session(conn, owner, id)?.chain;
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        call_columns!(),
        " FROM sessions JOIN calls ON calls.session = ordinal WHERE chain = ?1 ORDER BY calls.id"
    ))?;
    let mut ids = SessionIds::default();
    let mut rows = statement.query([int(chain)])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let session = ids.get(conn, row.get(1)?)?;
        calls.push(StoredCall { id: row.get(0).map(count)?, session, call: call(row)? });
    }
    Ok(calls)
}

fn call(row: &Row<'_>) -> rusqlite::Result<NewCall> {
    let optional = |column: usize| row.get::<_, Option<i64>>(column).map(|number| number.map(count));
    Ok(NewCall {
        key: row.get(2)?,
        model: row.get(3)?,
        provider: row.get(4)?,
        task: row.get(5)?,
        usage: Usage {
            input: row.get(6).map(count)?,
            output: row.get(7).map(count)?,
            cache_read: row.get(8).map(count)?,
            cache_write: row.get(9).map(count)?,
            reasoning: row.get(10).map(count)?,
        },
        usage_kind: if row.get(11)? { UsageKind::Estimated } else { UsageKind::Measured },
        usage_raw: row.get(12)?,
        cost_micro_usd: optional(13)?,
        uncached_micro_usd: optional(14)?,
        at_ms: row.get(15)?,
        latency_ms: optional(16)?,
        first_token_ms: optional(17)?,
        error: row.get(18)?,
        preamble: row.get::<_, Option<String>>(19)?.map(PreambleId),
        sent_to_seq: optional(20)?,
        cache_miss: row.get(21)?,
        access_token: row.get(22)?,
    })
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the grouping of calls as an SQL expression.
fn group_expression(by: UsageBy) -> String {
    match by {
        UsageBy::Everything => "''".to_owned(),
        // The number of the day, rounded down, also before 1970.
        UsageBy::Day { offset_minutes } => {
            let shifted = format!("(at_ms + {})", i64::from(offset_minutes) * 60_000);
            format!("({shifted} - (({shifted} % {DAY_MS}) + {DAY_MS}) % {DAY_MS}) / {DAY_MS}")
        }
        UsageBy::Model => "calls.model".to_owned(),
        UsageBy::Project => "coalesce(project, '')".to_owned(),
        UsageBy::Task => "task".to_owned(),
        UsageBy::Program => "program".to_owned(),
        UsageBy::AccessToken => "coalesce(access_token, '')".to_owned(),
        UsageBy::CacheMiss => {
            let cases = MISS_REASONS
                .iter()
                .map(|(part, reason)| format!("WHEN instr(cache_miss, '{part}') > 0 THEN '{reason}' "));
            format!("CASE {}ELSE coalesce(cache_miss, '') END", cases.collect::<String>())
        }
    }
}

/// Returns a sum in two columns, of the high and low parts of every number, so that absurd figures do not overflow.
fn sum_columns(expression: &str) -> String {
    format!("sum(coalesce({expression}, 0) >> 20), sum(coalesce({expression}, 0) & 1048575)")
}

fn get_sum(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let (high, low): (i64, i64) = (row.get(column)?, row.get(column + 1)?);
    Ok(count(high).saturating_mul(1 << 20).saturating_add(count(low)))
}

pub(super) fn usage(
    conn: &Connection,
    owner: &Owner,
    filter: &CallFilter,
    by: UsageBy,
) -> TxResult<Vec<UsageTotal>> {
    let sums = [
        "calls.input",
        "calls.output",
        "calls.cache_read",
        "calls.cache_write",
        "calls.reasoning",
        "calls.cost_micro_usd",
        // Without a price there is nothing to compare; without a figure of its own, the cache made no difference.
        "iif(calls.cost_micro_usd IS NULL, 0, coalesce(uncached_micro_usd, calls.cost_micro_usd))",
        "latency_ms",
    ]
    .map(sum_columns)
    .join(", ");
    let mut sql = format!(
        "SELECT {} AS name, count(*), sum(error IS NOT NULL), sum(is_estimated), \
         sum(calls.cost_micro_usd IS NULL), count(DISTINCT calls.session), {sums} \
         FROM calls JOIN sessions ON ordinal = calls.session WHERE owner = ?1",
        group_expression(by)
    );
    let mut values = vec![Value::from(owner.as_str().to_owned())];
    if let Some(id) = &filter.chain_of {
        values.push(Value::from(int(require_session(conn, owner, id)?.chain)));
        sql.push_str(&format!(" AND chain = ?{}", values.len()));
    }
    for (bound, comparison) in [(filter.since_ms, ">="), (filter.until_ms, "<")] {
        if let Some(bound) = bound {
            values.push(Value::from(bound));
            sql.push_str(&format!(" AND at_ms {comparison} ?{}", values.len()));
        }
    }
    sql.push_str(" GROUP BY name ORDER BY name");
    let mut statement = conn.prepare_cached(&sql)?;
    let totals = statement
        .query_map(params_from_iter(values), |row| {
            Ok(UsageTotal {
                group: group_name(row, by)?,
                calls: row.get(1).map(count)?,
                failed: row.get(2).map(count)?,
                estimated: row.get(3).map(count)?,
                unpriced: row.get(4).map(count)?,
                sessions: row.get(5).map(count)?,
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
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(totals)
}

fn group_name(row: &Row<'_>, by: UsageBy) -> rusqlite::Result<String> {
    match by {
        UsageBy::Day { .. } => Ok(UsageBy::day_name(row.get::<_, i64>(0)?.saturating_mul(DAY_MS), 0)),
        _ => row.get(0),
    }
}

pub(super) fn tool_counts(
    conn: &Connection,
    owner: &Owner,
    since_ms: Option<Millis>,
) -> TxResult<Vec<ToolCount>> {
    let mut owned: HashMap<i64, bool> = HashMap::new();
    let mut is_owned = |session: i64| -> rusqlite::Result<bool> {
        if let Some(is_owned) = owned.get(&session) {
            return Ok(*is_owned);
        }
        let found: Option<bool> = conn
            .prepare_cached("SELECT owner = ?1 FROM sessions WHERE ordinal = ?2")?
            .query_row((owner.as_str(), session), |row| row.get(0))
            .optional()?;
        owned.insert(session, found.unwrap_or_default());
        Ok(found.unwrap_or_default())
    };
    // Messages and tokens by the stored list of tools: there are few different ones.
    let mut by_list: HashMap<String, (u64, u64)> = HashMap::new();
    let mut statement = conn.prepare_cached(
        "SELECT session, tools, tokens FROM messages WHERE tools IS NOT NULL AND at_ms >= ?1",
    )?;
    let mut rows = statement.query([since_ms.unwrap_or(Millis::MIN)])?;
    while let Some(row) = rows.next()? {
        if !is_owned(row.get(0)?)? {
            continue;
        }
        let tools = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let tokens: u64 = row.get(2).map(count)?;
        let (messages, sum) = match by_list.get_mut(tools) {
            Some(counts) => counts,
            None => by_list.entry(tools.to_owned()).or_default(),
        };
        *messages += 1;
        *sum = sum.saturating_add(tokens);
    }
    let mut by_tool: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (list, (messages, tokens)) in by_list {
        for tool in names(Some(&list))? {
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
