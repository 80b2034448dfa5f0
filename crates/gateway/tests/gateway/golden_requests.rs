//! Bodies of requests as they arrive at the upstream, byte for byte: what must not change while the code is rebuilt.
//!
//! Each test holds one story over HTTP and compares everything the upstream was asked with a file in
//! `tests/golden/requests`; `INSTA_UPDATE=always` writes the files anew. A body that is mostly an earlier one refers to
//! that one line by line, so that the files show what each request adds; its length and hash are of the whole body.
//! `faithful.rs` has the promise that untouched bodies stay as they are, `cli/tests/cli/golden.rs` the rest of the net.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_engine::{
    Compressor, CompressorSetup, ContextEngine, ModelSummaries, OwnModel, SummarySetup,
};
use throughline_gateway::{EngineSource, RecallOffer};
use throughline_lcm::{LcmEngine, LcmSetup};
use throughline_provider::EndpointKind;
use throughline_redact::Redactor;
use throughline_store::{Owner, Store};
use throughline_testkit::{
    RecordedRequest, Reply, Script, check_golden, check_golden_folder, json_lines, updates_golden,
};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::stage::{MODEL, Stage, StillHost, empty_record, path_of};
use crate::talk::Talk;

/// Lines that have to be equal before an earlier body is referred to.
const LEAST_EQUAL_LINES: usize = 4;

/// Of a longer line only the ends are shown.
const LONGEST_LINE_CHARS: usize = 480;

/// Every story; a file each.
const STORIES: [&str; 34] = [
    "api-conversation",
    "api-conversation-recall",
    "branches",
    "cache-marks-by-client",
    "cache-marks-chat",
    "cache-marks-messages",
    "client-compaction",
    "compaction-anthropic",
    "compaction-by-model-anthropic",
    "compaction-by-model-chat",
    "compaction-chat",
    "compaction-lossless",
    "compaction-prepared-ahead",
    "compaction-responses",
    "compaction-undone",
    "headers",
    "odd-bodies",
    "output-cap-lowered",
    "overflow-anthropic",
    "overflow-chat",
    "overflow-responses",
    "passed-on",
    "previous-response",
    "recall-anthropic",
    "recall-beside-tools",
    "recall-chat",
    "recall-responses",
    "responses-compact",
    "responses-compaction-trigger",
    "restarted",
    "side-calls",
    "tools-streamed",
    "translated",
    "translated-rich",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/requests")
}

fn path(story: &str) -> PathBuf {
    assert!(STORIES.contains(&story), "{story} is not listed");
    folder().join(format!("{story}.txt"))
}

/// Compares everything the upstream was asked with the file of a story.
fn check(story: &str, stage: &Stage) {
    check_golden(&path(story), &described(&stage.upstream.requests()));
}

fn described(requests: &[RecordedRequest]) -> String {
    let mut text = String::new();
    let mut earlier: Vec<Vec<String>> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let query = request.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let hash = blake3::hash(&request.body).to_hex();
        let _ = writeln!(
            text,
            "=== request {}: {} {}{query}, {} bytes, blake3 {}",
            at + 1,
            request.method,
            request.path,
            request.body.len(),
            &hash[..16]
        );
        let lines: Vec<String> = json_lines(&request.text()).lines().map(str::to_owned).collect();
        let referred = earlier.iter().enumerate().map(|(number, other)| (number, equal_ends(other, &lines)));
        let referred = referred.max_by_key(|(number, (first, last))| (first + last, *number));
        match referred {
            Some((number, (first, last))) if first + last >= LEAST_EQUAL_LINES => {
                let _ = writeln!(text, "... {first} lines of request {}", number + 1);
                lines[first..lines.len() - last].iter().for_each(|line| text.push_str(&shown(line)));
                if last > 0 {
                    let _ = writeln!(text, "... the last {last} lines of request {}", number + 1);
                }
            }
            _ => lines.iter().for_each(|line| text.push_str(&shown(line))),
        }
        earlier.push(lines);
    }
    text
}

/// A line as it is shown: of a long one its ends, with a hash of the whole.
fn shown(line: &str) -> String {
    let count = line.chars().count();
    if count <= LONGEST_LINE_CHARS {
        return format!("{line}\n");
    }
    let start: String = line.chars().take(LONGEST_LINE_CHARS / 2).collect();
    let end: String = line.chars().skip(count - LONGEST_LINE_CHARS / 8).collect();
    format!(
        "{start}[... {count} characters, blake3 {} ...]{end}\n",
        &blake3::hash(line.as_bytes()).to_hex()[..16]
    )
}

