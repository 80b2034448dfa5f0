//! A gateway in the hands of whoever runs it: its configuration read again, its log for programs, its end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};

use crate::clients::gateway::Gateway;
use crate::clients::job::{SECTIONS, summary};

async fn saying(words: &'static str) -> ScriptedUpstream {
    ScriptedUpstream::start(Script::always(Reply::text(words))).await.unwrap()
}

async fn ask(gateway: &Gateway, messages: &[Value]) -> String {
    ask_model(gateway, "worker", messages).await
}

async fn ask_model(gateway: &Gateway, model: &str, messages: &[Value]) -> String {
    let body = json!({ "model": model, "messages": messages }).to_string();
    throughline_provider::Client::install_crypto();
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
    let request = client.post(format!("{}/v1/chat/completions", gateway.url()));
    let request = request.header("content-type", "application/json").body(body);
    let answer: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn configure(gateway: &std::path::Path, upstream: &str, more: &str) {
    let text =
        format!("gateway:\n{more}  upstreams:\n    main:\n      base_url: {upstream}\n      wires: chat\n");
    std::fs::write(gateway.join("config.yaml"), text).unwrap();
}

fn until_said(gateway: &Gateway, words: &str, times: usize) {
    let began = Instant::now();
    while gateway.screen().matches(words).count() < times {
        assert!(began.elapsed() < Duration::from_secs(60), "never said `{words}`: {}", gateway.screen());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_up_has_the_configuration_read_again() {
    let (first, second) = (saying("from the first").await, saying("from the second").await);
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), &first.url(), "");
    let mut gateway = Gateway::configured(home);
    let user = |text: &str| json!({ "role": "user", "content": text });
    let mut talk = vec![user("one")];
    assert_eq!(ask(&gateway, &talk).await, "from the first");
    talk.extend([json!({ "role": "assistant", "content": "from the first" }), user("two")]);

    configure(gateway.home(), &second.url(), "");
    gateway.signal(Signal::HUP);
    until_said(&gateway, "the configuration was reloaded", 1);
    assert_eq!(ask(&gateway, &talk).await, "from the second", "the conversation goes on there");

    std::fs::write(gateway.home().join("config.yaml"), "gateway: {max_body_bytes: many}\n").unwrap();
    gateway.signal(Signal::HUP);
    until_said(&gateway, "the previous one stays in effect", 1);
    assert!(gateway.screen().contains("max_body_bytes"), "{}", gateway.screen());
    assert_eq!(ask(&gateway, &[user("three")]).await, "from the second");

    let status = gateway.signalled_to_stop();
    assert!(status.success(), "{}", gateway.screen());
    assert!(gateway.screen().contains("everything that was answered is recorded"));
    let listed: Value = serde_json::from_str(&gateway.ask(&["sessions", "list", "--json", "--all"])).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_for_programs_has_an_object_a_line() {
    let upstream = saying("hello").await;
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), &upstream.url(), "  log: json\n");
    let mut gateway = Gateway::configured(home);
    assert_eq!(ask(&gateway, &[json!({ "role": "user", "content": "one" })]).await, "hello");
    until_said(&gateway, "\"served\"", 1);
    gateway.signalled_to_stop();
    let screen = gateway.screen();
    let log: Vec<Value> = screen
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let served = log.iter().find(|line| line["event"] == "served").unwrap_or_else(|| panic!("{screen}"));
    assert_eq!(
        (&served["status"], &served["end"], &served["level"]),
        (&json!(200), &json!("whole"), &json!("info"))
    );
    assert!(served["request"].as_str().is_some_and(|id| id.len() == 16), "{served}");
    let opened = log.iter().find(|line| line["event"] == "opened").unwrap_or_else(|| panic!("{screen}"));
    assert_eq!(opened["request"], served["request"]);
    assert!(!screen.contains("note: "), "nothing is said for people only: {screen}");
}

