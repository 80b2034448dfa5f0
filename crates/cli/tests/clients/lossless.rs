//! The engine `lcm` in a gateway: what `throughline lcm` shows of a long conversation, and what is left of it after each
//! of several kills.

use serde_json::{Value, json};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, UpstreamOptions};

use crate::faults::{ask, user, words_of};
use crate::gateway::Gateway;

const CONFIG: &str = "context:\n  engine: lcm\nmodel:\n  context_length: 32000\n";

/// Some words that differ from turn to turn.
fn words(turn: usize) -> String {
    let words = (0..500).map(|word| format!("w{}", (turn * 7_919 + word * 104_729) % 99_991));
    format!("Turn {turn}: {}", words.collect::<Vec<_>>().join(" "))
}

/// An upstream that says how large what it was sent is.
async fn upstream() -> ScriptedUpstream {
    let options =
        UpstreamOptions { cache: Some(PrefixCache::new(CacheStyle::None)), ..UpstreamOptions::default() };
    let script = Script::answering(|request| Reply::text(format!("Heard {}.", request.order)));
    ScriptedUpstream::start_with(options, script).await.unwrap()
}

fn start(home: tempfile::TempDir, upstream: &ScriptedUpstream) -> Gateway {
    std::fs::write(home.path().join("config.yaml"), CONFIG).unwrap();
    Gateway::start(home, &upstream.url())
}

async fn say(gateway: &Gateway, talk: &mut Vec<Value>, turn: usize) {
    talk.push(user(&words(turn)));
    let (status, answer) = ask(gateway.url(), talk).await.unwrap();
    assert_eq!(status, 200, "turn {turn}: {answer}\n{}", gateway.screen());
    talk.push(json!({ "role": "assistant", "content": words_of(&answer) }));
}

fn tree(gateway: &Gateway) -> Value {
    serde_json::from_str(&gateway.ask(&["lcm", "tree", "last", "--json"])).unwrap()
}

/// Messages that nodes stand for, as the tree has them, from its roots.
fn covered(tree: &Value) -> u64 {
    let nodes = tree["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["node"]["messages"].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_a_tree_that_can_be_read_down_to_its_words() {
    let upstream = upstream().await;
    let gateway = start(tempfile::tempdir().unwrap(), &upstream);
    let mut talk = Vec::new();
    for turn in 0..90 {
        say(&gateway, &mut talk, turn).await;
    }
    let shown = gateway.ask(&["lcm", "tree", "last"]);
    let found = tree(&gateway);
    let first = shown.lines().next().unwrap();
    assert!(
        first.starts_with('n') && first.contains(" messages ") && first.contains(" tokens, by "),
        "{shown}"
    );
    assert!(shown.lines().last().unwrap().ends_with("messages are folded"), "{shown}");
    assert!(covered(&found) > 50, "{found:#}");

    let name = first.split(' ').next().unwrap();
    let node = gateway.ask(&["lcm", "show", name]);
    assert!(node.contains(name), "{node}");
    let originals = gateway.ask(&["lcm", "show", name, "--messages"]);
    assert!(originals.contains("Turn "), "{originals}");
    let as_json: Value = serde_json::from_str(&gateway.ask(&["lcm", "show", name, "--json"])).unwrap();
    assert_eq!(as_json["id"].to_string(), name.trim_start_matches('n'), "{as_json:#}");
    // What is not there is said, and what to do about it.
    for (arguments, code, words) in [
        (["lcm", "show", "n999999"], 3, "there is no summary n999999"),
        (["lcm", "show", "banana"], 2, "`banana` is no node"),
        (["lcm", "tree", "nowhere"], 3, "there is no session `nowhere`"),
    ] {
        let (told, error) = gateway.ask_in_vain(&arguments);
        assert_eq!(told, Some(code), "{error}");
        assert!(error.contains(words) && error.contains("hint:"), "{error}");
    }
}

/// Killed again and again, at whatever it was doing: the next start goes on, and the tree holds together.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_while_it_folds_goes_on_with_a_tree_that_holds() {
    let upstream = upstream().await;
    let mut home = tempfile::tempdir().unwrap();
    let (mut talk, mut turn) = (Vec::new(), 0);
    for kill in 0..6 {
        let gateway = start(home, &upstream);
        for _ in 0..12 {
            say(&gateway, &mut talk, turn).await;
            turn += 1;
        }
        // One more, which nobody waits for.
        let url = gateway.url().to_owned();
        let mut asked = talk.clone();
        asked.push(user(&words(1_000 + kill)));
        let last = tokio::spawn(async move { ask(&url, &asked).await });
        tokio::time::sleep(std::time::Duration::from_millis(3 * kill as u64)).await;
        home = gateway.kill();
        let _ = last.await.unwrap();
    }
    let gateway = start(home, &upstream);
    say(&gateway, &mut talk, turn).await;
    assert!(covered(&tree(&gateway)) > 30);
    // It fails where something is wrong.
    gateway.ask(&["doctor"]);
}
