//! What the loop has to do about context: tools forget what the model no longer sees, a smaller window folds first, long
//! output is read in pieces.

use throughline_agent::{AgentEvent, ApprovalMode};
use throughline_engine::{CompactionResult, EngineEvent, ManualCompaction, Trigger};
use throughline_store::{ArtifactRange, Owner};
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::WireFormat;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, id, last_text, wanting};

/// A model that reads a file when it is told to, and talks otherwise.
fn reader(request: &RecordedRequest) -> Reply {
    let (role, text) = last_text(request);
    match (role.as_str(), text.as_str()) {
        ("user", "read") => wanting(&[("read_file", r#"{"path":"a.txt"}"#)]),
        ("user", _) => Reply::text(format!("Answer. {}", "More about that. ".repeat(40))),
        _ => Reply::text("I have read it."),
    }
}

/// What the last tool returned, as it was sent.
fn last_result(stage: &Stage) -> String {
    let bodies = stage.upstream.calls();
    let results = bodies.iter().map(last_text).filter(|(role, _)| role == "tool");
    results.map(|(_, text)| text).last().unwrap_or_default()
}

#[tokio::test]
async fn a_file_is_shown_again_once_the_model_no_longer_sees_it() {
    let stage = Stage::new(WireFormat::Chat, 200_000, Script::answering(reader)).await;
    stage.write("a.txt", "the harbour gate is blue\n");
    let mut agent = stage.begin(ApprovalMode::Nobody).await;
    let go = CancellationToken::new();
    agent.turn("read", &go).await.unwrap();
    assert!(last_result(&stage).contains("the harbour gate is blue"));
    agent.turn("read", &go).await.unwrap();
    assert!(last_result(&stage).contains("unchanged since these lines were read"));
    for turn in 0..8 {
        agent.turn(&format!("remark {turn}"), &go).await.unwrap();
    }
    let folded = agent.compact(ManualCompaction { keep_exchanges: Some(1), ..Default::default() }, &go).await;
    assert!(matches!(folded, Some(CompactionResult::Completed(_))), "{folded:?}");
    agent.turn("read", &go).await.unwrap();
    assert!(last_result(&stage).contains("the harbour gate is blue"), "{}", last_result(&stage));
}

#[tokio::test]
async fn a_compaction_that_is_called_off_changes_nothing() {
    let stage = Stage::new(WireFormat::Chat, 200_000, Script::answering(reader)).await;
    let mut agent = stage.begin(ApprovalMode::Nobody).await;
    for turn in 0..8 {
        agent.turn(&format!("remark {turn}"), &CancellationToken::new()).await.unwrap();
    }
    let before: Vec<String> = agent.session().messages().iter().map(|m| m.json().to_owned()).collect();
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert!(agent.compact(ManualCompaction::default(), &stopped).await.is_none());
    let after: Vec<String> = agent.session().messages().iter().map(|m| m.json().to_owned()).collect();
    assert_eq!(before, after);
    agent.turn("and on", &CancellationToken::new()).await.unwrap();
}

#[tokio::test]
async fn a_model_with_a_smaller_window_folds_before_it_is_asked() {
    let stage = Stage::new(WireFormat::Chat, 200_000, Script::answering(reader)).await;
    let mut agent = stage.begin(ApprovalMode::Nobody).await;
    let go = CancellationToken::new();
    for turn in 0..60 {
        agent.turn(&format!("remark {turn}"), &go).await.unwrap();
    }
    assert_eq!(agent.session().compactions(), 0);
    let large = agent.session().pressure().tokens;
    agent.switch_model(stage.target_with_window(16_000), None).await.unwrap();
    agent.turn("and now", &go).await.unwrap();
    assert!(agent.session().pressure().tokens < 8_000 && large > 8_000, "{large}");
    let events = stage.events();
    let folded = |event: &AgentEvent| {
        matches!(
            event,
            AgentEvent::Engine(EngineEvent::CompactionCompleted { trigger: Trigger::ModelSwitch, .. })
        )
    };
    assert!(events.iter().any(folded), "it was compacted because of the switch");
    let again = |event: &&AgentEvent| matches!(event, AgentEvent::Engine(EngineEvent::Retrying { .. }));
    assert_eq!(events.iter().filter(again).count(), 0, "and nothing was refused before that");
}

#[tokio::test]
async fn long_output_is_set_aside_once_and_read_in_pieces() {
    let script = Script::answering(|request| {
        let (role, text) = last_text(request);
        match role.as_str() {
            "user" => wanting(&[("terminal", r#"{"command":"seq -f 'row %g of the long list' 1 1500"}"#)]),
            _ if text.starts_with("<persisted-output>") => {
                let name =
                    text.split("kept as artifact ").nth(1).and_then(|rest| rest.get(..16)).unwrap_or("");
                wanting(&[("recall", &format!(r#"{{"artifact":"{name}","first_line":700,"count":300}}"#))])
            }
            _ => Reply::text("Row 700 is there."),
        }
    });
    let stage = Stage::new(WireFormat::Chat, 32_768, script).await;
    let mut agent = stage.begin(ApprovalMode::Never).await;
    agent.turn("list", &CancellationToken::new()).await.unwrap();
    let aside = stage
        .events()
        .iter()
        .filter(|event| matches!(event, AgentEvent::Engine(EngineEvent::OutputSetAside { .. })))
        .count();
    assert_eq!(aside, 1, "what was read back is not set aside again");
    let sent = stage.upstream.calls().iter().map(last_text).map(|(_, text)| text).nth(1).unwrap();
    assert!(sent.contains("characters (") && sent.contains(" KB) in 1501 lines."), "its size: {sent}");
    assert!(
        sent.contains("recall {\"artifact\": \"") && sent.contains("\"first_line\": 1"),
        "how to read it: {sent}"
    );
    assert!(
        sent.contains("\nrow 1 of the long list\nrow 2") && sent.contains("[exit code 0]"),
        "a preview: {sent}"
    );
    assert!(sent.ends_with("</persisted-output>"), "{sent}");
    let pieces = last_result(&stage);
    assert!(pieces.starts_with("row 700 of the long list") && pieces.contains("row 999 of"), "{pieces}");
    let kept = stage.transcript().into_iter().find(|json| json.contains("row 1499 of")).unwrap();
    assert!(kept.contains("row 600 of"), "the record has what the command printed");
}

#[tokio::test]
async fn a_step_over_its_budget_spills_the_longest_and_nothing_is_worked_out_again() {
    let script = Script::answering(|request| match last_text(request).0.as_str() {
        "user" => wanting(&[
            ("read_file", r#"{"path":"small.txt"}"#),
            ("read_file", r#"{"path":"large.txt"}"#),
            ("read_file", r#"{"path":"middle.txt"}"#),
        ]),
        _ => Reply::text("I have read them."),
    });
    let stage = Stage::new(WireFormat::Chat, 32_768, script).await;
    let lines = |name: &str, count: usize| -> String {
        (0..count).map(|line| format!("{name} {line} of the files that are read\n")).collect()
    };
    stage.write("small.txt", &lines("small", 250));
    stage.write("large.txt", &lines("large", 450));
    stage.write("middle.txt", &lines("middle", 430));
    let mut agent = stage.begin(ApprovalMode::Never).await;
    agent.turn("read all", &CancellationToken::new()).await.unwrap();
    let results = |call: usize| -> Vec<String> {
        let body = stage.upstream.calls()[call].json();
        let all = body["messages"].as_array().unwrap().clone();
        let tools = all.iter().filter(|message| message["role"] == "tool");
        tools.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let sent = results(1);
    let spilled: Vec<bool> = sent.iter().map(|text| text.starts_with("<persisted-output>")).collect();
    assert_eq!(spilled, [false, true, false], "the longest, and no more than has to be");
    let kept = stage.transcript();
    assert!(kept.iter().any(|json| json.contains("large 449 of")), "the record has the original");
    // Another process, another file: what was sent is sent again.
    drop(agent);
    stage.write("large.txt", "gone\n");
    let mut agent = stage.resume(ApprovalMode::Never).await;
    agent.turn("read all", &CancellationToken::new()).await.unwrap();
    assert_eq!(results(2), sent);
}

#[tokio::test]
async fn an_artifact_holds_all_that_was_printed() {
    let script = Script::answering(|request| match last_text(request).0.as_str() {
        "user" => wanting(&[("terminal", r#"{"command":"seq 1 200000"}"#)]),
        _ => Reply::text("So it is."),
    });
    let stage = Stage::new(WireFormat::Chat, 32_768, script).await;
    stage.begin(ApprovalMode::Never).await.turn("count", &CancellationToken::new()).await.unwrap();
    let printed: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let kept = stage.store.artifacts(&Owner::default(), &id()).unwrap();
    let [only] = kept.as_slice() else { panic!("{kept:?}") };
    let text = stage.store.read_artifact(&Owner::default(), &only.id, ArtifactRange::All).unwrap();
    assert_eq!(text, format!("{printed}[exit code 0]"));
}

#[tokio::test]
async fn words_larger_than_the_window_are_kept_and_read_in_pieces() {
    for wire_format in [WireFormat::Chat, WireFormat::Anthropic, WireFormat::Responses] {
        let stage = Stage::new(wire_format, 32_768, Script::answering(|_| Reply::text("I see."))).await;
        let mut agent = stage.begin(ApprovalMode::Nobody).await;
        let rows: String = (1..=40_000).map(|row| format!("row {row} of a log\n")).collect();
        let said = format!("What is wrong here?\n\n{rows}");
        agent.turn(&said, &CancellationToken::new()).await.unwrap();
        agent.turn("And now?", &CancellationToken::new()).await.unwrap();
        let told: Vec<AgentEvent> = stage
            .events()
            .into_iter()
            .filter(|event| matches!(event, AgentEvent::WordsSetAside(_)))
            .collect();
        let [AgentEvent::WordsSetAside(figures)] = told.as_slice() else { panic!("{wire_format}: {told:?}") };
        assert_eq!((figures.chars, figures.window_tokens), (said.chars().count() as u64, 32_768));
        let first = stage.upstream.calls()[0].text();
        assert!(first.len() < 100_000, "{wire_format}: {}", first.len());
        for shown in ["What is wrong here?", "row 40000 of a log", "larger than your window", "first_byte"] {
            assert!(first.contains(shown), "{wire_format}: {shown}");
        }
        let second = stage.upstream.calls()[1].text();
        assert!(second.contains("row 40000 of a log"), "{wire_format}: what was sent stays as it was sent");
        assert!(
            stage.transcript()[0].contains("row 20000 of a log"),
            "{wire_format}: the record has all of it"
        );
        let kept = stage.store.artifacts(&Owner::default(), &id()).unwrap();
        let [only] = kept.as_slice() else { panic!("{wire_format}: {kept:?}") };
        assert!(first.contains(&only.id.as_str()[..16]), "{wire_format}");
        let text = stage.store.read_artifact(&Owner::default(), &only.id, ArtifactRange::All).unwrap();
        assert_eq!(text, said, "{wire_format}");
    }
}
