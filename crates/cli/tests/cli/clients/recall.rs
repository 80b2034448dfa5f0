//! The tools a model is given by `gateway.recall`, as the program has them.

use serde_json::{Value, json};
use throughline_testkit::{RecordedRequest, Reply, Script, ScriptedUpstream};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::clients::faults::user;
use crate::clients::gateway::Gateway;

/// A word in the middle of a result that is too long to be shown.
const FACT: &str = "pelican-1187-mole";

fn call(id: &str, name: &str, arguments: &Value) -> Reply {
    let (id, name) = (id.to_owned(), name.to_owned());
    let call = ToolCall { id, name, arguments: arguments.to_string() };
    Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]))
}

fn last(request: &RecordedRequest) -> String {
    let json = request.json();
    let last = json["messages"].as_array().and_then(|all| all.last().cloned()).unwrap_or_default();
    last["content"].as_str().unwrap_or_default().to_owned()
}

async fn ask(gateway: &Gateway, messages: &[Value]) -> Value {
    let tools = json!([{ "type": "function", "function": { "name": "shell", "parameters": {} } }]);
    let body = json!({ "model": "worker", "messages": messages, "tools": tools }).to_string();
    throughline_provider::Client::install_crypto();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/v1/chat/completions", gateway.url());
    let sent = client.post(url).header("content-type", "application/json").body(body).send().await.unwrap();
    let text = sent.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    answer["choices"][0]["message"].clone()
}

/// A long result is set aside when it is first seen; the model reads the lines it needs, and a later conversation finds
/// them as well. The client hears of none of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_aside_is_read_again_here_and_from_other_conversations() {
    let script = Script::answering(|request| {
        let (last, text) = (last(request), request.text());
        if last.contains("run it") {
            return call("c1", "shell", &json!({}));
        }
        if let Some(name) = last.split("kept as artifact ").nth(1) {
            let artifact: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
            let lines = json!({ "artifact": artifact, "first_line": 2_990, "count": 20 });
            return call("r1", "recall_artifact", &lines);
        }
        if text.contains("Anew") && !text.contains("\"r2\"") {
            return call("r2", "recall_search", &json!({ "query": FACT }));
        }
        Reply::text(if last.contains(FACT) { "I have it." } else { "I have nothing." })
    });
    let upstream = ScriptedUpstream::start(script).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let config = "gateway:\n  recall: true\n  tool_budget: true\n";
    std::fs::write(home.path().join("config.yaml"), config).unwrap();
    let gateway = Gateway::start(home, &upstream.url());

    let mut talk = vec![user("run it")];
    let message = ask(&gateway, &talk).await;
    assert_eq!(message["tool_calls"][0]["function"]["name"], "shell", "{message}");
    talk.push(message);
    let lines: Vec<String> =
        (1..=6_000)
            .map(|line| {
                if line == 3_000 { format!("line 3000 {FACT}") } else { format!("line {line} of the output") }
            })
            .collect();
    talk.push(json!({ "role": "tool", "tool_call_id": "c1", "content": lines.join("\n") }));
    let message = ask(&gateway, &talk).await;
    assert_eq!(message["content"], "I have it.", "{message}\n{}", gateway.screen());
    assert_eq!(message.get("tool_calls"), None);
    assert!(upstream.calls()[1].text().contains("persisted-output"), "set aside at first sight");
    assert!(!upstream.calls()[1].text().contains(FACT));

    let message = ask(&gateway, &[user("Anew: what was the bird?")]).await;
    assert_eq!(message["content"], "I have it.", "{message}\n{}", gateway.screen());
}

/// The engine `lcm` brings its tools, whatever is said of recall: a model has to be able to open its notes.
#[tokio::test(flavor = "multi_thread")]
async fn the_lossless_engine_brings_its_tools() {
    for (config, is_given) in [("", false), ("context:\n  engine: lcm\n", true)] {
        let upstream = ScriptedUpstream::start(Script::always(Reply::text("Hello."))).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.yaml"), config).unwrap();
        let gateway = Gateway::start(home, &upstream.url());
        ask(&gateway, &[user("Hello.")]).await;
        let tools = upstream.calls()[0].json()["tools"].to_string();
        assert_eq!(tools.contains("lcm_expand"), is_given, "{tools}");
        // Nobody could answer questions here.
        assert!(!tools.contains("lcm_expand_query"), "{tools}");
    }
}
