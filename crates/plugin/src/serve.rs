//! Serves an engine of this process to a host in another: the other side of the protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use throughline_engine::{ContextEngine, EngineError, Snapshot};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::line_reader::{ReadLine, read_line};
use crate::protocol::{
    Capabilities, InitializeParams, InitializeResult, PROTOCOL_VERSION, RpcError, RpcLine, answer_line, code,
    method,
};

/// The maximum length of a line that is read.
const LINE_BYTES: usize = 256 * 1024 * 1024;
/// The capacity of the queue of answers.
const ANSWERS_WAITING: usize = 64;

type MethodResult = Result<Box<RawValue>, RpcError>;

/// Serves a host until it closes its end. Compactions and their preparation run concurrently with everything else.
pub async fn serve_engine(
    engine: Arc<dyn ContextEngine>,
    version: &str,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (answers, waiting) = mpsc::channel(ANSWERS_WAITING);
    let writing = tokio::spawn(write_answers(waiting, to));
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut buffer = Vec::new();
    let mut beside = JoinSet::new();
    loop {
        match read_line(&mut from, &mut buffer, LINE_BYTES).await? {
            ReadLine::Line if buffer.iter().all(u8::is_ascii_whitespace) => continue,
            ReadLine::Line => {}
            ReadLine::TooLong => {
                let error =
                    RpcError::new(code::NOT_A_REQUEST, format!("a line has more than {LINE_BYTES} bytes"));
                let _ = answers.send((Value::Null, Err(error))).await;
                break;
            }
            ReadLine::End => break,
        }
        let asked = match read_request(&buffer) {
            Ok(Some(asked)) => asked,
            // An answer, although this side sends no requests.
            Ok(None) => continue,
            Err(error) => {
                let _ = answers.send((Value::Null, Err(error))).await;
                continue;
            }
        };
        let (engine, version) = (Arc::clone(&engine), version.to_owned());
        let answers = answers.clone();
        let is_long = [method::COMPRESS, method::PREPARE, method::TOOL_CALL].contains(&asked.method.as_str());
        let answering = async move {
            let answer = answer(engine.as_ref(), &version, &asked).await;
            if let Some(id) = asked.id {
                let _ = answers.send((id, answer)).await;
            }
        };
        if is_long {
            beside.spawn(answering);
        } else {
            answering.await;
        }
    }
    while beside.join_next().await.is_some() {}
    drop(answers);
    writing.await.map_err(std::io::Error::other)?
}

async fn write_answers(
    mut waiting: mpsc::Receiver<(Value, MethodResult)>,
    mut to: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some((id, answer)) = waiting.recv().await {
        let line = answer_line(&id, &answer).map_err(std::io::Error::other)?;
        to.write_all(line.as_bytes()).await?;
        to.flush().await?;
    }
    Ok(())
}

struct InboundCall {
    id: Option<Value>,
    method: String,
    params: Option<Box<RawValue>>,
}

/// Parses a line as a request; `None` for an answer.
fn read_request(line: &[u8]) -> Result<Option<InboundCall>, RpcError> {
    let text = std::str::from_utf8(line).map_err(|error| RpcError::new(code::NOT_JSON, error.to_string()))?;
    let parsed: RpcLine<'_> =
        serde_json::from_str(text).map_err(|error| RpcError::new(code::NOT_JSON, error.to_string()))?;
    match parsed.method {
        Some(method) => {
            Ok(Some(InboundCall { id: parsed.id, method, params: parsed.params.map(ToOwned::to_owned) }))
        }
        None if parsed.result.is_some() || parsed.error.is_some() => Ok(None),
        None => Err(RpcError::new(code::NOT_A_REQUEST, "`method` is missing")),
    }
}

#[derive(Deserialize)]
struct SnapshotInput {
    conversation: Snapshot,
}

#[derive(Deserialize)]
struct PromptInput {
    prompt_tokens: u64,
}

async fn answer(engine: &dyn ContextEngine, version: &str, asked: &InboundCall) -> MethodResult {
    let params = asked.params.as_deref().map_or("{}", RawValue::get);
    match asked.method.as_str() {
        method::INITIALIZE => introduce(engine, version, &read(params)?),
        method::UPDATE_MODEL => written(engine.update_model(&read(params)?).await),
        method::UPDATE_FROM_RESPONSE => written(engine.update_from_response(&read(params)?).await),
        method::SHOULD_COMPRESS => {
            let PromptInput { prompt_tokens } = read(params)?;
            written(engine.should_compress(prompt_tokens).await)
        }
        method::SHOULD_COMPRESS_PREFLIGHT => written(engine.should_compress_preflight(&read(params)?).await),
        method::HAS_CONTENT => {
            let SnapshotInput { conversation } = read(params)?;
            written(engine.has_content_to_compress(&conversation).await)
        }
        method::COMPRESS => written(engine.compress(&read(params)?).await),
        method::PREPARE => {
            let SnapshotInput { conversation } = read(params)?;
            written(engine.prepare(&conversation).await)
        }
        method::MESSAGES_APPENDED => {
            let SnapshotInput { conversation } = read(params)?;
            written(engine.messages_appended(&conversation).await)
        }
        method::SESSION_STARTED => written(engine.session_started(&read(params)?).await),
        method::SESSION_ENDED => written(engine.session_ended(&read(params)?).await),
        method::SESSION_RESET => written(engine.session_reset().await),
        method::BOUNDARY => written(engine.boundary(&read(params)?).await),
        method::TOOL_SCHEMAS => written(engine.tool_schemas().await),
        method::TOOL_CALL => written(engine.handle_tool_call(&read(params)?).await),
        method::STATUS => written(engine.status().await),
        other => Err(RpcError::new(code::UNKNOWN_METHOD, format!("there is no method `{other}`"))),
    }
}

fn introduce(engine: &dyn ContextEngine, version: &str, greeting: &InitializeParams) -> MethodResult {
    if greeting.protocol != PROTOCOL_VERSION {
        let words = format!(
            "the host speaks version {} of the protocol, this engine version {PROTOCOL_VERSION}",
            greeting.protocol
        );
        return Err(RpcError::new(code::FAILED, words));
    }
    let all = Capabilities {
        preflight: true,
        has_content: true,
        prepare: true,
        messages: true,
        lifecycle: true,
        tools: true,
    };
    let introduction = InitializeResult {
        protocol: PROTOCOL_VERSION,
        name: engine.name().to_owned(),
        version: version.to_owned(),
        capabilities: all,
    };
    written(Ok(introduction))
}

fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Result<T, RpcError> {
    serde_json::from_str(params).map_err(|error| RpcError::new(code::BAD_PARAMETERS, error.to_string()))
}

fn written<T: Serialize>(answer: Result<T, EngineError>) -> MethodResult {
    let answer = answer.map_err(|error| match &error {
        EngineError::UnknownTool { .. } => RpcError::new(code::UNKNOWN_TOOL, error.to_string()),
        EngineError::Unavailable { .. } | EngineError::BadAnswer { .. } => {
            RpcError::new(code::FAILED, error.to_string())
        }
    })?;
    serde_json::value::to_raw_value(&answer).map_err(|error| RpcError::new(code::FAILED, error.to_string()))
}
