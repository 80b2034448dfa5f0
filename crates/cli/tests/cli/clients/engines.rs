//! Engines of others behind a real gateway.

use crate::clients::faults::{ask, echo, user, words_of};
use crate::clients::gateway::Gateway;

/// A home whose gateway uses this shell script as its engine.
fn home_with_engine(script: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("plugins/context_engine/window");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("plugin.yaml"), "command: [/bin/sh, engine.sh]\n").unwrap();
    std::fs::write(place.join("engine.sh"), script).unwrap();
    std::fs::write(home.path().join("config.yaml"), "context:\n  engine: window\n").unwrap();
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_cannot_be_started_fails_no_request_and_is_not_started_for_each() {
    let upstream = echo().await;
    let home = home_with_engine("echo start >> starts\necho I am broken >&2\nexit 7\n");
    let gateway = Gateway::start(home, &upstream.url());
    const CONVERSATIONS: usize = 12;
    for conversation in 0..CONVERSATIONS {
        let mut talk = vec![user(&format!("conversation {conversation} begins"))];
        for turn in 0..3 {
            let (status, answer) = ask(gateway.url(), &talk).await.unwrap();
            assert_eq!(status, 200, "{answer}");
            assert!(words_of(&answer).starts_with("heard: "), "{answer}");
            talk.push(answer["choices"][0]["message"].clone());
            talk.push(user(&format!("turn {turn}")));
        }
    }
    let starts =
        std::fs::read_to_string(gateway.home().join("plugins/context_engine/window/starts")).unwrap();
    let screen = gateway.screen();
    // However slow the machine: pauses double, so that even an hour has few of them.
    assert!((1..20).contains(&starts.lines().count()), "{starts}");
    let told = screen.matches("is not compacted until it answers").count();
    assert_eq!(told, CONVERSATIONS, "once for each conversation: {screen}");
    assert!(!screen.contains("does not answer: the context engine"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_says_at_its_start_what_is_wrong_with_its_engine() {
    let upstream = echo().await;
    let home = home_with_engine("");
    let manifest = home.path().join("plugins/context_engine/window/plugin.yaml");
    std::fs::write(manifest, "command: [no-such-program]\n").unwrap();
    let gateway = Gateway::start(home, &upstream.url());
    assert!(
        gateway.screen().contains("`window` is broken: its program no-such-program"),
        "{}",
        gateway.screen()
    );
    let (status, answer) = ask(gateway.url(), &[user("all the same")]).await.unwrap();
    assert_eq!((status, words_of(&answer)), (200, "heard: all the same"));
}
