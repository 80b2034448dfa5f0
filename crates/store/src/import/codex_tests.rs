//! Tests of Codex rollouts in the record: calls, instructions, compactions with their views.

use throughline_transcript::WireFormat;

use crate::import::testing::World;
use crate::store::Store;
use crate::views::item::ViewItem;

const CODEX_HEAD: &str = r#"{"timestamp":"2026-03-04T10:00:00Z","type":"session_meta","payload":{"id":"c1","cwd":"/srv/app","model_provider":"openai","base_instructions":{"text":"be brief"}}}"#;
const CODEX_TURN: &str = r#"{"timestamp":"2026-03-04T10:00:01Z","type":"turn_context","payload":{"cwd":"/srv/app","model":"gpt-5.2-codex"}}"#;

fn item(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(
        r#"{{"timestamp":"2026-03-04T10:00:02Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
    )
}

fn token_count(total: u64, last: u64) -> String {
    format!(
        r#"{{"timestamp":"2026-03-04T10:00:03Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":{last},"cached_input_tokens":40,"output_tokens":5,"reasoning_output_tokens":2}}}}}}}}"#
    )
}

#[test]
fn a_codex_rollout_with_its_calls_and_instructions() {
    let mut world = World::new();
    let reasoning = r#"{"timestamp":"2026-03-04T10:00:02Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}"#;
    let lines = [
        CODEX_HEAD,
        CODEX_TURN,
        &item("user", "fix it"),
        reasoning,
        &item("assistant", "done"),
        &token_count(105, 100),
    ];
    let log = world.write("2026/03/04/rollout-2026-03-04T10-00-00-c1.jsonl", &lines);
    let folder = world.folder.path().to_owned();
    let counts = world.counts(&folder);
    assert_eq!((counts.new, counts.messages, counts.calls), (1, 3, 1));
    let session = world.session("codex", "c1");
    assert_eq!(session.wire_format, WireFormat::Responses);
    let call = &world.store.calls(&world.owner, &session.id).unwrap()[0].call;
    assert_eq!((call.model.as_str(), call.provider.as_str()), ("gpt-5.2-codex", "openai"));
    assert_eq!((call.usage.input, call.usage.cache_read, call.usage.reasoning), (60, 40, 2));
    assert_eq!(call.sent_to_seq, Some(1), "sent before the reasoning that begins the answer");
    assert_eq!(call.cost_micro_usd, Some(182), "60 at 1.75, 40 at 0.175 and 5 at 14 dollars a million");
    let preamble = world.store.preamble(call.preamble.as_ref().unwrap()).unwrap().unwrap();
    assert_eq!(preamble.system.as_deref(), Some(r#"{"text":"be brief"}"#));
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn a_codex_compaction_shows_what_it_kept_and_its_summary() {
    let mut world = World::new();
    let compacted = r#"{"timestamp":"2026-03-04T11:00:00Z","type":"compacted","payload":{"message":"so far","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"summary: so far"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}]}}"#;
    let lines =
        [CODEX_HEAD, &item("user", "fix it"), &item("assistant", "done"), compacted, &item("user", "next")];
    let log = world.write("rollout-c1.jsonl", &lines);
    world.counts(&log);
    let chain = world.chain("codex", "c1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.texts(&chain[1]), ["fix it", "done", "next"]);
    let items = world.store.view_items(&world.owner, &chain[1].id).unwrap();
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| match item {
            ViewItem::Range { .. } => "range",
            ViewItem::Summary { .. } => "summary",
            ViewItem::Synthetic { .. } => "synthetic",
            ViewItem::Rendition { .. } => "rendition",
        })
        .collect();
    assert_eq!(kinds, ["range", "summary", "synthetic", "range"]);
    let summaries = world.store.summaries(&world.owner, &chain[1].id).unwrap();
    assert_eq!((summaries[0].author.as_str(), summaries[0].document.as_str()), ("codex", "so far"));
    let sources: Vec<(u64, u64)> =
        summaries[0].sources.iter().map(|run| (run.first_seq, run.end_seq)).collect();
    assert_eq!(sources, [(1, 2)], "the answer is no longer shown");
    assert_eq!(world.counts(&log).unchanged, 1);
}

#[test]
fn a_compaction_at_the_end_of_a_log_is_recorded_once() {
    let mut world = World::new();
    let compacted = r#"{"type":"compacted","payload":{"message":"so far"}}"#;
    let lines = [CODEX_HEAD, &item("user", "fix it")];
    let log = world.write("rollout-c1.jsonl", &lines);
    world.counts(&log);
    let ask = item("user", "fix it");
    world.write("rollout-c1.jsonl", &[CODEX_HEAD, &ask, compacted]);
    world.counts(&log);
    assert_eq!(world.chain("codex", "c1").len(), 2);
    assert_eq!(world.counts(&log).unchanged, 1);
    world.write("rollout-c1.jsonl", &[CODEX_HEAD, &ask, compacted, &item("user", "next")]);
    assert_eq!(world.counts(&log).grown, 1);
    let chain = world.chain("codex", "c1");
    assert_eq!(chain.len(), 2);
    assert_eq!(world.shown(&chain[1]).len(), 2);
}
