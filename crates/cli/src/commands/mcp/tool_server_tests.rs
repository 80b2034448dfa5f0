//! The protocol without a process: messages to a server of two tools, and its answers.

use tokio::io::DuplexStream;

use super::*;

struct Echo {
    waits: tokio::sync::Semaphore,
}

impl Tools for Echo {
    const INSTRUCTIONS: &'static str = "Say something.";

    fn schemas(&self) -> Vec<ToolSchema> {
        let parameters = json!({ "type": "object" });
        vec![ToolSchema { name: "echo".to_owned(), description: "Repeats".to_owned(), parameters }]
    }

    async fn call(&self, name: &str, arguments: Map<String, Value>) -> ToolOutcome {
        match name {
            "echo" => ToolOutcome::Answered(Value::Object(arguments).to_string()),
            // Never returns.
            "wait" => {
                let _ = self.waits.acquire().await;
                ToolOutcome::Refused("waited".to_owned())
            }
            _ => ToolOutcome::Unknown,
        }
    }
}

fn started() -> (DuplexStream, tokio::task::JoinHandle<io::Result<()>>, Arc<Echo>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let tools = Arc::new(Echo { waits: tokio::sync::Semaphore::new(0) });
    let (from, to) = tokio::io::split(theirs);
    (ours, tokio::spawn(serve(Arc::clone(&tools), from, to)), tools)
}

/// Writes lines, closes the stream, and reads every answer.
async fn answers(lines: &[&str]) -> Vec<Value> {
    let (mut ours, serving, _) = started();
    for line in lines {
        ours.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    ours.shutdown().await.unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).await.unwrap();
    serving.await.unwrap().unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn client_gets_the_version_it_asks_for_or_the_newest() {
    for (wanted, version) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2031-01-01", "2025-11-25")]
    {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": wanted } });
        let [answer] = &answers(&[&line.to_string()]).await[..] else { panic!("one answer") };
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
        assert_eq!(answer["result"]["instructions"], "Say something.");
    }
}

#[tokio::test]
async fn methods_are_answered_with_the_id_of_their_request() {
    let listed = answers(&[r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#]).await;
    assert_eq!(listed[0]["id"], "a");
    assert_eq!(listed[0]["result"]["tools"][0]["inputSchema"], json!({ "type": "object" }));
    let called = answers(&[
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}"#,
    ])
    .await;
    assert_eq!(
        called[0]["result"],
        json!({ "content": [{ "type": "text", "text": "{\"x\":1}" }], "isError": false })
    );
    assert_eq!(answers(&[r#"{"id":1,"method":"ping"}"#]).await[0]["result"], json!({}));
}

#[tokio::test]
async fn mistakes_have_the_codes_of_json_rpc() {
    for (line, code) in [
        ("{", -32_700),
        ("7", -32_600),
        ("[]", -32_600),
        (r#"{"id":1}"#, -32_600),
        (r#"{"id":1,"method":7}"#, -32_600),
        (r#"{"id":1,"method":"server/discover"}"#, -32_601),
        (r#"{"id":1,"method":"tools/call"}"#, -32_602),
        (r#"{"id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#, -32_602),
        (r#"{"id":1,"method":"tools/call","params":{"name":"other"}}"#, -32_602),
    ] {
        let answered = answers(&[line]).await;
        assert_eq!(answered.len(), 1, "{line}");
        assert_eq!(answered[0]["error"]["code"], code, "{line}: {}", answered[0]);
    }
}

#[tokio::test]
async fn notifications_and_answers_get_no_answer_and_a_batch_gets_one() {
    let quiet = answers(&[
        "",
        r#"{"method":"notifications/initialized"}"#,
        r#"{"id":3,"result":{}}"#,
        r#"[{"method":"notifications/initialized"}]"#,
    ])
    .await;
    assert_eq!(quiet, Vec::<Value>::new());
    let batch = answers(&[r#"[{"id":1,"method":"ping"},{"method":"x"},{"id":2,"method":"ping"}]"#]).await;
    assert_eq!(batch.len(), 1);
    let ids: Vec<&Value> = batch[0].as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
}

#[tokio::test]
async fn slow_call_holds_nothing_up_and_can_be_cancelled() {
    let (mut ours, serving, _tools) = started();
    let lines = [
        r#"{"id":1,"method":"tools/call","params":{"name":"wait"}}"#,
        r#"{"id":2,"method":"ping"}"#,
        r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"id":3,"method":"ping"}"#,
    ];
    for line in lines {
        ours.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    ours.shutdown().await.unwrap();
    let mut text = String::new();
    // The server ends only after it has cancelled the call that never returns.
    ours.read_to_string(&mut text).await.unwrap();
    serving.await.unwrap().unwrap();
    let mut ids: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, [json!(2), json!(3)]);
}
