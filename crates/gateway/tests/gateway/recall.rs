//! Recall through the gateway: the model's calls are answered here, and the client sees only the answer.

use serde_json::{Value, json};
use throughline_gateway::{GatewayEvent, RecallOffer};
use throughline_store::{Owner, SessionFilter, StoredMessage};
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, StopReason, ToolCall};

use crate::stage::{MODEL, Stage, eventually};
use crate::talk::Talk;

fn call(id: &str, name: &str, arguments: &Value) -> AnswerPart {
    AnswerPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    })
}

fn grep(id: &str, query: &str) -> AnswerPart {
    call(id, "lcm_grep", &json!({ "query": query }))
}

fn text(words: &str) -> AnswerPart {
    AnswerPart::Text(words.to_owned())
}

fn reply(parts: Vec<AnswerPart>) -> Reply {
    Reply::answer(AnswerDraft::of_parts(parts))
}

async fn stage(window_tokens: Option<u64>, script: Script) -> Stage {
    let mut stage = Stage::new(window_tokens, script).await;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    stage
}

fn talk(wire: WireFormat) -> Talk {
    Talk { wire, messages: Vec::new() }
}

fn recorded(stage: &Stage) -> Vec<StoredMessage> {
    let owner = Owner::default();
    let all = stage.store.conversations(&owner, &SessionFilter::default()).unwrap();
    assert_eq!(all.len(), 1, "one conversation all along");
    stage.store.transcript(&owner, &all[0].tip.id).unwrap()
}

fn list(request: &RecordedRequest) -> Vec<Value> {
    let body = request.json();
    let list = if body.get("input").is_some() { &body["input"] } else { &body["messages"] };
    list.as_array().unwrap().clone()
}

fn tools(request: &RecordedRequest) -> String {
    request.json()["tools"].to_string()
}

/// What the upstream was sent only grows at its end.
fn assert_prefix_never_moves(stage: &Stage) {
    let calls = stage.upstream.calls();
    for pair in calls.windows(2) {
        let (before, after) = (list(&pair[0]), list(&pair[1]));
        assert_eq!(after[..before.len()], before[..]);
        assert_eq!(tools(&pair[0]), tools(&pair[1]));
    }
}

#[tokio::test]
async fn the_model_looks_something_up_and_the_client_sees_the_answer() {
    for wire in WireFormat::ALL {
        for stream in [false, true] {
            let script = Script::row([
                Reply::text("Noted."),
                reply(vec![text("Let me look."), grep("r1", "vault")]),
                reply(vec![call("r2", "lcm_expand", &json!({ "message": 0 }))]),
                Reply::text("It is VAULT-77."),
                Reply::text("You are welcome."),
                Reply::text("Still here."),
            ]);
            let mut stage = stage(None, script).await;
            let mut talk = talk(wire);
            talk.say("The key of the vault is VAULT-77.");
            talk.ask(&stage, stream).await;
            talk.say("What was the key?");
            let answer = talk.ask(&stage, stream).await;
            assert_eq!(answer.tool_calls().count(), 0, "{wire}");
            assert_eq!(answer.stop.reason, StopReason::EndOfTurn, "{wire}");
            assert!(answer.text().ends_with("It is VAULT-77."), "{wire}: {}", answer.text());
            assert!(answer.text().starts_with("Let me look."), "{wire}: {}", answer.text());
            talk.say("Thanks.");
            assert_eq!(talk.ask(&stage, stream).await.text(), "You are welcome.");
            // Who knows nothing but the record recognises it too.
            stage.start().await;
            talk.say("Are you there?");
            assert_eq!(talk.ask(&stage, stream).await.text(), "Still here.");

            assert_eq!(stage.opened(), [None], "{wire}, streamed {stream}");
            assert_prefix_never_moves(&stage);
            let looked_up: Vec<String> = stage
                .events
                .lock()
                .unwrap()
                .iter()
                .filter_map(|event| match event {
                    GatewayEvent::Recalled { tools, .. } => Some(tools.join("+")),
                    _ => None,
                })
                .collect();
            assert_eq!(looked_up, ["lcm_grep", "lcm_expand"]);
            let calls = stage.upstream.calls();
            assert!(tools(&calls[0]).contains("lcm_grep"), "from the first request on");
            let found = calls[2].text();
            assert!(found.contains("message 0 (user"), "what was found goes to the model: {found}");
            assert!(calls[3].text().contains("The key of the vault is VAULT-77."));
            eventually(|| {
                let all = recorded(&stage);
                all.iter().filter(|message| message.json.as_str().contains("\"r1\"")).count() == 2
            })
            .await;
        }
    }
}

