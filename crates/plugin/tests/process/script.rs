//! Engines written in shell, each a few lines that answer what they are asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{CompressRequest, ModelInForce, SessionStart};
use throughline_plugin::{EngineBounds, Launch, PlainServices, ProcessEngine};

/// Reads requests and answers by `on METHOD`; what a script does not know is answered with nothing.
const FRAME: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
fail() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s"}}\n' "$1" "$2"; }
introduce() { reply "$1" '{"protocol":1,"name":"script","version":"1","capabilities":{"tools":true,"preflight":true}}'; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  method=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":[0-9]*,"method":"\([^"]*\)".*/\1/p')
  case "$method" in
    @CASES@
    initialize) introduce "$id" ;;
    *) reply "$id" null ;;
  esac
done
"#;

pub(crate) struct Scripted {
    pub(crate) engine: ProcessEngine,
    pub(crate) services: Arc<PlainServices>,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn bounds() -> EngineBounds {
    EngineBounds {
        // For engines that answer or end: far longer than a busy machine takes.
        start: Duration::from_secs(60),
        answer: Duration::from_secs(60),
        compress: Duration::from_secs(60),
        line_bytes: 200_000,
        stray_lines: 20,
        pause: Duration::ZERO,
    }
}

/// An engine that answers by these cases of a shell script.
pub(crate) fn cases(cases: &str) -> Scripted {
    script(&FRAME.replace("@CASES@", cases), bounds())
}

/// The same, given up on soon: for one that never answers a compaction.
pub(crate) fn cases_that_hang(cases: &str) -> Scripted {
    script(&FRAME.replace("@CASES@", cases), EngineBounds { compress: Duration::from_secs(2), ..bounds() })
}

/// An engine that is this shell script.
pub(crate) fn script(text: &str, bounds: EngineBounds) -> Scripted {
    let folder = tempfile::tempdir().unwrap();
    let services = Arc::<PlainServices>::default();
    let launch = Launch {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), text.to_owned()],
        folder: folder.path().to_path_buf(),
    };
    let engine = ProcessEngine::new("script", launch, bounds, Arc::clone(&services) as _);
    Scripted { engine, services, folder }
}

pub(crate) fn model() -> ModelInForce {
    serde_json::from_value(serde_json::json!({
        "model": "worker", "provider": "here", "window_tokens": 1_000,
        "limits": {
            "threshold_configured_tokens": 500, "threshold_tokens": 500, "reserved_output_tokens": 100,
            "hygiene_tokens": 850, "tail_permille": 200, "tail_tokens": 100, "summary_cap_tokens": 100,
            "summary_floor_tokens": 50, "protect_first_n": 1, "protect_last_n": 2,
        },
    }))
    .unwrap()
}

pub(crate) fn start() -> SessionStart {
    serde_json::from_value(serde_json::json!({
        "session": "s1", "conversation": "s1", "dialect": "chat", "program": "chat", "compactions": 0,
    }))
    .unwrap()
}

pub(crate) fn request() -> CompressRequest {
    let json = serde_json::json!({
        "conversation": {
            "session": "s1", "dialect": "chat", "fixed_tokens": 10, "prompt_tokens": 600,
            "messages": [
                { "json": { "role": "user", "content": "one" }, "tokens": 300 },
                { "json": { "role": "assistant", "content": "two" }, "tokens": 290 },
            ],
        },
        "trigger": "preflight", "room": "left",
    });
    serde_json::from_str(&json.to_string()).unwrap()
}