/// How many lines two bodies have in common at their beginning and at their end.
fn equal_ends(one: &[String], other: &[String]) -> (usize, usize) {
    let first = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let rest = (one.len() - first).min(other.len() - first);
    let last = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    (first, last)
}

#[test]
fn fifty_requests_are_recorded_and_every_file_has_its_test() {
    // While files are written, other tests may still be at it.
    if updates_golden() {
        return;
    }
    let names: Vec<String> = STORIES.iter().map(|story| format!("{story}.txt")).collect();
    check_golden_folder(&folder(), &names.iter().map(String::as_str).collect::<Vec<_>>());
    let texts = STORIES.iter().map(|story| std::fs::read_to_string(path(story)).unwrap());
    let requests: usize = texts.map(|text| text.matches("=== request ").count()).sum();
    assert!(requests >= 50, "{requests}");
}

// What stories are told with.

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn talk(wire: WireFormat) -> Talk {
    Talk { wire, messages: Vec::new() }
}

fn call(id: &str, name: &str, arguments: &Value) -> AnswerPart {
    AnswerPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    })
}

fn reply(parts: Vec<AnswerPart>) -> Reply {
    Reply::answer(AnswerDraft::of_parts(parts))
}

/// An upstream that numbers its answers.
fn counting() -> Script {
    let mut count = 0;
    Script::answering(move |_| {
        count += 1;
        Reply::text(format!("answer {count}"))
    })
}

/// An upstream that calls a tool every other time.
fn working() -> Script {
    Script::answering(|request| match request.order % 2 {
        1 => Reply::text(format!("Answer {}: src/part_{}.rs is fine.", request.order, request.order)),
        _ => reply(vec![
            AnswerPart::Text("I look.".to_owned()),
            call(
                &format!("call_{}", request.order),
                "read",
                &json!({ "path": format!("src/part_{}.rs", request.order) }),
            ),
        ]),
    })
}

