//! What holds of questions in plain words: passages with some of the words are found by rank, after everything that holds
//! all of them.

use throughline_store::{
    Dependants, Hit, NewMessage, NewSession, Owner, SearchAnswer, SearchMode, SearchQuery, Store,
};
use throughline_transcript::Role;

use crate::contract::support::*;

fn question(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), ..SearchQuery::default() }
}

fn ask(store: &dyn Store, text: &str) -> SearchAnswer {
    store.search(&owner(), &question(text)).unwrap()
}

fn matched(hit: &Hit) -> (usize, usize) {
    hit.matched.map(|matched| (matched.words, matched.of)).unwrap()
}

const TALK: &[&str] = &[
    "Let us look at the workers first.",
    "We dropped the retry queue because the workers retry by themselves.",
    "The dashboard is green.",
    "Colours of the chart are next.",
];

fn a_question_finds_the_passage_that_answers_it(store: &dyn Store) {
    open(store, "one");
    say(store, "one", TALK);
    let answer = ask(store, "why did we get rid of queues for retrying?");
    assert_eq!(answer.hits[0].seq, 1);
    assert_eq!(matched(&answer.hits[0]), (2, 4));
    let marked = |(start, end): &(usize, usize)| answer.hits[0].snippet.text[*start..*end].to_owned();
    let marked: Vec<String> = answer.hits[0].snippet.marks.iter().map(marked).collect();
    assert!(marked.contains(&"retry".to_owned()) && marked.contains(&"queue".to_owned()), "{marked:?}");
}

fn short_messages_are_shown_with_those_beside_them(store: &dyn Store) {
    open(store, "one");
    say(store, "one", TALK);
    let answer = ask(store, "why was the retry queue removed?");
    let text = &answer.hits[0].snippet.text;
    assert!(text.contains("dashboard is green") && text.contains("[user]"), "{text}");
    assert_eq!(answer.hits.len(), 1, "what a passage shows is not shown again");
}

fn passages_have_at_most_eighty_words(store: &dyn Store) {
    open(store, "one");
    let long = format!("{} the retry queue went away {}", "hay ".repeat(300), "straw ".repeat(300));
    say(store, "one", &[&long, "yes", &long.replace("hay", "grass")]);
    for hit in ask(store, "where is the retry queue now?").hits {
        assert!(hit.snippet.text.split_whitespace().count() <= 80, "{}", hit.snippet.text);
    }
}

fn what_holds_all_words_comes_first_and_as_before(store: &dyn Store) {
    open(store, "one");
    say(store, "one", TALK);
    say(store, "one", &["queue of the printer", "retry retry retry", "queue, then retry"]);
    for text in
        ["retry queue", "\"retry queue\"", "getUserById", "queu", "数据", "retry queue printer", "zzz"]
    {
        let exact = SearchQuery { mode: SearchMode::AllWords, ..question(text) };
        let exact = store.search(&owner(), &exact).unwrap();
        let all = ask(store, text);
        assert_eq!(all.hits.get(..exact.hits.len()), Some(exact.hits.as_slice()), "{text}");
        assert_eq!(all.as_substring, exact.as_substring);
    }
    assert!(ask(store, "retry queue").hits.len() > 2);
    assert_eq!(ask(store, "printer").hits.len(), 1, "one word that is found is found exactly");
}

fn scripts_without_spaces_are_ranked_too(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["打开数据库以后，连接超时", "界面的颜色"]);
    assert_eq!(ask(store, "数据库为什么超时？").hits[0].seq, 0);
}

fn odd_questions_are_safe(store: &dyn Store) {
    open(store, "one");
    say(store, "one", TALK);
    say(store, "one", &["what is it? it is what it is"]);
    let long = "why did the queue retry? ".repeat(4_200);
    assert!(long.len() > 100 * 1024);
    assert!(!ask(store, &long).hits.is_empty());
    assert!(!ask(store, "what is it to them").hits.is_empty(), "only function words");
    assert!(ask(store, "?!… -- ()").hits.is_empty(), "only punctuation");
    assert!(!ask(store, "почему queue 数据 retry?").hits.is_empty(), "mixed scripts");
    assert!(!ask(store, ".*(queue|retry)+[a-z]{2,}\\b").hits.is_empty(), "regular expressions are words");
}

