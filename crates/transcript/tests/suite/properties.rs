//! What holds for every document and every list: nothing panics, untouched bytes come back, groups cover the list once,
//! legal cuts part no pair, and a log gives back the conversation it recorded.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of a test fail it by panicking")]

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use throughline_testkit::{
    ConversationOptions, GeneratedList, Rng, broken_conversation, claude_code_log, codex_log, conversation,
    conversation_with, mutate,
};
use throughline_transcript::{
    CutPoints, CutRule, DecodeOptions, Groups, Message, Part, Role, Source, Span, Transcript, Violation,
    WireFormat, WireFormatChoice, decode_message_text,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(throughline_testkit::cases(cases))
    }
}

/// Runs a property over lists of each wire.
fn for_every_wire<S: Strategy>(
    cases: u32,
    lists: impl Fn(WireFormat) -> S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    for wire_format in WireFormat::ALL {
        if let Err(error) = TestRunner::new(config(cases)).run(&lists(wire_format), &property) {
            panic!("{wire_format}: {error}");
        }
    }
}

fn read(text: &str) -> Transcript {
    Transcript::decode(text.as_bytes().to_vec(), &DecodeOptions::default()).expect("it is a conversation")
}

fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    transcript.write_unchanged(&mut out);
    String::from_utf8(out).expect("what was text stays text")
}

#[test]
fn every_form_of_a_list_goes_back_byte_for_byte() {
    for_every_wire(1_500, conversation, |list| {
        let mut forms = vec![list.document(), list.body("be \"brief\"\n")];
        if !list.is_empty() {
            forms.push(list.lines());
            forms.push(list.lines().replace('\n', "\r\n"));
        }
        for document in forms {
            let transcript = read(&document);
            let own: Vec<&str> = transcript.messages.iter().map(Message::json).collect();
            prop_assert_eq!(&own, &list.json);
            prop_assert_eq!(written(&transcript), document);
        }
        Ok(())
    });
}

#[test]
fn the_wire_is_recognised() {
    for_every_wire(1_500, conversation, |list| {
        let transcript = read(&list.document());
        if transcript.messages.iter().any(Message::has_calls) {
            prop_assert_eq!(transcript.wire_format, list.wire_format);
        }
        let in_a_body = read(&list.body("s"));
        if list.wire_format != WireFormat::Chat {
            prop_assert_eq!(in_a_body.wire_format, list.wire_format);
        }
        let forced = DecodeOptions {
            wire_format: WireFormatChoice::Forced(list.wire_format),
            ..DecodeOptions::default()
        };
        let transcript = Transcript::decode(list.document().into_bytes(), &forced);
        prop_assert_eq!(transcript.map(|t| t.wire_format).map_err(|e| e.to_string()), Ok(list.wire_format));
        Ok(())
    });
}

#[test]
fn parts_lie_inside_their_message() {
    fn check(message: &Message, part: &Part) -> Result<(), TestCaseError> {
        let whole = |span: Span| -> Result<(), TestCaseError> {
            let raw = message.raw(span);
            prop_assert!(
                serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok() || span.is_empty(),
                "{raw}"
            );
            Ok(())
        };
        match part {
            Part::Text(text) => {
                if let Ok(by_serde) =
                    serde_json::from_str::<String>(&format!("\"{}\"", text.raw(message.json())))
                {
                    prop_assert_eq!(message.str(*text).into_owned(), by_serde);
                }
            }
            Part::Reasoning { block, .. } | Part::Image { block } | Part::Opaque { block, .. } => {
                whole(*block)?
            }
            Part::ToolCall { block, id, name, .. } => {
                whole(*block)?;
                prop_assert!(!id.span.is_empty() && !name.span.is_empty());
            }
            Part::ToolResult { value, content, .. } => {
                whole(*value)?;
                for inner in content {
                    check(message, inner)?;
                }
            }
        }
        Ok(())
    }
    for_every_wire(500, conversation, |list| {
        for message in list.messages() {
            for part in message.parts() {
                check(&message, part)?;
            }
        }
        Ok(())
    });
}

/// Pairs of messages with a call and its result, found in the simplest way: the newest open call of that id.
fn pairs(messages: &[Message]) -> Vec<(usize, usize)> {
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for id in message.answered() {
            if let Some(call) = open.get_mut(message.str(id).as_ref()).and_then(Vec::pop) {
                found.push((call, index));
            }
        }
        for (id, _, _) in message.calls() {
            open.entry(message.str(id).into_owned()).or_default().push(index);
        }
    }
    found
}

