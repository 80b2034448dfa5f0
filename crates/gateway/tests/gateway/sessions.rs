//! Which conversation a request belongs to.

use serde_json::{Value, json};
use throughline_gateway::GatewayEvent;
use throughline_store::{Owner, SessionFilter, SessionId};
use throughline_testkit::{Gate, Reply, ReplyFault, Script};
use throughline_transcript::WireFormat;

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
        let answer = stage.ask(WireFormat::Chat, &body(&talk)).await;
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
    stage.ask(WireFormat::Chat, &body(&start)).await;
    let first_way = [user("one"), assistant("answer 1"), user("two")];
    stage.ask(WireFormat::Chat, &body(&first_way)).await;
    let edited = [user("one"), assistant("answer 1"), user("two, in other words")];
    stage.ask(WireFormat::Chat, &body(&edited)).await;
    assert_eq!(stage.opened(), [None, Some("branch")]);
    // Both are continued where they stand.
    let on = [&first_way[..], &[assistant("answer 2"), user("three")]].concat();
    stage.ask(WireFormat::Chat, &body(&on)).await;
    let on = [&edited[..], &[assistant("answer 3"), user("three")]].concat();
    stage.ask(WireFormat::Chat, &body(&on)).await;
    assert_eq!(stage.opened().len(), 2);
    assert_eq!(stage.upstream.calls()[4].text(), body(&on));
}

/// As aider does: the files it works on stand before the newest question, and its instructions behind it.
#[tokio::test]
async fn a_client_that_shows_its_files_before_each_question_keeps_its_conversation() {
    for has_system_prompt in [true, false] {
        let stage = Stage::new(None, counting()).await;
        let mut talk = Vec::new();
        if has_system_prompt {
            talk.push(json!({ "role": "system", "content": "Answer questions about code." }));
        }
        for turn in 1..=4 {
            let mut request = talk.clone();
            request.push(user(&format!("I have added these files to the chat.\nEdition {turn}")));
            request.push(assistant("Ok, any changes I propose will be to those files."));
            request.push(user(&format!("question {turn}\n\nReply in English.\n")));
            stage.ask(WireFormat::Chat, &body(&request)).await.text().await.unwrap();
            assert_eq!(
                stage.upstream.calls().last().unwrap().text(),
                body(&request),
                "as the client sent it"
            );
            talk.push(user(&format!("question {turn}")));
            talk.push(assistant(&format!("answer {turn}")));
            assert_eq!(stage.opened(), [None], "question {turn}, {has_system_prompt}");
        }
        let found = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
        let said = || stage.store.transcript(&Owner::default(), &found[0].tip.id).unwrap();
        eventually(|| said().len() == 16 + usize::from(has_system_prompt)).await;
        // The person edits a question that was answered: that is another way.
        let at = talk.len() - 2;
        talk[at] = user("question 4, in other words");
        talk.push(user("question 5"));
        stage.ask(WireFormat::Chat, &body(&talk)).await.text().await.unwrap();
        assert_eq!(stage.opened().len(), 2, "{has_system_prompt}");
    }
}

#[tokio::test]
async fn a_request_that_is_made_again_is_answered_again() {
    let stage = Stage::new(None, counting()).await;
    let talk = [user("one"), assistant("before our time"), user("two")];
    stage.ask(WireFormat::Chat, &body(&talk)).await;
    let again = stage.ask(WireFormat::Chat, &body(&talk)).await;
    assert!(again.text().await.unwrap().contains("answer 2"));
    assert_eq!(stage.opened(), [None, Some("branch")]);
    assert_eq!(stage.upstream.calls()[1].text(), body(&talk));
}

#[tokio::test]
async fn conversations_that_begin_alike_are_distinguished() {
    let stage = Stage::new(None, counting()).await;
    stage.ask(WireFormat::Chat, &body(&[user("hi")])).await;
    stage.ask(WireFormat::Chat, &body(&[user("hi")])).await;
    assert_eq!(stage.opened(), [None, None]);
    stage.ask(WireFormat::Chat, &body(&[user("hi"), assistant("answer 1"), user("mine")])).await;
    stage.ask(WireFormat::Chat, &body(&[user("hi"), assistant("answer 2"), user("yours")])).await;
    assert_eq!(stage.opened(), [None, None]);
}

