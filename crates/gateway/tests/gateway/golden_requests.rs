//! Bodies of requests as they arrive at the upstream, byte for byte: what must not change while the code is rebuilt.
//!
//! Each test holds one story over HTTP and compares everything the upstream was asked with a file in
//! `tests/golden/requests`; `INSTA_UPDATE=always` writes the files anew. A body that is mostly an earlier one refers to
//! that one line by line, so that the files show what each request adds; its length and hash are of the whole body.
//! `faithful.rs` has the promise that untouched bodies stay as they are, `cli/tests/cli/golden.rs` the rest of the net.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throughline_testkit::{
    RecordedRequest, Reply, Script, check_golden, check_golden_folder, json_lines, updates_golden,
};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::stage::Stage;
use crate::talk::Talk;

mod compacted;
mod rewritten;
mod untouched;

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
