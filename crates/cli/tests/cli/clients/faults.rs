//! A gateway that is killed under load, a record that is locked, a disk that is full.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use throughline_testkit::{Reply, Script, ScriptedUpstream};

use crate::clients::gateway::{Disk, Gateway};
use crate::clients::process::Running;

/// An upstream that repeats what it heard last.
pub(crate) async fn echo() -> ScriptedUpstream {
    let script = Script::answering(|request| {
        let json = request.json();
        let last =
            json["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        let words: String = last["content"].as_str().unwrap_or_default().chars().take(60).collect();
        Reply::text(format!("heard: {words}"))
    });
    ScriptedUpstream::start(script).await.unwrap()
}

/// Asks, and gives the status and the answer; an error where there was none.
pub(crate) async fn ask(url: &str, messages: &[Value]) -> Result<(u16, Value), reqwest::Error> {
    let body = json!({ "model": "worker", "messages": messages }).to_string();
    throughline_provider::Client::install_crypto();
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build()?;
    let request =
        client.post(format!("{url}/v1/chat/completions")).header("content-type", "application/json");
    let response = request.body(body).send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(crate) fn words_of(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("no answer: {answer}"))
}

/// Every answer a client has got is in the record of the next start, and conversations go on there.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_under_load_has_kept_what_was_answered() {
    let upstream = echo().await;
    let gateway = Gateway::before(&upstream.url());
    let url = gateway.url().to_owned();
    let mut tasks = Vec::new();
    for number in 0..8 {
        let url = url.clone();
        tasks.push(tokio::spawn(async move {
            let mut talk = vec![user(&format!("conversation-{number} begins"))];
            // Until nobody is there any more.
            while let Ok((200, answer)) = ask(&url, &talk).await {
                talk.push(answer["choices"][0]["message"].clone());
                talk.push(user(&format!("turn-{}-of-{number}", talk.len())));
            }
            talk
        }));
    }
    upstream.until_asked(80).await;
    let home = gateway.kill();
    let mut talks = Vec::new();
    for task in tasks {
        talks.push(task.await.unwrap());
    }
    let gateway = Gateway::start(home, &upstream.url());
    for talk in &talks {
        let (status, answer) = ask(gateway.url(), talk).await.unwrap();
        assert_eq!(status, 200);
        assert!(words_of(&answer).starts_with("heard: turn-"), "{answer}");
    }
    let listed: Value = serde_json::from_str(&gateway.ask(&["sessions", "list", "--json", "--all"])).unwrap();
    let listed = listed["sessions"].as_array().unwrap();
    assert!(listed.len() >= talks.len(), "{listed:#?}");
    for (number, talk) in talks.iter().enumerate() {
        // The last answer that arrived, and the turn that nobody answered any more.
        for text in [format!("conversation-{number}"), format!("turn-{}-of-{number}", talk.len() - 1)] {
            let found = gateway.ask(&["search", &text, "--json"]);
            assert!(found.contains(&text), "{text}: {found}");
        }
    }
    gateway.ask(&["doctor"]);
}

/// What is answered when files cannot grow: everything, with a warning; or nothing that is not recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_keeps_nobody_from_an_answer_unless_the_record_is_required() {
    let upstream = echo().await;
    for require in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let config = format!("gateway:\n  require_record: {require}\n");
        std::fs::write(home.path().join("config.yaml"), config).unwrap();
        let gateway = Gateway::start_on(home, &upstream.url(), Disk::Full);
        let filling = "a rather long line of no interest whatever, again and again; ".repeat(1_000);
        let mut statuses = Vec::new();
        for number in 0..40 {
            let talk = [user(&format!("conversation {number}: {filling}"))];
            let (status, answer) = ask(gateway.url(), &talk).await.unwrap();
            if status == 200 {
                assert!(words_of(&answer).starts_with("heard: conversation"), "{answer}");
            } else {
                assert!(answer["error"]["message"].is_string(), "{answer}");
            }
            statuses.push(status);
        }
        assert_eq!(statuses.first(), Some(&200), "{}", gateway.screen());
        throughline_provider::Client::install_crypto();
        let ready = reqwest::Client::builder().no_proxy().build().unwrap();
        let ready = ready.get(format!("{}/readyz", gateway.url())).send().await.unwrap();
        assert_eq!(ready.status(), 503, "nothing can be recorded: {}", gateway.screen());
        if require {
            assert_eq!(statuses.last(), Some(&503), "{}", gateway.screen());
        } else {
            assert!(statuses.iter().all(|status| *status == 200), "{statuses:?} {}", gateway.screen());
            assert!(gateway.screen().contains("NOT RECORDED"), "{}", gateway.screen());
        }
        // With room again it goes on, and has what was recorded before.
        let gateway = Gateway::start(gateway.kill(), &upstream.url());
        let (status, _) = ask(gateway.url(), &[user("room again")]).await.unwrap();
        assert_eq!(status, 200);
        let found = gateway.ask(&["search", "conversation 0", "--json"]);
        assert!(found.contains("conversation 0"), "{found}");
        gateway.ask(&["search", "room again"]);
    }
}

/// Somebody else writes to the record and does not stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_record_keeps_nobody_from_an_answer() {
    let upstream = echo().await;
    let gateway = Gateway::before(&upstream.url());
    ask(gateway.url(), &[user("before")]).await.unwrap();
    let _lock = locked(&gateway.home().join("record.db"));
    let (status, answer) = ask(gateway.url(), &[user("meanwhile")]).await.unwrap();
    assert_eq!(status, 200, "{answer}");
    assert_eq!(words_of(&answer), "heard: meanwhile");
    assert!(gateway.screen().contains("NOT RECORDED"), "{}", gateway.screen());
}

/// A process that holds the lock for writing.
pub(crate) fn locked(record: &Path) -> Running {
    let script = "import sqlite3, sys, time\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('BEGIN IMMEDIATE')\nopen(sys.argv[2], 'w').close()\ntime.sleep(600)";
    let sign = record.with_file_name("locked");
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(record).arg(&sign).stdin(Stdio::null());
    let running = Running::start(&mut python, &record.with_file_name("python"));
    while !sign.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    running
}
