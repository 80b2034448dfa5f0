//! Search: words, phrases, any script, identifiers, paths, substrings; filtered, with neighbours, without duplicates; and
//! any question is safe.

use throughline_store::{
    Hit, LinkKind, NewArtifact, NewMessage, SearchAnswer, SearchMode, SearchQuery, Store,
};
use throughline_transcript::{Role, decode_message_text};

use crate::contract::support::*;

fn query(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), mode: SearchMode::AllWords, ..SearchQuery::default() }
}

fn substring(text: &str) -> SearchQuery {
    SearchQuery { mode: SearchMode::Substring, ..query(text) }
}

fn ask(store: &dyn Store, query: &SearchQuery) -> SearchAnswer {
    store.search(&owner(), query).unwrap()
}

/// Where the hits are, in order of the record, not of rank.
fn places(store: &dyn Store, query: &SearchQuery) -> Vec<String> {
    let mut hits = ask(store, query).hits;
    hits.sort_by_key(|hit| hit.message);
    hits.iter().map(|hit| format!("{} {}", hit.session, hit.seq)).collect()
}

fn seqs(store: &dyn Store, query: &SearchQuery) -> Vec<u64> {
    let mut hits = ask(store, query).hits;
    hits.sort_by_key(|hit| hit.message);
    hits.iter().map(|hit| hit.seq).collect()
}

/// What of a snippet was looked for.
fn marked(hit: &Hit) -> Vec<&str> {
    hit.snippet.marks.iter().map(|(start, end)| &hit.snippet.text[*start..*end]).collect()
}

fn words_are_found_in_any_order_and_case_and_all_of_them(store: &dyn Store) {
    open(store, "one");
    say(
        store,
        "one",
        &[
            "The quick brown fox",
            "a BROWN bear is quick",
            "brown only",
            "nothing of it",
            "Stra\u{df}e und \u{c4}pfel",
        ],
    );
    assert_eq!(seqs(store, &query("quick brown")), [0, 1]);
    assert_eq!(seqs(store, &query("BROWN")), [0, 1, 2]);
    assert_eq!(seqs(store, &query("\u{e4}pfel")), [4]);
    assert!(seqs(store, &query("quick zebra")).is_empty());
    let answer = ask(store, &query("fox"));
    assert!(!answer.as_substring);
    assert_eq!(answer.ranked_newest, None);
    let hit = &answer.hits[0];
    assert_eq!((hit.session.as_str(), hit.seq, hit.role, hit.at_ms), ("one", 0, "user", 2_000));
    assert_eq!(hit.snippet.text, "The quick brown fox");
    assert_eq!(marked(hit), ["fox"]);
    assert!(!hit.snippet.cut_before && !hit.snippet.cut_after);
    assert_eq!(hit.message, store.messages(&owner(), &id("one")).unwrap()[0].id);
}

fn phrases_keep_their_order(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["take the red pill now", "the pill is red", "red and then a pill"]);
    assert_eq!(seqs(store, &query("\"red pill\"")), [0]);
    assert_eq!(seqs(store, &query("red pill")), [0, 1, 2]);
    assert_eq!(seqs(store, &query("\"the red pill\" now")), [0]);
}

fn words_may_be_asked_for_by_how_they_begin(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["the configuration file", "we reconfigure", "config"]);
    assert_eq!(seqs(store, &query("config*")), [0, 2]);
    assert_eq!(seqs(store, &query("config")), [2]);
}

fn scripts_without_spaces_are_searched_like_any_other(store: &dyn Store) {
    open(store, "one");
    say(
        store,
        "one",
        &[
            "\u{6211}\u{4eec}\u{660e}\u{5929}\u{53bb}\u{5317}\u{4eac}\u{51fa}\u{5dee}",
            "\u{6771}\u{4eac}\u{30bf}\u{30ef}\u{30fc}\u{306b}\u{767b}\u{308b}",
            "\u{c11c}\u{c6b8}\u{c5d0}\u{c11c} \u{d68c}\u{c758}\u{b97c} \u{d569}\u{b2c8}\u{b2e4}",
            "\u{5317}\u{65b9} \u{4eac}\u{5267}",
        ],
    );
    assert_eq!(seqs(store, &query("\u{5317}\u{4eac}")), [0]);
    assert_eq!(seqs(store, &query("\u{51fa}\u{5dee} \u{660e}\u{5929}")), [0]);
    assert_eq!(seqs(store, &query("\u{30bf}\u{30ef}\u{30fc}")), [1]);
    assert_eq!(seqs(store, &query("\u{4eac}")), [0, 1, 3]);
    assert_eq!(seqs(store, &query("\u{5dee}")), [0]);
    assert_eq!(seqs(store, &query("\u{d68c}\u{c758}")), [2]);
    assert_eq!(marked(&ask(store, &query("\u{5317}\u{4eac}")).hits[0]), ["\u{5317}\u{4eac}"]);
}

