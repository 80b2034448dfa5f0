//! Two gateways on one home, as two people start them; and an answer whose record waits for somebody else.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_testkit::{Reply, Script, ScriptedUpstream};

use crate::clients::faults::{ask, echo, locked, user, words_of};
use crate::clients::gateway::Gateway;

const TURNS: usize = 30;

/// An upstream whose answers tell how many messages it was asked with.
async fn counting() -> ScriptedUpstream {
    let script = Script::answering(|request| {
        let json = request.json();
        let messages = json["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_str().unwrap();
        Reply::text(format!("{} messages, the last was {last}", messages.len()))
    });
    ScriptedUpstream::start(script).await.unwrap()
}

/// Asks, and puts the answer behind the conversation. The prompt is what the client sent.
async fn go_on(url: &str, talk: &mut Vec<Value>) {
    let (status, answer) = ask(url, talk).await.unwrap();
    assert_eq!(status, 200, "{answer}");
    let expected = format!("{} messages, ", talk.len());
    assert!(words_of(&answer).starts_with(&expected), "asked with {}: {answer}", talk.len());
    talk.push(json!({ "role": "assistant", "content": words_of(&answer) }));
}

/// How many messages the record has, in all conversations.
fn recorded(gateway: &Gateway) -> u64 {
    let listed: Value = serde_json::from_str(&gateway.ask(&["sessions", "list", "--json", "--all"])).unwrap();
    let listed = listed["sessions"].as_array().unwrap();
    listed.iter().map(|one| one["totals"]["messages"].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_on_one_home_send_what_clients_send_and_record_it_once() {
    let upstream = counting().await;
    let first = Gateway::before(&upstream.url());
    let second = first.beside(&upstream.url());
    assert!(!first.screen().contains("another gateway uses this home"), "{}", first.screen());
    let screen = second.screen();
    assert!(screen.contains("another gateway uses this home directory: gateway (process "), "{screen}");
    assert!(screen.contains(&first.process_id().to_string()), "{screen}");

    let mut talk = Vec::new();
    for turn in 0..TURNS {
        talk.push(user(&format!("question {turn}")));
        go_on(if turn % 2 == 0 { first.url() } else { second.url() }, &mut talk).await;
    }
    assert_eq!(recorded(&first), 2 * TURNS as u64);

    // At the same time, too: each way is answered, and nothing is lost or doubled.
    for turn in 0..TURNS / 3 {
        let mut ways = [talk.clone(), talk.clone()];
        let [here, there] = &mut ways;
        here.push(user(&format!("here {turn}")));
        there.push(user(&format!("there {turn}")));
        tokio::join!(go_on(first.url(), here), go_on(second.url(), there));
        talk = ways[turn % 2].clone();
    }
    assert_eq!(recorded(&first), 2 * TURNS as u64 + 4 * (TURNS / 3) as u64);
    first.ask(&["doctor"]);
}

/// Whoever has a whole answer can rely on it, also when the gateway dies that moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_is_in_the_record_before_its_client_has_it() {
    let upstream = echo().await;
    let gateway = Gateway::before(&upstream.url());
    ask(gateway.url(), &[user("before")]).await.unwrap();
    let lock = locked(&gateway.home().join("record.db"));
    let url = gateway.url().to_owned();
    let talk =
        [user("before"), json!({ "role": "assistant", "content": "heard: before" }), user("meanwhile")];
    let client = tokio::spawn(async move { ask(&url, &talk).await });
    upstream.until_asked(2).await;
    // The client has its answer, or the gateway says that it could not be recorded: whichever comes first.
    while !client.is_finished() && !gateway.screen().contains("could not be recorded") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (is_answered, screen) = (client.is_finished(), gateway.screen());
    let home = gateway.kill();
    drop(lock);
    if is_answered && !screen.contains("could not be recorded") {
        let gateway = Gateway::start(home, &upstream.url());
        let found = gateway.ask(&["search", "heard: meanwhile", "--json"]);
        assert!(
            found.contains("heard: meanwhile"),
            "the client has what the record has not: {found}\n{screen}"
        );
    }
}
