//! The tools as a model calls them: what they find, and what they say to bad questions.

use serde_json::{Value, json};
use throughline_engine::{CompactionResult, ContextEngine, EngineError, ToolAnswer, ToolRequest};
use throughline_lcm::{
    ExpandQuery, ExpandedItem, GrepPattern, GrepQuery, LcmLimits, RecallLimits, RecallToolset, RecordTools,
};
use throughline_store::{NewSession, Origin, Owner, SessionId};
use throughline_testkit::big_transcript;
use throughline_transcript::{
    DecodeOptions, Message, Role, Transcript, WireFormat, decode_message_text, text_message,
};

use crate::support::{Act, Script, Stage, owner};

fn said(role: Role, text: &str) -> Message {
    decode_message_text(text_message(WireFormat::Anthropic, role, text)).unwrap()
}

/// A conversation with a fact near its beginning, compacted three times.
async fn folded() -> Stage {
    let limits = LcmLimits {
        chunk_tokens: 2_000,
        recall: RecallLimits { expand_tokens: 1_500, ..RecallLimits::default() },
        ..LcmLimits::default()
    };
    let mut stage = Stage::new(WireFormat::Anthropic, 40_000, limits);
    let long = format!(
        "It begins. {} The deploy key lives in vault/keys/zebra-41.pem. It ends.",
        "Filler words. ".repeat(2_000)
    );
    stage.append(&[
        said(Role::User, "Where is everything?"),
        said(Role::Assistant, "Here."),
        said(Role::User, "And the key?"),
    ]);
    stage.append(&[
        said(Role::Assistant, "Wait."),
        said(Role::User, "I wait."),
        said(Role::Assistant, &long),
    ]);
    for seed in 1..4 {
        let json = big_transcript(WireFormat::Anthropic, 90_000, 100, seed);
        stage.append(&Transcript::decode(json.into_bytes(), &DecodeOptions::default()).unwrap().messages);
        let result = stage.fold().await;
        assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
        stage.check();
    }
    stage
}

async fn call(stage: &Stage, name: &str, arguments: Value) -> ToolAnswer {
    let call = ToolRequest { session: stage.tip.clone(), name: name.to_owned(), arguments, max_chars: None };
    stage.engine().handle_tool_call(&call).await.unwrap()
}

#[tokio::test]
async fn a_fact_is_found_by_one_grep_and_one_expand() {
    let stage = folded().await;
    for arguments in [
        json!({"query": "zebra-41.pem"}),
        json!({"query": "vault/keys/zebra-41"}),
        json!({"query": "deploy key"}),
        json!({"query": r"vault/\w+/zebra-\d+\.pem", "regex": true}),
    ] {
        let found = call(&stage, "lcm_grep", arguments.clone()).await;
        assert!(
            !found.is_error && found.text.starts_with("message 5 (assistant, "),
            "{arguments}: {}",
            found.text
        );
        assert!(found.text.contains(", n"), "under which nodes: {}", found.text);
    }
    let opened = call(&stage, "lcm_expand", json!({"message": 5, "around": "zebra-41"})).await;
    assert!(opened.text.contains("The deploy key lives in vault/keys/zebra-41.pem."), "{}", opened.text);
    assert!(opened.text.contains("characters before this]"), "only a part fits: {}", opened.text);
    let hits = stage.with_recall(|recall| {
        recall
            .grep(&stage.tip, &GrepQuery { text: "zebra-41.pem".to_owned(), ..GrepQuery::default() })
            .unwrap()
            .hits
    });
    assert_eq!(hits.len(), 1);
    assert!(!hits[0].in_view && (1..=3).contains(&hits[0].nodes.len()), "{hits:?}");
    let leaf = hits[0].nodes.last().unwrap().to_string();
    let described = call(&stage, "lcm_describe", json!({"node": leaf})).await;
    assert!(described.text.starts_with(&format!("[{leaf}] messages ")), "{}", described.text);
    assert!(described.text.contains("covers messages"), "{}", described.text);
}

