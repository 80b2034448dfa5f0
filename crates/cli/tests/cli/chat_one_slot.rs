//! A model server that works on one request at a time, as people run llama.cpp and Ollama: a person at the terminal is
//! never queued behind a summary that is prepared in the background.

use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{
    Gate, RecordedRequest, Reply, ReplyFault, Script, ScriptedUpstream, ServedModel, ServerKind,
    UpstreamOptions,
};

use crate::harness::World;
use crate::terminal::Terminal;

fn last(request: &RecordedRequest) -> String {
    let body = request.json();
    let message = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    message["content"].as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn is_summary(request: &RecordedRequest) -> bool {
    request.text().contains("Rules for the notes:")
}

#[test]
fn a_person_is_never_queued_behind_a_summary() {
    // Summaries wait at a gate that is opened only at the end: whoever waits for one before waits for ever.
    let gate = Gate::new();
    let closed = gate.clone();
    let script = Script::answering(move |request| {
        if is_summary(request) {
            let notes = "## Goal\n- talk about rivers\n## Next Steps\n- go on\n";
            return Reply::text(notes).failing_after(1, ReplyFault::Wait(closed.clone()));
        }
        Reply::text(format!("{} That was {}.", "Rivers run to the sea. ".repeat(60), last(request)))
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let options = UpstreamOptions {
        cache: Some(PrefixCache::new(CacheStyle::None)),
        kind: ServerKind::LlamaCpp,
        models: vec![ServedModel::with_window("worker", 8_192)],
        slots: Some(1),
        ..UpstreamOptions::default()
    };
    let upstream = runtime.block_on(ScriptedUpstream::start_with(options, script)).unwrap();
    let world = World::with_config(&format!(
        "model: {{provider: llama.cpp, base_url: '{}/v1', default: worker}}\n",
        upstream.url()
    ));
    let summaries = || upstream.calls().iter().filter(|call| is_summary(call)).count();
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    let mut turn = 0;
    while !terminal.everything().contains("preparing a summary of the older part") {
        turn += 1;
        assert!(turn < 30, "nothing is prepared:\n{}", terminal.screen());
        terminal.press(&format!("question {turn}\r"));
        terminal.see(&format!("That was question {turn}."));
        terminal.prompt();
    }
    // The server works on the summary, and nothing else fits beside it.
    runtime.block_on(gate.until_reached());
    assert_eq!(summaries(), 1);
    terminal.press("ok?\r");
    terminal.see("That was ok?.");
    runtime.block_on(upstream.until_hung_up());
    terminal.see("postponed, so that the server is free for you");
    terminal.prompt();
    let asked = upstream.calls().into_iter().find(is_summary).unwrap().json();
    assert!(asked["max_tokens"].as_u64().is_some_and(|most| most < 4_096), "{}", asked["max_tokens"]);
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    gate.open();
}
