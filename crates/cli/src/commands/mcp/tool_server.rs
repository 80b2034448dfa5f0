//! The server side of the Model Context Protocol over a pair of streams, for tools only: JSON-RPC, one message per line.
//!
//! Calls run concurrently, so a slow call does not block others, and a client may cancel them. Not for: resources, prompts, or requests
//! to the client. The SDK is not used because it brings 17 crates for these four methods.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use throughline_engine::ToolSchema;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Protocol versions in which these methods are the same, oldest first. Clients with another version are offered the newest.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The longest accepted line. Arguments of these tools are short; a client that sends more is broken.
const LINE_BYTES: u64 = 16 * 1024 * 1024;
/// The most concurrent calls. At this number, no further line is read.
const CALLS_AT_ONCE: usize = 32;
/// The capacity of the queue of answers.
const ANSWERS_WAITING: usize = 64;

/// Error codes of JSON-RPC.
mod code {
    pub(super) const NOT_JSON: i64 = -32_700;
    pub(super) const NOT_A_REQUEST: i64 = -32_600;
    pub(super) const UNKNOWN_METHOD: i64 = -32_601;
    pub(super) const BAD_PARAMETERS: i64 = -32_602;
}

/// A set of tools to serve.
pub(super) trait Tools: Send + Sync + 'static {
    /// Advice to the model on their use.
    const INSTRUCTIONS: &'static str;

    /// The definitions of the tools.
    fn schemas(&self) -> Vec<ToolSchema>;

    /// Calls a tool.
    fn call(&self, name: &str, arguments: Map<String, Value>) -> impl Future<Output = ToolOutcome> + Send;
}

/// The outcome of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToolOutcome {
    Answered(String),
    /// The tool refused or failed; the model reads the reason.
    Refused(String),
    Unknown,
}

/// Answers a client until it closes its stream.
pub(super) async fn serve(
    tools: Arc<impl Tools>,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (answers, waiting) = mpsc::channel(ANSWERS_WAITING);
    let writing = tokio::spawn(write_lines(waiting, to));
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut running = Running::default();
    loop {
        line.clear();
        let read = (&mut from).take(LINE_BYTES + 1).read_until(b'\n', &mut line).await?;
        if read as u64 > LINE_BYTES {
            let _ = answers.send(too_long()).await;
            break;
        }
        if read == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => running.take(message, &tools, &answers).await,
            Err(error) => drop(answers.send(failure(&Value::Null, code::NOT_JSON, &error.to_string())).await),
        }
    }
    running.finish().await;
    drop(answers);
    writing.await.map_err(io::Error::other)?
}

/// Calls in progress, by the id of their request.
#[derive(Default)]
struct Running {
    tasks: JoinSet<()>,
    by_id: HashMap<String, AbortHandle>,
}

impl Running {
    async fn take(&mut self, message: Value, tools: &Arc<impl Tools>, answers: &mpsc::Sender<Value>) {
        if message["method"] == "notifications/cancelled" {
            if let Some(call) = self.by_id.remove(&message["params"]["requestId"].to_string()) {
                call.abort();
            }
            return;
        }
        while self.tasks.len() >= CALLS_AT_ONCE && self.tasks.join_next().await.is_some() {}
        self.by_id.retain(|_, call| !call.is_finished());
        let id = message["id"].to_string();
        let (tools, answers) = (Arc::clone(tools), answers.clone());
        let call = self.tasks.spawn(async move {
            if let Some(answer) = answer(message, tools.as_ref()).await {
                // A client that disconnected needs no answer.
                let _ = answers.send(answer).await;
            }
        });
        self.by_id.insert(id, call);
    }

    async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The answer to a message, or to an array of them; `None` for notifications and responses.
async fn answer(message: Value, tools: &impl Tools) -> Option<Value> {
    let Value::Array(batch) = message else { return answer_one(message, tools).await };
    if batch.is_empty() {
        return Some(failure(&Value::Null, code::NOT_A_REQUEST, "the array is empty"));
    }
    let mut answers = Vec::new();
    for message in batch {
        answers.extend(answer_one(message, tools).await);
    }
    (!answers.is_empty()).then_some(Value::Array(answers))
}

async fn answer_one(mut message: Value, tools: &impl Tools) -> Option<Value> {
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    let id = message.get("id").cloned();
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        return (!is_answer).then(|| {
            failure(&id.unwrap_or_default(), code::NOT_A_REQUEST, "`method` is missing or not a text")
        });
    };
    let id = id?;
    Some(match method {
        "initialize" => success(&id, introduction::<_>(&params, tools)),
        "ping" => success(&id, json!({})),
        "tools/list" => success(&id, list(tools)),
        "tools/call" => called(&id, params, tools).await,
        _ => failure(&id, code::UNKNOWN_METHOD, &format!("there is no method `{method}`")),
    })
}

fn introduction<T: Tools>(params: &Value, _: &T) -> Value {
    let wanted = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.into_iter().rev().find(|version| *version == wanted).unwrap_or(VERSIONS[3]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "throughline", "version": env!("CARGO_PKG_VERSION") },
        "instructions": T::INSTRUCTIONS,
    })
}

fn list(tools: &impl Tools) -> Value {
    let described = tools.schemas().into_iter().map(
        |tool| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.parameters }),
    );
    json!({ "tools": described.collect::<Vec<_>>() })
}

async fn called(id: &Value, mut params: Value, tools: &impl Tools) -> Value {
    let arguments = match params.get_mut("arguments").map(Value::take).unwrap_or_default() {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        _ => return failure(id, code::BAD_PARAMETERS, "`arguments` is not an object"),
    };
    let Some(name) = params["name"].as_str() else {
        return failure(id, code::BAD_PARAMETERS, "`name` is missing or not a text");
    };
    let (text, is_error) = match tools.call(name, arguments).await {
        ToolOutcome::Answered(text) => (text, false),
        ToolOutcome::Refused(text) => (text, true),
        ToolOutcome::Unknown => {
            return failure(id, code::BAD_PARAMETERS, &format!("there is no tool `{name}`"));
        }
    };
    success(id, json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

fn success(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn too_long() -> Value {
    failure(&Value::Null, code::NOT_A_REQUEST, &format!("a line has more than {LINE_BYTES} bytes"))
}

async fn write_lines(mut waiting: mpsc::Receiver<Value>, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(answer) = waiting.recv().await {
        to.write_all(format!("{answer}\n").as_bytes()).await?;
        to.flush().await?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "tool_server_tests.rs"]
mod tests;
