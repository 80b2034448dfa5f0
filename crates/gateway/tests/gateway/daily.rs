//! A gateway in daily use: stalls, parallel requests, stopping, names of requests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_gateway::{AnswerEnd, GatewayConfig, GatewayEvent};
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Gate, Reply, ReplyFault, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually};

fn body(messages: &[Value], streamed: bool) -> String {
    json!({ "model": MODEL, "max_tokens": 64, "stream": streamed, "messages": messages }).to_string()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

#[tokio::test]
async fn an_upstream_that_is_down_is_an_error_of_the_wire() {
    let mut stage = Stage::new(None, Script::always(Reply::reset())).await;
    stage.start().await;
    for wire_format in [WireFormat::Chat, WireFormat::Anthropic] {
        let response = stage.ask(wire_format, &body(&[user("go")], false)).await;
        assert_eq!(response.status(), 502);
        let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(error["type"] == "error", wire_format == WireFormat::Anthropic);
        assert!(!error["error"]["message"].as_str().unwrap().contains("127.0.0.1:0"), "{error}");
    }
}

/// A stream that falls silent is cut, ends with an error of its wire, and is told as what it is.
#[tokio::test]
async fn a_stream_that_stalls_is_cut_after_the_limit() {
    let reply = Reply::text("so it begins, and goes on for a while, ".repeat(20));
    let reply = reply.failing_after(8, ReplyFault::Stall);
    let mut stage = Stage::new(None, Script::always(reply)).await;
    // Longer than a busy machine takes between two pieces.
    stage.silence = Some(Duration::from_secs(1));
    stage.start().await;
    for wire_format in WireFormat::ALL {
        let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
        let body = json!({ "model": MODEL, "max_tokens": 64, "stream": true, list: [user("go")] });
        let text = stage.ask(wire_format, &body.to_string()).await.text().await.unwrap();
        let last = text.lines().rfind(|line| line.starts_with("data: ")).unwrap();
        let error: Value = serde_json::from_str(last.trim_start_matches("data: ")).unwrap();
        match wire_format {
            WireFormat::Responses => {
                assert_eq!(error["type"], "error", "{text}");
                let sent = text.matches("\"sequence_number\"").count() as u64;
                assert_eq!(error["sequence_number"], sent - 1, "it counts on: {text}");
            }
            WireFormat::Chat | WireFormat::Anthropic => {
                assert!(error["error"]["message"].is_string(), "{text}")
            }
        }
        let is_told = || {
            let events = stage.events.lock().unwrap();
            events.iter().any(|event| match event {
                GatewayEvent::Served(served) => {
                    served.wire == wire_format && served.end == AnswerEnd::BrokenOff
                }
                _ => false,
            })
        };
        eventually(is_told).await;
    }
}

/// What is configured otherwise while the gateway runs holds from the next request on, in conversations at hand too.
#[tokio::test]
async fn a_configuration_is_replaced_while_conversations_go_on() {
    let stage = Stage::new(None, Script::always(Reply::text("from the first"))).await;
    let other = Stage::new(Some(64_000), Script::always(Reply::text("from the second"))).await;
    let answer = |text: String| {
        let answer: Value = serde_json::from_str(&text).unwrap();
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let first = stage.ask(WireFormat::Chat, &body(&[user("one")], false)).await.text().await.unwrap();
    assert_eq!(answer(first), "from the first");

    let gateway = stage.gateway.as_ref().unwrap();
    gateway.set_config(GatewayConfig { body_bytes: 5_000, ..other.config() });
    let talk = [user("one"), assistant("from the first"), user("two")];
    let second = stage.ask(WireFormat::Chat, &body(&talk, false)).await.text().await.unwrap();
    assert_eq!(answer(second), "from the second");
    let long = body(&[user(&"word ".repeat(2_000))], false);
    assert_eq!(stage.ask(WireFormat::Chat, &long).await.status(), 413);

    let said = || {
        let all = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
        all.iter().map(|conversation| conversation.totals.messages).collect::<Vec<_>>()
    };
    eventually(|| said() == [4]).await;
}

/// Two requests go on from the same place. Neither waits for the other, and both are whole in the record.
#[tokio::test]
async fn parallel_requests_of_one_conversation_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        let last = request.json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        match last.as_str().unwrap() {
            "slowly" => Reply::text("the slow one").failing_after(0, ReplyFault::Wait(held.clone())),
            "quickly" => Reply::text("the quick one"),
            _ => Reply::text("first"),
        }
    });
    let stage = Arc::new(Stage::new(None, script).await);
    let start = [user("one")];
    stage.ask(WireFormat::Chat, &body(&start, false)).await.text().await.unwrap();
    let talk = |text: &str| [user("one"), assistant("first"), user(text)];
    let slow = {
        let (stage, body) = (Arc::clone(&stage), body(&talk("slowly"), false));
        tokio::spawn(async move { stage.ask(WireFormat::Chat, &body).await.text().await.unwrap() })
    };
    gate.until_reached().await;
    // It is answered while the other one is still on its way.
    let quick = stage.ask(WireFormat::Chat, &body(&talk("quickly"), false)).await.text().await.unwrap();
    assert!(quick.contains("the quick one"), "{quick}");
    assert!(!slow.is_finished());
    gate.open();
    assert!(slow.await.unwrap().contains("the slow one"));
    assert_eq!(stage.opened(), [None, Some("branch")]);
    // Both go on where they stand.
    for (said, answered) in [("slowly", "the slow one"), ("quickly", "the quick one")] {
        let mut on = talk(said).to_vec();
        on.extend([assistant(answered), user(&format!("and then {said}?"))]);
        let again = stage.ask(WireFormat::Chat, &body(&on, false)).await;
        assert_eq!(again.status(), 200);
        again.text().await.unwrap();
    }
    assert_eq!(stage.opened().len(), 2);
}

