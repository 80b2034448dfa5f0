//! Readers of conversations: documents, messages, the two session logs with what they know, and usage.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use throughline_tokens::{PriceBasis, PricedCall, UsageReading};
use throughline_transcript::{
    CutPoints, CutRule, DecodeOptions, Groups, Message, Part, Role, SharedText, Source, Transcript,
    Violation, WireFormat, WireFormatChoice, decode_message, decode_message_text,
};

/// Any bytes as a document: read in every wire or refused; what was read goes back byte for byte.
pub fn decode(data: &[u8]) {
    let choices = [WireFormatChoice::Detect].into_iter().chain(WireFormat::ALL.map(WireFormatChoice::Forced));
    for wire_format in choices {
        for (pick, since_compaction) in [(None, false), (Some(1), true)] {
            let options = DecodeOptions { wire_format, pick, since_compaction };
            let Ok(transcript) = throughline_transcript::Transcript::decode(data.to_vec(), &options) else {
                continue;
            };
            check(&transcript);
            let mut out = Vec::new();
            transcript.write_unchanged(&mut out);
            let is_whole = pick.is_none() && matches!(transcript.source, Source::List | Source::Body);
            assert!(!is_whole || out == data, "a document that was not changed is written as it was read");
            if let WireFormatChoice::Forced(forced) = wire_format {
                assert_eq!(transcript.wire_format, forced);
            }
        }
    }
}

/// Any text as one message: read or refused, checked or not; its bytes stay.
pub fn message(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // Text that nobody checked is read as far as it goes.
    if let Some(unchecked) = decode_message(SharedText::new(text.to_owned())) {
        walk(&unchecked);
    }
    let Ok(message) = decode_message_text(text.to_owned()) else { return };
    assert_eq!(message.json(), text);
    walk(&message);
    let mut list = Vec::new();
    Transcript::write_list([message.json(), message.json()], &mut list);
    let Ok(read) = throughline_transcript::Transcript::decode(list, &DecodeOptions::default()) else {
        return;
    };
    for again in &read.messages {
        assert_eq!(again.json(), text.trim_matches([' ', '\n', '\r', '\t']));
        assert_eq!(again.role(), message.role());
        assert_eq!(again.parts().len(), message.parts().len());
    }
}

/// Any bytes as the lines of a Claude Code log: what comes out is messages of the Anthropic wire.
pub fn claude_log(data: &[u8]) {
    let transcript = log("{\"type\":\"summary\",\"leafUuid\":\"x\"}\n", data);
    if let Some(transcript) = transcript {
        assert_eq!(transcript.source, Source::ClaudeCodeLog);
        assert!(transcript.messages.iter().all(|m| matches!(m.role(), Role::User | Role::Assistant)));
    }
}

/// Any bytes as the lines of a Codex rollout log: what comes out is items of the Responses wire.
pub fn codex_log(data: &[u8]) {
    let transcript = log("{\"type\":\"session_meta\",\"payload\":{}}\n", data);
    if let Some(transcript) = transcript {
        assert_eq!(transcript.source, Source::CodexLog);
    }
}

/// Reads the lines after a first one that says which log it is.
fn log(first: &str, data: &[u8]) -> Option<Transcript> {
    let mut bytes = first.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    let options = DecodeOptions { since_compaction: true, ..DecodeOptions::default() };
    if let Ok(since) = throughline_transcript::Transcript::decode(bytes.clone(), &options) {
        check(&since);
        check_facts(&since);
    }
    let transcript = throughline_transcript::Transcript::decode(bytes, &DecodeOptions::default()).ok()?;
    check(&transcript);
    for message in &transcript.messages {
        assert!(serde_json::from_str::<IgnoredAny>(message.json()).is_ok(), "{}", message.json());
    }
    check_facts(&transcript);
    for agent in transcript.sub_agents() {
        check(&agent.transcript);
        check_facts(&agent.transcript);
        assert!(!agent.transcript.messages.is_empty() && agent.after_messages <= transcript.messages.len());
    }
    for note in &transcript.notes {
        assert!(note.line.is_none_or(|line| line > 1), "the first line is good: {note:?}");
    }
    Some(transcript)
}

/// What a log knows stands beside its messages; every usage object can be read or is refused.
fn check_facts(transcript: &Transcript) {
    let Some(facts) = transcript.log_facts() else { return };
    let count = transcript.messages.len();
    assert_eq!(facts.messages.len(), count);
    assert!(facts.compactions.iter().all(|compaction| compaction.message <= count));
    let mut keys = HashSet::new();
    for call in &facts.calls {
        assert!(call.message.is_none_or(|message| message < count), "{call:?}");
        keys.insert(&call.key);
        usage(call.usage.as_str().as_bytes());
    }
    if transcript.source == Source::ClaudeCodeLog {
        assert_eq!(keys.len(), facts.calls.len(), "an answer is one call");
    }
}

/// Any text as a report of usage: what is read adds up and can be priced without a guess.
pub fn usage(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(reading) = UsageReading::parse(text) else { return };
    let usage = reading.usage;
    assert!(usage.reasoning <= usage.output && reading.cache_write_1h <= usage.cache_write);
    assert_eq!(usage.total(), usage.prompt().saturating_add(usage.output));
    for model in ["claude-opus-4-6", "gpt-5.4", text] {
        let call =
            PricedCall { model, provider: "", at_ms: 0, usage, cache_write_1h: reading.cache_write_1h };
        let cost = call.list_cost();
        let is_known = matches!(cost.basis, PriceBasis::List(_) | PriceBasis::Included);
        assert_eq!((cost.micro_usd.is_some(), cost.uncached_micro_usd.is_some()), (is_known, is_known));
    }
}

/// What holds for every conversation.
fn check(transcript: &Transcript) {
    let messages = &transcript.messages;
    for message in messages {
        walk(message);
    }
    let groups = Groups::of(messages);
    let mut next = 0;
    for group in groups.as_slice() {
        assert!(group.start == next && group.end > group.start);
        next = group.end;
    }
    assert_eq!(next, messages.len());
    let rules: [CutRule; 3] = [CutRule::Pairing, CutRule::GroupAtomicity, CutRule::LeadingRole];
    for cut in CutPoints::of(messages, &groups, &rules).iter() {
        assert!((0..cut).all(|before| groups.reach(before) <= cut), "cut {cut} parts a pair");
    }
    for violation in Violation::find(transcript.wire_format, messages, &groups) {
        assert!(violation.message < messages.len());
    }
}

/// Looks at everything a message tells.
fn walk(message: &Message) {
    let _ = (message.text(), message.human_words(), message.is_machine_written(), message.content_hash());
    for part in message.parts() {
        walk_part(message, part);
    }
}

fn walk_part(message: &Message, part: &Part) {
    match part {
        Part::Text(text) => drop(message.str(*text)),
        Part::Reasoning { text, block } => {
            let _ = (text.map(|text| message.str(text)), message.raw(*block));
        }
        Part::ToolCall { id, name, arguments, block } => {
            let _ = (
                message.str(*id),
                message.str(*name),
                message.arguments_text(*arguments),
                message.raw(*block),
            );
        }
        Part::ToolResult { call_id, content, value, .. } => {
            let _ = (message.str(*call_id), message.result_text(content), message.raw(*value));
            content.iter().for_each(|inner| walk_part(message, inner));
        }
        Part::Image { block } | Part::Opaque { block, .. } => {
            let _ = message.raw(*block);
        }
    }
}