fn groups_cover_the_list_once(messages: &[Message]) -> Result<(), TestCaseError> {
    let groups = Groups::of(messages);
    let mut next = 0;
    for group in groups.as_slice() {
        prop_assert_eq!(group.start, next);
        prop_assert!(group.end > group.start);
        for message in group.start..group.end {
            prop_assert_eq!(groups.containing(message), Some(*group));
        }
        next = group.end;
    }
    prop_assert_eq!(next, messages.len());
    for (call, result) in pairs(messages) {
        prop_assert_eq!(groups.containing(call), groups.containing(result));
    }
    Ok(())
}

fn legal_cuts_part_nothing(messages: &[Message]) -> Result<(), TestCaseError> {
    let groups = Groups::of(messages);
    let pairing = CutPoints::of(messages, &groups, &[CutRule::Pairing]);
    for (call, result) in pairs(messages) {
        for cut in call + 1..=result {
            prop_assert!(
                !pairing.allows(cut),
                "cut {cut} parts the call of {call} from its result in {result}"
            );
        }
    }
    let all: [CutRule; 3] = [CutRule::Pairing, CutRule::GroupAtomicity, CutRule::LeadingRole];
    for cut in CutPoints::of(messages, &groups, &all).iter() {
        prop_assert!(pairing.allows(cut));
        prop_assert!(groups.as_slice().iter().all(|group| cut <= group.start || cut >= group.end));
    }
    Ok(())
}

#[test]
fn groups_and_cuts_of_good_lists() {
    let lists = |wire_format| conversation_with(ConversationOptions::new(wire_format).may_be_open());
    for_every_wire(1_500, lists, |list| {
        let messages = list.messages();
        groups_cover_the_list_once(&messages)?;
        legal_cuts_part_nothing(&messages)?;
        // A list that a provider accepts can be parted at every end of a group that a person's words follow.
        let groups = Groups::of(&messages);
        let cuts = CutPoints::of(
            &messages,
            &groups,
            &[CutRule::Pairing, CutRule::GroupAtomicity, CutRule::LeadingRole],
        );
        for group in groups.as_slice() {
            prop_assert!(cuts.allows(group.start), "no cut before message {}", group.start);
        }
        Ok(())
    });
}

