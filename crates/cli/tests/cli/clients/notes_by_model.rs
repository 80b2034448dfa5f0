//! Who writes the notes of a gateway whose settings name nobody: the client's own model with the client's key, in the
//! background; and rules where that is not possible, not wanted or not done in time.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{
    Gate, RecordedRequest, Reply, ReplyFault, Script, ScriptedUpstream, UpstreamOptions,
};

use crate::clients::gateway::Gateway;
use crate::clients::job::{SECTIONS, summary};

/// How requests for notes are recognised.
const ASKS_FOR_NOTES: &str = "Rules for the notes:";

/// How the upstream answers a request for notes.
#[derive(Clone)]
enum Notes {
    Written,
    Refused,
    /// Only when the gate is opened.
    Late(Gate),
}

/// A conversation through a gateway.
struct Talk {
    gateway: Gateway,
    upstream: ScriptedUpstream,
    messages: Vec<Value>,
    headers: Vec<(&'static str, String)>,
    turns: usize,
}

impl Talk {
    /// Begins one with these settings on top.
    async fn begin(settings: &str, notes: Notes) -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), settings, notes).await
    }

    async fn in_home(home: tempfile::TempDir, settings: &str, notes: Notes) -> Self {
        let script = Script::answering(move |request| match &notes {
            _ if !request.text().contains(ASKS_FOR_NOTES) => Reply::text("noted"),
            Notes::Written => Reply::text(words_of_the_model()),
            Notes::Refused => Reply::error(403, "permission_error", "not for this key"),
            Notes::Late(gate) => {
                Reply::text(words_of_the_model()).failing_after(0, ReplyFault::Wait(gate.clone()))
            }
        });
        let cache = Some(PrefixCache::new(CacheStyle::None));
        let options = UpstreamOptions { cache, ..UpstreamOptions::default() };
        let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
        let text = format!(
            "{settings}model: {{default: worker, context_length: 20000}}\n\
             gateway: {{upstreams: {{main: {{base_url: '{}', wires: chat}}}}}}\n",
            upstream.url()
        );
        std::fs::write(home.path().join("config.yaml"), text).unwrap();
        let gateway = Gateway::configured(home);
        let headers = vec![("authorization", "Bearer sk-of-the-client".to_owned())];
        Self { gateway, upstream, messages: Vec::new(), headers, turns: 0 }
    }

    /// Goes on until it was compacted so many times.
    async fn until_compacted(&mut self, times: usize) {
        while self.gateway.compactions() < times {
            self.turns += 1;
            assert!(self.turns < 80, "never compacted: {}", self.gateway.screen());
            let part = self.turns;
            let words = format!("In part {part} of the plan the harbour is described. ").repeat(30);
            self.messages.push(json!({ "role": "user", "content": words }));
            let answer = self.send().await;
            self.messages.push(json!({ "role": "assistant", "content": answer }));
        }
    }

    async fn send(&self) -> String {
        let body = json!({ "model": "worker", "messages": self.messages }).to_string();
        throughline_provider::Client::install_crypto();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        let request = client.post(format!("{}/v1/chat/completions", self.gateway.url()));
        let request = request.header("content-type", "application/json").body(body);
        let request =
            self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let text = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Requests for notes that reached the upstream.
    fn asked(&self) -> Vec<RecordedRequest> {
        let all = self.upstream.requests();
        all.into_iter().filter(|request| request.text().contains(ASKS_FOR_NOTES)).collect()
    }

    /// The notes as the newest request carries them.
    fn notes(&self) -> String {
        let all = self.upstream.requests();
        let shown = all.iter().rev().find(|request| {
            request.text().contains("[CONTEXT COMPACTION") && !request.text().contains(ASKS_FOR_NOTES)
        });
        shown.map(|request| request.text().to_owned()).unwrap_or_default()
    }
}

/// Notes that nobody but the model would write.
fn words_of_the_model() -> String {
    let goal = format!("## {}\n", SECTIONS[1]);
    summary(1).replace(&goal, &format!("{goal}A harbour for tall ships.\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_model_writes_with_the_clients_key_once_per_compaction() {
    let mut talk = Talk::begin("", Notes::Written).await;
    talk.until_compacted(1).await;
    let screen = talk.gateway.screen();
    assert!(screen.contains("Summaries: by the conversation's own model with the client's key"), "{screen}");
    let asked = talk.asked();
    assert_eq!(asked.len(), 1, "{screen}");
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-of-the-client"));
    assert!(talk.notes().contains("A harbour for tall ships."), "{}", talk.notes());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_setting_keeps_the_gateway_from_asking() {
    let mut talk = Talk::begin("auxiliary: {compression: {provider: rules}}\n", Notes::Written).await;
    talk.until_compacted(1).await;
    let screen = talk.gateway.screen();
    assert!(screen.contains("Summaries: by rules; "), "{screen}");
    assert_eq!(talk.asked().len(), 0, "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_of_a_subscription_is_left_alone_unless_that_is_allowed() {
    for (settings, asked) in [("", 0), ("auxiliary: {compression: {provider: main}}\n", 1)] {
        let mut talk = Talk::begin(settings, Notes::Written).await;
        talk.headers = vec![("authorization", "Bearer sk-ant-oat01-of-the-client".to_owned())];
        talk.until_compacted(1).await;
        assert_eq!(talk.asked().len().min(1), asked, "{}", talk.gateway.screen());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_several_owners_rules_write_unless_the_operator_says_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let token = |name: &str, owner: &str| {
        let program = env!("CARGO_BIN_EXE_throughline");
        let mut made = std::process::Command::new(program);
        made.env_clear().env("THROUGHLINE_HOME", home.path()).env("HOME", home.path());
        let printed = made.args(["token", "new", name, "--owner", owner]).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let found = printed.split_whitespace().find(|word| word.starts_with("tl_"));
        found.unwrap_or_else(|| panic!("{printed}")).to_owned()
    };
    let first = token("laptop", "ada");
    token("desktop", "ben");
    let mut talk = Talk::in_home(home, "", Notes::Written).await;
    talk.headers.push(("x-throughline-token", first));
    talk.until_compacted(1).await;
    let screen = talk.gateway.screen();
    assert!(screen.contains("Summaries: by rules, since access tokens have several owners"), "{screen}");
    assert_eq!(talk.asked().len(), 0, "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_costs_the_client_nothing() {
    let mut talk = Talk::begin("", Notes::Refused).await;
    talk.until_compacted(1).await;
    assert!(!talk.asked().is_empty(), "{}", talk.gateway.screen());
    assert!(!talk.notes().contains("A harbour for tall ships."), "{}", talk.notes());
    assert!(talk.notes().contains("[CONTEXT COMPACTION"), "{}", talk.gateway.screen());
}

#[tokio::test(flavor = "multi_thread")]
async fn late_notes_take_the_place_of_the_rules_notes_with_the_next_compaction() {
    let gate = Gate::new();
    let mut talk = Talk::begin("", Notes::Late(gate.clone())).await;
    talk.until_compacted(1).await;
    let screen = talk.gateway.screen();
    assert!(screen.contains("not ready in time"), "{screen}");
    assert!(!talk.notes().contains("A harbour for tall ships."), "{}", talk.notes());
    // The model finishes meanwhile: its call is booked.
    gate.open();
    while !talk.gateway.ask(&["usage", "last", "--json"]).contains("\"compression\"") {
        tokio::task::yield_now().await;
    }
    talk.until_compacted(2).await;
    assert!(talk.notes().contains("A harbour for tall ships."), "{}", talk.notes());
}