/// Equal requests of several clients, or of sub-agents with the same task, are answered at the same time; each goes on as a
/// conversation of its own.
#[tokio::test]
async fn equal_first_requests_do_not_wait_for_each_other() {
    // More than a request looks for its conversation again.
    const CLIENTS: usize = 12;
    let gate = Gate::new();
    let (held, mut count) = (gate.clone(), 0);
    let script = Script::answering(move |request| {
        if request.json()["messages"].as_array().unwrap().len() > 1 {
            return Reply::text("and on");
        }
        count += 1;
        Reply::text(format!("answer {count}")).failing_after(0, ReplyFault::Wait(held.clone()))
    });
    let stage = Arc::new(Stage::new(None, script).await);
    let asking: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let stage = Arc::clone(&stage);
            tokio::spawn(async move {
                let response = stage.ask(WireFormat::Chat, &body(&[user("build it")], false)).await;
                assert_eq!(response.status(), 200);
                serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap()
            })
        })
        .collect();
    let all = async {
        for _ in 0..CLIENTS {
            gate.until_reached().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("all are asked before any is answered");
    (0..CLIENTS).for_each(|_| gate.open());
    let mut answers = Vec::new();
    for answered in asking {
        answers.push(answered.await.unwrap()["choices"][0]["message"].clone());
    }
    assert_eq!(stage.opened(), vec![None; CLIENTS]);
    for answer in answers {
        let on = body(&[user("build it"), answer, user("go on")], false);
        assert_eq!(stage.ask(WireFormat::Chat, &on).await.status(), 200);
    }
    assert_eq!(stage.opened().len(), CLIENTS);
}

/// The same later on: what is being answered already is no reason to wait, and both ways are in the record.
#[tokio::test]
async fn equal_later_requests_do_not_wait_for_each_other() {
    let gate = Gate::new();
    let (held, mut count) = (gate.clone(), 0);
    let script = Script::answering(move |request| {
        if request.json()["messages"].as_array().unwrap().len() == 1 {
            return Reply::text("first");
        }
        count += 1;
        Reply::text(format!("answer {count}")).failing_after(0, ReplyFault::Wait(held.clone()))
    });
    let stage = Arc::new(Stage::new(None, script).await);
    stage.ask(WireFormat::Chat, &body(&[user("one")], false)).await.text().await.unwrap();
    let twice = body(&[user("one"), assistant("first"), user("two")], false);
    let ask = || {
        let (stage, body) = (Arc::clone(&stage), twice.clone());
        tokio::spawn(async move { stage.ask(WireFormat::Chat, &body).await.status() })
    };
    let asking = [ask(), ask()];
    let both = async {
        gate.until_reached().await;
        gate.until_reached().await;
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("both are asked before one is answered");
    gate.open();
    gate.open();
    for answered in asking {
        assert_eq!(answered.await.unwrap(), 200);
    }
    assert_eq!(stage.opened(), [None, Some("branch")]);
    let prompts = stage.upstream.calls().into_iter().skip(1);
    let prompts: Vec<Value> = prompts.map(|call| call.json()["messages"].clone()).collect();
    assert_eq!(prompts, vec![json!([user("one"), assistant("first"), user("two")]); 2]);
}

/// Who hangs up and asks again goes on where the first request stood.
#[tokio::test]
async fn a_request_that_is_sent_again_after_hanging_up_goes_on() {
    let gate = Gate::new();
    let (held, mut count) = (gate.clone(), 0);
    let script = Script::answering(move |_| {
        count += 1;
        match count {
            1 => Reply::text("never seen").failing_after(0, ReplyFault::Wait(held.clone())),
            _ => Reply::text("answered"),
        }
    });
    let stage = Arc::new(Stage::new(None, script).await);
    let first = {
        let stage = Arc::clone(&stage);
        tokio::spawn(async move { stage.ask(WireFormat::Chat, &body(&[user("go")], false)).await.status() })
    };
    gate.until_reached().await;
    first.abort();
    assert!(first.await.is_err());
    // The upstream is hung up on once the gateway has noticed.
    stage.upstream.until_hung_up().await;
    assert_eq!(stage.ask(WireFormat::Chat, &body(&[user("go")], false)).await.status(), 200);
    assert_eq!(stage.opened(), [None]);
}

/// Many requests at once, all of them new turns of conversations of their own: all are recorded once.
#[tokio::test(flavor = "multi_thread")]
async fn many_conversations_at_once_are_kept_apart() {
    let script = Script::answering(|request| {
        let said = request.json()["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        Reply::text(format!("heard: {}", said.as_str().unwrap()))
    });
    let stage = Arc::new(Stage::new(None, script).await);
    let mut tasks = Vec::new();
    for number in 0..24 {
        let stage = Arc::clone(&stage);
        tasks.push(tokio::spawn(async move {
            let mut talk = vec![user(&format!("conversation {number}"))];
            for turn in 0..4 {
                let response = stage.ask(WireFormat::Chat, &body(&talk, false)).await;
                let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
                let answer = answer["choices"][0]["message"].clone();
                let said = talk.last().unwrap()["content"].as_str().unwrap();
                assert_eq!(answer["content"], format!("heard: {said}"));
                talk.push(answer);
                talk.push(user(&format!("turn {turn} of {number}")));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let filter = SessionFilter { limit: None, ..SessionFilter::default() };
    let found = || stage.store.conversations(&Owner::default(), &filter).unwrap();
    assert_eq!(found().len(), 24);
    eventually(|| found().iter().all(|one| one.totals.messages == 8)).await;
}

#[tokio::test]
async fn stopping_lets_answers_that_have_begun_come_to_their_end() {
    let gate = Gate::new();
    let reply = Reply::text("a stream of some length that is finished later");
    let mut stage =
        Stage::new(None, Script::always(reply.failing_after(3, ReplyFault::Wait(gate.clone())))).await;
    let mut response = stage.ask(WireFormat::Chat, &body(&[user("go")], true)).await;
    let mut text = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    gate.until_reached().await;
    let stopped = stage.stop();
    // Nobody new is let in any more ...
    let url = stage.at("/healthz");
    while reqwest::get(&url).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // ... and who is in is served.
    gate.open();
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(text.contains("later") && text.ends_with("data: [DONE]\n\n"), "{text}");
    stopped.await.unwrap();
}

#[tokio::test]
async fn every_answer_says_under_which_name_it_is_in_the_log() {
    let stage = Stage::new(None, Script::always(Reply::text("ok"))).await;
    let mut names = Vec::new();
    for text in ["one", "two"] {
        let response = stage.ask(WireFormat::Chat, &body(&[user(text)], false)).await;
        names.push(response.headers().get("x-throughline-request").unwrap().to_str().unwrap().to_owned());
    }
    let refused = stage.ask(WireFormat::Chat, "{").await;
    names.push(refused.headers().get("x-throughline-request").unwrap().to_str().unwrap().to_owned());
    assert!(names.iter().all(|name| name.len() == 16), "{names:?}");
    names.dedup();
    assert_eq!(names.len(), 3);
}
