//! Which conversation a request belongs to.

use serde_json::{Value, json};
use throughline_gateway::GatewayEvent;
use throughline_store::{Owner, SessionFilter};
use throughline_testkit::{Reply, Script};
use throughline_transcript::Dialect;

use crate::stage::{MODEL, Stage, eventually};

fn body(messages: &[Value]) -> String {
    json!({ "model": MODEL, "messages": messages }).to_string()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// An upstream that numbers its answers.
fn counting() -> Script {
    let mut count = 0;
    Script::answering(move |_| {
        count += 1;
        Reply::text(format!("answer {count}"))
    })
}

#[tokio::test]
async fn a_conversation_goes_on_and_is_recorded_once() {
    let stage = Stage::new(None, counting()).await;
    let mut talk = vec![json!({"role": "system", "content": "It is Monday."}), user("one")];
    for turn in 1..=5 {
        let answer = stage.ask(Dialect::Chat, &body(&talk)).await;
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap();
        // The date in the system prompt moves on.
        talk[0] = json!({"role": "system", "content": format!("It is day {turn}.")});
        talk.push(assistant(&format!("answer {turn}")));
        talk.push(user(&format!("question {turn}")));
    }
    assert_eq!(stage.opened(), [None]);
    let found = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(found.len(), 1);
    let said = || stage.store.transcript(&Owner::default(), &found[0].tip.id).unwrap();
    eventually(|| said().len() == 11).await;
}

#[tokio::test]
async fn an_edited_turn_is_a_branch_and_the_first_way_goes_on_too() {
    let stage = Stage::new(None, counting()).await;
    let start = [user("one")];
    stage.ask(Dialect::Chat, &body(&start)).await;
    let first_way = [user("one"), assistant("answer 1"), user("two")];
    stage.ask(Dialect::Chat, &body(&first_way)).await;
    let edited = [user("one"), assistant("answer 1"), user("two, in other words")];
    stage.ask(Dialect::Chat, &body(&edited)).await;
    assert_eq!(stage.opened(), [None, Some("branch")]);
    // Both are continued where they stand.
    let on = [&first_way[..], &[assistant("answer 2"), user("three")]].concat();
    stage.ask(Dialect::Chat, &body(&on)).await;
    let on = [&edited[..], &[assistant("answer 3"), user("three")]].concat();
    stage.ask(Dialect::Chat, &body(&on)).await;
    assert_eq!(stage.opened().len(), 2);
    assert_eq!(stage.upstream.calls()[4].text(), body(&on));
}

#[tokio::test]
async fn a_request_that_is_made_again_is_answered_again() {
    let stage = Stage::new(None, counting()).await;
    let talk = [user("one"), assistant("before our time"), user("two")];
    stage.ask(Dialect::Chat, &body(&talk)).await;
    let again = stage.ask(Dialect::Chat, &body(&talk)).await;
    assert!(again.text().await.unwrap().contains("answer 2"));
    assert_eq!(stage.opened(), [None, Some("branch")]);
    assert_eq!(stage.upstream.calls()[1].text(), body(&talk));
}

#[tokio::test]
async fn conversations_that_begin_alike_are_told_apart() {
    let stage = Stage::new(None, counting()).await;
    stage.ask(Dialect::Chat, &body(&[user("hi")])).await;
    stage.ask(Dialect::Chat, &body(&[user("hi")])).await;
    assert_eq!(stage.opened(), [None, None]);
    stage.ask(Dialect::Chat, &body(&[user("hi"), assistant("answer 1"), user("mine")])).await;
    stage.ask(Dialect::Chat, &body(&[user("hi"), assistant("answer 2"), user("yours")])).await;
    assert_eq!(stage.opened(), [None, None]);
}

#[tokio::test]
async fn a_gateway_that_was_started_again_finds_its_conversations() {
    let mut stage = Stage::new(None, counting()).await;
    stage.ask(Dialect::Chat, &body(&[user("hi")])).await;
    stage.ask(Dialect::Chat, &body(&[user("hi")])).await;
    stage.start().await;
    let answer = stage.ask(Dialect::Chat, &body(&[user("hi"), assistant("answer 2"), user("on")])).await;
    answer.text().await.unwrap();
    assert_eq!(stage.opened(), [None, None]);
    let found = || stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(found().len(), 2);
    eventually(|| found().iter().map(|one| one.totals.messages).sum::<u64>() == 6).await;
}

#[tokio::test]
async fn a_client_that_compacted_itself_goes_on_from_its_conversation() {
    let stage = Stage::new(None, counting()).await;
    let ask = |messages: &[Value]| {
        let tools = json!([{ "name": "t", "description": "d", "input_schema": { "type": "object" } }]);
        json!({ "model": MODEL, "max_tokens": 100, "metadata": { "user_id": "session_1" }, "tools": tools,
            "messages": messages })
        .to_string()
    };
    let mut talk = vec![user("one")];
    for turn in 1..=4 {
        stage.ask(Dialect::Anthropic, &ask(&talk)).await;
        talk.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    // As Claude Code does it: everything but a summary is gone.
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    let mut compacted = vec![user(note), user("go on")];
    stage.ask(Dialect::Anthropic, &ask(&compacted)).await;
    assert_eq!(stage.opened(), [None, Some("client_compaction")]);
    assert_eq!(stage.upstream.calls()[4].text(), ask(&compacted), "it is sent as it came");
    compacted.extend([assistant("answer 5"), user("further")]);
    stage.ask(Dialect::Anthropic, &ask(&compacted)).await;
    assert_eq!(stage.opened().len(), 2, "it goes on there");
    // As others do it: the beginning and the end stay, with a summary between them.
    let end = [assistant("answer 3"), user("question 3"), assistant("answer 4"), user("question 4")];
    let kept = [&[user("one"), assistant("what happened since")], &end[..]].concat();
    stage.ask(Dialect::Anthropic, &ask(&kept)).await;
    assert_eq!(stage.opened(), [None, Some("client_compaction"), Some("client_compaction")]);
}

#[tokio::test]
async fn sub_agents_and_side_calls_hang_on_the_clients_conversation() {
    let mut stage = Stage::new(None, counting()).await;
    let tools = json!([{ "name": "t", "description": "d", "input_schema": { "type": "object" } }]);
    let ask = |text: &str, tools: Option<&Value>| {
        let mut body = json!({ "model": MODEL, "max_tokens": 100, "metadata": { "user_id": "session_1" },
            "messages": [{ "role": "user", "content": text }] });
        if let Some(tools) = tools {
            body["tools"] = tools.clone();
        }
        body.to_string()
    };
    stage.ask(Dialect::Anthropic, &ask("build it", Some(&tools))).await;
    stage.ask(Dialect::Anthropic, &ask("look for the tests", Some(&tools))).await;
    stage.ask(Dialect::Anthropic, &ask("a title for this", None)).await;
    assert_eq!(stage.opened(), [None, Some("sub_agent"), Some("side_call")]);
    let listed = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(listed.len(), 1);

    // A gateway that was started anew has none of them at hand, and the record all.
    stage.start().await;
    let so_far = stage.opened().len();
    stage.ask(Dialect::Anthropic, &ask("look for the docs", Some(&tools))).await;
    stage.ask(Dialect::Anthropic, &ask("another title", None)).await;
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    stage.start().await;
    stage.ask(Dialect::Anthropic, &ask(note, Some(&tools))).await;
    let opened = stage.opened();
    assert_eq!(opened[so_far..], [Some("sub_agent"), Some("side_call"), Some("client_compaction")]);
    let events = stage.events.lock().unwrap();
    let parents = events.iter().filter_map(|event| match event {
        GatewayEvent::Opened { link, .. } => link.as_ref().map(|(parent, _)| parent),
        _ => None,
    });
    assert!(parents.into_iter().all(|parent| *parent == listed[0].tip.id), "all hang on the first");
}

#[tokio::test]
async fn a_named_conversation_is_left_where_a_request_says_something_else() {
    let stage = Stage::new(None, counting()).await;
    let ask = async |messages: &[Value], named: Option<&str>| {
        let mut request = stage.http.post(stage.at("/v1/chat/completions")).body(body(messages));
        if let Some(named) = named {
            request = request.header("x-throughline-session", named);
        }
        let response = request.header("content-type", "application/json").send().await.unwrap();
        let status = response.status().as_u16();
        response.text().await.unwrap();
        status
    };
    let start = [user("one")];
    assert_eq!(ask(&start, None).await, 200);
    let id = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap()[0]
        .tip
        .id
        .to_string();
    let on = [user("one"), assistant("answer 1"), user("two")];
    assert_eq!(ask(&on, Some(&id)).await, 200);
    assert_eq!(stage.opened(), [None], "it goes on");
    assert_eq!(ask(&on, Some(&id)).await, 200, "made again, it is answered again");
    assert_eq!(stage.opened(), [None, Some("branch")]);
    let edited = [user("one"), assistant("answer 1"), user("two, in other words")];
    assert_eq!(ask(&edited, Some(&id)).await, 200);
    assert_eq!(ask(&start, Some(&id)).await, 200, "from the beginning, too");
}
