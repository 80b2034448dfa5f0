//! The model that is named is the model that is called, or the start says why not.

use throughline_testkit::{Reply, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};

use crate::harness::{Ended, World};
use crate::terminal::Terminal;

/// A world whose settings name a llama.cpp server, which takes any name for the one model it has.
struct OneLoadedModel {
    world: World,
    server: ScriptedUpstream,
    /// A proxy that nobody answers at, so that no test reaches a provider.
    no_network: String,
    port: String,
    _runtime: tokio::runtime::Runtime,
}

impl OneLoadedModel {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let models = vec![ServedModel::with_window("served", 32_768)];
        let options = UpstreamOptions { kind: ServerKind::LlamaCpp, models, ..UpstreamOptions::default() };
        let replies = vec![Reply::text("I am here."), Reply::text("Still here.")];
        let server = runtime.block_on(ScriptedUpstream::start_with(options, replies)).unwrap();
        let no_network = runtime.block_on(throughline_testkit::refused_url()).unwrap();
        let port = server.url().rsplit_once(':').unwrap().1.to_owned();
        let world = World::with_config("model: {provider: llama.cpp, default: served}\n");
        Self { world, server, no_network, port, _runtime: runtime }
    }

    fn environment<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut all = vec![("LLAMA_ARG_PORT", self.port.as_str()), ("HTTPS_PROXY", &self.no_network)];
        all.extend(more);
        all
    }

    fn run(&self, arguments: &[&str], more: &[(&str, &str)]) -> Ended {
        self.world.run_with(arguments, b"", &self.environment(more))
    }
}

#[test]
fn named_model_that_the_server_does_not_have_is_refused() {
    let loaded = OneLoadedModel::start();
    let ended = loaded.run(&["chat", "-q", "Are you there?", "--model", "claude-sonnet-4-5"], &[]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    for words in [
        "error: `claude-sonnet-4-5` is not at http://127.0.0.1:",
        "has `served` and answers with it whatever name is sent",
        "export ANTHROPIC_API_KEY=...",
        "throughline chat --model served",
        "throughline chat --provider llama.cpp --model claude-sonnet-4-5",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert_eq!(loaded.server.calls().len(), 0, "another model is not taken in its place");
    // The model that is there is asked under its own name.
    let ended = loaded.run(&["chat", "-q", "Are you there?", "--model", "served"], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn named_model_is_asked_at_its_provider_where_there_is_a_key() {
    let loaded = OneLoadedModel::start();
    let key = [("ANTHROPIC_API_KEY", "sk-ant-nobody")];
    let ended = loaded.run(&["chat", "-q", "Are you there?", "--model", "claude-sonnet-4-5"], &key);
    assert_eq!(ended.code, Some(9), "nobody answers there in a test: {}", ended.stderr);
    assert!(
        ended.stderr.contains("using anthropic instead (key from $ANTHROPIC_API_KEY)"),
        "{}",
        ended.stderr
    );
    assert_eq!(loaded.server.calls().len(), 0);
    let recorded = loaded.run(&["usage", "last", "--json"], &[]).json();
    assert_eq!(recorded["by_model"][0]["group"], "claude-sonnet-4-5", "{recorded}");
}

#[test]
fn name_that_is_sent_to_another_model_is_warned_of_and_has_no_price() {
    let cases: [&[&str]; 2] = [
        &["chat", "-q", "Are you there?", "--provider", "llama.cpp", "--model", "claude-sonnet-4-5"],
        &["chat", "-q", "Are you there?", "--set", "model.default=claude-sonnet-4-5"],
    ];
    for case in cases {
        let loaded = OneLoadedModel::start();
        let ended = loaded.run(case, &[("ANTHROPIC_API_KEY", "sk-ant-nobody")]);
        assert_eq!((ended.code, ended.text().as_str()), (Some(0), "I am here.\n"), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("warning: `claude-sonnet-4-5` is not at")
                && ended.stderr.contains("has `served`"),
            "{}",
            ended.stderr
        );
        let usage = loaded.run(&["usage", "last", "--json"], &[]).json();
        assert_eq!(
            (usage["total"]["calls"].as_u64(), usage["total"]["unpriced"].as_u64()),
            (Some(1), Some(1))
        );
    }
}

#[test]
fn model_command_refuses_what_the_server_does_not_have() {
    let loaded = OneLoadedModel::start();
    let mut terminal = Terminal::start_with(&loaded.world, &["chat"], &loaded.environment(&[]));
    terminal.prompt();
    terminal.press("/model claude-sonnet-4-5\r");
    terminal.see("answers with it whatever name is sent");
    terminal.see("the conversation continues with served");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}
