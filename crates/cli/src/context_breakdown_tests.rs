//! Counting, with a simple measure: one token per character, ten per image, three per message.

use throughline_transcript::{DecodeOptions, decode};

use super::*;

struct Plain;

impl MeasureTokens for Plain {
    fn text(&self, text: &str) -> u64 {
        characters(text)
    }

    fn system(&self, json: &str) -> u64 {
        characters(json)
    }

    fn tools(&self, json: &str) -> u64 {
        characters(json)
    }

    fn image(&self, _block: &str) -> u64 {
        10
    }

    fn message(&self, message: &Message) -> u64 {
        message.parts().iter().map(|part| part_tokens(message, part)).sum::<u64>() + 3
    }
}

fn part_tokens(message: &Message, part: &Part) -> u64 {
    match part {
        Part::Text(string) => characters(&message.str(*string)),
        Part::Image { .. } => 10,
        Part::ToolCall { name, arguments, .. } => {
            characters(&message.str(*name)) + characters(&message.arguments_text(*arguments))
        }
        Part::ToolResult { content, .. } => content.iter().map(|part| part_tokens(message, part)).sum(),
        Part::Reasoning { block, .. } | Part::Opaque { block, .. } => characters(message.raw(*block)),
    }
}

fn breakdown(json: &str, top: usize) -> ContextBreakdown {
    let transcript = decode(json.as_bytes().to_vec(), &DecodeOptions::default()).unwrap();
    let groups = Groups::of(&transcript.messages);
    ContextBreakdown::of(&transcript, &groups, &Plain, top)
}

const TALK: &str = r#"{"system":"be brief","tools":[{"name":"ls"}],"messages":[
  {"role":"user","content":"häng"},
  {"role":"assistant","content":[{"type":"text","text":"ok"},
    {"type":"tool_use","id":"a","name":"ls","input":{"p":1}},
    {"type":"tool_use","id":"b","name":"cat","input":{}}]},
  {"role":"user","content":[
    {"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one"},{"type":"image","source":{}}]},
    {"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no such file"}]},
  {"role":"user","content":"<system-reminder>x</system-reminder>"}
]}"#;

#[test]
fn kinds_roles_and_sizes_add_up_to_the_total() {
    let breakdown = breakdown(TALK, 10);
    let by_kind: u64 = breakdown.kinds.values().map(|tally| tally.tokens).sum();
    let preamble = breakdown.kinds[&ContentKind::SystemPrompt].tokens
        + breakdown.kinds[&ContentKind::ToolSchemas].tokens;
    assert_eq!(by_kind, breakdown.total_tokens);
    assert_eq!(breakdown.sizes.iter().sum::<u64>() + preamble, breakdown.total_tokens);
    assert_eq!(
        breakdown.roles.values().map(|tally| tally.tokens).sum::<u64>() + preamble,
        breakdown.total_tokens
    );
    assert_eq!(breakdown.kinds[&ContentKind::Framing], KindTally { items: 4, characters: 0, tokens: 12 });
    assert_eq!(breakdown.kinds[&ContentKind::HumanText], KindTally { items: 1, characters: 4, tokens: 4 });
    assert_eq!(breakdown.kinds[&ContentKind::MachineText].items, 1);
    assert_eq!(breakdown.kinds[&ContentKind::Images].tokens, 10);
}

#[test]
fn results_belong_to_the_tool_that_was_called() {
    let breakdown = breakdown(TALK, 10);
    let cat = breakdown.tools.iter().find(|tool| tool.name == "cat").unwrap();
    assert_eq!((cat.calls.items, cat.results.items, cat.failed), (1, 1, 1));
    let ls = breakdown.tools.iter().find(|tool| tool.name == "ls").unwrap();
    assert_eq!((ls.failed, ls.results.tokens, ls.largest_result_tokens), (0, 13, 13));
    assert_eq!(breakdown.tools[0].name, "ls", "the largest comes first");
}

#[test]
fn groups_are_tallied_by_kind() {
    let breakdown = breakdown(TALK, 10);
    let step = breakdown.groups.iter().find(|group| group.kind == "step").unwrap();
    assert_eq!((step.groups, step.messages, step.largest), (1, 2, (1, 3)));
}

#[test]
fn the_largest_messages_are_named_with_their_tools() {
    let breakdown = breakdown(TALK, 1);
    assert_eq!(breakdown.largest.len(), 1);
    let largest = &breakdown.largest[0];
    assert_eq!(largest.message, 3);
    let all = super::tests::breakdown(TALK, 9).largest;
    let results = all.iter().find(|large| large.message == 2).unwrap();
    assert_eq!(results.tools, ["ls", "cat"]);
    assert_eq!(results.glimpse, "one");
}

#[test]
fn a_result_without_a_call_is_counted_too() {
    let breakdown = breakdown(
        r#"[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"q","content":"lost"}]"#,
        3,
    );
    assert_eq!(breakdown.tools[0].name, "(no call)");
    assert_eq!(breakdown.tools[0].results.characters, 4);
}
