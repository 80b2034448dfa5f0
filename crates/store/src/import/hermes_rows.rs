//! Reads the rows of Hermes' database: sessions, messages, usage.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Value, json};
use throughline_tokens::Usage;

use crate::call::UsageKind;
use crate::ids::Millis;

use super::conversation::ForeignCall;

/// A session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionRow {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) branched_from: Option<String>,
    pub(super) is_delegate: bool,
    pub(super) model: Option<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) project: Option<String>,
    pub(super) title: Option<String>,
    pub(super) started_ms: Millis,
    pub(super) ended_ms: Option<Millis>,
    pub(super) end_reason: Option<String>,
    provider: String,
    /// Running totals, for versions that have no others.
    totals: HermesUsage,
}

/// Counters that grow with a session.
#[derive(Clone, Copy, Debug, Default)]
struct HermesUsage {
    calls: u64,
    usage: Usage,
    actual_usd: f64,
    estimated_usd: f64,
}

/// A message.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageRow {
    pub(super) role: String,
    pub(super) content: Option<String>,
    pub(super) sent_content: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_calls: Option<String>,
    pub(super) tool_name: Option<String>,
    /// Members of an assistant message stored in separate columns: name, value as JSON text or plain.
    pub(super) reasoning: Option<String>,
    pub(super) reasoning_content: Option<String>,
    /// Like [`reasoning`](Self::reasoning), but JSON.
    pub(super) details: Vec<(&'static str, String)>,
    pub(super) at_ms: Millis,
    /// Whether the model is shown it now.
    pub(super) is_active: bool,
    /// Whether a compaction archived it.
    pub(super) is_archived: bool,
}

/// The existing columns of a table; the others are selected as `NULL`.
struct Columns(Vec<String>);

