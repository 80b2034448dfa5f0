//! Tool definitions by need: what leaves the prompt, and how it comes back.

use serde_json::{Value, json};
use throughline_gateway::{AccessPolicy, AccessTokens, TokenLimits};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, AnswerDraft, AnswerPart, Delta, StreamDecoder, ToolCall};

use crate::stage::Stage;

/// A model whose price is known.
const PRICED: &str = "claude-sonnet-4-5";
const THRIFT: &str = "economy: thrift\n";
const BY_REFERENCE: &str = "economy: { mode: thrift, tool_references: true }\n";

async fn stage(settings: &'static str, script: Script) -> Stage {
    let mut stage = Stage::new(Some(200_000), script).await;
    stage.more_settings = settings;
    stage.start().await;
    stage
}

fn call(id: &str, name: &str, arguments: &Value) -> AnswerPart {
    let arguments = arguments.to_string();
    AnswerPart::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments })
}

fn reply(parts: Vec<AnswerPart>) -> Reply {
    Reply::answer(AnswerDraft::of_parts(parts))
}

fn find(id: &str, name: &str) -> AnswerPart {
    call(id, "find_tools", &json!({ "names": [name] }))
}

fn tool(wire: WireFormat, name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let words = format!("About {name}: ").repeat(120);
    match wire {
        WireFormat::Chat => json!({ "type": "function", "function": {
            "name": name, "description": words, "parameters": schema } }),
        WireFormat::Responses => {
            json!({ "type": "function", "name": name, "description": words, "parameters": schema })
        }
        WireFormat::Anthropic => json!({ "name": name, "description": words, "input_schema": schema }),
    }
}

/// A client with a tool to read and twenty others.
struct Client {
    wire: WireFormat,
    tools: Vec<Value>,
    messages: Vec<Value>,
    more: Value,
}

impl Client {
    fn new(wire: WireFormat) -> Self {
        let names = (0..20).map(|number| format!("planner_{number}"));
        let tools = std::iter::once("read".to_owned()).chain(names).map(|name| tool(wire, &name)).collect();
        Self { wire, tools, messages: Vec::new(), more: json!({}) }
    }

    fn say(&mut self, text: &str) {
        self.messages.push(json!({ "role": "user", "content": text }));
    }

    fn result(&mut self, id: &str, text: &str) {
        self.messages.push(match self.wire {
            WireFormat::Chat => json!({ "role": "tool", "tool_call_id": id, "content": text }),
            WireFormat::Responses => json!({ "type": "function_call_output", "call_id": id, "output": text }),
            WireFormat::Anthropic => json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": text }] }),
        });
    }