/// A conversation that outgrows a small window, through a gateway with this configuration: what it printed, and how many
/// requests reached the upstream beside the client's own.
async fn outgrown(more: &str) -> (String, usize) {
    let script = Script::answering(|request| {
        let is_summary = SECTIONS.iter().all(|section| request.text().contains(&format!("## {section}")));
        Reply::text(if is_summary { summary(1) } else { "noted".to_owned() })
    });
    // One that says how many tokens it read.
    let cache = Some(PrefixCache::new(CacheStyle::None));
    let options = UpstreamOptions { cache, ..UpstreamOptions::default() };
    let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let text = format!(
        "{more}model: {{default: worker, context_length: 20000}}\n\
         gateway: {{upstreams: {{main: {{base_url: '{}', wires: chat}}}}}}\n",
        upstream.url()
    );
    std::fs::write(home.path().join("config.yaml"), text).unwrap();
    let mut gateway = Gateway::configured(home);
    let mut talk = Vec::new();
    let mut turns = 0;
    while gateway.compactions() == 0 {
        assert!(turns < 40, "never compacted: {}", gateway.screen());
        turns += 1;
        let words = format!("In part {turns} of the plan the harbour is described. ").repeat(60);
        talk.push(json!({ "role": "user", "content": words }));
        let answer = ask(&gateway, &talk).await;
        talk.push(json!({ "role": "assistant", "content": answer }));
    }
    gateway.signalled_to_stop();
    (gateway.screen(), upstream.calls().len() - turns)
}

/// A conversation through `--upstream`: `usage` has the price that the list knows, and the window that the upstream stated
/// when it refused a prompt, not the catalogue's.
#[tokio::test(flavor = "multi_thread")]
async fn usage_shows_the_list_price_and_the_window_that_was_learnt() {
    const MODEL: &str = "claude-sonnet-4-5";
    let options = UpstreamOptions {
        cache: Some(PrefixCache::new(CacheStyle::None)),
        models: vec![ServedModel::with_window(MODEL, 16_000)],
        ..UpstreamOptions::default()
    };
    let upstream = ScriptedUpstream::start_with(options, Script::always(Reply::text("noted"))).await.unwrap();
    let gateway = Gateway::before(&upstream.url());
    let mut talk = Vec::new();
    for turn in 0..12 {
        talk.push(json!({ "role": "user", "content": format!("{turn} {}", "some words ".repeat(800)) }));
        let answer = ask_model(&gateway, MODEL, &talk).await;
        talk.push(json!({ "role": "assistant", "content": answer }));
    }
    let usage: Value = serde_json::from_str(&gateway.ask(&["usage", "last", "--json"])).unwrap();
    let (total, window) = (&usage["total"], &usage["context"]["window"]);
    assert!(total["calls"].as_u64().unwrap() >= 12, "{total}");
    // A prompt that was refused was not charged.
    assert_eq!((total["unpriced"].as_u64(), window["tokens"].as_u64()), (Some(0), Some(16_000)), "{usage}");
    assert!(total["cost_micro_usd"].as_u64().unwrap() > 0, "{total}");
    let page = gateway.ask(&["usage", "last"]);
    assert!(page.contains("of 16,000 tokens") && !page.contains("not known"), "{page}");
}

/// A model for summaries whose key is refused: the rules write the summary, and the log for people says so and why.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_a_model_could_not_write_is_in_the_log() {
    let summaries =
        ScriptedUpstream::start(Script::always(Reply::error(401, "authentication_error", "invalid api key")))
            .await;
    let summaries = summaries.unwrap();
    let more = format!(
        "auxiliary: {{compression: {{model: summariser, base_url: '{}', wire: chat, context_length: 100000}}}}\n",
        summaries.url()
    );
    let (screen, _) = outgrown(&more).await;
    let line = screen.lines().find(|line| line.contains(" compacted ")).unwrap_or_else(|| panic!("{screen}"));
    assert!(line.contains("warning") && line.contains("by rules, because"), "{line}");
    assert!(line.contains("summariser"), "{line}");
    assert!(screen.contains(" requests answered, 1 new conversation"), "{screen}");
}