#[tokio::test]
async fn questions_are_answered_by_rank_and_from_nodes() {
    let stage = folded().await;
    let question = json!({"query": "where does the key for deploying live?"});
    let found = call(&stage, "lcm_grep", question).await;
    assert!(!found.is_error && found.text.starts_with("message 5 (assistant, "), "{}", found.text);
    let top = stage.with_recall(|recall| recall.top_nodes(&stage.tip).unwrap());
    let described = stage.with_recall(|recall| recall.describe(top[0].id).unwrap());
    let words: Vec<&str> = described.document.split_whitespace().rev().take(12).collect();
    let about = words.into_iter().rev().collect::<Vec<_>>().join(" ");
    let ask = GrepQuery { text: about, ..GrepQuery::default() };
    let nodes = stage.with_recall(|recall| recall.grep(&stage.tip, &ask).unwrap().nodes);
    assert!(nodes.iter().any(|hit| hit.node == top[0].id), "{nodes:?}");
}

#[tokio::test]
async fn question_lists_names_that_the_view_no_longer_has() {
    const HEADING: &str = "Exact names that are not in view";
    let stage = folded().await;
    let question = "now I look again at what was written before";
    let found = call(&stage, "lcm_grep", json!({"query": question})).await;
    let (_, list) = found.text.split_once(HEADING).expect("a list of names");
    let list: Vec<&str> = list.lines().skip(1).take_while(|line| line.starts_with("message ")).collect();
    let view: String = stage.with_recall(|recall| {
        let view = recall.store.view(recall.owner, &stage.tip, None).unwrap();
        view.iter().map(|item| item.json().to_owned()).collect()
    });
    let names: Vec<&str> = list
        .iter()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, names)| names.split(", "))
        .collect();
    assert!(names.len() > 10, "{list:?}");
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    for name in names {
        let in_view = view.split(|c| !is_word(c)).any(|word| word == name);
        assert!(!in_view, "{name} is in view");
    }
    let searched = stage.with_recall(|recall| {
        RecordTools::new(recall.store, recall.owner)
            .search_within(&stage.tip, question.to_owned(), 5)
            .unwrap()
    });
    assert!(list.iter().all(|line| searched.contains(line)), "{searched}");
    // What names a thing looks that thing up.
    let named = call(&stage, "lcm_grep", json!({"query": "deploy key"})).await;
    assert!(!named.text.contains(HEADING), "{}", named.text);
}

#[tokio::test]
async fn pages_of_an_expansion_show_everything_once() {
    let stage = folded().await;
    let top = stage.with_recall(|recall| recall.top_nodes(&stage.tip).unwrap());
    for node in &top {
        let mut ask = ExpandQuery {
            node: Some(node.id),
            expansion: throughline_lcm::Expansion::Messages,
            ..ExpandQuery::default()
        };
        let mut texts: std::collections::BTreeMap<u64, String> = std::collections::BTreeMap::new();
        let mut pages = 0;
        loop {
            let page = stage.with_recall(|recall| recall.expand(&stage.tip, &ask).unwrap());
            pages += 1;
            assert!(pages < 500 && page.tokens <= 1_500 + 40, "{} tokens on page {pages}", page.tokens);
            for item in &page.items {
                if let ExpandedItem::Message { message, text, .. } = item {
                    texts.entry(*message).or_default().push_str(text);
                }
            }
            let last = texts.keys().next_back().copied();
            match (page.next_offset, page.next_from) {
                (Some(offset), _) => (ask.from, ask.offset) = (last, Some(offset)),
                (None, Some(from)) => (ask.from, ask.offset) = (Some(from), None),
                (None, None) => break,
            }
        }
        assert_eq!(texts.len() as u64, node.node.messages);
        if let Some(long) = texts.get(&5) {
            assert!(
                long.starts_with("It begins.") && long.ends_with("It ends.") && long.len() > 28_000,
                "{}",
                long.len()
            );
        }
    }
}