    async fn ask(&mut self, stage: &Stage, stream: bool) -> Answer {
        let list = if self.wire == WireFormat::Responses { "input" } else { "messages" };
        let cap = if self.wire == WireFormat::Responses { "max_output_tokens" } else { "max_tokens" };
        let mut body =
            json!({ "model": PRICED, cap: 500, "stream": stream, "tools": self.tools, list: self.messages });
        for (name, value) in self.more.as_object().unwrap() {
            body[name] = value.clone();
        }
        if stream && self.wire == WireFormat::Chat {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let response = stage.ask(self.wire, &body.to_string()).await;
        let (status, body) = (response.status(), response.bytes().await.unwrap());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let answer = if stream {
            let mut decoder = StreamDecoder::new(self.wire);
            let mut deltas: Vec<Delta> = Vec::new();
            decoder.feed(&body, &mut deltas).unwrap();
            decoder.finish(&mut deltas).unwrap()
        } else {
            Answer::decode(self.wire, &body).unwrap()
        };
        let said = answer.messages.iter().map(|message| serde_json::from_str(message.json()).unwrap());
        self.messages.extend(said.collect::<Vec<Value>>());
        answer
    }
}

/// The tools of each call the upstream had.
fn sent_tools(stage: &Stage) -> Vec<Vec<Value>> {
    let calls = stage.upstream.calls();
    calls.iter().map(|call| call.json()["tools"].as_array().unwrap().clone()).collect()
}

fn names(tools: &[Value]) -> Vec<String> {
    let name = |tool: &Value| tool.get("name").or_else(|| tool["function"].get("name")).cloned().unwrap();
    tools.iter().map(|tool| name(tool).as_str().unwrap().to_owned()).collect()
}

fn has(tools: &[Value], name: &str) -> bool {
    names(tools).iter().any(|own| own == name)
}

fn called(answer: &Answer) -> Vec<String> {
    answer.tool_calls().map(|call| call.name.clone()).collect()
}

/// A tool that had left is asked for, comes back, is called by the model and run by the client.
#[tokio::test]
async fn a_tool_that_left_comes_back_when_the_model_needs_it() {
    for wire in WireFormat::ALL {
        for stream in [false, true] {
            let script = Script::row([
                reply(vec![find("f1", "planner_7")]),
                reply(vec![call("c1", "planner_7", &json!({ "path": "a" }))]),
                Reply::text("Planned."),
                Reply::text("Still here."),
            ]);
            let mut stage = stage(THRIFT, script).await;
            let mut client = Client::new(wire);
            client.say("Plan it.");
            let answer = client.ask(&stage, stream).await;
            assert_eq!(called(&answer), ["planner_7"], "{wire}, streamed {stream}");
            client.result("c1", "done");
            assert_eq!(client.ask(&stage, stream).await.text(), "Planned.", "{wire}");
            // Who knows nothing but the record sends the same bytes.
            stage.start().await;
            client.say("Are you there?");
            assert_eq!(client.ask(&stage, stream).await.text(), "Still here.", "{wire}");
            assert_eq!(stage.opened(), [None], "{wire}: one conversation");

            let sent = sent_tools(&stage);
            assert!(has(&sent[0], "read") && has(&sent[0], "find_tools"), "{wire}: {:?}", names(&sent[0]));
            assert!(!has(&sent[0], "planner_7") && !has(&sent[0], "planner_3"), "{:?}", names(&sent[0]));
            assert!(sent[0].iter().any(|tool| tool.to_string().contains("planner_7")), "in the catalogue");
            assert!(has(&sent[1], "planner_7") && !has(&sent[1], "planner_3"), "{:?}", names(&sent[1]));
            assert_eq!(sent[1], sent[2], "{wire}: the prefix stays as it is");
            assert_eq!(sent[2], sent[3], "{wire}: for another process too");
            let bodies: Vec<String> = stage.upstream.calls().iter().map(|call| call.text()).collect();
            assert!(bodies[1].contains("These tools can be called now: planner_7"), "{}", bodies[1]);
        }
    }
}

/// The mode of an access token counts before that of the program, and both before the mode of everybody.
#[tokio::test]
async fn thrift_of_one_access_token_is_nobody_else_s() {
    let mut book = AccessTokens::default();
    let mut add =
        |name: &str, byte: u8| book.add(name, name, &[byte; 32], 0, TokenLimits::default()).unwrap();
    let tokens = [add("ci", 1), add("desktop", 2)];
    let mut stage = Stage::new(Some(200_000), Script::answering(|_| Reply::text("yes"))).await;
    stage.access = AccessPolicy::Tokens(book);
    stage.more_settings = "economy: { mode: off, clients: { gateway: { mode: balanced } }, tokens: { ci: { mode: thrift } } }\n";
    stage.start().await;
    let mut client = Client::new(WireFormat::Chat);
    client.say("Plan it.");
    let body = json!({ "model": PRICED, "tools": client.tools, "messages": client.messages }).to_string();
    for token in &tokens {
        let request =
            stage.http.post(stage.at("/v1/chat/completions")).header("content-type", "application/json");
        let request =
            request.header("x-throughline-token", token).header("authorization", "Bearer sk-of-the-client");
        assert_eq!(request.body(body.clone()).send().await.unwrap().status(), 200);
    }
    let sent = sent_tools(&stage);
    assert!(has(&sent[0], "find_tools") && !has(&sent[0], "planner_3"), "{:?}", names(&sent[0]));
    assert_eq!(sent[1], client.tools, "nothing leaves the prompt of the other token");
}

#[tokio::test]
async fn a_tool_is_loaded_by_reference_where_the_provider_offers_that() {
    for stream in [false, true] {
        let script = Script::row([
            reply(vec![find("f1", "planner_7")]),
            reply(vec![call("c1", "planner_7", &json!({ "path": "a" }))]),
            Reply::text("Planned."),
        ]);
        let stage = stage(BY_REFERENCE, script).await;
        let mut client = Client::new(WireFormat::Anthropic);
        client.say("Plan it.");
        assert_eq!(called(&client.ask(&stage, stream).await), ["planner_7"]);
        client.result("c1", "done");
        assert_eq!(client.ask(&stage, stream).await.text(), "Planned.");
        let sent = sent_tools(&stage);
        assert_eq!(sent[0], sent[1], "the cached prompt stays as it was");
        assert_eq!(sent[1], sent[2]);
        let deferred = |tool: &&Value| tool["defer_loading"] == json!(true);
        assert!(sent[0].iter().filter(deferred).count() >= 10);
        assert!(sent[0].iter().filter(|tool| !deferred(tool)).any(|tool| tool["name"] == "read"));
        let second = stage.upstream.calls()[1].json();
        let last = second["messages"].as_array().unwrap().last().unwrap().clone();
        let mut block = last["content"][0].clone();
        block.as_object_mut().unwrap().remove("cache_control");
        assert_eq!(
            block,
            json!({ "type": "tool_result", "tool_use_id": "f1",
                "content": [{ "type": "tool_reference", "tool_name": "planner_7" }] })
        );
    }
}

#[tokio::test]
async fn a_tool_that_is_asked_for_beside_calls_of_the_client_comes_back_with_their_results() {
    for wire in WireFormat::ALL {
        let script = Script::row([
            reply(vec![find("f1", "planner_7"), call("c1", "read", &json!({ "path": "a" }))]),
            reply(vec![call("c2", "planner_7", &json!({}))]),
            Reply::text("Planned."),
        ]);
        let stage = stage(THRIFT, script).await;
        let mut client = Client::new(wire);
        client.say("Plan it.");
        assert_eq!(called(&client.ask(&stage, true).await), ["read"], "{wire}");
        client.result("c1", "fn main() {}");
        assert_eq!(called(&client.ask(&stage, true).await), ["planner_7"], "{wire}");
        client.result("c2", "done");
        assert_eq!(client.ask(&stage, true).await.text(), "Planned.", "{wire}");
        let sent = sent_tools(&stage);
        assert!(!has(&sent[0], "planner_7") && has(&sent[1], "planner_7"), "{wire}");
        assert_eq!(stage.opened(), [None], "{wire}: one conversation");
    }
}

/// The client has every tool, whatever the prompt says.
#[tokio::test]
async fn a_call_to_a_tool_that_is_not_in_the_prompt_goes_to_the_client() {
    for wire in WireFormat::ALL {
        let script = Script::row([
            reply(vec![call("c1", "planner_3", &json!({}))]),
            reply(vec![call("f1", "find_tools", &json!({ "query": "no such thing" }))]),
            Reply::text("Done."),
        ]);
        let stage = stage(THRIFT, script).await;
        let mut client = Client::new(wire);
        client.say("Plan it.");
        assert_eq!(called(&client.ask(&stage, true).await), ["planner_3"], "{wire}");
        client.result("c1", "done");
        assert_eq!(client.ask(&stage, true).await.text(), "Done.", "{wire}");
        let sent = sent_tools(&stage);
        assert_eq!(sent[0], sent[2], "{wire}: nothing fits, nothing changes");
        assert!(stage.upstream.calls()[2].text().contains("No tool fits"), "{wire}");
    }
}

#[tokio::test]
async fn tools_stay_where_nobody_wants_them_to_leave() {
    for wire in WireFormat::ALL {
        let forced = match wire {
            WireFormat::Chat => json!({ "type": "function", "function": { "name": "planner_7" } }),
            WireFormat::Responses => json!({ "type": "function", "name": "planner_7" }),
            WireFormat::Anthropic => json!({ "type": "tool", "name": "planner_7" }),
        };
        let own = tool(wire, "find_tools");
        let several = if wire == WireFormat::Chat { json!({ "n": 2 }) } else { json!({}) };
        for (settings, more_tools, more, leaves) in [
            ("", None, json!({}), false),
            ("economy: balanced\n", None, json!({}), false),
            ("economy: { mode: thrift, tools: false }\n", None, json!({}), false),
            (THRIFT, Some(own), json!({}), false),
            (THRIFT, None, several, wire != WireFormat::Chat),
            (THRIFT, None, json!({ "tool_choice": forced }), true),
        ] {
            let stage = stage(settings, Script::row([Reply::text("Noted.")])).await;
            let mut client = Client::new(wire);
            client.tools.extend(more_tools);
            client.more = more;
            client.say("Plan it.");
            client.ask(&stage, false).await;
            let sent = &sent_tools(&stage)[0];
            let is_forced = client.more.get("tool_choice").is_some();
            assert_eq!(has(sent, "planner_7"), is_forced || !leaves, "{wire}, {settings}");
            assert_eq!(!has(sent, "planner_3"), leaves, "{wire}, {settings} {}", client.more);
        }
    }
}
