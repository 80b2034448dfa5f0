//! What happens where the prefix is written anew: notes for memory are chosen beside the conversation, tools follow the
//! engine, and what is looked up in the record fits the window.

use std::time::Duration;

use throughline_agent::{Agent, AgentEvent, ApprovalMode, SaveMemory};
use throughline_engine::{CompactionResult, EngineEvent, ManualCompaction};
use throughline_store::Owner;
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::WireFormat;
use tokio_util::sync::CancellationToken;

use crate::stage::{PROMPT, Stage, id, last_text, read, wanting};

const CHOOSES_NOTES: &str = "You choose notes for an assistant's memory";

/// Talks, and proposes a note when it is asked for some.
fn talker(request: &RecordedRequest) -> Reply {
    if request.text().contains(CHOOSES_NOTES) {
        return Reply::text("{\"file\": \"memory\", \"text\": \"The harbour gate is blue.\"}");
    }
    Reply::text(format!("Answer. {}", "More about that. ".repeat(40)))
}

/// Calls that were booked for notes.
fn booked(stage: &Stage) -> usize {
    let chain = stage.store.chain(&Owner::default(), &id()).unwrap();
    let calls = chain.iter().flat_map(|session| stage.store.calls(&Owner::default(), &session.id).unwrap());
    calls.filter(|call| call.call.task == "memory").count()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(120), async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

async fn compact(agent: &mut Agent) {
    let manual = ManualCompaction { keep_exchanges: Some(1), ..ManualCompaction::default() };
    let done = agent.compact(manual, &CancellationToken::new()).await;
    assert!(matches!(done, Some(CompactionResult::Completed(_))), "{done:?}");
}

async fn talk(agent: &mut Agent, turns: usize) {
    for turn in 0..turns {
        agent.turn(&format!("remark {turn}"), &CancellationToken::new()).await.unwrap();
    }
}

#[tokio::test]
async fn memory_is_chosen_beside_the_conversation_when_it_is_compacted() {
    let stage = Stage::new(WireFormat::Chat, 200_000, Script::answering(talker)).await;
    let setup = stage.setup_with(ApprovalMode::Always, stage.by_model());
    let mut agent = Agent::begin(setup, stage.new_session(), PROMPT).await.unwrap();
    talk(&mut agent, 8).await;
    assert_eq!(booked(&stage), 0);
    compact(&mut agent).await;
    // A turn that begins meanwhile would stop it.
    until("the choice of notes", || !agent.is_saving_memory()).await;
    assert!(booked(&stage) > 0);
    agent.turn("and on", &CancellationToken::new()).await.unwrap();
    let asked = stage.approver.asked.lock().unwrap().clone();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.title, "add to MEMORY.md");
    assert!(question.details[0].contains("+- The harbour gate is blue."), "{:?}", question.details);
    assert_eq!(read(&stage.folder.path().join("home/MEMORY.md")), "- The harbour gate is blue.\n");
    assert!(
        !stage.transcript().iter().any(|json| json.contains("harbour gate")),
        "no part of the conversation"
    );
    for call in stage.upstream.calls() {
        let (is_own, text) = (call.json()["tools"].is_array(), call.text());
        assert!(!is_own || !text.contains(CHOOSES_NOTES) && !text.contains("memory tool"), "{text}");
        assert!(is_own || !text.contains("\"tools\""), "{text}");
    }
}

#[tokio::test]
async fn memory_is_not_chosen_where_it_could_not_be_written_or_is_not_wanted() {
    for (asking, save_memory) in
        [(ApprovalMode::Nobody, SaveMemory::AtCompaction), (ApprovalMode::Always, SaveMemory::Never)]
    {
        let stage = Stage::new(WireFormat::Chat, 200_000, Script::answering(talker)).await;
        let mut setup = stage.setup_with(asking, stage.by_model());
        setup.save_memory = save_memory;
        let mut agent = Agent::begin(setup, stage.new_session(), PROMPT).await.unwrap();
        talk(&mut agent, 8).await;
        compact(&mut agent).await;
        talk(&mut agent, 2).await;
        assert!(!stage.upstream.calls().iter().any(|call| call.text().contains(CHOOSES_NOTES)), "{asking:?}");
    }
}

#[tokio::test]
async fn person_does_not_wait_for_memory() {
    let script = Script::answering(|request| match request.text().contains(CHOOSES_NOTES) {
        true => Reply::stall(),
        false => talker(request),
    });
    let stage = Stage::new(WireFormat::Chat, 200_000, script).await;
    let setup = stage.setup_with(ApprovalMode::Always, stage.by_model());
    let mut agent = Agent::begin(setup, stage.new_session(), PROMPT).await.unwrap();
    talk(&mut agent, 8).await;
    compact(&mut agent).await;
    until("a call for notes", || {
        stage.upstream.calls().iter().any(|call| call.text().contains(CHOOSES_NOTES))
    })
    .await;
    talk(&mut agent, 5).await;
    assert!(stage.approver.asked.lock().unwrap().is_empty());
    let tried = stage.upstream.calls().iter().filter(|call| call.text().contains(CHOOSES_NOTES)).count();
    assert!(tried <= 3, "it is given up: {tried}");
}