#[tokio::test]
async fn bad_questions_get_words_and_the_conversation_goes_on() {
    let stage = folded().await;
    let cases = [
        ("lcm_describe", json!({"node": "n99999"}), "there is no node n99999 here"),
        ("lcm_expand", json!({"node": "n99999"}), "there is no node n99999 here"),
        ("lcm_describe", json!({"node": "twelve"}), "`twelve` is not a node id; node ids look like `n12`"),
        ("lcm_describe", json!({}), "name the notes to describe, such as n12"),
        ("lcm_expand", json!({}), "name a node, like n12, or the number of a message"),
        ("lcm_expand", json!({"node": "n1", "message": 3}), "name either a node or a message, not both"),
        (
            "lcm_expand",
            json!({"message": 123_456}),
            "there is no message 123456 in this conversation; its messages are numbered from 0 to ",
        ),
        ("lcm_expand", json!({"message": -1}), "`message` is a whole number from 0 on, not -1"),
        ("lcm_expand", json!({"node": "n1", "depth": 9}), "lcm_expand has no argument `depth`"),
        ("lcm_grep", json!({"query": "  "}), "say what to look for"),
        ("lcm_grep", json!({"query": "(", "regex": true}), "the pattern cannot be used: "),
        (
            "lcm_grep",
            json!({"query": "(a{1000}){1000}", "regex": true}),
            "the pattern cannot be used: it is too large",
        ),
        (
            "lcm_grep",
            json!({"query": "x".repeat(1_001), "regex": true}),
            "the pattern cannot be used: it has more than 1000 characters",
        ),
        ("lcm_grep", json!("words"), "lcm_grep takes an object"),
        ("lcm_grep", json!({"query": "x", "regex": "yes"}), "`regex` is true or false"),
        ("lcm_expand_query", json!({"question": ""}), "say what the question is"),
        (
            "lcm_expand_query",
            json!({"question": "key?", "nodes": [12]}),
            "`nodes` lists names such as \"n12\", not 12",
        ),
        (
            "lcm_expand_query",
            json!({"question": "Where is zebra-41.pem?"}),
            "the question was not answered: no model writes summaries here",
        ),
    ];
    for (name, arguments, words) in cases {
        let answer = call(&stage, name, arguments.clone()).await;
        assert!(answer.is_error && answer.text.starts_with(words), "{name} {arguments}: {}", answer.text);
    }
    // Nested repetition that would take for ever elsewhere is answered like any other.
    let hostile = call(&stage, "lcm_grep", json!({"query": "(x+x+)+y", "regex": true})).await;
    assert!(!hostile.is_error, "{}", hostile.text);
    let capped = call(&stage, "lcm_expand", json!({"message": 5, "max_tokens": 10_000_000})).await;
    assert!(capped.text.ends_with("One expansion shows at most 1500 tokens."), "{}", capped.text);
    let call = ToolRequest {
        session: stage.tip.clone(),
        name: "lcm_forget".to_owned(),
        arguments: Value::Null,
        max_chars: None,
    };
    let unknown = stage.engine().handle_tool_call(&call).await.unwrap_err();
    assert!(matches!(unknown, EngineError::UnknownTool { .. }));
}

#[tokio::test]
async fn nothing_of_somebody_else_is_reported() {
    let stage = folded().await;
    let node = stage.with_recall(|recall| recall.top_nodes(&stage.tip).unwrap()[0].id);
    let (them, limits) = (Owner::new("somebody"), RecallLimits::default());
    let recall = throughline_lcm::RecallReader { store: stage.store.as_ref(), owner: &them, limits: &limits };
    let words = recall.describe(node).unwrap_err().to_string();
    assert!(words.starts_with(&format!("there is no node {node} here")), "{words}");
    let ask = ExpandQuery { node: Some(node), ..ExpandQuery::default() };
    assert!(recall.expand(&stage.tip, &ask).unwrap_err().to_string().starts_with("there is no node"));
    let ask = GrepQuery { text: "zebra".to_owned(), ..GrepQuery::default() };
    assert!(recall.grep(&stage.tip, &ask).is_err());
    assert!(recall.grep(&SessionId::from_text("nowhere"), &ask).is_err());
    assert_eq!(owner(), Owner::default());
}

