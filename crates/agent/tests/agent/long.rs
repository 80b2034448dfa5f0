//! Three hundred turns with tools in a window of 32 K: the conversation never runs out, nothing is lost, and what was said
//! early is known late.

use throughline_agent::{AgentEvent, ApprovalMode};
use throughline_engine::EngineEvent;
use throughline_provider::CacheMarks;
use throughline_store::{Owner, SearchMode, SearchQuery};
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::{RawJson, WireFormat};
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, last_text, wanting};

const WINDOW: u64 = 32_768;
const TURNS: usize = 300;
/// Turns in which something is planted, and what; it is asked for at the end.
const PLANTED: [(usize, &str, &str); 5] = [
    (2, "harbour gate colour", "ultramarine-4471"),
    (9, "staging database port", "port-58213"),
    (17, "release codename", "quiet-heron"),
    (31, "deploy approver", "Ingrid-Aaltonen"),
    (58, "rollback checksum", "9f3c77ab10de"),
];

/// What a person says in a turn.
fn said(turn: usize) -> String {
    if let Some((_, what, value)) = PLANTED.iter().find(|(planted, ..)| *planted == turn) {
        return format!("Marker-{turn:04}. Please note for later: the {what} is {value}.");
    }
    if turn >= TURNS - PLANTED.len() {
        let (_, what, _) = PLANTED[turn - (TURNS - PLANTED.len())];
        return format!("Marker-{turn:04}. What is the {what}? Look it up.");
    }
    format!("Marker-{turn:04}. Work on part {turn} of the list. {}", words(turn, 60))
}

fn words(number: usize, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "river", "stone", "engine", "paper", "window", "garden", "signal", "market", "copper", "letter",
        "bridge", "season",
    ];
    let word = |at: usize| WORDS[(at * 7 + number * 5 + at / 12) % WORDS.len()];
    (0..count).map(|at| format!("{}{}", word(at), (at * number) % 97)).collect::<Vec<_>>().join(" ")
}

/// A model that uses its tools and answers from what they return.
fn model(request: &RecordedRequest) -> Reply {
    let (role, text) = last_text(request);
    if role == "tool" {
        let planted = PLANTED.iter().find(|(_, what, value)| {
            text.contains(value) && asked_last(request).contains(&format!("What is the {what}?"))
        });
        return match planted {
            Some((_, what, value)) => Reply::text(format!("The {what} is {value}.")),
            None => Reply::text(format!("That part is done. {}", words(text.len(), 30))),
        };
    }
    let turn: usize = text.split("Marker-").nth(1).and_then(|rest| rest.get(..4)?.parse().ok()).unwrap_or(0);
    if let Some((_, what, _)) =
        PLANTED.iter().find(|(_, what, _)| text.contains(&format!("What is the {what}?")))
    {
        return wanting(&[("recall", &format!(r#"{{"query":"note for later {what}","count":3}}"#))]);
    }
    if PLANTED.iter().any(|(planted, ..)| *planted == turn) {
        return Reply::text("Noted.");
    }
    match turn % 3 {
        0 => wanting(&[("read_file", &format!(r#"{{"path":"part{}.txt"}}"#, turn % 7))]),
        1 => wanting(&[(
            "write_file",
            &format!(r#"{{"path":"out{turn}.txt","content":"result-{turn:04} {}"}}"#, words(turn, 200)),
        )]),
        _ => wanting(&[
            ("search_files", r#"{"pattern":"engine1","limit":20}"#),
            ("read_file", &format!(r#"{{"path":"part{}.txt","offset":{}}}"#, turn % 7, turn % 40 + 1)),
        ]),
    }
}

/// The last words of a person in a request.
fn asked_last(request: &RecordedRequest) -> String {
    let body = request.json();
    let all = body["messages"].as_array().cloned().unwrap_or_default();
    let last = all.iter().rev().find(|message| message["role"] == "user");
    last.map(|message| message["content"].to_string()).unwrap_or_default()
}

/// The messages of a body as they stand, marks aside.
fn items(body: &str) -> Vec<String> {
    let list = RawJson(body).get("messages");
    list.into_iter()
        .flat_map(RawJson::elements)
        .map(|item| CacheMarks::removed_from(item.0).into_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_turns_in_a_small_window() {
    let stage = Stage::new(WireFormat::Chat, WINDOW, Script::answering(model)).await;
    for part in 0..7 {
        let lines: Vec<String> = (0..60).map(|line| words(part * 100 + line, 12)).collect();
        stage.write(&format!("part{part}.txt"), &lines.join("\n"));
    }
    let mut agent = stage.begin(ApprovalMode::Never).await;
    let mut answers = Vec::new();
    for turn in 0..TURNS {
        // Half way the process ends and another takes over.
        if turn == TURNS / 2 {
            drop(agent);
            agent = stage.resume(ApprovalMode::Never).await;
        }
        let done = agent.turn(&said(turn), &CancellationToken::new()).await;
        let done = done.unwrap_or_else(|error| panic!("turn {turn} reached the person as an error: {error}"));
        answers.push(done.text);
    }

    // What was planted early is known late, from beyond dozens of compactions.
    for (at, (_, what, value)) in PLANTED.iter().enumerate() {
        let answer = &answers[TURNS - PLANTED.len() + at];
        assert!(answer.contains(value), "{what}: {answer}");
    }
    let compactions = agent.session().compactions();
    assert!((24..200).contains(&compactions), "{compactions} compactions");

    // No prompt was refused by the window, and none was nearly as large as that.
    let events = stage.events();
    let retried = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Engine(EngineEvent::Retrying { .. })))
        .count();
    assert_eq!(retried, 0, "no call had to be made twice");

    // Every original is in the record and found by search.
    let found = |text: String| {
        let query = SearchQuery { text, mode: SearchMode::Words, limit: 3, ..SearchQuery::default() };
        stage.store.search(&Owner::default(), &query).unwrap().hits.len()
    };
    for turn in 0..TURNS {
        assert!(found(format!("Marker-{turn:04}")) >= 1, "turn {turn} is not found");
        let wrote = turn % 3 == 1
            && turn < TURNS - PLANTED.len()
            && !PLANTED.iter().any(|(planted, ..)| *planted == turn);
        assert!(!wrote || found(format!("result-{turn:04}")) >= 1, "the call of turn {turn} is not found");
    }
    let transcript = stage.transcript();
    let people: Vec<&String> =
        transcript.iter().filter(|json| json.starts_with(r#"{"role":"user""#)).collect();
    assert_eq!(people.len(), TURNS, "everything a person said, once, in their own words");
    for (turn, json) in people.iter().enumerate() {
        assert_eq!(json.as_str(), serde_json::json!({"role": "user", "content": said(turn)}).to_string());
    }

    // Between compactions the prompt only grows at its end.
    let bodies: Vec<String> = stage.upstream.calls().iter().map(RecordedRequest::text).collect();
    let all: Vec<Vec<String>> = bodies.iter().map(|body| items(body)).collect();
    let moved = all.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])).count();
    assert_eq!(
        moved as u64, compactions,
        "the prefix moves when the conversation is compacted, and never else"
    );
    let largest = bodies.iter().map(String::len).max().unwrap_or(0);
    assert!(largest < WINDOW as usize * 4, "{largest} bytes");

    // The model is never told how full its window is.
    assert!(!bodies.iter().any(|body| body.contains("<system-reminder>")));
}