/// Calls of both kinds in one answer: the client runs its own, ours are answered beside them.
#[tokio::test]
async fn calls_of_both_kinds_are_each_answered_by_their_own() {
    for wire in WireFormat::ALL {
        for (stream, restarts) in [(false, false), (true, true)] {
            let script = Script::row([
                reply(vec![
                    text("Both."),
                    grep("r1", "vault"),
                    call("c1", "read", &json!({ "path": "a.rs" })),
                    grep("r2", "key"),
                ]),
                Reply::text("Done."),
                Reply::text("Again."),
            ]);
            let mut stage = stage(None, script).await;
            let mut talk = talk(wire);
            talk.say("The key of the vault is VAULT-77. Read a.rs.");
            let answer = talk.ask(&stage, stream).await;
            let calls: Vec<&str> = answer.tool_calls().map(|call| call.id.as_str()).collect();
            assert_eq!(calls, ["c1"], "{wire}, streamed {stream}");
            assert_eq!(answer.stop.reason, StopReason::ToolCalls);
            if restarts {
                stage.start().await;
            }
            talk.result("c1", "fn main() {}");
            assert_eq!(talk.ask(&stage, stream).await.text(), "Done.");
            if restarts {
                stage.start().await;
            }
            talk.say("Once more.");
            assert_eq!(talk.ask(&stage, stream).await.text(), "Again.");
            assert_eq!(stage.opened(), [None], "{wire}, streamed {stream}");
            assert_prefix_never_moves(&stage);
            let second = stage.upstream.calls()[1].text();
            for id in ["r1", "r2", "c1"] {
                assert_eq!(
                    second.matches(&format!("\"{id}\"")).count(),
                    2,
                    "{wire}: a call and a result: {second}"
                );
            }
            assert!(second.contains("VAULT-77. Read a.rs"), "{second}");
        }
    }
}

#[tokio::test]
async fn a_model_that_only_ever_recalls_comes_to_an_end() {
    for wire in WireFormat::ALL {
        let script = Script::answering(|request| match request.order {
            order if order < 20 => reply(vec![grep(&format!("r{order}"), "nothing")]),
            _ => Reply::text("At last."),
        });
        let mut stage = stage(None, script).await;
        stage.recall_rounds = 3;
        stage.start().await;
        let mut talk = talk(wire);
        talk.say("Go.");
        let answer = talk.ask(&stage, true).await;
        assert_eq!((answer.text().as_str(), answer.tool_calls().count()), ("", 0), "{wire}");
        assert_eq!(answer.stop.reason, StopReason::EndOfTurn, "{wire}");
        assert_eq!(
            stage.upstream.calls().len(),
            6,
            "three that are answered, two that are refused, and the last"
        );
        assert!(stage.upstream.calls()[5].text().contains("answer with the information you have"));
        let warned = stage.events.lock().unwrap().iter().any(
            |event| matches!(event, GatewayEvent::Warning(words) if words.contains("gateway.recall_rounds")),
        );
        assert!(warned, "the operator is warned");
        // A call of the last answer is still open; it is closed before the next.
        talk.say("And now?");
        talk.ask(&stage, false).await;
        assert_eq!(stage.opened(), [None], "{wire}");
        let last = stage.upstream.calls().pop().unwrap();
        assert!(last.envelope().unwrap().is_ok());
    }
}

#[tokio::test]
async fn what_is_read_in_a_turn_is_limited() {
    let script =
        Script::row([Reply::text("Noted."), reply(vec![grep("r1", "vault")]), Reply::text("I cannot say.")]);
    let mut stage = stage(None, script).await;
    stage.recall_tokens = 5;
    stage.start().await;
    let mut talk = talk(WireFormat::Anthropic);
    talk.say("The key of the vault is VAULT-77.");
    talk.ask(&stage, false).await;
    talk.say("Which key?");
    assert_eq!(talk.ask(&stage, false).await.text(), "I cannot say.");
    let told = list(&stage.upstream.calls()[2]).pop().unwrap();
    let result = &told["content"][0];
    assert_eq!(result["is_error"], true);
    assert!(result["content"].as_str().unwrap().contains("5 are left"), "{result}");
}

/// The upstream fails in the second round: the client is told, and its next try goes on from what was found.
#[tokio::test]
async fn a_round_that_fails_is_an_error_and_nothing_is_lost() {
    for wire in WireFormat::ALL {
        for stream in [false, true] {
            let script = Script::row([
                reply(vec![text("Let me look."), grep("r1", "vault")]),
                Reply::error(400, "invalid_request_error", "no"),
                Reply::text("Found."),
                Reply::text("Next."),
            ]);
            let stage = stage(None, script).await;
            let mut talk = talk(wire);
            talk.say("Look for the vault.");
            let failed = stage.ask(wire, &talk.body(stream)).await;
            assert_eq!(failed.status() == 200, stream, "{wire}: {}", failed.status());
            let body = failed.text().await.unwrap();
            assert!(body.contains("error"), "{wire}: {body}");
            let answer = talk.ask(&stage, stream).await;
            assert_eq!(answer.text(), "Found.", "{wire}");
            assert_eq!(stage.upstream.calls().len(), 3, "nothing is looked up twice");
            talk.say("And now?");
            assert_eq!(talk.ask(&stage, stream).await.text(), "Next.");
            assert_eq!(stage.opened(), [None], "{wire}, streamed {stream}");
        }
    }
}