fn identifiers_are_found_whole_and_in_parts(store: &dyn Store) {
    open(store, "one");
    say(
        store,
        "one",
        &["call getUserById(42)", "use parse_http_header here", "get the user by its id", "HTTPServer2"],
    );
    assert_eq!(seqs(store, &query("getUserById")), [0]);
    assert!(seqs(store, &query("parse_http_header")).contains(&1));
    assert!(seqs(store, &query("http header")).contains(&1));
    assert!(seqs(store, &query("getuserbyid")).contains(&0));
    assert_eq!(seqs(store, &query("user")), [0, 2]);
}

fn paths_and_versions_are_found(store: &dyn Store) {
    open(store, "one");
    say(
        store,
        "one",
        &["see /usr/local/lib/throughline/record.db", "version 3.54.1 of it", "lib and record"],
    );
    assert_eq!(seqs(store, &query("/usr/local/lib")), [0]);
    assert_eq!(seqs(store, &query("record.db")), [0]);
    assert_eq!(seqs(store, &query("3.54.1")), [1]);
}

fn substrings_are_found_anywhere(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["reconfigured", "foo->bar(baz)", "xy", "a.b.c", "\u{4e2d}\u{6587}\u{5b57}"]);
    assert_eq!(seqs(store, &substring("CONFIG")), [0]);
    assert_eq!(seqs(store, &substring("->bar(")), [1]);
    assert_eq!(seqs(store, &substring("xy")), [2]);
    assert_eq!(seqs(store, &substring("y")), [2]);
    assert_eq!(seqs(store, &substring(".b.")), [3]);
    assert_eq!(seqs(store, &substring("\u{6587}\u{5b57}")), [4]);
    assert_eq!(seqs(store, &substring("\u{6587}")), [4]);
    assert!(seqs(store, &substring("foo bar")).is_empty());
    assert_eq!(marked(&ask(store, &substring("config")).hits[0]), ["config"]);
}

fn a_question_whose_words_fit_nowhere_is_tried_as_a_substring(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["reconfigured"]);
    let answer = ask(store, &query("onfigur"));
    assert!(answer.as_substring);
    assert_eq!(answer.hits.len(), 1);
    let answer = ask(store, &query("nowhere at all"));
    assert!(answer.hits.is_empty());
}

fn calls_arguments_reasoning_and_results_are_searched(store: &dyn Store) {
    open(store, "one");
    let all = [
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/unusual_name.rs\",\"note\":\"l\u00e4cheln\"}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":"error: borrow of moved value\nhelp: clone it"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"perhaps the lifetime is wrong","signature":"abc"},{"type":"text","text":"Done."}]}"#,
    ];
    let messages = all
        .iter()
        .map(|json| NewMessage { message: decode_message_text((*json).into()).unwrap(), ..said("") });
    store.append(&owner(), &id("one"), messages.collect()).unwrap();
    assert_eq!(seqs(store, &query("unusual_name.rs")), [0]);
    assert_eq!(seqs(store, &query("read_file")), [0]);
    assert_eq!(seqs(store, &query("l\u{e4}cheln")), [0]);
    assert_eq!(seqs(store, &query("\"moved value\"")), [1]);
    assert_eq!(seqs(store, &query("lifetime")), [2]);
    assert!(!ask(store, &query("moved")).hits[0].snippet.text.contains('\n'));
}

