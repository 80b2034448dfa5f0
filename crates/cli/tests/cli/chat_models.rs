//! Other models in the middle of a conversation: at another server, with a smaller window, on another wire.

use throughline_testkit::{
    RecordedRequest, Reply, Script, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions,
};

use crate::chat::{served, world_of};
use crate::terminal::Terminal;

fn long_answers() -> Script {
    Script::answering(|request| {
        let body = request.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.last().map(|last| last["content"].to_string()).unwrap_or_default();
        let number = said.split("question ").nth(1).and_then(|rest| rest.get(..1)).unwrap_or("?").to_owned();
        Reply::text(format!("{}That was about question {number}.", "Words without end. ".repeat(250)))
    })
}

#[test]
fn a_model_elsewhere_with_a_smaller_window_folds_before_it_is_asked() {
    let served = served(long_answers());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let models = vec![ServedModel::with_window("small", 16_384)];
    let options = UpstreamOptions { kind: ServerKind::Ollama, models, ..UpstreamOptions::default() };
    let elsewhere = runtime.block_on(ScriptedUpstream::start_with(options, long_answers())).unwrap();
    let address = elsewhere.url().trim_start_matches("http://").to_owned();
    let world = world_of(&served);
    let mut terminal = Terminal::start_with(&world, &["chat"], &[("OLLAMA_HOST", &address)]);
    terminal.prompt();
    for number in 1..=9 {
        terminal.press(&format!("question {number}\r"));
        terminal.see(&format!("That was about question {number}."));
        terminal.prompt();
    }
    terminal.press("/model ollama:small\r");
    terminal.see("now using small, window 16,384 tokens");
    terminal.see("its window is smaller, so the conversation is compacted before the next call if needed");
    terminal.see("`model.context_length` (32768 tokens");
    terminal.see("is the window of `worker`");
    terminal.prompt();
    terminal.press("question 0\r");
    // The answer behind it is longer than the screen.
    terminal.passed("compacted 19 -> ");
    terminal.see("That was about question 0.");
    terminal.see("of 16k");
    terminal.prompt();
    // Another conversation stays where this one is held now.
    terminal.press("/new\r");
    terminal.see("small (ollama on the chat wire, no key)");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let asked: Vec<RecordedRequest> = elsewhere.calls();
    assert_eq!((served.upstream.calls().len(), asked.len()), (9, 1), "nothing was refused first");
    assert!(asked[0].text().contains("[CONTEXT COMPACTION"));
}

#[test]
fn a_conversation_of_one_wire_goes_on_with_a_model_on_another() {
    let served = served(long_answers());
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "question 1"]).code, Some(0));
    let other = ["chat", "--resume", "last", "-q", "question 2", "--set", "model.wire=anthropic"];
    let ended = world.run(&other);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.text().ends_with("That was about question 2.\n"), "{}", ended.text());
    assert_eq!(world.run(&["chat", "--resume", "last", "-q", "question 3"]).code, Some(0));
    let calls = served.upstream.calls();
    let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/v1/messages", "/v1/chat/completions"]);
    let over = calls[1].json();
    assert!(over["system"].to_string().contains("You are Throughline"), "{over}");
    assert_eq!(over["messages"].as_array().map(Vec::len), Some(3), "{over}");
    assert_eq!(over["tools"].as_array().map(Vec::len), Some(7), "{over}");
    let (first, third) = (calls[0].text(), calls[2].text());
    assert!(third.starts_with(first.trim_end_matches("]}")), "on its own wire nothing has changed");
}
