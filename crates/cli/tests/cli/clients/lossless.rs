//! The engine `lcm` in a gateway: what `throughline lcm` shows of a long conversation, and what is left of it after each
//! of several kills.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use throughline_compaction::{Section, SummaryDocument};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Gate, Reply, ReplyFault, Script, ScriptedUpstream, UpstreamOptions};

use crate::clients::faults::{ask, user, words_of};
use crate::clients::gateway::Gateway;

const CONFIG: &str = "context:\n  engine: lcm\nmodel:\n  context_length: 32000\n";
/// The model of the conversation writes the nodes.
const BY_MODEL: &str = "auxiliary:\n  compression:\n    provider: main\n";

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
    start_with(home, upstream, CONFIG)
}

fn start_with(home: tempfile::TempDir, upstream: &ScriptedUpstream, config: &str) -> Gateway {
    std::fs::write(home.path().join("config.yaml"), config).unwrap();
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
    assert!(shown.lines().last().unwrap().ends_with("messages are compacted"), "{shown}");
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
        (["lcm", "show", "banana"], 2, "`banana` is not a node id"),
        (["lcm", "tree", "nowhere"], 3, "there is no session `nowhere`"),
    ] {
        let (told, error) = gateway.ask_in_vain(&arguments);
        assert_eq!(told, Some(code), "{error}");
        assert!(error.contains(words) && error.contains("hint:"), "{error}");
    }
}

/// Where a gateway is killed. Each is an event that the test waits for, so the same places are covered on any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillPoint {
    /// The request is at the upstream, which has not answered.
    RequestUnanswered,
    /// Half of the answer has come from the upstream.
    AnswerHalfReceived,
    /// The client has the whole answer; what follows a call is under way.
    AnswerDelivered,
    /// A model is writing the first node of a compaction.
    FirstNodeUnwritten,
    /// A model is writing the second node; the first is in the record.
    SecondNodeUnwritten,
    /// A compaction was reported.
    CompactionReported,
}

const KILL_POINTS: [KillPoint; 6] = [
    KillPoint::RequestUnanswered,
    KillPoint::FirstNodeUnwritten,
    KillPoint::AnswerHalfReceived,
    KillPoint::SecondNodeUnwritten,
    KillPoint::AnswerDelivered,
    KillPoint::CompactionReported,
];

/// Which reply waits at a gate, and after how many of its pieces.
#[derive(Clone, Debug)]
struct Armed {
    /// For a summary, or for a turn of the conversation.
    of_summary: bool,
    /// So many replies of that kind go through before.
    after: usize,
    pieces: usize,
    gate: Gate,
}

type Trap = Arc<Mutex<Option<Armed>>>;

/// The reply as the trap wants it.
fn trapped(trap: &Trap, of_summary: bool, reply: Reply) -> Reply {
    let mut trap = trap.lock().unwrap();
    let Some(armed) = trap.as_mut().filter(|armed| armed.of_summary == of_summary) else { return reply };
    if armed.after > 0 {
        armed.after -= 1;
        return reply;
    }
    let (pieces, gate) = (armed.pieces, armed.gate.clone());
    *trap = None;
    reply.failing_after(pieces, ReplyFault::Wait(gate))
}

/// An upstream whose model also writes the nodes, with a trap for one of its replies.
async fn trapping(trap: &Trap) -> ScriptedUpstream {
    let options =
        UpstreamOptions { cache: Some(PrefixCache::new(CacheStyle::None)), ..UpstreamOptions::default() };
    let trap = Arc::clone(trap);
    let script = Script::answering(move |request| {
        let json = request.json();
        let last =
            json["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        let is_turn = last["content"].as_str().is_some_and(|text| text.starts_with("Turn "));
        let text = if is_turn {
            format!("Heard {}.", request.order)
        } else {
            let mut node = SummaryDocument::default();
            node.add(Section::Goal, "Hear all turns.");
            node.to_markdown()
        };
        trapped(&trap, !is_turn, Reply::text(text))
    });
    ScriptedUpstream::start_with(options, script).await.unwrap()
}

/// Talks until the gateway stands at a point, and kills it there.
async fn killed_at(
    point: KillPoint,
    gateway: Gateway,
    talk: &mut Vec<Value>,
    turn: &mut usize,
    trap: &Trap,
) -> tempfile::TempDir {
    let gate = Gate::new();
    let armed = |of_summary, after, pieces| Armed { of_summary, after, pieces, gate: gate.clone() };
    *trap.lock().unwrap() = match point {
        KillPoint::RequestUnanswered => Some(armed(false, 0, 0)),
        KillPoint::AnswerHalfReceived => Some(armed(false, 0, 1)),
        KillPoint::FirstNodeUnwritten => Some(armed(true, 0, 0)),
        KillPoint::SecondNodeUnwritten => Some(armed(true, 1, 0)),
        KillPoint::AnswerDelivered | KillPoint::CompactionReported => None,
    };
    let compactions = gateway.compactions();
    for _ in 0..60 {
        let mut asked = talk.clone();
        asked.push(user(&words(*turn)));
        let reached = tokio::select! {
            () = gate.until_reached() => true,
            answer = ask(gateway.url(), &asked) => {
                let (status, answer) = answer.unwrap();
                assert_eq!(status, 200, "{point:?}, turn {turn}: {answer}\n{}", gateway.screen());
                asked.push(json!({ "role": "assistant", "content": words_of(&answer) }));
                *talk = asked;
                *turn += 1;
                match point {
                    KillPoint::AnswerDelivered => true,
                    KillPoint::CompactionReported => gateway.compactions() > compactions,
                    _ => false,
                }
            }
        };
        if reached {
            return gateway.kill();
        }
    }
    panic!("{point:?} was never reached:\n{}", gateway.screen());
}

/// Killed at each of these points: the next start goes on, and the tree holds together.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_at_any_of_these_points_goes_on_with_a_tree_that_holds() {
    let trap = Trap::default();
    let upstream = trapping(&trap).await;
    let mut home = tempfile::tempdir().unwrap();
    let (mut talk, mut turn) = (Vec::new(), 0);
    for point in KILL_POINTS {
        let gateway = start_with(home, &upstream, &format!("{CONFIG}{BY_MODEL}"));
        for _ in 0..4 {
            say(&gateway, &mut talk, turn).await;
            turn += 1;
        }
        home = killed_at(point, gateway, &mut talk, &mut turn, &trap).await;
        *trap.lock().unwrap() = None;
        println!("killed at {point:?}, turn {turn}");
    }
    let gateway = start_with(home, &upstream, &format!("{CONFIG}{BY_MODEL}"));
    say(&gateway, &mut talk, turn).await;
    assert!(covered(&tree(&gateway)) > 30);
    // It fails where something is wrong.
    gateway.ask(&["doctor"]);
}