/// Words about one thing that differ from turn to turn.
fn words(turn: usize, count: usize) -> String {
    let word = |at: usize| {
        format!("berth_{}.rs:{}", (turn * 31 + at * 17) % 97, (turn * 7_919 + at * 104_729) % 9_973)
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Sends a body and waits for the end of its answer.
async fn ask(stage: &Stage, wire: WireFormat, body: &Value) -> String {
    let response = stage.ask(wire, &body.to_string()).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    text
}

/// Holds a conversation until it was compacted so often, and two turns more.
async fn talk_until_compacted(stage: &Stage, talk: &mut Talk, compactions: usize) {
    talk.say(&format!("The port is 48113. Never touch vendor/. {}", words(0, 40)));
    talk.ask(stage, false).await;
    let (mut turn, mut left) = (0, 2);
    while left > 0 {
        turn += 1;
        assert!(turn < 200, "it was never compacted");
        if stage.compactions() >= compactions {
            left -= 1;
        }
        talk.say(&format!("Turn {turn}: {}", words(turn, 90)));
        let answer = talk.ask(stage, turn % 2 == 0).await;
        if let Some(id) = answer.tool_calls().next().map(|call| call.id.clone()) {
            talk.result(&id, &format!("fn part_{turn}() {{}}\n{}", words(turn + 500, 60)));
            talk.ask(stage, turn % 2 == 0).await;
        }
    }
}

// Bodies that stay as they are.

#[tokio::test]
async fn odd_bodies_arrive_as_recorded() {
    let stage = Stage::new(None, Script::always(Reply::text("Fine."))).await;
    for stream in ["true", "false"] {
        let chat = format!(
            "{{ \"model\" : \"{MODEL}\", \"stream\":{stream},\n \"temperature\": 1.0e0, \"unknown\": {{\"b\":1,\"a\":12345678901234567890}}, \"messages\": [ {{\"role\":\"system\",\"content\":\"Be brief.\"}} ,{{\"role\":\"user\",\"content\":\"caf\\u00e9 \\ud83d\\ude00 {stream}\", \"x\": [ ]}} ] }}"
        );
        let responses = format!(
            "{{\"model\":\"{MODEL}\",\"input\":[ {{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"h\\u0069 {stream}\"}}]}} ],\"store\":false, \"stream\": {stream},\"big\":1.10}}"
        );
        let anthropic = format!(
            "{{\"max_tokens\": 1024,\"stream\":{stream},\"model\":\"{MODEL}\",\"metadata\":{{\"user_id\":\"u\"}},\"system\":[{{\"type\":\"text\",\"text\":\"Be brief.\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"messages\":[{{\"content\":[{{\"text\":\"\\u00e9 {stream}\",\"type\":\"text\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"role\":\"user\"}}],\"thinking\":{{\"type\":\"disabled\"}}}}"
        );
        for (wire, body) in
            [(WireFormat::Chat, chat), (WireFormat::Responses, responses), (WireFormat::Anthropic, anthropic)]
        {
            let response = stage.ask(wire, &body).await;
            assert_eq!(response.status(), 200);
            response.text().await.unwrap();
        }
    }
    check("odd-bodies", &stage);
}

#[tokio::test]
async fn requests_that_are_passed_on_arrive_as_recorded() {
    let pages = ["/v1/embeddings", "/v1/files/file_1", "/v1/messages/count_tokens"]
        .map(|path| (path.to_owned(), Reply::json(200, "{\"input_tokens\":7}")));
    let stage = Stage::with_pages(pages.to_vec(), counting()).await;
    stage
        .post(&stage.at("/v1/embeddings?x=1"), "{ \"input\" : \"words\", \"model\":\"e\" }")
        .await
        .text()
        .await
        .unwrap();
    stage.http.get(stage.at("/v1/models")).send().await.unwrap().text().await.unwrap();
    stage.http.delete(stage.at("/v1/files/file_1")).send().await.unwrap().text().await.unwrap();
    let count = json!({ "model": MODEL, "messages": [user("how long is this?")] }).to_string();
    stage.post(&stage.at("/v1/messages/count_tokens"), &count).await.text().await.unwrap();
    // The provider knows an answer that the record does not.
    let named = json!({ "model": MODEL, "input": "on", "previous_response_id": "resp_of_the_provider" });
    ask(&stage, WireFormat::Responses, &named).await;
    check("passed-on", &stage);
}

/// Which headers go on to the upstream; all values but those of a connection.
#[tokio::test]
async fn headers_arrive_as_recorded() {
    let mut lines = Vec::new();
    let ways = [
        (WireFormat::Chat, WireFormat::Chat),
        (WireFormat::Anthropic, WireFormat::Anthropic),
        (WireFormat::Responses, WireFormat::Responses),
        (WireFormat::Chat, WireFormat::Anthropic),
        (WireFormat::Anthropic, WireFormat::Chat),
    ];
    for (client, server) in ways {
        for key in [None, Some("sk-of-the-operator")] {
            let mut stage = Stage::with_wire(server, None, counting()).await;
            stage.upstream_key = key;
            stage.start().await;
            let body = json!({ "model": MODEL, "max_tokens": 5, if client == WireFormat::Responses { "input" } else { "messages" }: [user("hi")] });
            let request =
                stage.http.post(stage.at(path_of(client))).header("content-type", "application/json");
            let request =
                request.header("authorization", "Bearer sk-of-the-client").header("x-stainless-lang", "rust");
            let request =
                request.header("anthropic-version", "2023-06-01").header("anthropic-beta", "tools-2026");
            let request = request.header("x-throughline-anything", "ours").header("user-agent", "a client");
            let response = request.body(body.to_string()).send().await.unwrap();
            assert_eq!(response.status(), 200);
            response.text().await.unwrap();
            for sent in stage.upstream.requests() {
                for (name, value) in &sent.headers {
                    if !["host", "content-length"].contains(&name.as_str()) {
                        let operator = if key.is_some() { "operator's key" } else { "client's key" };
                        lines.push(format!("{client} over {server}, {operator}: {name}: {value}\n"));
                    }
                }
            }
        }
    }
    lines.sort();
    check_golden(&path("headers"), &lines.concat());
}

// Conversations.

#[tokio::test]
async fn conversations_with_tools_arrive_as_recorded() {
    let mut text = String::new();
    for wire in WireFormat::ALL {
        let stage = Stage::new(None, working()).await;
        let mut talk = talk(wire);
        for turn in 0..2 {
            talk.say(&format!("Question {turn}"));
            let answer = talk.ask(&stage, true).await;
            let id = answer.tool_calls().next().unwrap().id.clone();
            talk.result(&id, "fn main() {}");
            talk.ask(&stage, true).await;
        }
        let _ = write!(text, "# {wire}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("tools-streamed"), &text);
}

#[tokio::test]
async fn conversations_over_a_restart_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    let mut said = vec![json!({"role": "system", "content": "It is Monday."}), user("one")];
    for turn in 1..=3 {
        ask(&stage, WireFormat::Chat, &json!({ "model": MODEL, "messages": said })).await;
        stage.start().await;
        said[0] = json!({"role": "system", "content": format!("It is day {turn}.")});
        said.push(json!({"content": format!("answer {turn}"), "role": "assistant", "refusal": null}));
        said.push(user(&format!("question {turn}")));
    }
    check("restarted", &stage);
}

#[tokio::test]
async fn branches_and_repetitions_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let body = |messages: &[Value]| json!({ "model": MODEL, "messages": messages });
    let first = [user("one"), assistant("answer 1"), user("two")];
    let edited = [user("one"), assistant("answer 1"), user("two, in other words")];
    ask(&stage, WireFormat::Chat, &body(&first[..1])).await;
    ask(&stage, WireFormat::Chat, &body(&first)).await;
    ask(&stage, WireFormat::Chat, &body(&first)).await;
    ask(&stage, WireFormat::Chat, &body(&edited)).await;
    ask(&stage, WireFormat::Chat, &body(&[&first[..], &[assistant("answer 2"), user("three")]].concat()))
        .await;
    ask(&stage, WireFormat::Chat, &body(&[&edited[..], &[assistant("answer 4"), user("three")]].concat()))
        .await;
    assert_eq!(stage.opened(), [None, Some("branch"), Some("branch")]);
    check("branches", &stage);
}

fn of_session(messages: &[Value], has_tools: bool) -> Value {
    let tools = json!([{ "name": "t", "description": "d", "input_schema": { "type": "object" } }]);
    let tools = if has_tools { tools } else { json!([]) };
    json!({ "model": MODEL, "max_tokens": 100, "metadata": { "user_id": "session_1" }, "tools": tools, "messages": messages })
}

#[tokio::test]
async fn side_calls_and_sub_agents_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("a title, please: build it")], false)).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("build it")], true)).await;
    ask(&stage, WireFormat::Anthropic, &of_session(&[user("look for the tests")], true)).await;
    ask(
        &stage,
        WireFormat::Anthropic,
        &of_session(&[user("build it"), assistant("answer 2"), user("on")], true),
    )
    .await;
    ask(
        &stage,
        WireFormat::Anthropic,
        &of_session(&[user("look for the tests"), assistant("answer 3"), user("where?")], true),
    )
    .await;
    assert_eq!(stage.opened(), [None, None, Some("sub_agent")]);
    check("side-calls", &stage);
}

