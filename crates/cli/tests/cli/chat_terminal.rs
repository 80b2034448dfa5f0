//! `throughline chat` in a real terminal: typing, completion, questions, resizing, and Ctrl-C at every moment.

use throughline_testkit::{Gate, RecordedRequest, Reply, ReplyFault, Script};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::chat::{Served, served, wanting, world_of};
use crate::harness::World;
use crate::terminal::Terminal;

/// What a request says last.
fn last(request: &RecordedRequest) -> String {
    let body = request.json();
    let message = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    message["content"].as_str().unwrap_or_default().to_owned()
}

/// A model that does what it is told.
fn model() -> Served {
    served(Script::answering(|request| {
        let said = last(request);
        if request.json()["messages"]
            .as_array()
            .is_some_and(|all| all.last().is_some_and(|m| m["role"] == "tool"))
        {
            return Reply::text(format!("The tool said: {said}"));
        }
        match said.as_str() {
            "hang" => Reply::text("This answer will never be finished, however long one waits for it.")
                .failing_after(3, ReplyFault::Stall),
            "write" => wanting("c1", "write_file", r#"{"path":"made.txt","content":"hello\n"}"#),
            "remove" => wanting("c2", "terminal", r#"{"command":"rm -rf nothing-here"}"#),
            "sleep" => wanting("c3", "terminal", r#"{"command":"touch asleep; sleep 300"}"#),
            _ => Reply::text(format!("# Heard\nYou said **{said}**.\n\n```rust\nlet x = 1;\n```\nEnd.")),
        }
    }))
}

#[test]
fn a_person_types_asks_for_help_and_leaves() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.see("at 16,384 tokens");
    terminal.see("32,768 tokens, configured");
    terminal.see("Prompt caching:");
    terminal.prompt();
    terminal.press("good morning\r");
    terminal.see("You said good morning.");
    terminal.see("let x = 1;");
    terminal.see("compacts at 16k");
    terminal.prompt();
    assert!(!terminal.screen().contains("**"), "complete lines have their looks:\n{}", terminal.screen());
    let elsewhere = world.run(&["chat", "--resume", "last", "-q", "May I?"]);
    assert_eq!(elsewhere.code, Some(8), "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains("chat (process"), "who holds it is said: {}", elsewhere.stderr);
    terminal.press("/cont\t");
    terminal.see("› /context");
    terminal.press("\r");
    terminal.see("tokens until the next compaction");
    terminal.prompt();
    terminal.press("/compres\r");
    terminal.see("did you mean /compress?");
    terminal.prompt();
    // What asks the network in its own way does so from here too.
    terminal.press("/model\r");
    terminal.see("custom at http://127.0.0.1:");
    terminal.prompt();
    terminal.press("first line\\\rsecond line\r");
    terminal.see("second line**.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let found = String::from_utf8(world.run(&["search", "good morning"]).stdout).unwrap();
    assert!(found.contains("good morning"), "{found}");
    assert!(served.upstream.calls().iter().any(|call| last(call) == "first line\nsecond line"));
}

#[test]
fn a_chat_without_a_word_leaves_no_session() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("\x04");
    assert_eq!(terminal.end(), 0);
    let listed = world.run(&["sessions"]);
    assert!(
        !String::from_utf8(listed.stdout).unwrap().contains("worker"),
        "one in which nothing was said is gone"
    );
}

#[test]
fn questions_are_answered_with_what_will_happen_in_view() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("write\r");
    terminal.see("+hello");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    assert!(!world.path("made.txt").exists(), "nothing happens before the answer");
    terminal.press("y\r");
    terminal.see("The tool said: wrote made.txt");
    assert_eq!(world.read("made.txt"), b"hello\n");
    terminal.prompt();
    terminal.press("remove\r");
    terminal.see("dangerous: this deletes files for good");
    terminal.question("allow? [y] this once, [n] no:");
    terminal.press("\r");
    terminal.see("not allowed");
    terminal.see("The tool said: Error: The person did not allow this");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn ctrl_c_stops_an_answer_and_a_tool_and_keeps_the_conversation() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat", "--yolo"]);
    terminal.see("never: everything is done without asking");
    terminal.prompt();
    terminal.press("hang\r");
    terminal.see("This answer will never");
    terminal.press("typed before");
    terminal.press("\x03");
    terminal.see("stopped; everything up to here is recorded");
    terminal.see("› typed before");
    terminal.press("\x15");
    terminal.prompt();
    terminal.press("sleep\r");
    terminal.see("run touch asleep; sleep 300 ...");
    terminal.made(&world.path("asleep"));
    terminal.press("\x03");
    terminal.see("✗ run touch asleep; sleep 300: stopped");
    terminal.prompt();
    // The window is made small and large again in between.
    terminal.resize(30, 44);
    terminal.press("still there\r");
    terminal.see("You said still there.");
    terminal.prompt();
    let widest = terminal.screen().lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 44, "{}", terminal.screen());
    terminal.press("\x03");
    terminal.see("to leave; the conversation is recorded");
    terminal.prompt();
    terminal.press("\x03");
    assert_eq!(terminal.end(), 0);
    let bodies: Vec<String> = served.upstream.calls().iter().map(RecordedRequest::text).collect();
    let final_body = bodies.last().unwrap();
    assert!(
        final_body.contains("This answer will never") && final_body.contains("stopped this while it ran")
    );
}

#[test]
fn two_ctrl_c_at_once_are_two() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat", "--yolo"]);
    terminal.prompt();
    terminal.press("hang\r");
    terminal.see("This answer will never");
    terminal.press("\x03\x03");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn enter_during_an_answer_queues_lines_and_commands_in_their_order() {
    let gate = Gate::new();
    let closed = gate.clone();
    let served = served(Script::answering(move |request| match last(request).as_str() {
        "slow" => Reply::text("This answer takes its time, and somebody types meanwhile.")
            .failing_after(3, ReplyFault::Wait(closed.clone())),
        said => Reply::text(format!("You said {said}.")),
    }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("slow\r");
    terminal.see("This answer takes");
    terminal.press("later wrods\x7f\x7f\x7f\x7fords\r/title queued things\rand then");
    gate.open();
    terminal.see("› later words");
    terminal.see("You said later words.");
    terminal.see("the title is now queued things");
    terminal.see("› and then");
    let screen = terminal.screen();
    assert!(
        screen.contains("This answer takes its time, and somebody types meanwhile."),
        "keys are not echoed into an answer:\n{screen}"
    );
    for line in ["queued: later words", "queued: /title queued things"] {
        assert!(screen.contains(line), "{line}:\n{screen}");
    }
    assert_eq!(served.upstream.calls().len(), 2, "the half line is shown, not sent");
    terminal.press(" more\r");
    terminal.see("You said and then more.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_queued_line_is_shown_at_once_while_nothing_is_written() {
    let gate = Gate::new();
    let closed = gate.clone();
    let served = served(Script::answering(move |request| match last(request).as_str() {
        "slow" => Reply::text("Done.").failing_after(0, ReplyFault::Wait(closed.clone())),
        said => Reply::text(format!("You said {said}.")),
    }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("slow\r");
    terminal.see("waiting for worker ...");
    terminal.press("next\r");
    terminal.see("· queued: next");
    terminal.until("the line that comes and goes", |screen| {
        screen.trim_end().ends_with("waiting for worker ...")
    });
    assert!(served.upstream.calls().len() <= 1, "it is not sent yet");
    gate.open();
    terminal.see("You said next.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn ctrl_c_brings_queued_lines_back_into_the_input() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("hang\r");
    terminal.see("This answer will never");
    terminal.press("one more thing\r");
    terminal.press("half");
    terminal.press("\x03");
    terminal.see("1 queued line back in the input, not sent, because you stopped it");
    terminal.see("› one more thing");
    terminal.see("half");
    assert_eq!(served.upstream.calls().len(), 1, "nothing is sent");
    terminal.press("\x03");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn ctrl_c_that_clears_a_line_is_no_step_towards_leaving() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    for line in ["half", "other", "third"] {
        terminal.press(line);
        terminal.see(&format!("› {line}"));
        terminal.press("\x03");
        terminal.prompt();
    }
    assert!(!terminal.screen().contains("to leave"), "{}", terminal.screen());
    // On an empty line it is one, unless something is typed in between.
    terminal.press("\x03");
    terminal.see("press Ctrl-C again");
    terminal.prompt();
    let prompts = terminal.screen().matches('›').count();
    terminal.press("x\x7f\x03");
    terminal.until("another prompt", |screen| screen.matches('›').count() > prompts);
    terminal.prompt();
    terminal.press("still here\r");
    terminal.see("You said still here.");
    terminal.prompt();
    terminal.press("\x03");
    terminal.until("the note again", |screen| screen.matches("press Ctrl-C again").count() == 2);
    terminal.prompt();
    terminal.press("\x03");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn what_comes_in_one_go_is_not_lost_behind_the_first_line() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("one of them\rthe other\r");
    terminal.see("You said one of them.");
    terminal.see("You said the other.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let gate = Gate::new();
    let closed = gate.clone();
    let served = served(Script::answering(move |request| {
        if request.text().contains("did not allow this") {
            return Reply::text("As you like.");
        }
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "write_file".to_owned(),
            arguments: r#"{"path":"made.txt","content":"hello\n"}"#.to_owned(),
        };
        let said = AnswerPart::Text("I am going to write a file now.".to_owned());
        Reply::answer(AnswerDraft::of_parts(vec![said, AnswerPart::ToolCall(call)]))
            .failing_after(3, ReplyFault::Wait(closed.clone()))
    }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("write\r");
    terminal.see("I am going");
    terminal.press("y\r");
    gate.open();
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    terminal.press("n\r");
    terminal.see("As you like.");
    assert!(!world.path("made.txt").exists(), "nobody allowed it");
    terminal.see("› y");
    terminal.press("\x03");
    terminal.prompt();
    terminal.press("\x04");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn once_the_cache_is_cold_the_older_part_is_compacted_while_nobody_types() {
    let served = served(Script::answering(|request| {
        Reply::text(format!("{}That was about {}.", "Words without end. ".repeat(250), last(request)))
    }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    for number in 1..=12 {
        terminal.press(&format!("question {number}\r"));
        terminal.see(&format!("That was about question {number}."));
        terminal.prompt();
    }
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let calls = served.upstream.calls().len();
    assert_eq!(calls, 12);
    // An hour later the prompt is in nobody's cache any more.
    let later = [("THROUGHLINE_NOW", "2026-11-15T13:00:00Z")];
    let mut terminal = Terminal::start_with(&world, &["chat", "--resume", "last"], &later);
    terminal.prompt();
    terminal.press("a line that is being typed");
    terminal.see("the provider's cache is cold: compacting the older part now");
    terminal.see("compacted 24 -> ");
    terminal.until("the line under what was told", |screen| {
        screen.trim_end().ends_with("› a line that is being typed")
    });
    assert_eq!(served.upstream.calls().len(), calls, "by rules, which ask nobody");
    terminal.press("\r");
    terminal.see("That was about a line that is being typed.");
    terminal.prompt();
    // A user who goes back does not find it compacted again.
    terminal.press("/undo\r");
    terminal.see("the model sees the earlier messages again");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let sessions = String::from_utf8(world.run(&["sessions", "--json"]).stdout).unwrap();
    assert!(sessions.contains("\"compactions\": 0"), "what was undone does not count: {sessions}");
}

#[test]
fn ctrl_c_stops_a_compaction_and_the_conversation_is_as_it_was() {
    let served = served(Script::answering(|request| {
        if request.text().contains("Rules for the notes:") {
            return Reply::stall();
        }
        Reply::text(format!("Answer to {}. {}", last(request), "More words about it. ".repeat(60)))
    }));
    let world = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{}/v1', default: worker, context_length: 32768}}\n",
        served.upstream.url()
    ));
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    for number in 1..=6 {
        terminal.press(&format!("question {number}\r"));
        terminal.see(&format!("Answer to question {number}."));
        terminal.prompt();
    }
    terminal.press("/compress here 1\r");
    terminal.see("compacting the older part ...");
    terminal.press("\x03");
    terminal.see("stopped; the conversation is unchanged");
    terminal.prompt();
    terminal.press("question 7\r");
    terminal.see("Answer to question 7.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let sessions = String::from_utf8(world.run(&["sessions", "--json"]).stdout).unwrap();
    assert!(sessions.contains("\"compactions\": 0"), "{sessions}");
}

/// A model that calls one tool and then says what came of it.
fn calling(tool: &'static str, arguments: serde_json::Value) -> Served {
    served(Script::answering(move |request| {
        let is_result = request.json()["messages"]
            .as_array()
            .is_some_and(|all| all.last().is_some_and(|m| m["role"] == "tool"));
        if is_result { Reply::text("Seen.") } else { wanting("c1", tool, &arguments.to_string()) }
    }))
}

#[test]
fn question_shows_a_command_that_hides_in_an_escape_sequence() {
    let command = "ls -la \u{1b}]0 ; bash -lc \"rm -f keep.txt; touch PWNED\" ; echo \u{7}";
    let served = calling("terminal", serde_json::json!({ "command": command }));
    let world = world_of(&served);
    world.write("keep.txt", "kept\n");
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("go\r");
    terminal.question("allow? [y] this once, [n] no:");
    let screen = terminal.screen();
    let shown = r#"ls -la \x1b]0 ; bash -lc "rm -f keep.txt; touch PWNED" ; echo \x07"#;
    assert!(screen.contains(shown), "{screen}");
    assert!(screen.contains("dangerous: this contains characters that are invisible"), "{screen}");
    assert!(screen.contains("dangerous: this deletes files for good"), "{screen}");
    let written = terminal.everything();
    assert!(!written.contains("\u{1b}]0 ;") && !written.contains('\u{7}'), "nothing of it is acted on");
    terminal.press("n\r");
    terminal.see("not allowed");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    assert_eq!(world.names(), ["keep.txt"]);
}

#[test]
fn question_shows_hidden_characters_of_a_file_that_is_written() {
    let content = "a = 1 \u{202e}# harmless\n\u{1b}]0;b = 2\u{7}\n";
    let served = calling("write_file", serde_json::json!({ "path": "made.py", "content": content }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("go\r");
    terminal.question("allow? [y] this once, [n] no:");
    let screen = terminal.screen();
    assert!(
        screen.contains(r"+a = 1 \u{202e}# harmless") && screen.contains(r"+\x1b]0;b = 2\x07"),
        "{screen}"
    );
    assert!(screen.contains("dangerous: this contains characters that are invisible"), "{screen}");
    terminal.press("y\r");
    terminal.see("Seen.");
    terminal.prompt();
    assert_eq!(world.read("made.py"), content.as_bytes(), "what was shown is what is written");
    assert!(!terminal.everything().contains('\u{202e}'));
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn long_command_is_shown_to_its_end_before_it_is_allowed() {
    let command = format!("echo {}; touch the-very-end", "word ".repeat(600));
    let served = calling("terminal", serde_json::json!({ "command": command }));
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("go\r");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    let screen = terminal.screen();
    assert!(
        screen.contains("touch the-very-end") && screen.contains("scroll up to read all of them"),
        "{screen}"
    );
    assert!(screen.contains("[s] allows, until this ends: this exact command in "), "{screen}");
    terminal.press("n\r");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn search_grant_does_not_open_the_folder_beside_it() {
    let outside = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let folder = outside.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), format!("needle in {name}\n")).unwrap();
        folder.display().to_string()
    };
    let (allowed, private) = (place("allowed"), place("private"));
    let script_allowed = allowed.clone();
    let served = served(Script::answering(move |request| {
        let is_result = request.json()["messages"]
            .as_array()
            .is_some_and(|all| all.last().is_some_and(|m| m["role"] == "tool"));
        let path = match last(request).as_str() {
            _ if is_result => return Reply::text("Seen."),
            "private" => &private,
            _ => &script_allowed,
        };
        wanting("c1", "search_files", &serde_json::json!({ "pattern": "needle", "path": path }).to_string())
    }));
    let world = world_of(&served);
    let mut terminal = Terminal::start_sized(&world, &["chat"], &[], (40, 200));
    terminal.prompt();
    terminal.press("allowed\r");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    terminal.see(&format!(
        "[s] allows, until this ends: searching {allowed} with everything below it, for anything"
    ));
    terminal.press("s\r");
    terminal.prompt();
    terminal.press("allowed\r");
    terminal.prompt();
    terminal.press("private\r");
    terminal.question("allow? [y] this once, [s] for this session, [n] no:");
    terminal.press("n\r");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let sent: String = served.upstream.calls().iter().map(RecordedRequest::text).collect();
    assert!(sent.contains("needle in allowed") && !sent.contains("needle in private"));
}

#[test]
fn streamed_answer_cannot_turn_the_text_around() {
    let served = served(vec![Reply::text("one \u{202e}two\u{2066} \u{1b}[2J three \u{9b}4m end.")]);
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("go\r");
    terminal.see(r"one \u{202e}two\u{2066} [2J three 4m end.");
    terminal.prompt();
    let written = terminal.everything();
    assert!(
        !written.contains(['\u{202e}', '\u{2066}', '\u{9b}']) && !written.contains("\u{1b}[2J"),
        "{written}"
    );
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}