impl Columns {
    fn of(conn: &Connection, table: &str) -> Result<Self, String> {
        let mut statement =
            conn.prepare("SELECT name FROM pragma_table_info(?1)").map_err(|error| error.to_string())?;
        let names = statement.query_map([table], |row| row.get(0)).map_err(|error| error.to_string())?;
        names.collect::<rusqlite::Result<_>>().map(Self).map_err(|error| error.to_string())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Returns a select list, with `NULL` for missing columns.
    fn select(&self, names: &[&str]) -> String {
        let term = |name: &&str| if self.has(name) { format!("\"{name}\"") } else { "NULL".to_owned() };
        names.iter().map(term).collect::<Vec<_>>().join(", ")
    }
}

/// Returns all sessions in the order in which they started.
pub(super) fn read_sessions(conn: &Connection) -> Result<Vec<SessionRow>, String> {
    const NAMES: [&str; 23] = [
        "id",
        "parent_session_id",
        "model",
        "model_config",
        "system_prompt",
        "started_at",
        "ended_at",
        "end_reason",
        "cwd",
        "git_repo_root",
        "title",
        "billing_provider",
        "billing_base_url",
        "billing_mode",
        "api_call_count",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "actual_cost_usd",
        "estimated_cost_usd",
        "display_name",
    ];
    let columns = Columns::of(conn, "sessions")?;
    if !(columns.has("id") && Columns::of(conn, "messages")?.has("session_id")) {
        return Err("it is not a database of Hermes: it has no sessions with messages".to_owned());
    }
    let order = if columns.has("started_at") { "started_at, rowid" } else { "rowid" };
    let sql = format!("SELECT {} FROM sessions ORDER BY {order}", columns.select(&NAMES));
    rows(conn, &sql, [], |row| {
        let config: Value =
            text(row, 3).and_then(|config| serde_json::from_str(&config).ok()).unwrap_or_default();
        let marker = |name: &str| config.get(name).filter(|value| !value.is_null());
        SessionRow {
            id: text(row, 0).unwrap_or_default(),
            parent: text(row, 1),
            branched_from: marker("_branched_from").map(|from| from.as_str().unwrap_or_default().to_owned()),
            is_delegate: marker("_delegate_from").is_some(),
            model: text(row, 2),
            system_prompt: text(row, 4),
            project: text(row, 9).or_else(|| text(row, 8)),
            title: text(row, 10),
            started_ms: millis(row, 5).unwrap_or_default(),
            ended_ms: millis(row, 6),
            end_reason: text(row, 7),
            provider: provider_of(text(row, 11), text(row, 12), text(row, 13)),
            totals: totals(row, 14),
        }
    })
}

/// Returns the messages of a session in the order in which they were written, including those that the user withdrew.
pub(super) fn read_messages(conn: &Connection, session: &str) -> Result<Vec<MessageRow>, String> {
    const NAMES: [&str; 14] = [
        "role",
        "content",
        "api_content",
        "tool_call_id",
        "tool_calls",
        "tool_name",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "codex_reasoning_items",
        "codex_message_items",
        "timestamp",
        "active",
        "compacted",
    ];
    let columns = Columns::of(conn, "messages")?;
    let order = if columns.has("id") { "id" } else { "rowid" };
    let sql =
        format!("SELECT {} FROM messages WHERE session_id = ?1 ORDER BY {order}", columns.select(&NAMES));
    rows(conn, &sql, [session], |row| MessageRow {
        role: text(row, 0).unwrap_or_default(),
        content: raw_text(row, 1),
        sent_content: text(row, 2),
        tool_call_id: text(row, 3),
        tool_calls: text(row, 4),
        tool_name: text(row, 5),
        reasoning: text(row, 6),
        reasoning_content: raw_text(row, 7),
        details: [8, 9, 10].into_iter().filter_map(|at| Some((*NAMES.get(at)?, text(row, at)?))).collect(),
        at_ms: millis(row, 11).unwrap_or_default(),
        is_active: number(row, 12) != Some(0.0),
        is_archived: number(row, 13).is_some_and(|value| value != 0.0),
    })
}

/// Returns the usage of a session, one call for each model, seller and task, because Hermes has only sums.
pub(super) fn read_calls(
    conn: &Connection,
    session: &SessionRow,
    first_message: usize,
) -> Result<Vec<ForeignCall>, String> {
    const NAMES: [&str; 15] = [
        "model",
        "billing_provider",
        "billing_base_url",
        "billing_mode",
        "task",
        "api_call_count",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "actual_cost_usd",
        "estimated_cost_usd",
        "first_seen",
        "last_seen",
    ];
    let columns = Columns::of(conn, "session_model_usage")?;
    let mut calls = Vec::new();
    if columns.has("session_id") {
        let sql = format!(
            "SELECT {} FROM session_model_usage WHERE session_id = ?1 ORDER BY rowid",
            columns.select(&NAMES)
        );
        calls = rows(conn, &sql, [session.id.as_str()], |row| {
            let model = text(row, 0).unwrap_or_default();
            let names = [0, 1, 2, 3, 4].map(|at| text(row, at).unwrap_or_default()).join("|");
            let mut call = call_of(format!("{}|{names}", session.id), &totals(row, 5));
            call.model = model;
            call.provider = provider_of(text(row, 1), text(row, 2), text(row, 3));
            call.task = text(row, 4).unwrap_or_else(|| "chat".to_owned());
            call.at_ms = millis(row, 14).or(millis(row, 13)).unwrap_or(session.started_ms);
            call
        })?;
    }
    if calls.is_empty() {
        let mut call = call_of(format!("{}|session", session.id), &session.totals);
        call.model = session.model.clone().unwrap_or_default();
        call.provider = session.provider.clone();
        call.at_ms = session.ended_ms.unwrap_or(session.started_ms);
        calls.push(call);
    }
    calls.retain(|call| call.usage.total() > 0);
    for call in &mut calls {
        call.booked_at = Some(first_message);
    }
    Ok(calls)
}

fn call_of(key: String, totals: &HermesUsage) -> ForeignCall {
    let raw = json!({
        "api_call_count": totals.calls,
        "input_tokens": totals.usage.input,
        "output_tokens": totals.usage.output,
        "cache_read_tokens": totals.usage.cache_read,
        "cache_write_tokens": totals.usage.cache_write,
        "reasoning_tokens": totals.usage.reasoning,
    });
    ForeignCall {
        key,
        model: String::new(),
        provider: String::new(),
        task: "chat".to_owned(),
        usage: totals.usage,
        cache_write_1h: 0,
        usage_kind: UsageKind::Measured,
        usage_raw: Some(raw.to_string()),
        // The amount charged precedes a list price; Hermes' estimate does not.
        cost_micro_usd: micro_usd(totals.actual_usd),
        reckoned_micro_usd: micro_usd(totals.estimated_usd),
        at_ms: 0,
        booked_at: None,
        answer: None,
        sum_of_calls: Some(totals.calls.max(1)),
    }
}

fn micro_usd(usd: f64) -> Option<u64> {
    (usd.is_finite() && usd > 0.0).then(|| (usd * 1e6).round() as u64)
}

/// Returns the provider. A subscription is named as such, so that its cost is not counted twice.
fn provider_of(provider: Option<String>, base_url: Option<String>, mode: Option<String>) -> String {
    match (mode.as_deref(), provider.as_deref()) {
        (Some("subscription_included"), _) => "openai-codex".to_owned(),
        (_, None | Some("custom")) => base_url.or(provider).unwrap_or_default(),
        _ => provider.unwrap_or_default(),
    }
}

/// Reads totals from a column on: calls, five buckets, charged, estimated.
fn totals(row: &Row<'_>, from: usize) -> HermesUsage {
    let count =
        |at: usize| number(row, from + at).filter(|value| *value > 0.0).map_or(0, |value| value as u64);
    let usd = |at: usize| number(row, from + at).unwrap_or_default();
    HermesUsage {
        calls: count(0),
        usage: Usage {
            input: count(1),
            output: count(2),
            cache_read: count(3),
            cache_write: count(4),
            reasoning: count(5).min(count(2)),
        },
        actual_usd: usd(6),
        estimated_usd: usd(7),
    }
}

fn rows<T>(
    conn: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> T,
) -> Result<Vec<T>, String> {
    let mut statement = conn.prepare(sql).map_err(|error| error.to_string())?;
    let found = statement.query_map(parameters, |row| Ok(read(row))).map_err(|error| error.to_string())?;
    found.collect::<rusqlite::Result<_>>().map_err(|error| error.to_string())
}

/// Returns a value as text, whatever its type; `None` for an empty one.
fn text(row: &Row<'_>, at: usize) -> Option<String> {
    raw_text(row, at).filter(|text| !text.is_empty())
}

fn raw_text(row: &Row<'_>, at: usize) -> Option<String> {
    match row.get_ref(at).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn number(row: &Row<'_>, at: usize) -> Option<f64> {
    match row.get_ref(at).ok()? {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// Converts Hermes' seconds.
fn millis(row: &Row<'_>, at: usize) -> Option<Millis> {
    number(row, at).filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1_000.0).round() as Millis)
}

#[cfg(test)]
#[path = "hermes_rows_tests.rs"]
mod tests;