#[tokio::test]
async fn clients_that_compact_themselves_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let mut said = vec![user("one")];
    for turn in 1..=3 {
        ask(&stage, WireFormat::Anthropic, &of_session(&said, true)).await;
        said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    let asks = "Your task is to create a detailed summary of the conversation so far.";
    let behind = json!({ "role": "user", "content": [{ "type": "text", "text": "question 2" }, { "type": "text", "text": asks }] });
    ask(&stage, WireFormat::Anthropic, &of_session(&[&said[..4], &[behind]].concat(), true)).await;
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    let mut compacted = vec![user(note), user("go on")];
    ask(&stage, WireFormat::Anthropic, &of_session(&compacted, true)).await;
    compacted.extend([assistant("answer 4"), user("further")]);
    ask(&stage, WireFormat::Anthropic, &of_session(&compacted, true)).await;
    check("client-compaction", &stage);
}

#[tokio::test]
async fn requests_that_name_an_earlier_answer_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    let mut ids: Vec<Value> = Vec::new();
    for (turn, (text, previous)) in
        [("one", None), ("two", Some(0)), ("three", Some(1)), ("two, again", Some(0))].into_iter().enumerate()
    {
        let mut body = json!({ "model": MODEL, "input": text, "instructions": "Be brief.", "store": true });
        if let Some(previous) = previous {
            body["previous_response_id"] = ids[previous as usize].clone();
        }
        let answer: Value = serde_json::from_str(&ask(&stage, WireFormat::Responses, &body).await).unwrap();
        ids.push(answer["id"].clone());
        if turn == 1 {
            stage.start().await;
        }
    }
    let items = json!([{ "type": "function_call_output", "call_id": "c1", "output": "done" }, user("four")]);
    let body = json!({ "model": MODEL, "input": items, "previous_response_id": ids[2] });
    ask(&stage, WireFormat::Responses, &body).await;
    check("previous-response", &stage);
}

#[tokio::test]
async fn kept_conversations_arrive_as_recorded() {
    let stage = Stage::new(None, counting()).await;
    let path = "/api/conversations/team%2F42/messages";
    stage.send(path, &json!({ "text": "one", "model": MODEL, "system": "Be brief." })).await;
    stage.send(path, &json!({ "text": "two" })).await;
    let streamed = json!({ "text": "three", "stream": true }).to_string();
    stage.post(&stage.at(path), &streamed).await.text().await.unwrap();
    check("api-conversation", &stage);
}

// Cache marks.

#[tokio::test]
async fn cache_marks_on_the_messages_wire_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    let tools = json!([{ "name": "t", "input_schema": { "type": "object" } }]);
    let mut said = vec![user("one")];
    for turn in 1..=4 {
        let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 64, "system": "Be brief.", "tools": tools, "messages": said });
        ask(&stage, WireFormat::Anthropic, &body).await;
        said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    check("cache-marks-messages", &stage);
}

