//! Groups of messages: everything that one model answer produced, with all results of its calls.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::JsonStr;
use crate::message::{Message, Role};

/// The kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// System or developer instructions.
    Instructions,
    /// A person's message.
    Human,
    /// A user message that a program wrote.
    Machine,
    /// A model answer with the results of its calls.
    Step,
    /// Anything else, such as a result without a call.
    Other,
}

/// A run of messages that is never split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// First message.
    pub start: usize,
    /// One past the last message.
    pub end: usize,
    /// Its kind.
    pub kind: GroupKind,
    /// Calls in it that have no result yet.
    pub open_calls: usize,
}

/// A conversation split into groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
    /// For each message, the end (exclusive) of the result messages of its calls; used to keep pairs together.
    reach: Vec<usize>,
    /// For each message, the number of its calls without a result.
    unanswered: Vec<usize>,
    /// Results without a call before them: the message and the id they name, in order.
    orphans: Vec<(usize, JsonStr)>,
    /// Calls whose id is already used by an open call: the message and the id, in order.
    clashes: Vec<(usize, JsonStr)>,
}

impl Groups {
    /// Finds the groups of a list in one pass over its calls and results.
    ///
    /// ```
    /// use throughline_transcript::{DecodeOptions, Groups, Transcript};
    ///
    /// let list = br#"[{"role":"user","content":"Which port?"},
    ///   {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"grep","arguments":"{}"}}]},
    ///   {"role":"tool","tool_call_id":"c1","content":"8080"},
    ///   {"role":"assistant","content":"8080."}]"#;
    /// let messages = Transcript::decode(list.to_vec(), &DecodeOptions::default())?.messages;
    /// let groups = Groups::of(&messages);
    /// let call = groups.containing(1).map(|group| (group.start, group.end));
    /// assert_eq!(call, Some((1, 3)), "a call and its result are never parted");
    /// # Ok::<(), throughline_transcript::DecodeError>(())
    /// ```
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        let count = messages.len();
        let mut found = Self {
            groups: Vec::new(),
            reach: (1..=count).collect(),
            unanswered: vec![0; count],
            orphans: Vec::new(),
            clashes: Vec::new(),
        };
        found.pair(messages);
        let mut at = 0;
        while at < count {
            let group = found.group_from(messages, at);
            at = group.end;
            found.groups.push(group);
        }
        found
    }

    /// Matches every result with the newest unanswered call of its id before it.
    fn pair(&mut self, messages: &[Message]) {
        let mut open: HashMap<Cow<'_, str>, Vec<usize>> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            for id in message.answered() {
                let waiting = open.get_mut(&id.text(message.json())).and_then(Vec::pop);
                match waiting {
                    Some(call) => {
                        self.reach[call] = self.reach[call].max(index + 1);
                        self.unanswered[call] -= 1;
                    }
                    None => self.orphans.push((index, id)),
                }
            }
            for (id, _, _) in message.calls() {
                let waiting = open.entry(id.text(message.json())).or_default();
                if !waiting.is_empty() {
                    self.clashes.push((index, id));
                }
                waiting.push(index);
                self.unanswered[index] += 1;
            }
        }
    }

    fn group_from(&self, messages: &[Message], start: usize) -> Group {
        let first = &messages[start];
        let kind = match first.role() {
            Role::System | Role::Developer => GroupKind::Instructions,
            Role::Assistant => GroupKind::Step,
            Role::User if first.has_results() => GroupKind::Other,
            Role::User if first.is_human() => GroupKind::Human,
            Role::User => GroupKind::Machine,
            Role::Tool | Role::Other => GroupKind::Other,
        };
        let mut end = self.reach[start];
        if kind == GroupKind::Step {
            // In the Responses format an answer is a run of items: reasoning, text, calls. It ends where results begin.
            let mut last = start;
            while end == last + 1 && end < messages.len() {
                let (previous, next) = (&messages[last], &messages[end]);
                let same_answer = previous.form.is_item() || next.form.is_item();
                if next.role() != Role::Assistant || !same_answer {
                    break;
                }
                last = end;
                end = self.reach[end];
            }
        }
        // The messages added may themselves have results further on.
        let mut scanned = start;
        while scanned < end {
            end = end.max(self.reach[scanned]);
            scanned += 1;
        }
        let open_calls = self.unanswered[start..end].iter().sum();
        Group { start, end, kind, open_calls }
    }

    /// The groups in order; together they cover every message once.
    #[must_use]
    pub fn as_slice(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the number of results in a message that answer no call before them.
    #[must_use]
    pub fn orphan_results(&self, message: usize) -> usize {
        self.orphans
            .iter()
            .skip(self.orphans.partition_point(|(at, _)| *at < message))
            .take_while(|(at, _)| *at == message)
            .count()
    }

    /// Returns every result that answers no call before it: its message and the id it names, in order.
    #[must_use]
    pub fn orphans(&self) -> &[(usize, JsonStr)] {
        &self.orphans
    }

    /// Returns every call whose id was already used by an open call: the message and the id, in order.
    #[must_use]
    pub fn clashing_calls(&self) -> &[(usize, JsonStr)] {
        &self.clashes
    }

    /// Returns the number of calls in a message without a result.
    #[must_use]
    pub fn unanswered_calls(&self, message: usize) -> usize {
        self.unanswered.get(message).copied().unwrap_or(0)
    }

    /// Returns one past the last message that answers a call of this message.
    #[must_use]
    pub fn reach(&self, message: usize) -> usize {
        self.reach.get(message).copied().unwrap_or(message + 1)
    }

    /// The group a message belongs to.
    #[must_use]
    pub fn containing(&self, message: usize) -> Option<Group> {
        let at = self.groups.partition_point(|group| group.end <= message);
        self.groups.get(at).copied()
    }
}
