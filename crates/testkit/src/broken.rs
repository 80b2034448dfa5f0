//! Lists that a provider refuses, each with one thing wrong and the rule it breaks.

use proptest::prelude::any;
use proptest::strategy::Strategy;
use throughline_transcript::{
    Groups, Message, Role, ViolationKind, WireFormat, text_message, tool_result_stub,
};

use crate::list::GeneratedList;
use crate::plan::ConversationOptions;
use crate::rng::Rng;
use crate::strategy::conversation_with;

/// What was done to a good list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A result was put in that no call asked for.
    OrphanResult,
    /// The results of a step were moved before the calls.
    ResultsBeforeCalls,
    /// The results of a step stand twice.
    ResultsTwice,
    /// The results of a step are gone although the conversation goes on.
    ResultsMissing,
    /// A step's calls stand twice before their results.
    CallsTwice,
    /// The conversation opens with the assistant.
    OpensWithAssistant,
    /// A message of an unknown role was put in.
    UnknownRole,
    /// A user message without content was put in.
    EmptyUser,
}

impl Fault {
    /// All of them.
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

    /// The rule that such a list breaks; it may break others besides.
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

/// A list with something wrong.
#[derive(Clone, Debug)]
pub struct BrokenList {
    /// The list.
    pub list: GeneratedList,
    /// What is wrong with it.
    pub fault: Fault,
}

/// Lists of one wire with one fault each.
pub fn broken_conversation(wire_format: WireFormat) -> impl Strategy<Value = BrokenList> {
    let good = conversation_with(ConversationOptions::new(wire_format).at_most_units(40));
    (good, any::<u64>()).prop_map(|(list, seed)| break_list(&list, seed))
}

/// Breaks a good list. Where it has no step that the chosen fault could be done to, an orphan is put in.
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

/// A step with results: where its calls begin, where its results begin and where it ends.
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