#[tokio::test]
async fn cache_marks_of_the_client_arrive_as_recorded() {
    let mut stage = Stage::new(None, counting()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    let mark = json!({ "type": "ephemeral", "ttl": "1h" });
    let mut said: Vec<Value> = Vec::new();
    for turn in 1..=3 {
        let text = format!("question {turn}");
        let marked =
            json!({ "role": "user", "content": [{ "type": "text", "text": text, "cache_control": mark }] });
        let with_mark = [&said[..], &[marked]].concat();
        let system = json!([{ "type": "text", "text": "Be brief.", "cache_control": mark }]);
        let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": with_mark });
        ask(&stage, WireFormat::Anthropic, &body).await;
        said.extend([
            json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
            assistant(&format!("answer {turn}")),
        ]);
    }
    check("cache-marks-by-client", &stage);
}

#[tokio::test]
async fn cache_marks_on_the_chat_wire_arrive_as_recorded() {
    let mut text = String::new();
    for (kind, model) in [
        (EndpointKind::OpenRouter, "anthropic/claude-sonnet-4.5"),
        (EndpointKind::OpenAi, "gpt-5.2"),
        (EndpointKind::Custom, "claude-sonnet-4-5"),
    ] {
        let mut stage = Stage::new(None, counting()).await;
        stage.kind = kind;
        stage.start().await;
        let mut said = vec![json!({ "role": "system", "content": "Be brief." }), user("one")];
        for turn in 1..=3 {
            ask(&stage, WireFormat::Chat, &json!({ "model": model, "messages": said })).await;
            said.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
        }
        let _ = write!(text, "# {kind:?}, {model}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("cache-marks-chat"), &text);
}

// Compactions.

#[tokio::test]
async fn compactions_on_the_chat_wire_arrive_as_recorded() {
    let stage = Stage::new(Some(16_000), working()).await;
    talk_until_compacted(&stage, &mut talk(WireFormat::Chat), 2).await;
    check("compaction-chat", &stage);
}

#[tokio::test]
async fn compactions_on_the_anthropic_wire_arrive_as_recorded() {
    let mut stage = Stage::new(Some(16_000), working()).await;
    stage.kind = EndpointKind::Anthropic;
    stage.start().await;
    talk_until_compacted(&stage, &mut talk(WireFormat::Anthropic), 1).await;
    check("compaction-anthropic", &stage);
}

#[tokio::test]
async fn compactions_on_the_responses_wire_arrive_as_recorded() {
    let stage = Stage::new(Some(16_000), working()).await;
    talk_until_compacted(&stage, &mut talk(WireFormat::Responses), 1).await;
    check("compaction-responses", &stage);
}

/// In small steps, so that the summary is prepared before it is needed.
#[tokio::test]
async fn compactions_prepared_ahead_arrive_as_recorded() {
    let stage = Stage::new(Some(16_000), counting()).await;
    let mut said = vec![json!({ "role": "system", "content": "Be thorough." })];
    let (mut turn, mut left) = (0, 2);
    while left > 0 {
        turn += 1;
        left -= usize::from(stage.compactions() > 0);
        said.push(user(&format!("Turn {turn}: {}", words(turn, 30))));
        let answer: Value = serde_json::from_str(
            &ask(&stage, WireFormat::Chat, &json!({ "model": MODEL, "messages": said })).await,
        )
        .unwrap();
        said.push(answer["choices"][0]["message"].clone());
        assert!(turn < 300, "it was never compacted");
    }
    check("compaction-prepared-ahead", &stage);
}

#[tokio::test]
async fn compactions_by_the_lossless_engine_arrive_as_recorded() {
    let store: Arc<dyn Store> = empty_record();
    let kept = Arc::clone(&store);
    let engine: EngineSource = Arc::new(move |owner: &Owner| {
        let setup = LcmSetup::by_rules(Arc::clone(&kept), owner.clone(), Arc::new(StillHost::default()));
        Arc::new(LcmEngine::new(setup)) as Arc<dyn ContextEngine>
    });
    let mut stage = Stage::with_engine(engine, Some(16_000), working()).await;
    stage.store = store;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    talk_until_compacted(&stage, &mut talk(WireFormat::Anthropic), 1).await;
    check("compaction-lossless", &stage);
}

/// A summary as a model writes it.
fn notes() -> String {
    let headings = throughline_compaction::Section::ALL;
    headings.map(|section| format!("## {}\n- kept in good order\n", section.heading())).concat()
}

async fn compaction_by_model(wire: WireFormat, story: &str) {
    let mut count = 0;
    let script = Script::answering(move |request| {
        count += 1;
        let text = request.text();
        if text.contains("Rules for the notes:") {
            Reply::text(notes())
        } else {
            Reply::text(format!("answer {count}"))
        }
    });
    let engine: EngineSource = Arc::new(|_owner: &Owner| {
        let summaries = ModelSummaries::new(SummarySetup {
            routes: Vec::new(),
            own_model: OwnModel::Last,
            time_limit: Duration::from_secs(60),
            redactor: Some(Redactor::new()),
            host: Arc::new(StillHost::default()),
            health: Arc::default(),
        });
        let setup = CompressorSetup {
            summarisers: Arc::new(summaries),
            redactor: Some(Redactor::new()),
            ..CompressorSetup::by_rules()
        };
        Arc::new(Compressor::new(setup)) as Arc<dyn ContextEngine>
    });
    let stage = Stage::with_engine(engine, Some(64_000), script).await;
    let mut talk = talk(wire);
    talk.say("The port is 48113. Never touch vendor/.");
    talk.ask(&stage, false).await;
    for turn in 0..8 {
        talk.say(&format!("Turn {turn}: {}", words(turn, 120)));
        talk.ask(&stage, false).await;
    }
    // By hand: nothing is prepared meanwhile, and calls have one order.
    for focus in [None, Some("berth_7")] {
        let wish = json!({ "focus": focus, "keep_exchanges": 2 });
        let (status, done) = stage.send("/api/sessions/last/compact", &wish).await;
        assert_eq!((status, &done["outcome"]), (200, &json!("completed")), "{done}");
        for turn in 0..4 {
            talk.say(&format!("Later turn {turn}: {}", words(turn + 50, 60)));
            talk.ask(&stage, false).await;
        }
    }
    talk.say("And on.");
    talk.ask(&stage, false).await;
    assert_eq!(stage.compactions(), 2);
    check(story, &stage);
}

#[tokio::test]
async fn compactions_by_a_model_on_the_chat_wire_arrive_as_recorded() {
    compaction_by_model(WireFormat::Chat, "compaction-by-model-chat").await;
}

#[tokio::test]
async fn compactions_by_a_model_on_the_anthropic_wire_arrive_as_recorded() {
    compaction_by_model(WireFormat::Anthropic, "compaction-by-model-anthropic").await;
}

#[tokio::test]
async fn compactions_by_hand_and_undone_arrive_as_recorded() {
    let stage = Stage::new(Some(64_000), counting()).await;
    let mut said = Vec::new();
    let mut on = async |words: String| {
        said.push(user(&words));
        let answer: Value = serde_json::from_str(
            &ask(&stage, WireFormat::Chat, &json!({ "model": MODEL, "messages": said })).await,
        )
        .unwrap();
        said.push(answer["choices"][0]["message"].clone());
    };
    for turn in 0..10 {
        on(format!("Question {turn} about the lighthouse: {}", words(turn, 60))).await;
    }
    let (status, done) = stage
        .send("/api/sessions/last/compact", &json!({ "focus": "lighthouse", "keep_exchanges": 2 }))
        .await;
    assert_eq!((status, &done["outcome"]), (200, &json!("completed")), "{done}");
    on("And now?".to_owned()).await;
    assert_eq!(stage.send("/api/sessions/last/undo", &json!({})).await.0, 200);
    on("And then?".to_owned()).await;
    assert_eq!(stage.send("/api/sessions/last/redo", &json!({})).await.0, 200);
    on("At last?".to_owned()).await;
    check("compaction-undone", &stage);
}

// Compactions that a client of the Responses wire asks for.

fn item(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
}

fn of_thread(input: &[Value]) -> Value {
    json!({ "model": MODEL, "instructions": "Work.", "prompt_cache_key": "thread-1", "input": input })
}

async fn responses_talk(stage: &Stage, turns: usize) -> Vec<Value> {
    let mut input = vec![item("developer", "Stay inside of the folder.")];
    for turn in 0..turns {
        input.push(item("user", &format!("Step {turn}: {}", words(turn, 60))));
        input.extend(output(&ask(stage, WireFormat::Responses, &of_thread(&input)).await));
    }
    input
}

fn output(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["output"].as_array().unwrap().clone()
}

#[tokio::test]
async fn compactions_at_their_own_path_arrive_as_recorded() {
    let mut stage = Stage::new(Some(200_000), counting()).await;
    let input = responses_talk(&stage, 10).await;
    let response = stage.post(&stage.at("/v1/responses/compact"), &of_thread(&input).to_string()).await;
    assert_eq!(response.status(), 200);
    let mut on = output(&response.text().await.unwrap());
    for turn in 0..2 {
        on.push(item("user", &format!("Go on {turn}: which port was it?")));
        on.extend(output(&ask(&stage, WireFormat::Responses, &of_thread(&on)).await));
        stage.start().await;
    }
    check("responses-compact", &stage);
}

#[tokio::test]
async fn compactions_by_a_trigger_arrive_as_recorded() {
    let stage = Stage::new(Some(200_000), counting()).await;
    let input = responses_talk(&stage, 10).await;
    let asking = of_thread(&[&input[..], &[json!({ "type": "compaction_trigger" })]].concat());
    let kept = output(&ask(&stage, WireFormat::Responses, &asking).await).pop().unwrap();
    let mut on = vec![
        item("user", "<environment>moved to another folder</environment> look"),
        kept,
        item("user", "Go on."),
    ];
    on.extend(output(&ask(&stage, WireFormat::Responses, &of_thread(&on)).await));
    on.push(item("user", "Further."));
    ask(&stage, WireFormat::Responses, &of_thread(&on)).await;
    check("responses-compaction-trigger", &stage);
}

// Recovery.

/// An upstream whose window is smaller than anybody knows.
async fn overflow(wire: WireFormat, story: &str) {
    const MOST_BYTES: usize = 24_000;
    let mut count = 0;
    let script = Script::answering(move |request| {
        if request.body.len() > MOST_BYTES {
            let words = "This model's maximum context length is 12000 tokens. However, your messages resulted in 14000 tokens.";
            return Reply::error(400, "invalid_request_error", words);
        }
        count += 1;
        Reply::text(format!("answer {count}"))
    });
    let stage = Stage::new(None, script).await;
    let mut talk = talk(wire);
    for turn in 0..10 {
        talk.say(&format!("Turn {turn}: {}", words(turn, 160)));
        talk.ask(&stage, turn % 2 == 1).await;
    }
    assert!(stage.compactions() > 0, "nothing overflowed");
    check(story, &stage);
}

#[tokio::test]
async fn overflows_on_the_chat_wire_arrive_as_recorded() {
    overflow(WireFormat::Chat, "overflow-chat").await;
}

#[tokio::test]
async fn overflows_on_the_anthropic_wire_arrive_as_recorded() {
    overflow(WireFormat::Anthropic, "overflow-anthropic").await;
}

#[tokio::test]
async fn overflows_on_the_responses_wire_arrive_as_recorded() {
    overflow(WireFormat::Responses, "overflow-responses").await;
}

#[tokio::test]
async fn lowered_output_caps_arrive_as_recorded() {
    let script = Script::row([
        Reply::error(
            400,
            "invalid_request_error",
            "max_tokens is too large: 500. This model supports at most 64 completion tokens, whereas you provided 500.",
        ),
        Reply::text("Shorter."),
        Reply::text("And on."),
    ]);
    let stage = Stage::new(Some(64_000), script).await;
    let mut talk = talk(WireFormat::Chat);
    talk.say("Say a lot.");
    talk.ask(&stage, false).await;
    talk.say("More.");
    talk.ask(&stage, false).await;
    check("output-cap-lowered", &stage);
}

// Recall.

async fn recall(wire: WireFormat, story: &str) {
    let mut stage = Stage::new(
        None,
        Script::row([
            Reply::text("Noted."),
            reply(vec![
                AnswerPart::Text("Let me look.".to_owned()),
                call("r1", "lcm_grep", &json!({ "query": "vault" })),
            ]),
            reply(vec![call("r2", "lcm_expand", &json!({ "message": 0 }))]),
            Reply::text("It is VAULT-77."),
            Reply::text("You are welcome."),
        ]),
    )
    .await;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    let mut talk = talk(wire);
    talk.say("The key of the vault is VAULT-77.");
    talk.ask(&stage, true).await;
    talk.say("What was the key?");
    talk.ask(&stage, true).await;
    stage.start().await;
    talk.say("Thanks.");
    talk.ask(&stage, false).await;
    check(story, &stage);
}

#[tokio::test]
async fn recall_on_the_chat_wire_arrives_as_recorded() {
    recall(WireFormat::Chat, "recall-chat").await;
}

#[tokio::test]
async fn recall_on_the_anthropic_wire_arrives_as_recorded() {
    recall(WireFormat::Anthropic, "recall-anthropic").await;
}

#[tokio::test]
async fn recall_on_the_responses_wire_arrives_as_recorded() {
    recall(WireFormat::Responses, "recall-responses").await;
}

#[tokio::test]
async fn recall_beside_tools_of_the_client_arrives_as_recorded() {
    let mut text = String::new();
    for wire in WireFormat::ALL {
        let mut stage = Stage::new(
            None,
            Script::row([
                reply(vec![
                    AnswerPart::Text("Both.".to_owned()),
                    call("r1", "lcm_grep", &json!({ "query": "vault" })),
                    call("c1", "read", &json!({ "path": "a.rs" })),
                ]),
                Reply::text("Done."),
            ]),
        )
        .await;
        stage.recall = RecallOffer::Agents;
        stage.start().await;
        let mut talk = talk(wire);
        talk.say("The key of the vault is VAULT-77. Read a.rs.");
        talk.ask(&stage, true).await;
        talk.result("c1", "fn main() {}");
        talk.ask(&stage, false).await;
        let _ = write!(text, "# {wire}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("recall-beside-tools"), &text);
}

#[tokio::test]
async fn recall_in_kept_conversations_arrives_as_recorded() {
    let mut stage = Stage::new(
        None,
        Script::row([
            Reply::text("Noted."),
            reply(vec![call("r1", "lcm_grep", &json!({ "query": "vault" }))]),
            Reply::text("VAULT-77."),
        ]),
    )
    .await;
    stage.recall = RecallOffer::Agents;
    stage.start().await;
    let path = "/api/conversations/one/messages";
    stage.send(path, &json!({ "text": "The vault is VAULT-77.", "model": MODEL })).await;
    stage.send(path, &json!({ "text": "Which vault?" })).await;
    check("api-conversation-recall", &stage);
}

// Translations.

const WAYS: [(WireFormat, WireFormat); 3] = [
    (WireFormat::Chat, WireFormat::Anthropic),
    (WireFormat::Anthropic, WireFormat::Chat),
    (WireFormat::Responses, WireFormat::Chat),
];

#[tokio::test]
async fn translated_conversations_arrive_as_recorded() {
    let mut text = String::new();
    for (client, server) in WAYS {
        let stage = Stage::with_wire(server, None, working()).await;
        let mut talk = talk(client);
        for turn in 0..2 {
            talk.say(&format!("Question {turn}"));
            let answer = talk.ask(&stage, turn == 1).await;
            let id = answer.tool_calls().next().unwrap().id.clone();
            talk.result(&id, "fn main() {}");
            talk.ask(&stage, turn == 1).await;
        }
        let _ = write!(text, "# {client} over {server}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("translated"), &text);
}

/// Everything a wire can say that the other one has a place for.
#[tokio::test]
async fn translated_members_arrive_as_recorded() {
    let mut text = String::new();
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let chat = json!({ "model": MODEL, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "max_completion_tokens": 99, "tool_choice": "required", "parallel_tool_calls": false,
        "tools": [{ "type": "function", "function": { "name": "read", "description": "Reads", "parameters": schema } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "What is this?" }, { "type": "image_url", "image_url": { "url": picture } }] },
            { "role": "assistant", "content": "I read.", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{\"path\": \"a.rs\"}" } }, { "id": "c2", "type": "function", "function": { "name": "read", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": "one" }, { "role": "tool", "tool_call_id": "c2", "content": [{ "type": "text", "text": "two" }] },
            { "role": "user", "content": "And?" }] });
    let anthropic = json!({ "model": MODEL, "max_tokens": 99, "temperature": 0.5, "stop_sequences": ["END"], "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }], "tool_choice": { "type": "any" },
        "tools": [{ "name": "read", "description": "Reads", "input_schema": schema }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "What is this?" }, { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } }] },
            { "role": "assistant", "content": [{ "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "I read." }, { "type": "tool_use", "id": "c1", "name": "read", "input": { "path": "a.rs" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [{ "type": "text", "text": "no such file" }] }, { "type": "text", "text": "And?" }] }] });
    let responses = json!({ "model": MODEL, "instructions": "Be brief.", "max_output_tokens": 99, "temperature": 0.5, "reasoning": { "effort": "low" }, "tool_choice": "auto", "text": { "format": { "type": "json_schema", "name": "n", "schema": schema, "strict": true } },
        "tools": [{ "type": "function", "name": "read", "description": "Reads", "parameters": schema, "strict": true }],
        "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "What is this?" }, { "type": "input_image", "image_url": picture }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB" },
            { "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a.rs\"}" },
            { "type": "function_call_output", "call_id": "c1", "output": "one" },
            { "type": "message", "role": "user", "content": "And?" }] });
    for ((client, server), body) in WAYS.into_iter().zip([chat, anthropic, responses]) {
        let stage = Stage::with_wire(server, None, counting()).await;
        ask(&stage, client, &body).await;
        let _ = write!(text, "# {client} over {server}\n{}", described(&stage.upstream.requests()));
    }
    check_golden(&path("translated-rich"), &text);
}