#[tokio::test]
async fn a_pattern_without_a_string_is_held_against_messages_newest_first() {
    let stage = folded().await;
    let ask = GrepQuery {
        text: r"[a-z]+-\d\d\.p[ek]m".to_owned(),
        pattern: GrepPattern::Regex,
        ..GrepQuery::default()
    };
    let found = stage.with_recall(|recall| recall.grep(&stage.tip, &ask).unwrap());
    assert!(found.hits.iter().any(|hit| hit.message == 5 && hit.found == "zebra-41.pem"), "{found:?}");
    let before = GrepQuery { before: Some(5), ..ask };
    let found = stage.with_recall(|recall| recall.grep(&stage.tip, &before).unwrap());
    assert_eq!(found.hits, []);
}

#[tokio::test]
async fn a_question_is_answered_from_originals_with_the_messages_it_used() {
    let mut stage = folded().await;
    let script = Script::new(&[Act::Permanent]);
    stage.model = Some(std::sync::Arc::clone(&script));
    let answer = call(
        &stage,
        "lcm_expand_query",
        json!({"question": "Where does the deploy key live, zebra?", "messages": [5]}),
    )
    .await;
    assert!(!answer.is_error, "{}", answer.text);
    assert!(
        answer.text.contains("It rests on messages ") && answer.text.contains("answered by scripted"),
        "{}",
        answer.text
    );
    assert!(!answer.text.contains("rests on messages 999999"), "{}", answer.text);
    let asked = script.questions.lock().unwrap().join("\n");
    assert!(asked.contains("---- message 5 (assistant)") && asked.contains("---- question"), "{asked}");
}

#[tokio::test]
async fn the_schemas_are_the_same_bytes_every_time() {
    let stage = folded().await;
    let first = serde_json::to_string(&stage.engine().tool_schemas().await.unwrap()).unwrap();
    let second = serde_json::to_string(&throughline_lcm::RecallToolset::schemas()).unwrap();
    assert_eq!(first, second);
    let names: Vec<String> =
        throughline_lcm::RecallToolset::schemas().into_iter().map(|schema| schema.name).collect();
    assert_eq!(names, RecallToolset::NAMES);
}

/// The numbers of its messages would be taken for those of the conversation that asks.
#[tokio::test]
async fn notes_of_another_conversation_are_not_opened() {
    let mut stage = folded().await;
    let ask = GrepQuery { text: "zebra-41.pem".to_owned(), ..GrepQuery::default() };
    let hits = stage.with_recall(|recall| recall.grep(&stage.tip, &ask).unwrap().hits);
    let leaf = hits[0].nodes.last().unwrap().to_string();
    let tools = ["lcm_describe", "lcm_expand"];
    for tool in tools {
        assert!(!call(&stage, tool, json!({ "node": leaf })).await.is_error);
    }
    let other = NewSession {
        id: SessionId::from_text("other"),
        owner: owner(),
        link: None,
        started_ms: 2,
        model: None,
        title: None,
        origin: Origin { program: "test".to_owned(), key: None, project: None },
        wire_format: WireFormat::Anthropic,
    };
    stage.tip = stage.store.open_session(other, None).unwrap().id;
    for tool in tools {
        let refused = call(&stage, tool, json!({ "node": leaf })).await;
        assert!(refused.is_error && refused.text.contains(&leaf), "{tool}: {}", refused.text);
    }
}