fn filters_narrow_what_is_searched(store: &dyn Store) {
    open(store, "one");
    let with = |role, tool: &str, at_ms| NewMessage {
        tools: [tool].iter().filter(|tool| !tool.is_empty()).map(|tool| (*tool).to_owned()).collect(),
        ..from_role(role, &format!("needle at {at_ms}"), at_ms)
    };
    let batch = vec![
        with(Role::User, "", 100),
        with(Role::Assistant, "bash", 200),
        with(Role::Tool, "bash", 300),
        with(Role::Tool, "edit", 400),
    ];
    store.append(&owner(), &id("one"), batch).unwrap();
    open(store, "other");
    store.append(&owner(), &id("other"), vec![with(Role::User, "", 500)]).unwrap();
    let all = query("needle");
    for mode in [SearchMode::Words, SearchMode::Substring] {
        let all = SearchQuery { mode, ..all.clone() };
        let found = |narrowed: SearchQuery| places(store, &narrowed);
        assert_eq!(found(all.clone()).len(), 5);
        assert_eq!(found(SearchQuery { role: Some(Role::User), ..all.clone() }), ["one 0", "other 0"]);
        assert_eq!(found(SearchQuery { role: Some(Role::Tool), ..all.clone() }), ["one 2", "one 3"]);
        assert_eq!(found(SearchQuery { tool: Some("bash".into()), ..all.clone() }), ["one 1", "one 2"]);
        assert!(found(SearchQuery { tool: Some("bas".into()), ..all.clone() }).is_empty());
        assert_eq!(found(SearchQuery { since_ms: Some(400), ..all.clone() }), ["one 3", "other 0"]);
        assert_eq!(found(SearchQuery { until_ms: Some(200), ..all.clone() }), ["one 0"]);
        assert_eq!(found(SearchQuery { session: Some(id("other")), ..all.clone() }), ["other 0"]);
        let both = SearchQuery { role: Some(Role::Tool), tool: Some("bash".into()), ..all.clone() };
        assert_eq!(found(both), ["one 2"]);
    }
    let nobody = SearchQuery { session: Some(id("nobody")), ..all };
    assert_eq!(unknown(store.search(&owner(), &nobody)), "nobody");
}

fn results_of_tools_are_the_tools_in_any_role(store: &dyn Store) {
    open(store, "one");
    let all = [
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"needle printed"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"needle said"}]}"#,
        r#"{"role":"user","content":"needle asked"}"#,
    ];
    let messages = all
        .iter()
        .map(|json| NewMessage { message: decode_message_text((*json).into()).unwrap(), ..said("") });
    store.append(&owner(), &id("one"), messages.collect()).unwrap();
    for mode in [SearchMode::Words, SearchMode::Substring] {
        let by = |role| SearchQuery { mode, role: Some(role), ..query("needle") };
        assert_eq!(places(store, &by(Role::Tool)), ["one 1"]);
        assert_eq!(places(store, &by(Role::User)), ["one 2", "one 3"], "words beside results are a person's");
    }
    let hits = ask(store, &query("needle")).hits;
    assert_eq!(hits.iter().filter(|hit| hit.role == "tool").count(), 1);
    assert_eq!(store.messages(&owner(), &id("one")).unwrap()[1].role, Role::User, "the wire's role is kept");
}

fn a_conversation_is_searched_from_any_of_its_sessions(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["needle in the past"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["needle of today"]);
    store.open_session(linked("agent", LinkKind::SubAgent, "two", 1), None).unwrap();
    say(store, "agent", &["needle beside"]);
    for member in ["one", "two"] {
        let within = SearchQuery { session: Some(id(member)), ..query("needle") };
        assert_eq!(places(store, &within), ["one 0", "two 1"]);
    }
    assert_eq!(places(store, &query("needle")).len(), 3);
}

fn compactions_make_no_duplicates(store: &dyn Store) {
    open(store, "s0");
    say(store, "s0", &["needle one", "needle two"]);
    for at in 0..10 {
        compact(store, &format!("s{at}"), &format!("s{}", at + 1), "a summary with the needle in it");
    }
    undo(store, "s10", "s11");
    assert_eq!(places(store, &query("needle")), ["s0 0", "s0 1"]);
    assert_eq!(places(store, &substring("eedle")), ["s0 0", "s0 1"]);
    assert!(ask(store, &query("needle")).hits.iter().all(|hit| hit.repeats == 0));
}

fn the_same_content_is_shown_once_and_counted(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["needle", "needle", "needle"]);
    open(store, "two");
    say(store, "two", &["needle", "another needle"]);
    let answer = ask(store, &query("needle"));
    assert_eq!(answer.hits.len(), 2);
    let repeated = answer.hits.iter().find(|hit| hit.snippet.text == "needle").unwrap();
    assert_eq!(repeated.repeats, 3);
    let alone = answer.hits.iter().find(|hit| hit.snippet.text == "another needle").unwrap();
    assert_eq!(alone.repeats, 0);
}

