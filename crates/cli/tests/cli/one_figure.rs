//! One context, one figure: whoever shows the size of a conversation, or a limit, shows the same.

use serde_json::Value;
use throughline_testkit::{Reply, Script};

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
