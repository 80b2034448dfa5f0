//! Requests around compactions: by rules, ahead, by the lossless engine, by a model, by hand, at the wish of a client.

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
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use super::{ask, check, counting, talk, talk_until_compacted, user, words, working};
use crate::stage::{MODEL, Stage, StillHost, empty_record};

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