/// Requests without tools, of a client with such tools itself, or while nobody is offered any, pass as they are.
#[tokio::test]
async fn who_is_not_offered_anything_notices_nothing() {
    let own = json!([{ "name": "lcm_grep", "input_schema": { "type": "object" } }]);
    let said = json!([{ "role": "user", "content": "Go." }]);
    let with_own = json!({ "model": MODEL, "max_tokens": 64, "messages": said, "tools": own });
    let without = json!({ "model": MODEL, "max_tokens": 64, "messages": said });
    for body in [with_own, without] {
        let stage = stage(None, Script::always(reply(vec![grep("r1", "x")]))).await;
        let through = stage.ask(WireFormat::Anthropic, &body.to_string()).await.text().await.unwrap();
        assert!(through.contains("lcm_grep"), "{through}");
        assert_eq!(stage.upstream.calls().len(), 1);
        assert_eq!(stage.upstream.calls()[0].json().get("tools"), body.get("tools"));
    }
}

/// A client with tools of these names answers its calls itself, in the same conversation all along.
#[tokio::test]
async fn a_client_with_such_tools_itself_answers_its_own_calls() {
    let script = Script::answering(|request| match request.order % 2 {
        0 => reply(vec![grep(&format!("r{}", request.order), "x")]),
        _ => Reply::text("Fine."),
    });
    let mut stage = stage(None, script).await;
    let own = json!([{ "type": "function", "function": { "name": "lcm_grep", "parameters": {} } }]);
    let mut said = Vec::new();
    for turn in 0..3 {
        said.push(json!({ "role": "user", "content": format!("Turn {turn}") }));
        for _ in 0..2 {
            let body = json!({ "model": MODEL, "messages": said, "tools": own }).to_string();
            let answer = stage.ask(WireFormat::Chat, &body).await.text().await.unwrap();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let message = answer["choices"][0]["message"].clone();
            said.push(message.clone());
            if let Some(id) = message["tool_calls"][0]["id"].as_str() {
                said.push(json!({ "role": "tool", "tool_call_id": id, "content": "mine" }));
            }
        }
        stage.start().await;
    }
    assert_eq!(stage.opened(), [None]);
    assert_eq!(stage.upstream.calls().len(), 6);
}

/// A fact from before several compactions, on a window that has long forgotten it.
#[tokio::test]
async fn a_fact_from_before_three_compactions_is_found() {
    let answers = |request: &RecordedRequest| {
        let body = request.text();
        let asks = body.contains("What was the key of the vault?");
        if asks && body.contains("VAULT-77-OMEGA") {
            return Reply::text("VAULT-77-OMEGA, as you said at the start.");
        }
        if asks && body.contains("r_last") {
            return Reply::text("I do not know.");
        }
        if asks {
            return reply(vec![call("r_last", "lcm_grep", &json!({ "query": "VAULT-77" }))]);
        }
        Reply::text(format!("Done with {}.", request.order))
    };
    for wire in WireFormat::ALL {
        let stage = stage(Some(32_000), Script::answering(answers)).await;
        let mut talk = talk(wire);
        let filler = |turn: usize| {
            let words = (0..600).map(|word| format!("w{}", (turn * 7_919 + word * 104_729) % 99_991));
            words.collect::<Vec<_>>().join(" ")
        };
        talk.say(&format!("{} The key of the vault is VAULT-77-OMEGA. {}", filler(990), filler(991)));
        talk.ask(&stage, true).await;
        let mut turn = 0;
        while stage.compactions() < 3 {
            talk.say(&filler(turn));
            talk.ask(&stage, true).await;
            turn += 1;
            assert!(turn < 400, "{wire}: {}", stage.compactions());
        }
        talk.say("What was the key of the vault?");
        let answer = talk.ask(&stage, true).await;
        assert_eq!(answer.text(), "VAULT-77-OMEGA, as you said at the start.", "{wire}");
        assert_eq!(stage.opened(), [None]);
    }
}

