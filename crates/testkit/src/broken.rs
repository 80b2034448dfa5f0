//! Lists that a provider refuses, each with one fault and the rule it violates.

use proptest::prelude::any;
use proptest::strategy::Strategy;
use throughline_transcript::{
    Groups, Message, Role, ViolationKind, WireFormat, text_message, tool_result_stub,
};

use crate::list::GeneratedList;
use crate::plan::ConversationOptions;
use crate::rng::Rng;
use crate::strategy::conversation_with;

/// A fault in an otherwise valid list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A result without a call was inserted.
    OrphanResult,
    /// The results of a step were moved before its calls.
    ResultsBeforeCalls,
    /// The results of a step occur twice.
    ResultsTwice,
    /// The results of a step are missing, but the conversation continues.
    ResultsMissing,
    /// The calls of a step occur twice before their results.
    CallsTwice,
    /// The conversation begins with the assistant.
    OpensWithAssistant,
    /// A message of an unknown role was inserted.
    UnknownRole,
    /// A user message without content was inserted.
    EmptyUser,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 8] = [
        Self::OrphanResult,
        Self::ResultsBeforeCalls,
        Self::ResultsTwice,
        Self::ResultsMissing,
        Self::CallsTwice,
        Self::OpensWithAssistant,
        Self::UnknownRole,
        Self::EmptyUser,
    ];

    /// The rule that such a list violates; it may violate others as well.
    #[must_use]
    pub fn violation(self) -> ViolationKind {
        match self {
            Self::OrphanResult => ViolationKind::ResultWithoutCall,
            Self::ResultsBeforeCalls | Self::ResultsTwice => ViolationKind::ResultBeforeCall,
            Self::ResultsMissing => ViolationKind::CallWithoutResult,
            Self::CallsTwice => ViolationKind::DuplicateCallId,
            Self::OpensWithAssistant => ViolationKind::LeadingRole,
            Self::UnknownRole => ViolationKind::UnknownRole,
            Self::EmptyUser => ViolationKind::EmptyMessage,
        }
    }
}

/// A list with a fault.
#[derive(Clone, Debug)]
pub struct BrokenList {
    /// The list.
    pub list: GeneratedList,
    /// The fault.
    pub fault: Fault,
}

/// A strategy of lists in one wire format, with one fault each.
pub fn broken_conversation(wire_format: WireFormat) -> impl Strategy<Value = BrokenList> {
    let good = conversation_with(ConversationOptions::new(wire_format).at_most_units(40));
    (good, any::<u64>()).prop_map(|(list, seed)| break_list(&list, seed))
}

/// Adds a fault to a valid list. If no step is suitable for the chosen fault, an orphaned result is inserted.
#[must_use]
pub fn break_list(good: &GeneratedList, seed: u64) -> BrokenList {
    let mut rng = Rng::new(seed);
    let fault = Fault::ALL[rng.below(Fault::ALL.len())];
    let messages = good.messages();
    let (fault, json) = apply(fault, good, &messages, &mut rng).unwrap_or_else(|| {
        let mut json = good.json.clone();
        json.insert(rng.below(json.len() + 1), orphan(good.wire_format));
        (Fault::OrphanResult, json)
    });
    BrokenList { list: GeneratedList { json, summary_at: None, ..good.clone() }, fault }
}

fn apply(
    fault: Fault,
    good: &GeneratedList,
    messages: &[Message],
    rng: &mut Rng,
) -> Option<(Fault, Vec<String>)> {
    let mut json = good.json.clone();
    match fault {
        Fault::OrphanResult => return None,
        Fault::OpensWithAssistant => {
            json.insert(0, text_message(good.wire_format, Role::Assistant, "I begin"));
        }
        Fault::UnknownRole => {
            let at = rng.below(json.len() + 1);
            json.insert(at, r#"{"role":"narrator","content":"meanwhile"}"#.to_owned());
        }
        Fault::EmptyUser => {
            let at = rng.below(json.len() + 1);
            json.insert(at, r#"{"role":"user","content":[]}"#.to_owned());
        }
        _ => {
            let (calls, results, end) = some_step(messages, rng)?;
            match fault {
                Fault::ResultsBeforeCalls => {
                    let moved: Vec<String> = json.drain(results..end).collect();
                    json.splice(calls..calls, moved);
                }
                Fault::ResultsTwice => {
                    let again = json.get(results..end)?.to_vec();
                    json.splice(end..end, again);
                }
                Fault::ResultsMissing => {
                    json.drain(results..end);
                    json.insert(results, text_message(good.wire_format, Role::User, "go on"));
                }
                _ => {
                    let again = json.get(calls..results)?.to_vec();
                    json.splice(results..results, again);
                }
            }
        }
    }
    Some((fault, json))
}

/// A random step with results: the start of its calls, the start of its results, and its end.
fn some_step(messages: &[Message], rng: &mut Rng) -> Option<(usize, usize, usize)> {
    let groups = Groups::of(messages);
    let steps: Vec<(usize, usize, usize)> = groups
        .as_slice()
        .iter()
        .filter_map(|group| {
            let first_call = (group.start..group.end).find(|&at| messages[at].has_calls())?;
            let first_result = (group.start..group.end).find(|&at| messages[at].has_results())?;
            Some((first_call, first_result, group.end))
        })
        .collect();
    steps.get(rng.below(steps.len())).copied()
}

fn orphan(wire_format: WireFormat) -> String {
    let stub = tool_result_stub(wire_format, "call_nobody_made", "lost");
    match wire_format {
        WireFormat::Anthropic => format!(r#"{{"role":"user","content":[{stub}]}}"#),
        WireFormat::Chat | WireFormat::Responses => stub,
    }
}
