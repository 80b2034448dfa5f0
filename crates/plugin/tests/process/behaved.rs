//! What goes right.

use serde_json::json;
use throughline_compaction::NoOpReason;
use throughline_engine::{CompressOutcome, ContextEngine, EngineError, ToolRequest};

use crate::script::{bounds, cases, model, request, script, start};

#[tokio::test]
async fn every_question_gets_its_answer() {
    let scripted = cases(
        r#"should_compress) reply "$id" true ;;
           should_compress_preflight) reply "$id" false ;;
           compress) reply "$id" '{"kind":"no_op","reason":"nothing_in_the_middle","detail":"all is kept"}' ;;
           get_tool_schemas) reply "$id" '[{"name":"look","description":"Looks.","parameters":{"type":"object"}}]' ;;
           handle_tool_call) reply "$id" '{"text":"seen"}' ;;"#,
    );
    let engine = &scripted.engine;
    engine.update_model(&model()).await.unwrap();
    engine.session_started(&start()).await.unwrap();
    assert!(engine.should_compress(600).await.unwrap());
    let pending = serde_json::from_value(json!({
        "fixed_tokens": 1, "message_tokens": 2, "messages": 3, "total_tokens": 600, "basis": { "kind": "estimated" },
    }))
    .unwrap();
    assert!(!engine.should_compress_preflight(&pending).await.unwrap(), "it looks in its own way");
    let outcome = engine.compress(&request()).await.unwrap();
    let nothing =
        CompressOutcome::NoOp { reason: NoOpReason::NothingInTheMiddle, detail: "all is kept".to_owned() };
    assert_eq!(outcome, nothing);
    assert_eq!(engine.tool_schemas().await.unwrap()[0].name, "look");
    let call = ToolRequest {
        session: start().session,
        name: "look".to_owned(),
        arguments: json!({}),
        max_chars: None,
    };
    assert_eq!(engine.handle_tool_call(&call).await.unwrap().text, "seen");
    assert_eq!(engine.introduction().await.unwrap().name, "script");
}

#[tokio::test]
async fn an_engine_is_not_asked_what_it_does_not_do() {
    let scripted = cases(
        r#"initialize) reply "$id" '{"protocol":1,"name":"plain"}' ;;
           should_compress) reply "$id" true ;;
           prepare|get_tool_schemas|boundary|messages_appended|has_content_to_compress) fail "$id" asked ;;"#,
    );
    let engine = &scripted.engine;
    let conversation = request().conversation;
    engine.prepare(&conversation).await.unwrap();
    engine.messages_appended(&conversation).await.unwrap();
    assert!(engine.has_content_to_compress(&conversation).await.unwrap());
    assert!(engine.tool_schemas().await.unwrap().is_empty());
    let call = ToolRequest {
        session: start().session,
        name: "look".to_owned(),
        arguments: json!({}),
        max_chars: None,
    };
    let error = engine.handle_tool_call(&call).await.unwrap_err();
    assert!(matches!(error, EngineError::UnknownTool { .. }), "{error}");
}

#[tokio::test]
async fn an_engine_may_ask_its_host_and_write_to_its_log() {
    let scripted = cases(
        r#"session_started)
             echo "hello from the engine" >&2
             printf '{"jsonrpc":"2.0","id":"a","method":"host/store_put","params":{"key":"k","value":{"n":7}}}\n'
             IFS= read -r put
             printf '{"jsonrpc":"2.0","id":"b","method":"host/store_get","params":{"key":"k"}}\n'
             IFS= read -r got
             printf '{"jsonrpc":"2.0","id":"c","method":"host/summarise","params":{"instructions":"i","text":"t"}}\n'
             IFS= read -r refused
             printf '{"jsonrpc":"2.0","id":"d","method":"host/nonsense","params":{}}\n'
             IFS= read -r unknown
             printf '%s|%s|%s' "$got" "$refused" "$unknown" > told
             reply "$id" null ;;"#,
    );
    scripted.engine.session_started(&start()).await.unwrap();
    // Started before it was told: the answers are those of the start.
    let told = std::fs::read_to_string(scripted.folder.path().join("told")).unwrap();
    let parts: Vec<&str> = told.split('|').collect();
    assert_eq!(parts[0], r#"{"jsonrpc":"2.0","id":"b","result":{"n":7}}"#);
    assert!(parts[1].contains("no model writes summaries"), "{}", parts[1]);
    assert!(parts[2].contains("-32601"), "{}", parts[2]);
    for _ in 0..6_000 {
        if scripted.services.log_lines().iter().any(|line| line.contains("hello from the engine")) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{:?}", scripted.services.log_lines());
}

#[tokio::test]
async fn one_that_ended_is_started_again_and_told_what_it_has_to_know() {
    let text = r#"
        echo start >> starts
        reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
        while IFS= read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
          case "$line" in
            *'"method":"initialize"'*) reply "$id" '{"protocol":1,"name":"s"}' ;;
            *'"method":"update_model"'*) echo model >> starts; reply "$id" null ;;
            *'"method":"session_started"'*) echo session >> starts; reply "$id" null ;;
            *'"method":"compress"'*) exit 3 ;;
            *) reply "$id" true ;;
          esac
        done"#;
    let scripted = script(text, bounds());
    let engine = &scripted.engine;
    engine.update_model(&model()).await.unwrap();
    engine.session_started(&start()).await.unwrap();
    let error = engine.compress(&request()).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(engine.should_compress(1).await.unwrap(), "it runs again");
    let starts = std::fs::read_to_string(scripted.folder.path().join("starts")).unwrap();
    assert_eq!(starts, "start\nmodel\nsession\nstart\nmodel\nsession\n");
}
