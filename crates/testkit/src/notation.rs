//! Conversations as pictures: one letter per message, so that dozens of cases fit on a screen.
//!
//! | letter | message |
//! |---|---|
//! | `s` `d` | system, developer |
//! | `u` | a person |
//! | `m` | a program in the user's name |
//! | `a` | an answer in words |
//! | `e` | an empty answer |
//! | `r` | reasoning (an item of its own on the Responses wire, otherwise an answer with reasoning) |
//! | `A` | an answer with tool calls: one, or as many as a digit after it says |
//! | `T` | results: of the next waiting call, or (Anthropic) of all that wait |
//! | `H` | Anthropic only: results of all waiting calls, followed by words of a person |
//! | `X` | a result that no call asked for |
//! | `o` | an item we do not know |

use throughline_transcript::{
    GroupKind, Groups, Message, Part, Role, WireFormat, text_message, tool_result_stub,
};

use crate::list::GeneratedList;

/// Writes the list of a picture. Blanks and brackets are ignored, so that a picture may mark positions.
///
/// # Panics
///
/// On an unknown letter, which is a mistake in the test.
#[must_use]
#[expect(clippy::panic, reason = "a picture that cannot be read has to fail its test")]
pub fn from_picture(wire_format: WireFormat, picture: &str) -> GeneratedList {
    let mut json: Vec<String> = Vec::new();
    let mut waiting: Vec<String> = Vec::new();
    let mut letters = picture.chars().filter(|c| !c.is_whitespace() && !"[]|.".contains(*c)).peekable();
    let mut calls_made = 0;
    while let Some(letter) = letters.next() {
        let index = json.len();
        let text = |role, what: &str| text_message(wire_format, role, &format!("{what} {index}"));
        let message = match letter {
            's' => text(Role::System, "instructions"),
            'd' => text(Role::Developer, "instructions"),
            'u' => text(Role::User, "request"),
            'm' => text_message(wire_format, Role::User, "<system-reminder>note</system-reminder>"),
            'a' => text(Role::Assistant, "answer"),
            'e' => empty_answer(wire_format),
            'r' => reasoning(wire_format, index),
            'o' => r#"{"type":"x_unknown","data":1}"#.to_owned(),
            'A' => {
                let digit = letters.peek().and_then(|c| c.to_digit(10)).inspect(|_| {
                    letters.next();
                });
                let count = digit.unwrap_or(1) as usize;
                let ids: Vec<String> = (0..count).map(|n| format!("call_{}", calls_made + n)).collect();
                calls_made += count;
                let written = calls(wire_format, &ids);
                waiting.extend(ids);
                json.extend(written);
                continue;
            }
            'T' | 'H' if wire_format == WireFormat::Anthropic => {
                let mut blocks: Vec<String> =
                    waiting.drain(..).map(|id| tool_result_stub(wire_format, &id, "result")).collect();
                if letter == 'H' {
                    blocks.push(r#"{"type":"text","text":"and also this"}"#.to_owned());
                }
                format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))
            }
            'T' => {
                let id = if waiting.is_empty() { "none_waits".to_owned() } else { waiting.remove(0) };
                tool_result_stub(wire_format, &id, "result")
            }
            'X' => {
                let stub = tool_result_stub(wire_format, "nobody_asked", "result");
                if wire_format == WireFormat::Anthropic {
                    format!(r#"{{"role":"user","content":[{stub}]}}"#)
                } else {
                    stub
                }
            }
            other => panic!("{other:?} means nothing in a picture"),
        };
        json.push(message);
    }
    GeneratedList { open_calls: waiting.len(), ..GeneratedList::of(wire_format, json) }
}

fn empty_answer(wire_format: WireFormat) -> String {
    match wire_format {
        WireFormat::Responses => r#"{"type":"message","role":"assistant","content":[]}"#,
        WireFormat::Chat | WireFormat::Anthropic => r#"{"role":"assistant","content":""}"#,
    }
    .to_owned()
}

fn reasoning(wire_format: WireFormat, index: usize) -> String {
    match wire_format {
        WireFormat::Chat => {
            format!(r#"{{"role":"assistant","content":"answer {index}","reasoning_content":"thought"}}"#)
        }
        WireFormat::Responses => format!(r#"{{"type":"reasoning","id":"rs_{index}","summary":[]}}"#),
        WireFormat::Anthropic => format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"thought","signature":"c2ln"}},{{"type":"text","text":"answer {index}"}}]}}"#
        ),
    }
}

/// One message with all calls, or (Responses) one item for each.
fn calls(wire_format: WireFormat, ids: &[String]) -> Vec<String> {
    let each = ids.iter().map(|id| match wire_format {
        WireFormat::Chat => {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"terminal","arguments":"{{}}"}}}}"#
            )
        }
        WireFormat::Responses => {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"shell","arguments":"{{}}"}}"#)
        }
        WireFormat::Anthropic => format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}"#),
    });
    match wire_format {
        WireFormat::Responses => each.collect(),
        WireFormat::Chat => {
            let listed = each.collect::<Vec<_>>().join(",");
            vec![format!(r#"{{"role":"assistant","content":null,"tool_calls":[{listed}]}}"#)]
        }
        WireFormat::Anthropic => {
            let listed = each.collect::<Vec<_>>().join(",");
            vec![format!(r#"{{"role":"assistant","content":[{listed}]}}"#)]
        }
    }
}

/// The picture of a list, in the letters of [`from_picture`].
#[must_use]
pub fn picture(messages: &[Message]) -> String {
    let groups = Groups::of(messages);
    let mut out = String::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let orphan = groups.orphan_results(index) > 0;
        out.push(match message.role() {
            Role::System => 's',
            Role::Developer => 'd',
            Role::User | Role::Tool if orphan => 'X',
            Role::User if message.has_results() && message.is_human() => 'H',
            Role::User if message.has_results() => 'T',
            Role::User if message.is_human() => 'u',
            Role::User => 'm',
            Role::Assistant if message.has_calls() => 'A',
            Role::Assistant if message.parts().iter().any(|p| matches!(p, Part::Reasoning { .. })) => 'r',
            Role::Assistant if message.text().is_empty() && !has_opaque(message) => 'e',
            Role::Assistant => 'a',
            Role::Tool => 'T',
            Role::Other => 'o',
        });
        let calls = message.calls().count();
        if calls > 1 {
            out.push(char::from_digit(u32::try_from(calls).unwrap_or(0), 10).unwrap_or('+'));
        }
    }
    out
}

fn has_opaque(message: &Message) -> bool {
    message.parts().iter().any(|part| matches!(part, Part::Opaque { .. } | Part::Image { .. }))
}

/// The groups of a list as a picture, separated by bars: `s|u|ATT|a`.
#[must_use]
pub fn group_picture(messages: &[Message]) -> String {
    let groups = Groups::of(messages);
    let each = groups.as_slice().iter().map(|group| picture_of_slice(messages, group.start, group.end));
    each.collect::<Vec<_>>().join("|")
}

fn picture_of_slice(messages: &[Message], start: usize, end: usize) -> String {
    picture(messages.get(start..end).unwrap_or_default())
}

/// The kinds of groups, one letter each: instructions `i`, human `h`, machine `m`, step `s`, other `o`.
#[must_use]
pub fn group_kinds(messages: &[Message]) -> String {
    let letter = |kind| match kind {
        GroupKind::Instructions => 'i',
        GroupKind::Human => 'h',
        GroupKind::Machine => 'm',
        GroupKind::Step => 's',
        GroupKind::Other => 'o',
    };
    Groups::of(messages).as_slice().iter().map(|group| letter(group.kind)).collect()
}
