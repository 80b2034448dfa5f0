//! The agent at a real terminal with a real small model behind a real server: a conversation longer than its window goes on
//! through compactions, another process takes it up, and everything said is found.
//!
//! Runs where `.ci/local-model` has installed the model.

use crate::harness::World;
use crate::local_model::Served;
use crate::terminal::Terminal;

/// The window the server gives the model: little more than prompt and tools need.
const WINDOW_TOKENS: u64 = 4_096;
/// Turns of which each brings about two hundred tokens.
const TURNS: usize = 44;

/// What a person says: an entry of a log with figures of its own.
fn entry(number: usize) -> String {
    const SHIPS: [&str; 6] = ["Alma", "Berta", "Cora", "Dora", "Elsa", "Frida"];
    let mut text = format!("Entry {number:02} of the harbour log: ");
    for line in 0..6 {
        let ship = SHIPS[(number + line) % SHIPS.len()];
        let (crates, gate) = (17 + (number * 31 + line * 7) % 80, 1 + (number + 2 * line) % 9);
        text.push_str(&format!(
            "the {ship} unloaded {crates} crates at gate {gate} and left after the inspection was over; "
        ));
    }
    text.push_str("note it.");
    text
}

/// Says something and waits for the line with the gauge, which stands under every answer.
fn say(terminal: &mut Terminal, number: usize) {
    terminal.press(&entry(number));
    terminal.press("\r");
    terminal.until("an answer with the gauge under it", |screen| {
        let after = screen.rsplit_once(&format!("Entry {number:02} of")).map_or("", |(_, after)| after);
        after.contains("compacts at") && screen.trim_end().ends_with('›')
    });
}

#[test]
fn a_conversation_longer_than_the_window_goes_on_with_a_real_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(served) = runtime.block_on(Served::start(WINDOW_TOKENS)) else { return };
    let world = World::with_config(&format!(
        "model: {{provider: llama.cpp, base_url: '{}', default: local, max_tokens: 12}}\n\
         compression: {{threshold: 0.5}}\n\
         auxiliary: {{compression: {{provider: rules}}}}\n",
        served.url()
    ));
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.see("4,096 tokens, said by the llama.cpp server");
    terminal.prompt();
    for number in 0..TURNS / 2 {
        say(&mut terminal, number);
    }
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    // Another process takes it up where it stands.
    let mut terminal = Terminal::start(&world, &["chat", "--resume", "last"]);
    terminal.see("resumed");
    terminal.prompt();
    for number in TURNS / 2..TURNS {
        say(&mut terminal, number);
    }
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let sessions = world.run(&["sessions", "--json"]).json();
    let compactions = sessions["sessions"][0]["compactions"].as_u64().unwrap_or(0);
    assert!(compactions >= 2, "{compactions}: {sessions}");
    for number in 0..TURNS {
        let found = world.run(&["search", &format!("\"Entry {number:02} of the harbour log\"")]).text();
        assert!(found.contains(&format!("Entry {number:02} of the harbour log")), "{number}: {found}");
    }
}
