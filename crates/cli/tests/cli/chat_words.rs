//! What a person is told at a terminal: what is wrong before it costs anything, what a key allows, how things ended.

use throughline_testkit::{RecordedRequest, Reply, Script};

use crate::chat::{Served, served, wanting, world_of};
use crate::harness::World;
use crate::terminal::Terminal;

/// What a request says last.
fn last(request: &RecordedRequest) -> String {
    let body = request.json();
    let message = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    message["content"].as_str().unwrap_or_default().to_owned()
}

fn model() -> Served {
    served(Script::answering(|request| match last(request).as_str() {
        "fail" => wanting("c1", "terminal", r#"{"command":"exit 3"}"#),
        "write" => wanting("c2", "write_file", r#"{"path":"made.txt","content":"hello\n"}"#),
        "nothing" => Reply::text(""),
        said => Reply::text(format!("You said {said}. {}", "More words about it. ".repeat(40))),
    }))
}

#[test]
fn what_keeps_a_model_from_answering_is_said_before_anything_is_asked() {
    let served = model();
    let world = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{}/v1', default: absent, context_length: 32768}}\n",
        served.upstream.url()
    ));
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.see("does not have `absent`; its only model is");
    terminal.prompt();
    // Nor does the conversation go over to one that is not there, unless that is meant.
    terminal.press("/model other\r");
    terminal.see("does not have `other`; its only model is");
    terminal.see("the conversation continues with absent");
    terminal.prompt();
    terminal.press("/model other --anyway\r");
    terminal.see("now using other");
    terminal.prompt();
    terminal.press("/model worker\r");
    terminal.see("now using worker");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dead = runtime.block_on(throughline_testkit::refused_url()).unwrap();
    let world = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{dead}/v1', default: worker, context_length: 32768}}\n"
    ));
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.see("start the server at");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn questions_are_asked_again_and_endings_are_what_they_are() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("write\r");
    terminal.see("[s] allows, until this ends: writing any file in the folder");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    terminal.press("yse\r");
    terminal.see("`yse` is not an answer, and nothing was done: y allows it this once, s for this session");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    assert!(!world.path("made.txt").exists(), "nothing happens before there is an answer");
    terminal.press("y\r");
    terminal.see("You said wrote made.txt");
    terminal.prompt();
    assert_eq!(world.read("made.txt"), b"hello\n");
    terminal.press("fail\r");
    terminal.see("[s] allows, until this ends: this exact command in");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    terminal.press("y\r");
    terminal.see("✗ run exit 3: exit code 3");
    terminal.prompt();
    terminal.passed("waiting for worker ...");
    terminal.press("nothing\r");
    terminal.see("the model returned an empty answer");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn commands_say_what_they_do_and_what_they_will_not() {
    let served = model();
    let world = world_of(&served);
    world.write("notes.md", "mine\n");
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    for number in 1..=6 {
        assert!(terminal.say(&format!("remark {number}")).contains("You said remark"));
    }
    for (command, said) in [
        ("/export notes.md", "notes.md already exists"),
        ("/export talk.json", "wrote 12 messages of"),
        ("/export --force notes.md", "wrote 12 messages of"),
        ("/config compression.threshold", "0.5 default"),
        ("/compress here 0", "from 1 to 100, not `0`"),
        ("/compress --keep x", "from 1 to 100, not `x`"),
        ("/usage", "Window configured in"),
        ("/compress here 1 --preview", "Window configured in"),
    ] {
        let told = terminal.say(command);
        assert!(told.contains(said), "{command}: {told}");
        if command == "/export notes.md" {
            assert_eq!(world.read("notes.md"), b"mine\n");
        }
    }
    assert_ne!(world.read("notes.md"), b"mine\n");
    // What is shown beforehand is what is done: the last exchange has two messages.
    let plan = ["compress", "--session", "last", "--force", "--preview", "--json", "--keep-exactly", "2"];
    let plan = world.run(&plan).json();
    let messages = &plan["report"]["messages"];
    terminal.press("/compress here 1\r");
    terminal.see(&format!("compacted {} -> {} messages", messages["before"], messages["after"]));
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn something_larger_than_the_window_is_told_and_read_in_pieces() {
    let served = served(vec![Reply::text("It is a log.")]);
    let world = world_of(&served);
    let log: String = (1..=100_000).map(|row| format!("row {row} of a long log\n")).collect();
    let ended = world.run_with(&["chat", "-q", "What is this?"], log.as_bytes(), &[]);
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), "It is a log.\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("does not fit the window of 32,768 tokens"), "{}", ended.stderr);
    let sent = served.upstream.calls()[0].text();
    assert!(sent.contains("What is this?") && sent.contains("row 100000 of a long log"), "{}", sent.len());
    assert!(sent.len() < 100_000, "{}", sent.len());
}
