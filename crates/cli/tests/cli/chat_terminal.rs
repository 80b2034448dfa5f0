//! `throughline chat` in a real terminal: typing, completion, questions, resizing, and Ctrl-C at every moment.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use throughline_testkit::{Gate, RecordedRequest, Reply, ReplyFault, Script};

use crate::chat::{Served, served, wanting, world_of};
use crate::harness::{NOW, World};

const COLUMNS: u16 = 90;
const ROWS: u16 = 40;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// A terminal with the program in it.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn std::io::Write + Send>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    parser: vt100::Parser,
    over: bool,
}

impl Terminal {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_throughline"));
        command.args(arguments);
        command.cwd(world.path(""));
        command.env_clear();
        for (name, value) in [("TERM", "xterm-256color"), ("THROUGHLINE_NOW", NOW), ("PATH", "/usr/bin:/bin")]
        {
            command.env(name, value);
        }
        command.env("THROUGHLINE_HOME", world.home());
        command.env("HOME", world.user());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let seen = Seen { parser: vt100::Parser::new(cells(ROWS), cells(COLUMNS), 1_000), over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4_096];
            loop {
                let read = reader.read(&mut buffer).unwrap_or(0);
                let (lock, told) = &*shared;
                let mut seen = lock.lock().unwrap();
                seen.parser.process(&buffer[..read]);
                seen.over = read == 0;
                told.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { child, master: pair.master, keys, seen }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// What is on the screen.
    fn screen(&self) -> String {
        self.seen.0.lock().unwrap().parser.screen().contents()
    }

    /// Waits until the screen is as it should be.
    fn until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        loop {
            let screen = seen.parser.screen().contents();
            if fits(&screen) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.over, "{what} was never seen:\n{screen}");
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
    }

    fn see(&self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    /// Waits for an empty prompt at the end of the screen.
    fn prompt(&self) {
        self.until("a prompt", |screen| screen.trim_end().ends_with('›'));
    }

    /// Waits until the program is gone; how it ended.
    fn end(mut self) -> u32 {
        let (lock, told) = &*self.seen;
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock.lock().unwrap();
        while !seen.over {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never ended:\n{}", seen.parser.screen().contents());
            seen = told.wait_timeout(seen, left).unwrap().0;
        }
        drop(seen);
        self.child.wait().unwrap().exit_code()
    }
}

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
            "sleep" => wanting("c3", "terminal", r#"{"command":"sleep 300"}"#),
            _ => Reply::text(format!("# Heard\nYou said **{said}**.\n\n```rust\nlet x = 1;\n```\nEnd.")),
        }
    }))
}

#[test]
fn a_person_types_asks_for_help_and_leaves() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.see("from 16,384 tokens on");
    terminal.see("32,768 tokens, configured");
    terminal.see("Prompt caching:");
    terminal.prompt();
    terminal.press("good morning\r");
    terminal.see("You said good morning.");
    terminal.see("let x = 1;");
    terminal.see("folds at 16k");
    terminal.prompt();
    assert!(!terminal.screen().contains("**"), "complete lines have their looks:\n{}", terminal.screen());
    let elsewhere = world.run(&["chat", "--resume", "last", "-q", "May I?"]);
    assert_eq!(elsewhere.code, Some(8), "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains("chat (process"), "who holds it is said: {}", elsewhere.stderr);
    terminal.press("/cont\t");
    terminal.see("› /context");
    terminal.press("\r");
    terminal.see("tokens until the older part is folded");
    terminal.prompt();
    terminal.press("/compres\r");
    terminal.see("did you mean /compress?");
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
fn the_bare_name_at_a_terminal_is_a_conversation() {
    let served = model();
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &[]);
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
    terminal.see("allow? [y] this once, [s] for this session, [n] no:");
    assert!(!world.path("made.txt").exists(), "nothing happens before the answer");
    terminal.press("y\r");
    terminal.see("The tool said: wrote made.txt");
    assert_eq!(world.read("made.txt"), b"hello\n");
    terminal.prompt();
    terminal.press("remove\r");
    terminal.see("dangerous: this deletes files for good");
    terminal.see("allow? [y] this once, [n] no:");
    terminal.press("\r");
    terminal.see("not allowed");
    terminal.see("The tool said: The person did not allow this");
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
    terminal.press("\x03");
    terminal.see("stopped; what was said and done until now is kept");
    terminal.prompt();
    terminal.press("sleep\r");
    terminal.see("run sleep 300 ...");
    terminal.press("\x03");
    terminal.see("✗ run sleep 300: stopped");
    terminal.prompt();
    // The window is made small and large again in between.
    let narrow = PtySize { rows: 30, cols: 44, pixel_width: 0, pixel_height: 0 };
    terminal.master.resize(narrow).unwrap();
    terminal.seen.0.lock().unwrap().parser.screen_mut().set_size(cells(30), cells(44));
    terminal.press("still there\r");
    terminal.see("You said still there.");
    terminal.prompt();
    let widest = terminal.screen().lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 44, "{}", terminal.screen());
    terminal.press("\x03");
    terminal.see("leaves; the conversation stays");
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
fn what_is_typed_while_an_answer_comes_is_kept_for_the_next_line() {
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
    terminal.press("later words\r");
    terminal.see("later words");
    gate.open();
    terminal.see("› later words");
    assert_eq!(served.upstream.calls().len(), 1, "it is shown, not sent");
    terminal.press("\r");
    terminal.see("You said later words.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn ctrl_c_stops_a_compaction_and_the_conversation_is_as_it_was() {
    let served = served(Script::answering(|request| {
        if request.text().contains("How the notes are written:") {
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
    terminal.see("folding the older part into a summary ...");
    terminal.press("\x03");
    terminal.see("stopped; the conversation is as it was");
    terminal.prompt();
    terminal.press("question 7\r");
    terminal.see("Answer to question 7.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let sessions = String::from_utf8(world.run(&["sessions", "--json"]).stdout).unwrap();
    assert!(sessions.contains("\"compactions\": 0"), "{sessions}");
}
