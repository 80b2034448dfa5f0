//! Several gateways on one record: compactions, tokens and live events. The record is SQLite, or PostgreSQL where the tests are to run on
//! it; what only a server has is tested there.

use serde_json::{Value, json};
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::WireFormat;

use crate::stage::{MODEL, Stage, record_for_several};

fn body(talk: &[Value]) -> String {
    json!({ "model": MODEL, "messages": talk }).to_string()
}

/// Two gateways before upstreams of their own, each with connections of its own to one record.
async fn two_gateways(window: Option<u64>, home: &tempfile::TempDir) -> [Stage; 2] {
    let open = record_for_several(home.path().join("record.db"));
    let script = || Script::answering(|_| Reply::text("I looked at it and changed three lines of the file."));
    let first = Stage::with_store(window, open(), script()).await;
    let second = Stage::with_store_and_host(window, open(), script(), 1_000_000).await;
    [first, second]
}

#[tokio::test]
async fn a_conversation_that_alternates_is_compacted_once_each_time() {
    let home = tempfile::tempdir().unwrap();
    let stages = two_gateways(Some(64_000), &home).await;
    let mut talk: Vec<Value> = Vec::new();
    for turn in 0..40 {
        let words = format!("turn {turn}: {}", "look at the file and change it ".repeat(600));
        talk.push(json!({"role": "user", "content": words}));
        let stage = &stages[turn % 2];
        let response = stage.ask(WireFormat::Chat, &body(&talk)).await;
        assert_eq!(response.status(), 200);
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        talk.push(json!({"role": "assistant", "content": text}));
        let sent = stage.upstream.calls().last().unwrap().json();
        let sent = sent["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(sent["content"], words, "the last message is what the client sent");
    }
    let store = &stages[0].store;
    let all = store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(all.len(), 1, "one conversation, without a branch: {all:?}");
    let chain = store.chain(&Owner::default(), &all[0].tip.id).unwrap();
    let made: usize = stages.iter().map(Stage::compactions).sum();
    assert!(made >= 2, "{made} compactions");
    assert_eq!(chain.len() - 1, made, "each compaction is one step of the chain");
    assert!(stages.iter().all(|stage| stage.compactions() > 0), "both gateways compacted it");
    let said = store.transcript(&Owner::default(), &all[0].tip.id).unwrap();
    let said: Vec<Value> =
        said.iter().map(|message| serde_json::from_str(message.json.as_str()).unwrap()).collect();
    assert_eq!(said, talk);
    assert!(store.locks().unwrap().is_empty());
}

#[tokio::test]
async fn one_conversation_that_two_gateways_are_told_to_compact_at_once_is_compacted_once() {
    let home = tempfile::tempdir().unwrap();
    let stages = two_gateways(None, &home).await;
    let mut talk: Vec<Value> = Vec::new();
    for turn in 0..12 {
        talk.push(json!({"role": "user", "content": format!("turn {turn} {}", "some words ".repeat(60))}));
        let text = "I looked at it and changed three lines of the file.";
        let answer = stages[turn % 2].ask(WireFormat::Chat, &body(&talk)).await.text().await.unwrap();
        assert!(answer.contains(text), "{answer}");
        talk.push(json!({"role": "assistant", "content": text}));
    }
    let all = stages[0].store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    let path = format!("/api/sessions/{}/compact", all[0].tip.id);
    let wanted = json!({});
    let (one, two) = tokio::join!(stages[0].send(&path, &wanted), stages[1].send(&path, &wanted));
    let completed = [&one, &two].iter().filter(|(_, answer)| answer["outcome"] == "completed").count();
    let chain = stages[0].store.chain(&Owner::default(), &all[0].tip.id).unwrap();
    assert_eq!(chain.len() - 1, completed, "{one:?} {two:?}");
    assert!(completed >= 1, "{one:?} {two:?}");
    let tips = stages[0].store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(tips.len(), 1, "{one:?} {two:?} {tips:#?}");
}

#[cfg(feature = "postgres")]
mod on_a_server {
    //! What needs a server.

    use std::sync::Arc;
    use std::time::Duration;

    use throughline_gateway::{AccessPolicy, AccessTokens, TokenLimits};
    use throughline_store::{FleetStore, PostgresStore, Store};
    use throughline_testkit::{Missing, PostgresServer, skip};

    use super::*;

    /// Two gateways on one database that know of each other.
    #[track_caller]
    fn stores() -> Option<[Arc<PostgresStore>; 2]> {
        let Some(server) = PostgresServer::shared() else {
            skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
            return None;
        };
        let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
        Some([0, 1].map(|_| Arc::new(PostgresStore::open(&url, 4).unwrap())))
    }

    async fn joined(stores: &[Arc<PostgresStore>; 2]) -> [Stage; 2] {
        let script = || Script::answering(|_| Reply::text("yes"));
        let first = Stage::with_store(None, Arc::<PostgresStore>::clone(&stores[0]), script()).await;
        let second =
            Stage::with_store_and_host(None, Arc::<PostgresStore>::clone(&stores[1]), script(), 1_000_000)
                .await;
        let stages = [first, second];
        for (name, (stage, store)) in ["one", "two"].into_iter().zip(stages.iter().zip(stores)) {
            let gateway = stage.gateway.as_ref().unwrap();
            gateway.set_gateways(2);
            gateway.join_fleet(Arc::clone(store) as Arc<dyn FleetStore>, name, None);
        }
        stages
    }

    /// The next events of a stream until one of this name that another gateway told of.
    async fn until(events: &mut reqwest::Response, name: &str) -> Value {
        let mut heard = String::new();
        loop {
            heard.push_str(std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap());
            let found = heard.split("\n\n").find(|event| event.contains(&format!("event: {name}\n")));
            if let Some(data) =
                found.and_then(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
                && let Ok(value) = serde_json::from_str(data)
            {
                return value;
            }
        }
    }

    #[tokio::test]
    async fn live_events_of_one_gateway_are_heard_at_the_other() {
        let Some(stores) = stores() else { return };
        let stages = joined(&stores).await;
        let mut events = stages[1].http.get(stages[1].at("/api/events")).send().await.unwrap();
        // The listener is heard of with the next look: until then what happens elsewhere is not for it.
        let asking = tokio::spawn({
            let (http, url) = (stages[0].http.clone(), stages[0].at("/v1/chat/completions"));
            async move {
                let mut talk: Vec<Value> = Vec::new();
                loop {
                    talk.push(json!({"role": "user", "content": "hello"}));
                    http.post(&url).body(body(&talk)).send().await.unwrap().text().await.unwrap();
                    talk.push(json!({"role": "assistant", "content": "yes"}));
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        });
        let served =
            tokio::time::timeout(Duration::from_secs(120), until(&mut events, "served")).await.unwrap();
        asking.abort();
        assert_eq!((&served["status"], &served["model"]), (&json!(200), &json!(MODEL)));
        assert!(served["at_ms"].is_i64() && !served.to_string().contains("hello"), "{served}");
        let figures =
            stages[1].http.get(stages[1].at("/metrics")).send().await.unwrap().text().await.unwrap();
        assert!(figures.contains("throughline_gateways 2\n"), "{figures}");
        assert!(figures.contains("throughline_database_connections{state=\"allowed\"} 4\n"), "{figures}");
    }

    /// The status of a request with a token.
    async fn ask(stage: &Stage, token: &str, model: &str) -> u16 {
        let words = "a lot of words ".repeat(200);
        let talk = [json!({"role": "user", "content": words})];
        let body = json!({ "model": model, "messages": talk }).to_string();
        let request = stage.http.post(stage.at("/v1/chat/completions")).body(body);
        let response = request.header("x-throughline-token", token).send().await.unwrap();
        let status = response.status().as_u16();
        response.text().await.unwrap();
        status
    }

    #[tokio::test]
    async fn money_is_counted_over_all_gateways_and_requests_are_divided() {
        let Some(stores) = stores() else { return };
        let mut book = AccessTokens::default();
        let mut add = |name: &str, limits| book.add(name, name, &[name.len() as u8; 32], 0, limits).unwrap();
        let rich = add("ci", TokenLimits { requests_per_minute: Some(2), ..TokenLimits::default() });
        let poor = add("team", TokenLimits { micro_usd_per_day: Some(1), ..TokenLimits::default() });
        let mut stages = joined(&stores).await;
        for (stage, store) in stages.iter_mut().zip(&stores) {
            // A provider whose prices are known.
            stage.kind = throughline_provider::EndpointKind::OpenAi;
            stage.start().await;
            let gateway = stage.gateway.as_ref().unwrap();
            gateway.set_gateways(2);
            gateway.join_fleet(Arc::clone(store) as Arc<dyn FleetStore>, &stage.at(""), None);
            gateway.set_access(AccessPolicy::Tokens(book.clone()));
        }
        // Two in a minute over both gateways are one at each.
        for stage in &stages {
            assert_eq!(ask(stage, &rich, MODEL).await, 200);
            assert_eq!(ask(stage, &rich, MODEL).await, 429);
        }
        // What was spent at one gateway counts at the other, once the call is booked.
        assert_eq!(ask(&stages[0], &poor, "gpt-5.2").await, 200);
        let spent = || {
            let usage = throughline_store::UsageBy::Everything;
            let filter = throughline_store::CallFilter::default();
            let totals = stores[1].usage(&Owner::new("team"), &filter, usage).unwrap();
            totals.iter().any(|total| total.cost_micro_usd > 1)
        };
        crate::stage::eventually(spent).await;
        assert_eq!(ask(&stages[1], &poor, "gpt-5.2").await, 402);
    }
}