#[tokio::test]
async fn a_gateway_that_was_started_again_finds_its_conversations() {
    let mut stage = Stage::new(None, counting()).await;
    stage.ask(WireFormat::Chat, &body(&[user("hi")])).await;
    stage.ask(WireFormat::Chat, &body(&[user("hi")])).await;
    stage.start().await;
    let answer = stage.ask(WireFormat::Chat, &body(&[user("hi"), assistant("answer 2"), user("on")])).await;
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
        stage.ask(WireFormat::Anthropic, &ask(&talk)).await;
        talk.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    // As Claude Code does it: everything but a summary is gone.
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    let mut compacted = vec![user(note), user("go on")];
    stage.ask(WireFormat::Anthropic, &ask(&compacted)).await;
    assert_eq!(stage.opened(), [None, Some("client_compaction")]);
    assert_eq!(stage.upstream.calls()[4].text(), ask(&compacted), "it is sent as it came");
    compacted.extend([assistant("answer 5"), user("further")]);
    stage.ask(WireFormat::Anthropic, &ask(&compacted)).await;
    assert_eq!(stage.opened().len(), 2, "it goes on there");
    // As others do it: the beginning and the end stay, with a summary between them.
    let end = [assistant("answer 3"), user("question 3"), assistant("answer 4"), user("question 4")];
    let kept = [&[user("one"), assistant("what happened since")], &end[..]].concat();
    stage.ask(WireFormat::Anthropic, &ask(&kept)).await;
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
    stage.ask(WireFormat::Anthropic, &ask("build it", Some(&tools))).await;
    stage.ask(WireFormat::Anthropic, &ask("look for the tests", Some(&tools))).await;
    stage.ask(WireFormat::Anthropic, &ask("a title for this", None)).await;
    assert_eq!(stage.opened(), [None, Some("sub_agent"), Some("side_call")]);
    let listed = stage.store.conversations(&Owner::default(), &SessionFilter::default()).unwrap();
    assert_eq!(listed.len(), 1);

    // A gateway that was started anew has none of them at hand, and the record all.
    stage.start().await;
    let so_far = stage.opened().len();
    stage.ask(WireFormat::Anthropic, &ask("look for the docs", Some(&tools))).await;
    stage.ask(WireFormat::Anthropic, &ask("another title", None)).await;
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    stage.start().await;
    stage.ask(WireFormat::Anthropic, &ask(note, Some(&tools))).await;
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

/// A request of a client's session, with or without tools.
fn of_session(messages: &[Value], has_tools: bool) -> String {
    let tools = json!([{ "name": "t", "description": "d", "input_schema": { "type": "object" } }]);
    let tools = if has_tools { tools } else { json!([]) };
    json!({ "model": MODEL, "max_tokens": 100, "metadata": { "user_id": "session_1" }, "tools": tools,
        "messages": messages })
    .to_string()
}

/// Asks, and waits for the end of the answer.
async fn asked(stage: &Stage, wire: WireFormat, body: &str) {
    stage.ask(wire, body).await.text().await.unwrap();
}

/// The conversations that are listed, by what was said first in each, and what `last` means.
fn listed(stage: &Stage) -> (Vec<String>, String) {
    let owner = Owner::default();
    let first = |id: &SessionId| {
        let said = stage.store.transcript(&owner, id).unwrap();
        let said: Value = serde_json::from_str(said[0].json.as_str()).unwrap();
        said["content"].as_str().unwrap().to_owned()
    };
    let found = stage.store.conversations(&owner, &SessionFilter::default()).unwrap();
    let last = stage.store.resolve(&owner, "last").unwrap();
    (found.iter().map(|one| first(&one.tip.id)).collect(), first(&last.id))
}

#[tokio::test]
async fn a_title_call_is_a_side_call_in_whatever_order_it_comes() {
    let title = of_session(&[user("a title, please: build it")], false);
    let main = of_session(&[user("build it")], true);
    for title_first in [true, false] {
        let mut stage = Stage::new(None, counting()).await;
        let order = if title_first { [&title, &main] } else { [&main, &title] };
        for body in order {
            asked(&stage, WireFormat::Anthropic, body).await;
        }
        assert_eq!(listed(&stage), (vec!["build it".to_owned()], "build it".to_owned()), "{title_first}");
        // The conversation has sub-agents, also for a gateway that was started since.
        stage.start().await;
        asked(&stage, WireFormat::Anthropic, &of_session(&[user("look for tests")], true)).await;
        assert_eq!(stage.opened().last(), Some(&Some("sub_agent")));
        assert_eq!(listed(&stage).0, ["build it"]);
    }
}

#[tokio::test]
async fn a_title_call_that_runs_beside_the_first_request_is_a_side_call() {
    let title = of_session(&[user("a title, please")], false);
    let main = of_session(&[user("build it")], true);
    for title_first in [true, false] {
        let stage = Stage::new(None, Script::answering(|_| Reply::text("yes"))).await;
        let (one, two) = if title_first { (&title, &main) } else { (&main, &title) };
        tokio::join!(asked(&stage, WireFormat::Anthropic, one), asked(&stage, WireFormat::Anthropic, two));
        assert_eq!(listed(&stage), (vec!["build it".to_owned()], "build it".to_owned()));
    }
}

#[tokio::test]
async fn a_request_after_a_first_answer_that_failed_is_no_sub_agent() {
    let mut count = 0;
    let script = Script::answering(move |request| {
        let has_tools = request.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        count += usize::from(has_tools);
        match count {
            1 if has_tools => Reply::error(400, "invalid_request_error", "no"),
            _ => Reply::text("yes"),
        }
    });
    let stage = Stage::new(None, script).await;
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("a title, please")], false)).await;
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("build it")], true)).await;
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("build it, but faster")], true)).await;
    assert_eq!(stage.opened(), [None, None, None]);
    let (all, last) = listed(&stage);
    assert_eq!((all.len(), last.as_str()), (2, "build it, but faster"), "{all:?}");
    // What it starts is its own.
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("look for tests")], true)).await;
    assert_eq!(stage.opened().last(), Some(&Some("sub_agent")));
}

