//! Conversations many times as long as the window.

use serde_json::{Value, json};
use throughline_store::{Owner, SearchQuery, SessionFilter};
use throughline_testkit::{RecordedRequest, Reply, Script};
use throughline_transcript::Dialect;

use crate::stage::{MODEL, Stage};

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
        let response = stage.ask(Dialect::Chat, &body).await;
        assert_eq!(response.status(), 200, "turn {turn}");
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        talk.push(answer["choices"][0]["message"].clone());
    }
    assert!(stage.compactions() >= 20, "{}", stage.compactions());
    let owner = Owner::default();
    let found = stage.store.conversations(&owner, &SessionFilter::default()).unwrap();
    assert_eq!(found.len(), 1, "one conversation all along");
    // Every message once, the system prompt included.
    let said = stage.store.transcript(&owner, &found[0].tip.id).unwrap();
    assert_eq!(said.len(), 1 + 2 * TURNS);
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
