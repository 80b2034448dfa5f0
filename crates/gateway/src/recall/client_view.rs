//! The forms in which a client has messages that contain calls of the recall tools, or their results.
//!
//! A client with tools of the same names repeats such messages unchanged. Otherwise the message may be missing from the client's list, or
//! appear in another form.

use std::borrow::Cow;
use std::collections::HashSet;

use throughline_transcript::{Message, Part, WireFormat, strip_injected};

use crate::lookup::message_key::ClientForm;
use crate::lookup::message_key::{
    MessageIdentity, MessageKey, identity_of, identity_of_parts, role_of, stable_content,
};
use crate::recall::RecallNames;

/// The separator between the texts of two rounds for clients that receive them as one text.
pub(crate) const BETWEEN_ROUNDS: &str = "\n\n";

/// Reads messages in order and computes the forms in which the client may send them.
pub(crate) struct Projection<'a> {
    names: &'a RecallNames,
    /// How a client receives the texts of several rounds.
    joint: TextJoin,
    /// The ids of calls that were hidden from the client.
    calls: HashSet<String>,
    /// Whether the next answer continues earlier rounds.
    goes_on: bool,
    /// The texts of those rounds.
    said: Vec<String>,
}

/// How a client receives the texts of several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextJoin {
    /// As one text, in Chat Completions.
    OneText,
    /// As parts of one message, in Anthropic Messages.
    OneMessage,
    /// As separate items, in Responses.
    Apart,
}

impl<'a> Projection<'a> {
    pub(crate) fn new(names: &'a RecallNames, wire: WireFormat) -> Self {
        let joint = match wire {
            WireFormat::Chat => TextJoin::OneText,
            WireFormat::Anthropic => TextJoin::OneMessage,
            WireFormat::Responses => TextJoin::Apart,
        };
        Self { names, joint, calls: HashSet::new(), goes_on: false, said: Vec::new() }
    }

    /// The keys of the next messages.
    pub(crate) fn keys(&mut self, messages: &[Message]) -> Vec<MessageKey> {
        let all = messages.iter().zip(self.seen(messages));
        all.map(|(message, seen)| MessageKey::of(message).seen_as(seen)).collect()
    }

    /// The client's forms of the next messages; `None` for messages that it has in full.
    pub(crate) fn seen(&mut self, messages: &[Message]) -> Vec<Option<ClientForm>> {
        let mut all: Vec<Option<ClientForm>> = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            let seen = self.seen_next(message);
            if self.joint == TextJoin::Apart && seen.is_some_and(|seen| seen.may_lack) && message.has_calls()
            {
                // Text before a call is a separate item. A client that never received the answer has none of its items.
                let said = messages.iter().zip(&mut all).take(at).rev();
                for (item, seen) in said.take_while(|(item, _)| role_of(item) == "assistant") {
                    let alone = identity_of(item);
                    seen.get_or_insert(ClientForm {
                        may_lack: true,
                        alone,
                        joined: alone,
                        as_one: [None; 2],
                    });
                }
            }
            all.push(seen);
        }
        all
    }

    fn seen_next(&mut self, message: &Message) -> Option<ClientForm> {
        let (mut own, mut client_messages) = (0, 0);
        for part in message.parts() {
            match part {
                Part::ToolCall { id, name, .. } if self.names.has(&message.str(*name)) => {
                    self.calls.insert(message.str(*id).into_owned());
                    own += 1;
                }
                Part::ToolResult { call_id, .. } if self.calls.contains(message.str(*call_id).as_ref()) => {
                    own += 1;
                }
                Part::ToolCall { id, .. } => {
                    // Some servers reuse the ids of earlier calls.
                    self.calls.remove(message.str(*id).as_ref());
                    client_messages += 1;
                }
                Part::ToolResult { .. } => client_messages += 1,
                Part::Text(_) | Part::Reasoning { .. } | Part::Image { .. } | Part::Opaque { .. } => {}
            }
        }
        if own == 0 && !self.goes_on {
            return None;
        }
        let is_answer = role_of(message) == "assistant";
        let alone = self.identity(message, &[]);
        let said = if is_answer { self.said.as_slice() } else { &[] };
        let joined = self.identity(message, said);
        let as_one = ["", BETWEEN_ROUNDS].map(|between| {
            let is_several = self.joint == TextJoin::OneMessage && !said.is_empty();
            is_several.then(|| self.identity_as_one(message, said, between)).flatten()
        });
        let goes_on = own > 0 && client_messages == 0;
        match (is_answer, goes_on) {
            (true, true) if self.joint != TextJoin::Apart => {
                self.goes_on = true;
                self.said.extend(texts(message));
            }
            (true, true) => {}
            // Hidden results do not end the answer that the rounds belong to.
            (false, true) => {}
            _ => {
                self.goes_on = false;
                self.said.clear();
            }
        }
        // A message with hidden results and human text stays, without the results.
        let may_lack = goes_on && (is_answer || alone.is_none());
        Some(ClientForm { may_lack, alone, joined, as_one })
    }

    /// The identity of a message whose texts are joined into one.
    fn identity_as_one(
        &self,
        message: &Message,
        before: &[String],
        between: &str,
    ) -> Option<MessageIdentity> {
        let texts: Vec<String> = before.iter().cloned().chain(texts(message)).collect();
        let text = texts.join(between);
        let mut parts = vec![("text", Cow::Owned(strip_injected(&text).trim().to_owned()))];
        let others = message.parts().iter().filter(|part| match part {
            Part::Text(_) => false,
            Part::ToolCall { name, .. } => !self.names.has(&message.str(*name)),
            _ => true,
        });
        parts.extend(others.filter_map(|part| stable_content(message, part)));
        identity_of_parts(message, &parts)
    }

    /// The identity of a message without hidden calls, with the text of earlier rounds before it.
    fn identity(&self, message: &Message, before: &[String]) -> Option<MessageIdentity> {
        let mut parts: Vec<(&str, Cow<'_, str>)> = Vec::new();
        let mut whole: Vec<String> = before.to_vec();
        let in_one = self.joint == TextJoin::OneText;
        if !in_one {
            let own = whole.drain(..).map(|text| strip_injected(&text).trim().to_owned());
            parts.extend(own.filter(|text| !text.is_empty()).map(|text| ("text", Cow::Owned(text))));
        }
        for part in message.parts() {
            match part {
                Part::Text(_) if in_one => {}
                Part::ToolCall { name, .. } if self.names.has(&message.str(*name)) => {}
                Part::ToolResult { call_id, .. } if self.calls.contains(message.str(*call_id).as_ref()) => {}
                part => parts.extend(stable_content(message, part)),
            }
        }
        if in_one {
            whole.extend(texts(message));
            let text = whole.join(BETWEEN_ROUNDS);
            let own = strip_injected(&text).trim();
            if !own.is_empty() {
                parts.insert(0, ("text", Cow::Owned(own.to_owned())));
            }
        }
        identity_of_parts(message, &parts)
    }
}

/// The texts of a message.
fn texts(message: &Message) -> impl Iterator<Item = String> + '_ {
    let texts = message.parts().iter().filter_map(|part| match part {
        Part::Text(string) => Some(message.str(*string).into_owned()),
        _ => None,
    });
    texts.filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "client_view_tests.rs"]
mod tests;