#[tokio::test]
async fn sub_agents_with_the_same_prompt_all_hang_on_the_conversation() {
    let mut stage = Stage::new(None, counting()).await;
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("build it")], true)).await;
    let body = of_session(&[user("review this file")], true);
    let ask = || asked(&stage, WireFormat::Anthropic, &body);
    tokio::join!(ask(), ask(), ask(), ask());
    assert_eq!(stage.opened()[1..], [Some("sub_agent"); 4]);
    stage.start().await;
    asked(&stage, WireFormat::Anthropic, &body).await;
    assert_eq!(stage.opened()[1..], [Some("sub_agent"); 5]);
    assert_eq!(listed(&stage).0, ["build it"]);
}

/// As Claude Code does it with `/compact`: the question is put behind an earlier message, and the last answer is kept.
#[tokio::test]
async fn a_request_for_a_summary_is_a_side_call() {
    let mut stage = Stage::new(None, counting()).await;
    let mut talk = vec![user("one")];
    for turn in 1..=3 {
        asked(&stage, WireFormat::Anthropic, &of_session(&talk, true)).await;
        talk.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    let asks = "Your task is to create a detailed summary of the conversation so far.";
    let behind = json!({ "role": "user", "content": [
        { "type": "text", "text": "question 2" }, { "type": "text", "text": asks },
    ]});
    let summarising = [&talk[..4], &[behind]].concat();
    for restarted in [false, true] {
        if restarted {
            stage.start().await;
        }
        asked(&stage, WireFormat::Anthropic, &of_session(&summarising, true)).await;
        assert_eq!(stage.opened().last(), Some(&Some("side_branch")));
        assert_eq!(listed(&stage), (vec!["one".to_owned()], "one".to_owned()));
    }
    assert_eq!(stage.upstream.calls()[3].text(), of_session(&summarising, true), "it is sent as it came");
    let main = stage.store.resolve(&Owner::default(), "last").unwrap().id;
    let note = "This session is being continued from a previous conversation that ran out of context. All went well.";
    let compacted = [user(note), assistant("answer 3"), user("go on")];
    asked(&stage, WireFormat::Anthropic, &of_session(&compacted, true)).await;
    let events = stage.events.lock().unwrap();
    let opened = events.iter().rev().find_map(|event| match event {
        GatewayEvent::Opened { link, .. } => link.clone(),
        _ => None,
    });
    assert_eq!(opened, Some((main, "client_compaction")), "of the conversation itself");
}

/// Where the first message is the only one before it, nothing is shared with the conversation.
#[tokio::test]
async fn a_request_for_a_summary_of_one_exchange_is_a_side_call() {
    let stage = Stage::new(None, counting()).await;
    asked(&stage, WireFormat::Anthropic, &of_session(&[user("one")], true)).await;
    let asks = "Your task is to create a detailed summary of the conversation so far.";
    let asks = json!({ "role": "user", "content": [
        { "type": "text", "text": "one" }, { "type": "text", "text": asks },
    ]});
    asked(&stage, WireFormat::Anthropic, &of_session(&[asks], true)).await;
    assert_eq!(stage.opened(), [None, Some("side_call")]);
}

/// As Hermes does it: nothing names the session, and what is asked quotes what was said.
#[tokio::test]
async fn a_call_without_tools_that_quotes_a_conversation_is_a_side_call_of_it() {
    let stage = Stage::new(
        None,
        Script::answering(|request| {
            let said = request.json()["messages"].as_array().unwrap().len();
            Reply::text(format!("The part with number {said} was read."))
        }),
    )
    .await;
    let with_tools = |messages: &[Value]| {
        let tool =
            json!({ "type": "function", "function": { "name": "t", "parameters": { "type": "object" } } });
        json!({ "model": MODEL, "messages": messages, "tools": [tool] }).to_string()
    };
    let question = "Read every part of the archive, please.";
    asked(&stage, WireFormat::Chat, &with_tools(&[user(question)])).await;
    asked(&stage, WireFormat::Chat, &with_tools(&[user("Read another archive as well.")])).await;
    let summary = format!(
        "Create a checkpoint.\n[USER]: {question}\n\n[ASSISTANT]: The part with number 1 was read.\n\nBe brief."
    );
    asked(&stage, WireFormat::Chat, &body(&[user(&summary)])).await;
    let title = format!("User: {question}\n\nAssistant: The part with number 1 was read.");
    let system = json!({ "role": "system", "content": "Write a title." });
    asked(&stage, WireFormat::Chat, &body(&[system, user(&title)])).await;
    assert_eq!(stage.opened(), [None, None, Some("side_call"), Some("side_call")]);
    let main = stage.store.resolve(&Owner::default(), "last").unwrap();
    assert_ne!(main.link.map(|link| link.kind), Some(throughline_store::LinkKind::SideCall));
    // With tools, or with words of one side only, it is a conversation.
    asked(&stage, WireFormat::Chat, &with_tools(&[user(&format!("Look into this. {summary}"))])).await;
    asked(&stage, WireFormat::Chat, &body(&[user(question)])).await;
    assert_eq!(stage.opened()[4..], [None, None]);
}

/// Codex asks for titles in threads of their own, with tools, while the first answer is on its way. It says what they are for.
#[tokio::test]
async fn a_title_thread_of_codex_is_a_side_call_in_whatever_order_it_comes() {
    let ask = async |stage: &Stage, thread: &str, source: &str, text: &str| {
        let body = json!({ "model": MODEL, "prompt_cache_key": thread, "input": [user(text)],
            "tools": [{ "type": "function", "name": "t", "parameters": { "type": "object" } }] });
        let metadata = json!({ "thread_id": thread, "thread_source": source }).to_string();
        let request = stage.http.post(stage.at("/v1/responses")).body(body.to_string());
        let request =
            request.header("content-type", "application/json").header("user-agent", "codex-tui/0.166.0");
        let response = request.header("x-codex-turn-metadata", metadata).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.text().await.unwrap();
    };
    let (question, title) =
        ("Name a bird of the harbour", "Write a title.\n\nUser prompt:\nName a bird of the harbour");
    for order in ["first", "later", "meanwhile"] {
        let gate = Gate::new();
        let held = gate.clone();
        let script = Script::answering(move |request| {
            let is_main = request.text().contains(question) && !request.text().contains("Write a title.");
            let is_held = order == "meanwhile" && is_main;
            let reply = Reply::text("A cormorant.");
            if is_held { reply.failing_after(0, ReplyFault::Wait(held.clone())) } else { reply }
        });
        let stage = Stage::new(None, script).await;
        let main = ask(&stage, "thread-1", "user", question);
        let aside = ask(&stage, "thread-2", "thread_title", title);
        match order {
            "first" => (aside.await, main.await),
            "later" => {
                main.await;
                (aside.await, ())
            }
            _ => {
                let aside = async {
                    gate.until_reached().await;
                    aside.await;
                    gate.open();
                };
                tokio::join!(aside, main)
            }
        };
        assert_eq!(listed(&stage), (vec![question.to_owned()], question.to_owned()), "{order}");
        // Another question of another thread has nothing to do with it.
        ask(&stage, "thread-3", "user", "Read every part of the archive").await;
        assert_eq!(listed(&stage).0.len(), 2, "{order}");
    }
}

/// As Codex does it on its own account: what people said stays, a summary follows, nothing that was answered.
#[tokio::test]
async fn a_client_that_keeps_only_what_people_said_is_recognised_each_time() {
    let stage = Stage::new(None, counting()).await;
    let ask = |messages: &[Value]| {
        json!({ "model": MODEL, "input": messages, "prompt_cache_key": "codex-session" }).to_string()
    };
    let mut talk = vec![user("read the archive")];
    for turn in 1..=3 {
        asked(&stage, WireFormat::Responses, &ask(&talk)).await;
        talk.extend([assistant(&format!("answer {turn}")), user(&format!("part {turn}"))]);
    }
    for number in 1..=3 {
        let note =
            format!("Another language model started to solve this problem; this is summary {number} of it.");
        let mut compacted = vec![user("read the archive"), user(&note)];
        asked(&stage, WireFormat::Responses, &ask(&compacted)).await;
        compacted.extend([assistant(&format!("answer {}", 2 * number + 2)), user("on")]);
        asked(&stage, WireFormat::Responses, &ask(&compacted)).await;
    }
    let compaction = Some("client_compaction");
    assert_eq!(stage.opened(), [None, compaction, compaction, compaction]);
    let events = stage.events.lock().unwrap();
    let opened = events.iter().filter_map(|event| match event {
        GatewayEvent::Opened { session, link } => Some((session, link.as_ref().map(|(parent, _)| parent))),
        _ => None,
    });
    let opened: Vec<(&SessionId, Option<&SessionId>)> = opened.collect();
    for pair in opened.windows(2) {
        assert_eq!(pair[1].1, Some(pair[0].0), "each goes on from the last: {opened:?}");
    }
}

/// A model may write the same summary again, and a question behind a summary may be put in other words before it is answered.
#[tokio::test]
async fn a_compaction_of_the_client_that_begins_as_another_is_recognised() {
    let mut count = 0;
    let script = Script::answering(move |_| {
        count += 1;
        // The question behind the first summary is not answered at first.
        if count == 2 {
            Reply::error(400, "invalid_request_error", "no")
        } else {
            Reply::text(format!("answer {count}"))
        }
    });
    let stage = Stage::new(None, script).await;
    let ask = |messages: &[Value]| {
        json!({ "model": MODEL, "input": messages, "prompt_cache_key": "codex-session" }).to_string()
    };
    let note = "Another language model started to solve this problem; this is its summary.";
    let compacted = [user("read the archive"), user(note)];
    asked(&stage, WireFormat::Responses, &ask(&[user("read the archive")])).await;
    for (question, parent) in [("and then?", 0), ("and after that?", 0), ("what is next?", 2)] {
        asked(&stage, WireFormat::Responses, &ask(&[&compacted[..], &[user(question)]].concat())).await;
        let events = stage.events.lock().unwrap();
        let opened = events.iter().filter_map(|event| match event {
            GatewayEvent::Opened { session, link } => Some((session.clone(), link.clone())),
            _ => None,
        });
        let opened: Vec<_> = opened.collect();
        let expected = Some((opened[parent].0.clone(), "client_compaction"));
        assert_eq!(opened.last().unwrap().1, expected, "{question}: {opened:?}");
    }
}

/// As Hermes does it the second time: nothing of the beginning is left, and nothing names the session.
#[tokio::test]
async fn a_client_whose_summary_comes_first_is_recognised_by_what_it_keeps() {
    let mut stage = Stage::new(None, counting()).await;
    let mut talk = vec![user("one")];
    for turn in 1..=6 {
        asked(&stage, WireFormat::Chat, &body(&talk)).await;
        talk.extend([assistant(&format!("answer {turn}")), user(&format!("question {turn}"))]);
    }
    let alone = "[CONTEXT COMPACTION \u{2014} REFERENCE ONLY] Earlier turns were compacted.";
    let first = [&[user(alone)], &talk[talk.len() - 4..]].concat();
    asked(&stage, WireFormat::Chat, &body(&first)).await;
    assert_eq!(stage.opened(), [None, Some("client_compaction")]);
    // Behind a message that is kept, and for a gateway that was started since.
    let behind =
        format!("[PRIOR CONTEXT \u{2014} for reference]\nquestion 5\n\n[END OF PRIOR CONTEXT]\n\n{alone}");
    let on = [&[user(&behind)], &first[3..], &[assistant("answer 7"), user("question 7")]].concat();
    stage.start().await;
    asked(&stage, WireFormat::Chat, &body(&on)).await;
    assert_eq!(stage.opened().last(), Some(&Some("client_compaction")));
    // Words about a compaction are none.
    asked(&stage, WireFormat::Chat, &body(&[user("What does [CONTEXT COMPACTION mean?")])).await;
    assert_eq!(stage.opened().last(), Some(&None));
}
