//! Conversations many times as long as the window.

use serde_json::{Value, json};
use throughline_store::{Owner, SearchQuery, SessionFilter};
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, eventually};

/// Some three hundred words that differ from turn to turn.
fn words(turn: usize) -> String {
    (0..300)
        .map(|word| format!("w{}", (turn * 7_919 + word * 104_729) % 99_991))
        .collect::<Vec<_>>()
        .join(" ")
}

fn messages(request: &RecordedRequest) -> Vec<Value> {
    request.json()["messages"].as_array().cloned().unwrap_or_default()
}

/// What two requests have in common from the start.
fn shared(one: &[Value], two: &[Value]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

#[tokio::test]
async fn five_hundred_turns_never_show_the_client_an_overflow() {
    const TURNS: usize = 500;
    let stage = Stage::new(
        Some(32_000),
        Script::answering(|request| Reply::text(format!("Done with {}.", request.order))),
    )
    .await;
    let mut talk = vec![json!({ "role": "system", "content": "Be thorough." })];
    for turn in 0..TURNS {
        let planted = if turn == 3 { "The key of the vault is VAULT-77-OMEGA. " } else { "" };
        talk.push(json!({ "role": "user", "content": format!("{planted}Turn {turn}: {}", words(turn)) }));
        let body = json!({ "model": MODEL, "messages": talk }).to_string();
        let response = stage.ask(WireFormat::Chat, &body).await;
        assert_eq!(response.status(), 200, "turn {turn}");
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        talk.push(answer["choices"][0]["message"].clone());
    }
    assert!(stage.compactions() >= 20, "{}", stage.compactions());
    let owner = Owner::default();
    let found = || stage.store.conversations(&owner, &SessionFilter::default()).unwrap();
    assert_eq!(found().len(), 1, "one conversation all along");
    // Every message once, the system prompt included.
    let said = || stage.store.transcript(&owner, &found()[0].tip.id).unwrap();
    eventually(|| said().len() == 1 + 2 * TURNS).await;
    let query = SearchQuery { text: "VAULT-77-OMEGA".to_owned(), ..SearchQuery::default() };
    assert_eq!(stage.store.search(&owner, &query).unwrap().hits.len(), 1);
    // Between compactions a request only grows at its end.
    let calls = stage.upstream.calls();
    let mut broken = 0;
    for pair in calls.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        if shared(&before, &after) < before.len() {
            broken += 1;
        }
    }
    assert_eq!(broken, stage.compactions());
}

/// A client that made room for itself has its own summary where the task was: there is no other word of a person.
#[tokio::test]
async fn a_client_with_a_summary_of_its_own_is_compacted_on_from_it() {
    const STEPS: usize = 120;
    let stage = Stage::new(
        Some(32_000),
        Script::answering(|request| Reply::text(format!("Done with {}.", request.order))),
    )
    .await;
    let own = format!(
        "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n\n## Active Task\nRead on.\n\n{}",
        "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
    );
    let mut talk = vec![
        json!({ "role": "system", "content": "Be thorough." }),
        json!({ "role": "user", "content": own }),
        json!({ "role": "assistant", "content": "Understood." }),
    ];
    for step in 0..STEPS {
        let id = format!("call_{step}");
        talk.push(json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "read", "arguments": "{}" } }] }));
        talk.push(json!({ "role": "tool", "tool_call_id": id, "content": words(step) }));
        let body = json!({ "model": MODEL, "messages": talk }).to_string();
        let response = stage.ask(WireFormat::Chat, &body).await;
        let status = response.status();
        assert_eq!(status, 200, "step {step}: {}", response.text().await.unwrap());
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        talk.push(answer["choices"][0]["message"].clone());
    }
    assert!(stage.compactions() >= 3, "{}", stage.compactions());
}