fn neighbours_are_what_was_said_around_it(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["c\nsecond line", "needle", "d"]);
    let around = |neighbours| ask(store, &SearchQuery { neighbours, ..query("needle") }).hits.remove(0);
    let texts = |side: &[throughline_store::Neighbour]| -> Vec<(u64, String)> {
        side.iter().map(|neighbour| (neighbour.seq, neighbour.text.clone())).collect()
    };
    let hit = around(0);
    assert!(hit.before.is_empty() && hit.after.is_empty());
    let hit = around(2);
    assert_eq!(texts(&hit.before), [(1, "b".to_owned()), (2, "c second line".to_owned())]);
    assert_eq!(texts(&hit.after), [(4, "d".to_owned())]);
    assert_eq!(hit.before[0].role, "user");
    assert_eq!(around(50).before.len(), 3);
}

fn titles_of_conversations_come_with_hits(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["needle"]);
    compact(store, "one", "two", "S");
    assert_eq!(ask(store, &query("needle")).hits[0].title, None);
    store.rename(&owner(), &id("two"), Some("Haystack")).unwrap();
    assert_eq!(ask(store, &query("needle")).hits[0].title.as_deref(), Some("Haystack"));
}

fn what_fits_better_comes_first(store: &dyn Store) {
    open(store, "one");
    let filler = "and so on about other things ".repeat(60);
    say(
        store,
        "one",
        &[
            "database migration: the database migration failed",
            &format!("migration {filler} database"),
            "a note",
        ],
    );
    let hits = ask(store, &query("database migration")).hits;
    assert_eq!(hits.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [0, 1]);
    assert!(hits[0].score > hits[1].score);
    assert!(hits[1].snippet.cut_before || hits[1].snippet.cut_after);
    assert!(hits[1].snippet.text.chars().count() < 600);
}

fn hits_are_limited(store: &dyn Store) {
    open(store, "one");
    let many: Vec<NewMessage> = (0..60).map(|at| said(&format!("needle number {at}"))).collect();
    store.append(&owner(), &id("one"), many).unwrap();
    assert_eq!(ask(store, &query("needle")).hits.len(), 20);
    assert_eq!(ask(store, &SearchQuery { limit: 3, ..query("needle") }).hits.len(), 3);
    assert_eq!(ask(store, &SearchQuery { limit: 500, ..query("needle") }).hits.len(), 60);
}

fn artifacts_are_searched_and_say_where(store: &dyn Store) {
    open(store, "one");
    let mut output = "an ordinary line of the build\n".repeat(20_000);
    output.push_str("linker failed with exit code 1337 at unusual_symbol\n");
    let json = format!(r#"{{"role":"tool","tool_call_id":"c1","content":{}}}"#, serde_json::json!(output));
    let message = decode_message_text(json).unwrap();
    store
        .append(&owner(), &id("one"), vec![NewMessage { message, tools: vec!["bash".into()], ..said("") }])
        .unwrap();
    for asked in [query("unusual_symbol"), query("\"exit code 1337\""), substring("sual_symb")] {
        let hits = ask(store, &asked).hits;
        assert_eq!(hits.len(), 1, "{}", asked.text);
        let place = hits[0].artifact.as_ref().unwrap();
        assert_eq!(place.line, 20_001);
        assert_eq!((hits[0].seq, hits[0].role), (0, "tool"));
        assert!(hits[0].snippet.text.contains("unusual_symbol"), "{}", hits[0].snippet.text);
        assert_eq!(store.artifacts(&owner(), &id("one")).unwrap()[0].id, place.id);
    }
}

fn artifacts_nobody_said_are_searched_too(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["hello"]);
    let session = id("one");
    let new = NewArtifact { session: &session, text: "first\nthe needle\n", label: "notes", at_ms: 9 };
    let artifact = store.put_artifact(&owner(), new).unwrap();
    let hits = ask(store, &query("needle")).hits;
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].session.as_str(), hits[0].seq), ("one", 0), "it belongs to what was said last");
    let place = hits[0].artifact.as_ref().unwrap();
    assert_eq!((&place.id, place.line), (&artifact.id, 2));
}

