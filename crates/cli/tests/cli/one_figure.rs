//! One context, one figure: whoever shows the size of a conversation, or a limit, shows the same.

use serde_json::Value;
use throughline_testkit::{Reply, Script};
use throughline_tokens::Usage;
use throughline_wire::AnswerDraft;

use crate::chat::{served, world_of};
use crate::terminal::Terminal;

fn long_answers() -> Script {
    Script::answering(|_| Reply::text(format!("{}The end.", "Words that take some room. ".repeat(40))))
}

/// The figure before ` of 32,768 tokens`.
fn gauge_figures(screen: &str) -> Vec<String> {
    let found = screen.match_indices(" of 32,768 tokens").map(|(at, _)| {
        let before = &screen[..at];
        before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default().to_owned()
    });
    found.collect()
}

#[test]
fn size_of_a_conversation_is_the_same_in_every_command() {
    let served = served(long_answers());
    let world = world_of(&served);
    let mut size = Value::Null;
    for question in ["first", "second", "third"] {
        let mut words = vec!["chat", "-q", question, "--json"];
        if question != "first" {
            words.extend(["--resume", "last"]);
        }
        let ended = world.run(&words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        size = ended.json()["context"].clone();
    }
    assert_eq!(size["is_measured"], true, "{size}");
    let tokens = &size["tokens"];
    let usage = world.run(&["usage", "last", "--json"]).json();
    assert_eq!(
        (&usage["context"]["tokens"], &usage["context"]["basis"]["kind"]),
        (tokens, &"measured".into())
    );
    let preview = world.run(&["compress", "--session", "last", "--preview", "--force", "--json"]).json();
    assert_eq!(&preview["report"]["tokens"]["before"], tokens);
    let inspected = world.run(&["inspect", "--session", "last", "--json"]).json();
    assert_eq!((&inspected["tokens"], &inspected["window"]["tokens"]), (tokens, &size["window_tokens"]));
    let page = world.run(&["usage", "last"]).text();
    assert!(page.contains("Measured: the provider counted "), "{page}");
}

#[test]
fn pages_of_a_chat_show_the_size_that_the_gauge_shows() {
    let served = served(long_answers());
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    for question in ["first", "second"] {
        // What stands on the screen of the answer before must not count as this one.
        let answer = terminal.say(question);
        assert!(answer.contains("The end.") && answer.contains("compacts at 16k"), "{answer}");
    }
    let mut figures = Vec::new();
    for (command, sign) in [
        ("/context", "largest messages"),
        ("/usage", "Measured: the provider counted"),
        ("/compress --preview", "Nothing was changed"),
    ] {
        terminal.press("\u{c}");
        terminal.say(command);
        terminal.passed(sign);
        figures.extend(gauge_figures(&terminal.screen()).last().cloned());
    }
    assert_eq!(figures.len(), 3, "{figures:?}");
    assert!(figures.iter().all(|figure| *figure == figures[0]), "{figures:?}");
    terminal.press("/quit\r");
    terminal.passed("this conversation: 2 calls, ");
    terminal.passed("0 compactions");
    assert_eq!(terminal.end(), 0);
}

/// Answers whose usage counts the prompt at so many tokens for each 100 bytes of the request.
fn counting_prompts(percent_of_bytes: usize) -> Script {
    Script::answering(move |request| {
        let prompt = (request.body.len() * percent_of_bytes / 100) as u64;
        let usage = Usage { input: prompt.max(12), output: 280, ..Usage::default() };
        let text = format!("{}The end.", "Words that take some room. ".repeat(40));
        Reply::exactly(
            AnswerDraft { model: "worker".to_owned(), ..AnswerDraft::text(text) }.with_usage(usage),
        )
    })
}

/// The figure behind some words on a page, without commas.
fn figure(page: &str, words: &str) -> u64 {
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut figures = page.match_indices(words).filter_map(|(at, _)| {
        let after = page[at + words.len()..].split(' ').next()?;
        after.trim_end_matches('.').replace(',', "").parse().ok()
    });
    let first = figures.next();
    assert!(first.is_some(), "{words}: {page}");
    first.unwrap()
}

#[test]
fn parts_of_a_conversation_have_the_same_size_in_every_command() {
    // A model whose tokens are smaller than the estimate takes them for.
    let served = served(counting_prompts(40));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.say("first");
    terminal.press("\u{c}");
    terminal.say("/context");
    terminal.passed("largest messages");
    let page = terminal.screen();
    terminal.press("/quit\r");
    terminal.end();
    let usage = world.run(&["usage", "last", "--json"]).json();
    let inspected = world.run(&["inspect", "--session", "last", "--json"]).json();
    let kind = |name: &str| inspected["by_kind"][name]["tokens"].as_u64().unwrap();
    let fixed = usage["context"]["fixed_tokens"].as_u64().unwrap();
    assert_eq!(figure(&page, "tools "), kind("tool_schemas"), "{page}");
    assert_eq!(figure(&page, "text, assistant "), kind("assistant_text"), "{page}");
    assert_eq!(figure(&page, "engine: compressor "), kind("tool_schemas") + kind("system_prompt"), "{page}");
    assert!(fixed.abs_diff(kind("tool_schemas") + kind("system_prompt")) <= 1, "{usage}\n{page}");
    let text = world.run(&["usage", "last"]).text();
    assert_eq!(figure(&text, "system prompt and tools as last sent "), fixed, "{text}");
    // Limits are worked out from the same fixed part, so that the mark is at the same place everywhere.
    let limits = |page: &Value| page["limits"]["threshold_tokens"]["effective"].clone();
    assert_eq!(limits(&usage["context"]), limits(&inspected));
}

#[test]
fn count_that_cannot_be_the_prompts_is_not_shown_as_measured() {
    // A server that counts only what its cache did not hold.
    let served = served(counting_prompts(0));
    let world = world_of(&served);
    let answer = world.run(&["chat", "-q", "first", "--json"]).json();
    assert_eq!(answer["context"]["is_measured"], false, "{answer}");
    let tokens = answer["context"]["tokens"].as_u64().unwrap();
    assert!(tokens > 1_000, "{answer}");
    let usage = world.run(&["usage", "last", "--json"]).json();
    assert_eq!(usage["context"]["tokens"], tokens);
    assert_eq!(usage["context"]["basis"]["kind"], "estimated", "{usage}");
    let inspected = world.run(&["inspect", "--session", "last", "--json"]).json();
    assert_eq!(inspected["tokens"], tokens);
    assert!(inspected["largest"][0]["tokens"].as_u64().unwrap() > 100, "{inspected}");
}

#[test]
fn reason_of_a_cache_miss_is_shown_by_usage_insights_and_the_chat() {
    let mut calls = 0;
    let script = Script::answering(move |request| {
        calls += 1;
        let prompt = (request.body.len() / 4) as u64;
        // The third call reads nothing although the second one did.
        let cache_read = if calls == 3 { 0 } else { prompt * 9 / 10 };
        let usage = Usage { input: prompt - cache_read, cache_read, output: 9, ..Usage::default() };
        let text = "Words that take some room. ".repeat(40);
        Reply::exactly(
            AnswerDraft { model: "worker".to_owned(), ..AnswerDraft::text(text) }.with_usage(usage),
        )
    });
    let served = served(script);
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "first"]).code, Some(0));
    for question in ["second", "third"] {
        assert_eq!(world.run(&["chat", "-q", question, "--resume", "last"]).code, Some(0));
    }
    for words in [["usage", "last", "--json"], ["insights", "--days=7", "--json"]] {
        let reasons = world.run(&words).json()["by_cache_miss"].clone();
        let reason = reasons.as_array().unwrap().iter().find(|one| one["group"] == "dropped by the provider");
        assert_eq!(reason.unwrap()["calls"], 1, "{words:?}: {reasons}");
    }
    let mut terminal = Terminal::start(&world, &["chat", "--resume", "last"]);
    terminal.prompt();
    terminal.press("/usage\r");
    terminal.see("Cache misses, by reason");
    terminal.see("dropped by the provider");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn summary_that_the_model_sees_is_shown_in_the_chat() {
    let served = served(long_answers());
    let world = world_of(&served);
    let question = "Please read src/parser.rs and the words around it. ".repeat(180);
    assert_eq!(world.run(&["chat", "-q", &question]).code, Some(0));
    for _ in 0..5 {
        assert_eq!(world.run(&["chat", "-q", &question, "--resume", "last"]).code, Some(0));
    }
    let mut terminal = Terminal::start(&world, &["chat", "--resume", "last"]);
    terminal.prompt();
    terminal.press("/summary\r");
    terminal.see("no summary yet");
    terminal.press("/compress\r");
    terminal.see("compacted ");
    terminal.press("/summary\r");
    terminal.passed("## Active Task");
    terminal.passed("## Critical Context");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn limits_that_differ_from_the_settings_say_why() {
    let served = served(long_answers());
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "first"]).code, Some(0));
    let limits = |set: &str| {
        let ended = world.run(&["inspect", "--session", "last", "--json", "--set", set]);
        assert_eq!(ended.code, Some(0), "{set}: {}", ended.stderr);
        ended.json()["limits"].clone()
    };
    let tail = limits("compression.protect_last_n=0")["protect_last_n"].clone();
    assert_eq!((&tail["configured"], &tail["effective"]), (&0.into(), &3.into()), "{tail}");
    assert!(tail["reason"].as_str().unwrap().contains("never fewer"), "{tail}");
    let whole = limits("compression.threshold=1.0")["threshold_tokens"].clone();
    assert_eq!((&whole["configured"], &whole["effective"]), (&32_768.into(), &32_112.into()), "{whole}");
    assert!(whole["reason"].as_str().unwrap().contains("stay free"), "{whole}");
    let above = limits("compression.threshold_tokens=20000")["threshold_tokens"].clone();
    assert_eq!((&above["configured"], &above["effective"]), (&20_000.into(), &20_000.into()), "{above}");
}

#[test]
fn prices_of_the_users_own_catalogue_count_wherever_a_price_is_shown() {
    let served = served(long_answers());
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "first", "--json"]).json()["cost_micro_usd"], Value::Null);
    let rates = r#"{"version": 1, "models": [{"name": "worker", "rates": [{"input": 2, "output": 4}]}]}"#;
    std::fs::write(world.home().join("models.json"), rates).unwrap();
    let model = world.run(&["models", "worker", "--offline", "--json"]).json();
    assert_eq!(model["prices"]["input"], 2_000_000, "{model}");
    let asked = world.run(&["chat", "-q", "second", "--json"]).json();
    let used = |bucket: &str| asked["usage"][bucket].as_u64().unwrap();
    assert_eq!(asked["cost_micro_usd"], 2 * used("input") + 4 * used("output"), "{asked}");
    let usage = world.run(&["usage", "last", "--json"]).json();
    assert_eq!(usage["total"]["cost_micro_usd"], asked["cost_micro_usd"]);
}
