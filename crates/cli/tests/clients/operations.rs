//! A gateway in the hands of whoever runs it: its configuration read again, its log for programs, its end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use throughline_testkit::{Reply, Script, ScriptedUpstream};

use crate::gateway::Gateway;

async fn saying(words: &'static str) -> ScriptedUpstream {
    ScriptedUpstream::start(Script::always(Reply::text(words))).await.unwrap()
}

async fn ask(gateway: &Gateway, messages: &[Value]) -> String {
    let body = json!({ "model": "worker", "messages": messages }).to_string();
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
    until_said(&gateway, "the configuration was read again", 1);
    assert_eq!(ask(&gateway, &talk).await, "from the second", "the conversation goes on there");

    std::fs::write(gateway.home().join("config.yaml"), "gateway: {max_body_bytes: many}\n").unwrap();
    gateway.signal(Signal::HUP);
    until_said(&gateway, "the one before it still holds", 1);
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