#[tokio::test]
async fn model_is_not_told_how_full_its_window_is() {
    let stage = Stage::new(WireFormat::Anthropic, 20_000, Script::answering(talker)).await;
    let mut agent = stage.begin(ApprovalMode::Nobody).await;
    let mut turn = 0;
    while agent.session().compactions() < 2 {
        talk(&mut agent, 1).await;
        turn += 1;
        assert!(turn < 400, "no compaction came");
    }
    for call in stage.upstream.calls() {
        let text = call.text();
        assert!(!text.contains("A note of the program") && !text.contains("memory tool"), "{text}");
    }
}

/// Names of the tools in a request.
fn tools(request: &RecordedRequest) -> Vec<String> {
    let body = request.json();
    let name = |tool: &serde_json::Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    body["tools"].as_array().map(|tools| tools.iter().map(name).collect()).unwrap_or_default()
}

#[tokio::test]
async fn tools_of_another_engine_come_with_the_next_compaction() {
    let stage = Stage::new(WireFormat::Chat, 60_000, Script::answering(talker)).await;
    let mut agent = stage.begin(ApprovalMode::Nobody).await;
    talk(&mut agent, 4).await;
    let first = agent.tools_json().unwrap().to_owned();
    drop(agent);
    let setup = stage.setup_with(ApprovalMode::Nobody, stage.lossless());
    let mut agent = Agent::resume(setup, &id(), "Another prompt.").await.unwrap();
    talk(&mut agent, 1).await;
    assert_eq!(agent.tools_json(), Some(first.as_str()), "the prefix stays as it was sent");
    let mut turn = 0;
    while agent.session().compactions() == 0 {
        talk(&mut agent, 1).await;
        turn += 1;
        assert!(turn < 400, "no compaction came");
    }
    talk(&mut agent, 1).await;
    let calls = stage.upstream.calls();
    let has = |call: &RecordedRequest| tools(call).iter().any(|tool| tool == "lcm_expand");
    let speaks = |call: &RecordedRequest| call.json()["messages"].to_string().contains("lcm_expand");
    assert!(!has(&calls[4]) && has(calls.last().unwrap()) && speaks(calls.last().unwrap()));
    for call in &calls {
        assert!(
            has(call) || !speaks(call),
            "notes speak of tools that the model does not have: {}",
            call.text()
        );
        assert_eq!(tools(call).len(), if has(call) { 11 } else { 7 });
    }
    // Another process goes on with the new ones.
    drop(agent);
    let setup = stage.setup_with(ApprovalMode::Nobody, stage.lossless());
    let mut agent = Agent::resume(setup, &id(), "Another prompt.").await.unwrap();
    talk(&mut agent, 1).await;
    assert!(has(stage.upstream.calls().last().unwrap()));
}

#[tokio::test]
async fn lookups_fit_the_window_and_are_never_set_aside() {
    for window_tokens in [40_000, 8_192] {
        let script = Script::answering(|request| match last_text(request) {
            (role, text) if role == "user" && text == "look" => wanting(&[
                ("lcm_expand", r#"{"message":0}"#),
                ("lcm_grep", r#"{"query":"harbour","limit":20}"#),
            ]),
            (role, text) if role == "user" && text == "look at much" => {
                wanting(&[("lcm_expand", r#"{"message":0}"#); 5])
            }
            (role, text) if role == "user" && text == "recall" => {
                wanting(&[("recall", r#"{"message":0,"count":5}"#); 5])
            }
            _ => Reply::text("Seen."),
        });
        let stage = Stage::new(WireFormat::Chat, window_tokens, script).await;
        let setup = stage.setup_with(ApprovalMode::Nobody, stage.lossless());
        let mut agent = Agent::begin(setup, stage.new_session(), PROMPT).await.unwrap();
        let go = CancellationToken::new();
        // More than one result may have, in words of many letters.
        let most = agent.session().lookup_chars(1);
        let said = "internationalisation of the harbourmasters ".repeat(usize::try_from(most).unwrap() / 30);
        agent.turn(&said, &go).await.unwrap();
        for look in ["look", "look at much", "recall"] {
            agent.turn(look, &go).await.unwrap();
        }
        let aside: Vec<AgentEvent> = stage
            .events()
            .into_iter()
            .filter(|event| matches!(event, AgentEvent::Engine(EngineEvent::OutputSetAside { .. })))
            .collect();
        assert!(aside.is_empty(), "{window_tokens}: {aside:?}");
        let results: Vec<String> =
            stage.transcript().into_iter().filter(|json| json.contains("\"role\":\"tool\"")).collect();
        assert!(results.len() >= 12, "{window_tokens}: {}", results.len());
        let shown = &results[0];
        assert!(shown.contains("internationalisation"), "{window_tokens}: {shown}");
        assert!(
            shown.contains("The rest of message 0: lcm_expand with message: 0, offset:"),
            "{window_tokens}: {shown}"
        );
        let chars = |json: &String| {
            serde_json::from_str::<serde_json::Value>(json).unwrap()["content"]
                .as_str()
                .unwrap()
                .chars()
                .count() as u64
        };
        assert!(chars(shown) <= most, "{window_tokens}: {} of {most}", chars(shown));
        assert!(
            chars(shown) > most / 3,
            "{window_tokens}: a page is not smaller than it has to be: {}",
            chars(shown)
        );
        let step: u64 = results.iter().skip(2).take(5).map(chars).sum();
        assert!(step <= most * 2, "{window_tokens}: what one answer asked for fits together: {step}");
    }
}