fn renditions_do_not_hide_what_was_said(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said_shown_as("the needle itself", "[cleared]")]).unwrap();
    assert_eq!(seqs(store, &query("needle")), [0]);
    assert!(seqs(store, &query("cleared")).is_empty());
}

fn any_question_is_safe(store: &dyn Store) {
    open(store, "one");
    say(
        store,
        "one",
        &[
            "say \"hello\" AND (goodbye OR NOT farewell) NEAR terms: 100% *",
            "\u{1f600} \u{1f9d1}\u{200d}\u{1f680}",
        ],
    );
    let long = "word ".repeat(2_000);
    let cjk = "\u{4e2d}\u{6587}".repeat(1_700);
    let unbroken = "x".repeat(10_240);
    let hostile = [
        "",
        " ",
        "\"",
        "\"\"",
        "\"\"\"",
        "'",
        "*",
        "**",
        "^",
        "-",
        "+",
        "(",
        ")",
        "((",
        "NEAR(",
        "NEAR(a b, 5)",
        "AND",
        "OR",
        "NOT",
        "a AND",
        "OR b",
        "NOT NOT",
        "terms:",
        "terms : hello",
        "{a b}: c",
        "hello*",
        "*hello",
        "\"hello",
        "hel\"lo",
        "a\0b",
        "\0",
        "\u{1f600}",
        "\u{200d}",
        "\u{301}",
        "\u{feff}",
        "\u{202e}abc",
        "%",
        "_",
        "\\",
        "\\\"",
        "'; DROP TABLE messages; --",
        "a' OR '1'='1",
        "\r\n\t",
        "\u{10ffff}",
        "\u{e000}local",
        "\u{e0001}",
        "?1",
        ":x",
        "$$",
        "[a-z]",
        "/re/",
        &long,
        &cjk,
        &unbroken,
    ];
    for text in hostile {
        for mode in [SearchMode::Words, SearchMode::Substring] {
            let query = SearchQuery { mode, neighbours: 1, ..query(text) };
            let answer = store.search(&owner(), &query).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            for hit in &answer.hits {
                for (start, end) in &hit.snippet.marks {
                    assert!(start < end && hit.snippet.text.get(*start..*end).is_some(), "{text:?}");
                }
            }
        }
    }
    assert_eq!(seqs(store, &query("\"hello\" (goodbye")), [0]);
    assert_eq!(seqs(store, &substring("\"hello\" AND (good")), [0]);
    assert_eq!(seqs(store, &substring("\u{1f9d1}\u{200d}\u{1f680}")), [1]);
    assert!(ask(store, &query("")).hits.is_empty());
    assert_eq!(messages(store, "one").len(), 2);
}

fn words_are_searchable_when_append_returns(store: &dyn Store) {
    open(store, "one");
    for at in 0..30 {
        say(store, "one", &[&format!("unique{at:03} words")]);
        assert_eq!(seqs(store, &query(&format!("unique{at:03}"))), [at]);
        assert_eq!(seqs(store, &substring(&format!("nique{at:03}"))), [at]);
    }
}

on_databases!(
    words_are_found_in_any_order_and_case_and_all_of_them,
    phrases_keep_their_order,
    words_may_be_asked_for_by_how_they_begin,
    scripts_without_spaces_are_searched_like_any_other,
    identifiers_are_found_whole_and_in_parts,
    paths_and_versions_are_found,
    substrings_are_found_anywhere,
    a_question_whose_words_fit_nowhere_is_tried_as_a_substring,
    calls_arguments_reasoning_and_results_are_searched,
    filters_narrow_what_is_searched,
    results_of_tools_are_the_tools_in_any_role,
    a_conversation_is_searched_from_any_of_its_sessions,
    compactions_make_no_duplicates,
    the_same_content_is_shown_once_and_counted,
    neighbours_are_what_was_said_around_it,
    titles_of_conversations_come_with_hits,
    what_fits_better_comes_first,
    hits_are_limited,
    artifacts_are_searched_and_say_where,
    artifacts_nobody_said_are_searched_too,
    renditions_do_not_hide_what_was_said,
    any_question_is_safe,
    words_are_searchable_when_append_returns,
);

super::support::on_artifact_places!(
    artifacts_are_searched_and_say_where,
    artifacts_nobody_said_are_searched_too,
);
