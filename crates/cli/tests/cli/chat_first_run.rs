//! The first run: keys and servers are found, told of and chosen from, and what was chosen is written down.

use throughline_testkit::{Reply, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};

use crate::harness::World;
use crate::terminal::Terminal;

/// Three servers on this machine, where their own variables say; those without models are not there.
struct Machine {
    servers: Vec<Option<ScriptedUpstream>>,
    dead: String,
    _runtime: tokio::runtime::Runtime,
}

impl Machine {
    fn with(ollama: &[&str], llama: &[&str], studio: &[&str]) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let kinds =
            [(ServerKind::Ollama, ollama), (ServerKind::LlamaCpp, llama), (ServerKind::LmStudio, studio)];
        let start = |(kind, names): (ServerKind, &[&str])| {
            let models = names.iter().map(|name| ServedModel::with_window(name, 32_768)).collect();
            let options = UpstreamOptions { kind, models, ..UpstreamOptions::default() };
            let replies = vec![Reply::text("I am here."), Reply::text("Still here.")];
            let server = runtime.block_on(ScriptedUpstream::start_with(options, replies)).unwrap();
            (!names.is_empty()).then_some(server)
        };
        let servers = kinds.map(start).into_iter().collect();
        let dead = runtime.block_on(throughline_testkit::refused_url()).unwrap();
        Self { servers, dead, _runtime: runtime }
    }

    fn address(&self, server: usize) -> String {
        self.servers[server].as_ref().map_or_else(|| self.dead.clone(), ScriptedUpstream::url)
    }

    fn calls(&self, server: usize) -> usize {
        self.servers[server].as_ref().map_or(0, |server| server.calls().len())
    }

    /// What the environment says about them.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let bare = |server: usize| self.address(server).trim_start_matches("http://").to_owned();
        let port = bare(1).rsplit_once(':').unwrap().1.to_owned();
        let studio = format!("{}/v1", self.address(2));
        vec![("OLLAMA_HOST", bare(0)), ("LLAMA_ARG_PORT", port), ("LM_STUDIO_API_BASE", studio)]
    }
}

fn borrowed<'a>(environment: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
fn what_was_found_is_told_and_what_was_chosen_is_kept() {
    let machine = Machine::with(&["small", "large"], &[], &["studio-model"]);
    let mut environment = machine.environment();
    environment.push(("OPENROUTER_API_KEY", "sk-or-nobody".to_owned()));
    let environment = borrowed(&environment);
    let world = World::new();
    let mut terminal = Terminal::start_with(&world, &["chat"], &environment);
    terminal.see("found openrouter with the key in OPENROUTER_API_KEY");
    terminal.see(&format!("found ollama at {}/v1 with 2 models", machine.address(0)));
    terminal.see(&format!("found lmstudio at {}/v1 with 1 model", machine.address(2)));
    terminal.see("Number or name:");
    assert!(!terminal.screen().contains("llama.cpp"), "who does not answer is not there");
    terminal.press("9\r");
    terminal.see("`9` is not in the list. Type a number from 1 to 3 or a name");
    terminal.press("2\r");
    terminal.see("Which one? Number or name:");
    terminal.press("large\r");
    terminal.see("Save model.provider: ollama, model.default: large to");
    terminal.press("\r");
    terminal.see("large (ollama on the chat wire, no key)");
    terminal.prompt();
    terminal.press("are you there\r");
    terminal.see("I am here.");
    terminal.prompt();
    // The window that the server told holds for every page.
    terminal.press("/usage\r");
    terminal.see("of 32,768 tokens");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    // Nor is it forgotten by whoever looks at it later.
    let usage = world.run_with(&["usage", "last"], b"", &environment);
    assert!(usage.text().contains("of 32,768 tokens"), "{}", usage.text());
    assert!(usage.text().contains("Window said by Ollama"), "{}", usage.text());
    let written = std::fs::read_to_string(world.home().join("config.yaml")).unwrap();
    assert!(written.contains("provider: ollama") && written.contains("default: large"), "{written}");
    // From then on nothing is asked any more.
    let mut terminal = Terminal::start_with(&world, &["chat"], &environment);
    terminal.prompt();
    assert!(!terminal.screen().contains("found "), "{}", terminal.screen());
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn the_only_model_there_is_answers_at_once() {
    let machine = Machine::with(&[], &["served"], &[]);
    let world = World::new();
    let environment = machine.environment();
    let ended = world.run_with(&["chat", "-q", "Are you there?"], b"", &borrowed(&environment));
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), "I am here.\n"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(&format!("found llama.cpp at {}/v1 with 1 model", machine.address(1))),
        "{}",
        ended.stderr
    );
    assert!(!world.home().join("config.yaml").exists(), "nothing is written behind anybody's back");
    let usage = world.run(&["usage", "last"]).text();
    assert!(usage.contains("of 32,768 tokens"), "the window that the server told: {usage}");
}

#[test]
fn nobody_to_ask_says_what_could_be_asked_and_how() {
    let machine = Machine::with(&["small"], &[], &["other"]);
    let world = World::new();
    let environment = machine.environment();
    let environment = borrowed(&environment);
    let ended = world.run_with(&["chat", "-q", "Are you there?"], b"", &environment);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    for hint in ["throughline chat --model ollama:small", "throughline chat --model lmstudio:other"] {
        assert!(ended.stderr.contains(hint), "{hint}: {}", ended.stderr);
    }
    // A model that is named is looked for, and no other is taken in its place.
    let named = world.run_with(&["chat", "-q", "Are you there?", "--model", "other"], b"", &environment);
    assert_eq!(named.code, Some(0), "{}", named.stderr);
    assert_eq!((machine.calls(0), machine.calls(2)), (0, 1));
    let missing = world.run_with(&["chat", "-q", "Are you there?", "--model", "third"], b"", &environment);
    assert_eq!(missing.code, Some(4));
    assert!(
        missing.stderr.contains("error: no known provider has the model `third`")
            && missing.stderr.contains("ollama has small"),
        "{}",
        missing.stderr
    );
}

#[test]
fn with_nothing_at_all_every_way_to_begin_is_named() {
    let machine = Machine::with(&[], &[], &[]);
    let environment = machine.environment();
    let ended = World::new().run_with(&["chat", "-q", "Are you there?"], b"", &borrowed(&environment));
    assert_eq!(ended.code, Some(4));
    for words in [
        "error: no model is configured yet",
        "none of the variables ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY, CODEX_ACCESS_TOKEN holds a key",
        "no server answers on this machine: ollama at http://127.0.0.1:",
        "export ANTHROPIC_API_KEY=...",
        "throughline config set model.base_url http://host:port/v1",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}
