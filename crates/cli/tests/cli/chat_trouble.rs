//! When things go wrong at a real terminal: the program is killed at the worst moments, the endpoint is in trouble, the
//! terminal is narrow and without colours. The conversation goes on.

use throughline_testkit::{RecordedRequest, Reply, ReplyFault, Script};

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
    served(Script::answering(|request| {
        if request.text().contains("Rules for the notes:") {
            return Reply::stall();
        }
        match last(request).as_str() {
            "hang" => Reply::text("This answer will never be finished, however long one waits for it.")
                .failing_after(3, ReplyFault::Stall),
            "sleep" => wanting("c1", "terminal", r#"{"command":"sleep 300"}"#),
            "stubborn" => wanting(
                "c2",
                "terminal",
                r#"{"command":"trap '' TERM; touch deaf; while :; do sleep 300; done"}"#,
            ),
            "wrong key" => Reply::error(401, "invalid_request_error", "Incorrect API key provided"),
            "gone" => Reply::html(502, "Bad Gateway"),
            said => Reply::text(format!("You said {said}. {}", "More words about it. ".repeat(40))),
        }
    }))
}

/// A world in which the model of the conversation writes the summaries too.
fn world_with_summaries(served: &Served) -> World {
    World::with_config(&format!(
        "model: {{provider: custom, base_url: '{}/v1', default: worker, context_length: 32768}}\n",
        served.upstream.url()
    ))
}

#[test]
fn killed_at_any_moment_nothing_is_lost_but_the_words_on_their_way() {
    let served = model();
    let world = world_with_summaries(&served);
    let mut terminal = Terminal::start(&world, &["chat", "--yolo"]);
    terminal.prompt();
    for number in 1..=4 {
        terminal.press(&format!("remark {number}\r"));
        terminal.see(&format!("You said remark {number}."));
        terminal.prompt();
    }
    terminal.press("hang\r");
    terminal.see("This answer will never");
    terminal.kill();

    let resume = ["chat", "--yolo", "--resume", "last"];
    let mut terminal = Terminal::start(&world, &resume);
    terminal.see("resumed");
    terminal.prompt();
    terminal.press("sleep\r");
    terminal.see("run sleep 300 ...");
    terminal.kill();

    let mut terminal = Terminal::start(&world, &resume);
    terminal.prompt();
    terminal.press("remark 5\r");
    terminal.see("You said remark 5.");
    terminal.prompt();
    terminal.press("/compress here 1\r");
    terminal.see("compacting the older part ...");
    terminal.kill();

    let mut terminal = Terminal::start(&world, &resume);
    terminal.prompt();
    terminal.press("remark 6\r");
    terminal.see("You said remark 6.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);

    let sent = served.upstream.calls().last().unwrap().text();
    for said in ["remark 1", "remark 4", "hang", "sleep", "remark 5", "remark 6"] {
        assert!(sent.contains(&format!(r#"{{"role":"user","content":"{said}"}}"#)), "{said}: {sent}");
    }
    assert!(
        sent.contains(r#""tool_call_id":"c1""#),
        "the call has a result, if only that there is none: {sent}"
    );
    let first = served.upstream.calls()[0].text();
    assert!(sent.starts_with(first.trim_end_matches("]}")), "and what was sent first is still the beginning");
    let doctor = world.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.text(), doctor.stderr);
}

#[test]
fn an_endpoint_in_trouble_is_told_and_the_conversation_goes_on() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("wrong key\r");
    terminal.see("the key was not accepted (HTTP 401)");
    terminal.prompt();
    terminal.press("gone\r");
    terminal.see("HTTP 502");
    terminal.prompt();
    terminal.press("still there\r");
    terminal.see("You said still there.");
    terminal.prompt();
    terminal.press("/resume nobody\r");
    terminal.see("there is no session `nobody`");
    terminal.prompt();
    terminal.press("/insights many\r");
    terminal.see("invalid value 'many'");
    terminal.prompt();
    terminal.press("stubborn\r");
    terminal.question("[n] no:");
    terminal.press("y\r");
    // From then on it does not hear.
    terminal.made(&world.path("deaf"));
    terminal.press("\x03");
    terminal.passed("stopping ... Ctrl-C again leaves");
    terminal.see("done: stopped");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let broken = World::with_config("compression: {threshold: 7}\n").run(&["chat", "-q", "Hello?"]);
    assert_eq!(broken.code, Some(4));
    assert!(broken.stderr.contains("config.yaml:1") && broken.stderr.contains("0.05"), "{}", broken.stderr);
}

#[test]
fn narrow_and_without_colours_everything_can_be_read() {
    let served = model();
    let world = world_of(&served);
    let environment = [("NO_COLOR", "1"), ("COLUMNS", "40")];
    let mut terminal = Terminal::start_sized(&world, &["chat"], &environment, (40, 40));
    terminal.prompt();
    terminal.press("good morning\r");
    terminal.see("You said good morning.");
    terminal.prompt();
    for (command, said) in [
        ("/help", "nothing recorded is lost."),
        ("/tools", "Brings back what was said"),
        ("/context", "its parts are estimated"),
        ("/sessions", "last active"),
        ("/usage", "Cost"),
        ("/resume nobody", "there is no session"),
        ("/compress here 1", "not compacted"),
    ] {
        let told = terminal.say(command);
        assert!(told.contains(said), "{command}: {told}");
        // A row that the terminal itself had to break is seen as one with more columns than there are.
        for line in terminal.screen().lines().filter(|line| line.chars().count() > 40) {
            assert!(!line.trim().contains(' '), "{command}: {line}");
        }
    }
    terminal.press("/quit\r");
    terminal.see("continues this conversation");
    let raw = terminal.everything();
    assert_eq!(terminal.end(), 0);
    let colours = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    let found: Vec<&str> = colours.find_iter(&raw).map(|found| found.as_str()).collect();
    assert!(found.iter().all(|code| matches!(*code, "\x1b[m" | "\x1b[0m")), "{found:?}");
    assert!(raw.contains("window   32,768 tokens"), "{raw}");
}