#[test]
fn each_side_of_a_legal_cut_is_acceptable() {
    for_every_wire(400, conversation, |list| {
        let messages = list.messages();
        let cuts = CutPoints::of(
            &messages,
            &Groups::of(&messages),
            &[CutRule::Pairing, CutRule::GroupAtomicity, CutRule::LeadingRole],
        );
        let before_user = |cut: &usize| messages.get(*cut).is_none_or(|next| next.role() == Role::User);
        for cut in cuts.iter().filter(before_user) {
            let (head, tail) = messages.split_at(cut);
            for side in [head, tail] {
                let found = Violation::find(list.wire_format, side, &Groups::of(side));
                prop_assert!(found.is_empty(), "cut {cut}: {found:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn groups_and_cuts_of_broken_lists() {
    for_every_wire(800, broken_conversation, |broken| {
        let messages = broken.list.messages();
        groups_cover_the_list_once(&messages)?;
        legal_cuts_part_nothing(&messages)
    });
}

/// Role and content of a message with nothing but its meaning: blocks as raw text.
fn essence(message: &Message) -> (Role, Vec<String>) {
    let content = message.content_span().map(|span| message.raw(span)).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(content).unwrap_or_default();
    let blocks = match value {
        serde_json::Value::Array(blocks) => blocks.iter().map(ToString::to_string).collect(),
        other => vec![other.to_string()],
    };
    (message.role(), blocks)
}

#[test]
fn a_claude_code_log_gives_back_the_conversation() {
    let lists = (conversation(WireFormat::Anthropic), any::<u64>());
    let outcome = TestRunner::new(config(1_500)).run(&lists, |(list, seed)| {
        // Such logs know two roles. A lone surrogate cannot be compared as a value.
        let json: Vec<String> = list
            .json
            .iter()
            .filter(|json| !json.contains("\\ud800"))
            .filter(|json| decode_message_text((*json).clone()).is_ok_and(|m| m.role() != Role::System))
            .cloned()
            .collect();
        let list = GeneratedList::of(WireFormat::Anthropic, json);
        let messages = list.messages();
        if messages.is_empty()
            || !Violation::find(WireFormat::Anthropic, &messages, &Groups::of(&messages)).is_empty()
        {
            return Ok(());
        }
        let transcript = read(&claude_code_log(&list, seed));
        prop_assert_eq!(transcript.source, Source::ClaudeCodeLog);
        let recorded: Vec<_> = transcript.messages.iter().map(essence).collect();
        prop_assert_eq!(recorded, messages.iter().map(essence).collect::<Vec<_>>());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn a_codex_log_gives_back_the_conversation() {
    let lists = (conversation(WireFormat::Responses), any::<u64>());
    let outcome = TestRunner::new(config(1_500)).run(&lists, |(list, seed)| {
        let transcript = read(&codex_log(&list, seed));
        prop_assert_eq!(transcript.source, Source::CodexLog);
        let recorded: Vec<&str> = transcript.messages.iter().map(Message::json).collect();
        prop_assert_eq!(recorded, list.json.iter().map(String::as_str).collect::<Vec<_>>());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Any JSON value, with members of the names that readers look for.
fn any_json() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("role"),
        Just("content"),
        Just("type"),
        Just("messages"),
        Just("input"),
        Just("tool_calls"),
        Just("function"),
        Just("id"),
        Just("call_id"),
        Just("tool_use_id"),
        Just("output"),
        Just("summary"),
        Just("reasoning"),
        Just("text"),
        Just("payload"),
        Just("parentUuid"),
        Just("message"),
        Just("uuid"),
        Just("isCompactSummary"),
        Just("history"),
        Just("name"),
        Just("arguments"),
        Just("model"),
        Just("system"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"user\"".to_owned()),
        Just("\"assistant\"".to_owned()),
        Just("\"tool\"".to_owned()),
        Just("\"tool_result\"".to_owned()),
        Just("\"function_call\"".to_owned()),
        Just("\"text\"".to_owned()),
        Just("\"response_item\"".to_owned()),
        Just("\"compacted\"".to_owned()),
        Just("\"\\ud800\\n\"".to_owned()),
        Just("\"é\"".to_owned()),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((key.clone(), inner), 0..7).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Reads anything in every way there is; what can be read can be written, grouped and checked.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    let choices = [WireFormatChoice::Detect].into_iter().chain(WireFormat::ALL.map(WireFormatChoice::Forced));
    for wire_format in choices {
        for (pick, since_compaction) in [(None, false), (Some(1), true)] {
            let options = DecodeOptions { wire_format, pick, since_compaction };
            let Ok(transcript) = Transcript::decode(bytes.to_vec(), &options) else { continue };
            groups_cover_the_list_once(&transcript.messages)?;
            legal_cuts_part_nothing(&transcript.messages)?;
            let groups = Groups::of(&transcript.messages);
            let _ = Violation::find(transcript.wire_format, &transcript.messages, &groups);
            let mut out = Vec::new();
            transcript.write_unchanged(&mut out);
            if matches!(transcript.source, Source::List | Source::Body) && pick.is_none() {
                prop_assert_eq!(out.as_slice(), bytes);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn any_json_document_is_read_or_refused(document in any_json()) {
        survives(document.as_bytes())?;
    }

    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(any_json(), 0..5)) {
        survives(lines.join("\n").as_bytes())?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes)?;
    }
}

#[test]
fn altered_documents_are_read_or_refused() {
    let mut rng = Rng::new(1);
    for_every_wire(
        150,
        |wire_format| {
            (conversation_with(ConversationOptions::new(wire_format).at_most_units(8)), any::<u64>())
        },
        |(list, seed)| {
            let mut rng = Rng::new(seed);
            let log = match list.wire_format {
                WireFormat::Anthropic => claude_code_log(&list, seed),
                WireFormat::Responses => codex_log(&list, seed),
                WireFormat::Chat => list.lines(),
            };
            for document in [list.document(), list.body("s"), log] {
                for _ in 0..4 {
                    survives(&mutate(document.as_bytes(), &mut rng))?;
                }
            }
            Ok(())
        },
    );
    survives(&mutate(b"[]", &mut rng)).unwrap();
}