fn passages_follow_the_filters(store: &dyn Store) {
    open(store, "one");
    let batch = vec![
        from_role(Role::User, "please retry it", 100),
        from_role(Role::Assistant, "the queue was retried", 200),
        from_role(Role::Tool, "retrying queue", 300),
    ];
    store.append(&owner(), &id("one"), batch).unwrap();
    open(store, "other");
    say(store, "other", &["retry elsewhere"]);
    let found = |query: SearchQuery| -> Vec<u64> {
        let hits = store.search(&owner(), &query).unwrap().hits;
        hits.iter().map(|hit| hit.seq).collect()
    };
    let asked = question("should one retry queues again?");
    assert_eq!(found(SearchQuery { role: Some(Role::User), session: Some(id("one")), ..asked.clone() }), [0]);
    assert_eq!(found(SearchQuery { since_ms: Some(250), until_ms: Some(400), ..asked.clone() }), [2]);
    let within = store.search(&owner(), &SearchQuery { session: Some(id("other")), ..asked }).unwrap();
    assert!(within.hits.iter().all(|hit| hit.session == id("other")));
}

fn projects_and_files_narrow_what_is_searched(store: &dyn Store) {
    for (name, project) in [("one", "/home/me/parser"), ("two", "/home/me/printer")] {
        let mut session = new_session(name);
        session.origin.project = Some(project.to_owned());
        session.origin.key = None;
        store.open_session(session, None).unwrap();
        say(store, name, &["retry the queue in src/main.rs", "retry the queue"]);
    }
    let found = |query: SearchQuery| -> Vec<String> {
        let mut hits = store.search(&owner(), &query).unwrap().hits;
        hits.sort_by_key(|hit| hit.message);
        hits.iter().map(|hit| format!("{} {}", hit.session, hit.seq)).collect()
    };
    for text in ["retry", "when should we retry queues?"] {
        let asked = question(text);
        let of = |project: &str| SearchQuery { project: Some(project.into()), ..asked.clone() };
        assert!(found(of("parser")).iter().all(|place| place.starts_with("one")), "{text}");
        assert!(!found(of("/home/me/parser/")).is_empty(), "{text}");
        assert!(found(of("arser")).is_empty(), "{text}");
        let file = SearchQuery { file: Some("src/main.rs".into()), ..of("printer") };
        assert_eq!(found(file), ["two 0"], "{text}");
    }
}

fn owners_see_only_their_own_passages(store: &dyn Store) {
    let stranger: Owner = stranger();
    open(store, "one");
    let theirs = NewSession { owner: stranger.clone(), ..new_session("theirs") };
    store.open_session(theirs, None).unwrap();
    // More than is read as a whole, of each owner: the index proposes.
    for at in 0..28 {
        // Some hold every word: what is proposed does not depend on what of others stands beside it in the index.
        let verb = |number: usize| if number.is_multiple_of(30) { "retry the " } else { "" };
        let mine: Vec<NewMessage> =
            (0..120).map(|number| said(&format!("mine {at} {number} {}queue", verb(number)))).collect();
        store.append(&owner(), &id("one"), mine).unwrap();
        let others: Vec<NewMessage> =
            (0..120).map(|number| said(&format!("theirs {at} {number} retry the queue"))).collect();
        store.append(&stranger, &id("theirs"), others).unwrap();
    }
    let hits = ask(store, "when do we retry the mine queue?").hits;
    assert!(hits.len() >= 10);
    assert!(hits.iter().all(|hit| hit.session == id("one") && !hit.snippet.text.contains("theirs")));
    let hits = store.search(&stranger, &question("when do we retry the mine queue?")).unwrap().hits;
    assert!(!hits.is_empty());
    assert!(hits.iter().all(|hit| hit.session == id("theirs") && !hit.snippet.text.contains("mine")));
}

fn large_records_are_searched_by_their_index(store: &dyn Store) {
    open(store, "one");
    for at in 0..16 {
        let filler = (0..250).map(|number| said(&format!("ordinary message {at} of number {number}")));
        store.append(&owner(), &id("one"), filler.collect()).unwrap();
        if at == 3 {
            say(store, "one", &["Root cause: the retries were cached without the tenant."]);
        }
    }
    let answer = ask(store, "what was the cause of caching retry results?");
    assert!(answer.hits[0].snippet.text.contains("Root cause"), "{}", answer.hits[0].snippet.text);
}

fn deleted_sessions_have_no_passages(store: &dyn Store) {
    open(store, "one");
    say(store, "one", TALK);
    store.delete(&owner(), &id("one"), Dependants::Refuse).unwrap();
    assert!(ask(store, "why did we drop the retry queue?").hits.is_empty());
}

on_databases!(
    a_question_finds_the_passage_that_answers_it,
    short_messages_are_shown_with_those_beside_them,
    passages_have_at_most_eighty_words,
    what_holds_all_words_comes_first_and_as_before,
    scripts_without_spaces_are_ranked_too,
    odd_questions_are_safe,
    passages_follow_the_filters,
    projects_and_files_narrow_what_is_searched,
    owners_see_only_their_own_passages,
    large_records_are_searched_by_their_index,
    deleted_sessions_have_no_passages,
);