/// Conversations the gateway keeps have nobody else to recall for them.
#[tokio::test]
async fn conversations_that_are_kept_here_have_the_tools_too() {
    let script = Script::row([
        Reply::text("Noted."),
        reply(vec![grep("r1", "vault")]),
        Reply::text("VAULT-77."),
        reply(vec![grep("r2", "vault")]),
        Reply::text("As I said."),
    ]);
    let stage = stage(None, script).await;
    let path = "/api/conversations/one/messages";
    stage.send(path, &json!({ "text": "The vault is VAULT-77.", "model": MODEL })).await;
    let (status, answer) = stage.send(path, &json!({ "text": "Which vault?" })).await;
    assert_eq!((status, &answer["text"]), (200, &json!("VAULT-77.")), "{answer}");
    let body = json!({ "text": "Sure?", "stream": true }).to_string();
    let streamed = stage.post(&stage.at(path), &body).await.text().await.unwrap();
    assert!(streamed.contains("As I said."), "{streamed}");
    assert!(!streamed.contains("lcm_grep"), "{streamed}");
}

/// Providers do not take calls of tools that a request does not bring.
#[tokio::test]
async fn a_request_without_tools_brings_ours_once_they_were_called() {
    let script = Script::row([
        reply(vec![grep("r1", "vault")]),
        Reply::text("Found."),
        Reply::text("You are welcome."),
    ]);
    let stage = stage(None, script).await;
    let mut talk = talk(WireFormat::Anthropic);
    talk.say("Look for the vault.");
    talk.ask(&stage, false).await;
    talk.say("Thanks.");
    let body = json!({ "model": MODEL, "max_tokens": 500, "messages": talk.messages }).to_string();
    assert_eq!(stage.ask(WireFormat::Anthropic, &body).await.status(), 200);
    let last = stage.upstream.calls().pop().unwrap();
    assert!(last.text().contains("\"r1\"") && tools(&last).contains("lcm_grep"), "{}", last.text());
    assert!(!tools(&last).contains("\"read\""), "the client left its own out");
    assert_eq!(stage.opened(), [None]);
}

/// What a model looks up is no answer to what it looks up later.
#[tokio::test]
async fn a_search_does_not_find_searches() {
    let script = Script::row([
        reply(vec![grep("r1", "kangaroo")]),
        reply(vec![grep("r2", "kangaroo")]),
        Reply::text("Nobody said so."),
    ]);
    let stage = stage(None, script).await;
    let mut talk = talk(WireFormat::Chat);
    talk.say("Was there an animal?");
    talk.ask(&stage, false).await;
    for call in &stage.upstream.calls()[1..] {
        let found = list(call).pop().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(found.starts_with("Nothing in this conversation fits"), "{found}");
    }
}

/// What is read fits beside the prompt, whatever the settings allow.
#[tokio::test]
async fn what_is_read_fits_into_the_window() {
    let script = Script::answering(|request| match request.order {
        0 => Reply::text("Noted."),
        order @ 1..8 => {
            let all = json!({ "message": 0, "max_tokens": 100_000 });
            reply(vec![call(&format!("r{order}"), "lcm_expand", &all)])
        }
        _ => Reply::text("Enough."),
    });
    let mut stage = stage(Some(16_000), script).await;
    (stage.recall_rounds, stage.recall_tokens) = (8, 1_000_000);
    stage.start().await;
    let mut talk = talk(WireFormat::Anthropic);
    let words: Vec<String> = (0..1_500).map(|word| format!("w{}", (word * 104_729) % 99_991)).collect();
    talk.say(&words.join(" "));
    talk.ask(&stage, false).await;
    talk.say("Read it all again.");
    assert_eq!(talk.ask(&stage, false).await.text(), "Enough.");
    let calls = stage.upstream.calls();
    assert!(
        calls.iter().any(|call| call.text().contains("ask for less")),
        "it was told that no room is left"
    );
    assert!(
        calls.iter().all(|call| call.body.len() < 3 * 16_000),
        "{:?}",
        calls.iter().map(|call| call.body.len()).collect::<Vec<_>>()
    );
}

/// A stream that breaks off inside an event ends with events that can be read, recall or not.
#[tokio::test]
async fn a_stream_that_breaks_off_inside_an_event_ends_with_a_whole_one() {
    let chunk = json!({ "id": "a", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
        "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "so it" }, "finish_reason": null }] });
    let cut = format!("data: {chunk}\n\ndata: {}", &chunk.to_string()[..40]);
    for offer in [RecallOffer::Nobody, RecallOffer::Agents] {
        let mut stage = stage(None, Script::always(Reply::raw(200, "text/event-stream", cut.clone()))).await;
        stage.recall = offer;
        stage.start().await;
        let mut talk = talk(WireFormat::Chat);
        talk.say("Go.");
        let text = stage.ask(WireFormat::Chat, &talk.body(true)).await.text().await.unwrap();
        let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> =
            events.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("{text}"))).collect();
        assert!(events.last().unwrap()["error"]["message"].is_string(), "{text}");
    }
}
