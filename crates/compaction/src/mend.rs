//! Mends pairs that were broken before a compaction: results without a call, calls without a result, results that are
//! not next to their calls. It works on whole groups, which contain every pair, and leaves intact groups unchanged.

use std::borrow::Cow;
use std::ops::Range;

use throughline_transcript::{
    Group, Groups, Message, Part, RawJson, WireFormat, decode_message_text, tool_result_stub,
};

use crate::rendition::{Rendition, RenditionKind};
use crate::view::{Synthetic, ViewItem};

/// The repairs made by assembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Repairs {
    /// Results without a call that were left out.
    pub orphan_results: usize,
    /// Calls without a result that got a stub.
    pub stub_results: usize,
    /// Results that were not next to their call and were moved to it.
    pub moved_results: usize,
}

impl Repairs {
    /// The text of a result that is added for a call without one.
    pub const STUB_RESULT: &str = "[No result was recorded for this call]";
}

/// Mends a run of items with whole groups of the record, each message once and in order.
pub(crate) fn mend(
    wire_format: WireFormat,
    messages: &[Message],
    groups: &Groups,
    items: Vec<ViewItem>,
    repairs: &mut Repairs,
) -> Vec<ViewItem> {
    let mut out = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while let Some(first) = items.next() {
        let Some(group) = first.message().and_then(|index| groups.containing(index)) else {
            out.push(first);
            continue;
        };
        let mut shown = vec![first];
        while let Some(next) = items.next_if(|item| item.message().is_some_and(|index| index < group.end)) {
            shown.push(next);
        }
        let is_last = group.end == messages.len();
        if is_sound(wire_format, messages, groups, group, is_last) {
            out.append(&mut shown);
        } else {
            let mut mender = Mender::new(wire_format, messages, group, shown, is_last);
            mender.mend(&mut out);
            repairs.orphan_results += mender.repairs.orphan_results;
            repairs.stub_results += mender.repairs.stub_results;
            repairs.moved_results += mender.repairs.moved_results;
        }
    }
    out
}

/// Whether a provider would accept the calls and results of a group. Calls of the very last group may still be open.
fn is_sound(
    wire_format: WireFormat,
    messages: &[Message],
    groups: &Groups,
    group: Group,
    is_last: bool,
) -> bool {
    let range = group.start..group.end;
    let counted = range
        .clone()
        .all(|at| groups.orphan_results(at) == 0 && (is_last || groups.unanswered_calls(at) == 0));
    let clashes = groups.clashing_calls();
    let from = clashes.partition_point(|(at, _)| *at < group.start);
    let distinct = clashes.get(from).is_none_or(|(at, _)| *at >= group.end);
    counted && distinct && (wire_format == WireFormat::Responses || is_adjacent(wire_format, messages, range))
}

/// Whether nothing is between the calls of a group and their results.
fn is_adjacent(wire_format: WireFormat, messages: &[Message], range: Range<usize>) -> bool {
    let Some(shown) = messages.get(range) else { return true };
    let Some((_, rest)) = shown.split_first().filter(|(first, _)| first.has_calls()) else { return true };
    rest.iter().all(Message::has_results)
        && (wire_format == WireFormat::Chat || (rest.len() <= 1 && rest.iter().all(results_come_first)))
}

fn results_come_first(message: &Message) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    message.parts().iter().skip_while(|part| is_result(part)).all(|part| !is_result(part))
}

/// A call with the position of its result.
struct Pair {
    call: usize,
    id: String,
    result: Option<Place>,
}

/// A part of a message, both by index.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    message: usize,
    part: usize,
}

/// Mends one broken group.
struct Mender<'a> {
    wire_format: WireFormat,
    messages: &'a [Message],
    group: Group,
    shown: Vec<ViewItem>,
    pairs: Vec<Pair>,
    is_last: bool,
    repairs: Repairs,
}

impl<'a> Mender<'a> {
    fn new(
        wire_format: WireFormat,
        messages: &'a [Message],
        group: Group,
        shown: Vec<ViewItem>,
        is_last: bool,
    ) -> Self {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut orphan_results = 0;
        for (index, message) in messages.iter().enumerate().take(group.end).skip(group.start) {
            for (part, content) in message.parts().iter().enumerate() {
                let Part::ToolResult { call_id, .. } = content else { continue };
                let id = message.str(*call_id);
                // As in `Groups`: the newest open call with that id.
                match pairs.iter_mut().rev().find(|pair| pair.result.is_none() && pair.id == id) {
                    Some(pair) => pair.result = Some(Place { message: index, part }),
                    None => orphan_results += 1,
                }
            }
            pairs.extend(message.calls().map(|(id, _, _)| Pair {
                call: index,
                id: message.str(id).into_owned(),
                result: None,
            }));
        }
        let repairs = Repairs { orphan_results, ..Repairs::default() };
        Self { wire_format, messages, group, shown, pairs, is_last, repairs }
    }

    fn mend(&mut self, out: &mut Vec<ViewItem>) {
        match self.wire_format {
            WireFormat::Anthropic => self.mend_blocks(out),
            WireFormat::Chat => self.mend_messages(out),
            WireFormat::Responses if self.has_clash() => self.mend_messages(out),
            WireFormat::Responses => self.mend_in_place(out),
        }
    }

    fn has_clash(&self) -> bool {
        let mut ids: Vec<&str> = self.pairs.iter().map(|pair| pair.id.as_str()).collect();
        ids.sort_unstable();
        ids.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn message(&self, index: usize) -> Option<&'a Message> {
        self.messages.get(index)
    }

    fn item(&self, index: usize) -> Option<ViewItem> {
        self.shown.get(index.checked_sub(self.group.start)?).cloned()
    }

    fn answers(&self, index: usize) -> bool {
        self.message(index).is_some_and(Message::has_results)
    }

    /// Whether calls of this message may stay open: only results follow it in the whole conversation.
    fn may_wait(&self, index: usize) -> bool {
        self.is_last && (index + 1..self.group.end).all(|later| self.answers(later))
    }

    fn known(&self, index: usize) -> bool {
        self.pairs.iter().any(|pair| pair.result.is_some_and(|place| place.message == index))
    }

    fn stub(&mut self, id: &str, out: &mut Vec<ViewItem>) {
        self.repairs.stub_results += 1;
        let json = tool_result_stub(self.wire_format, id, Repairs::STUB_RESULT);
        out.push(ViewItem::Synthetic(Synthetic::StubResult, json));
    }

    /// One message per result, anywhere after its call: orphans are removed, stubs are added at the end.
    fn mend_in_place(&mut self, out: &mut Vec<ViewItem>) {
        for index in self.group.start..self.group.end {
            if !self.answers(index) || self.known(index) {
                out.extend(self.item(index));
            }
        }
        let open: Vec<String> =
            self.pairs.iter().filter(|pair| pair.result.is_none()).map(|pair| pair.id.clone()).collect();
        if !self.is_last {
            open.iter().for_each(|id| self.stub(id, out));
        }
    }

    /// One message per result, right after its call: results are moved to their calls, and stubs are added there.
    fn mend_messages(&mut self, out: &mut Vec<ViewItem>) {
        for index in self.group.start..self.group.end {
            if self.answers(index) {
                continue;
            }
            out.extend(self.item(index));
            let mut places: Vec<usize> = Vec::new();
            let mut open: Vec<String> = Vec::new();
            for pair in self.pairs.iter().filter(|pair| pair.call == index) {
                match pair.result {
                    Some(place) => places.push(place.message),
                    None => open.push(pair.id.clone()),
                }
            }
            places.sort_unstable();
            places.dedup();
            let apart = (index + 1..).zip(&places).filter(|(expected, place)| expected != *place).count();
            self.repairs.moved_results += apart;
            out.extend(places.iter().filter_map(|place| self.item(*place)));
            if !self.may_wait(index) {
                open.iter().for_each(|id| self.stub(id, out));
            }
        }
    }

    /// Results as blocks: all of an answer's in the next message, before anything else in it.
    fn mend_blocks(&mut self, out: &mut Vec<ViewItem>) {
        for index in self.group.start..self.group.end {
            if !self.answers(index) {
                out.extend(self.item(index));
                self.answer_calls_of(index, out);
            } else if !self.known(index) {
                // Only orphans: its other content remains.
                out.extend(self.rewritten(index, Vec::new(), self.other_blocks(index)));
            }
        }
    }

    fn answer_calls_of(&mut self, index: usize, out: &mut Vec<ViewItem>) {
        let wanted: Vec<(String, Option<Place>)> = self
            .pairs
            .iter()
            .filter(|pair| pair.call == index)
            .map(|pair| (pair.id.clone(), pair.result))
            .collect();
        let mut carriers: Vec<usize> =
            wanted.iter().filter_map(|(_, place)| Some(place.as_ref()?.message)).collect();
        carriers.sort_unstable();
        carriers.dedup();
        let may_wait = self.may_wait(index);
        let mut blocks = Vec::new();
        for (id, place) in &wanted {
            match place {
                Some(place) => {
                    self.repairs.moved_results += usize::from(place.message != index + 1);
                    blocks.extend(self.block(*place));
                }
                None if may_wait => {}
                None => {
                    self.repairs.stub_results += 1;
                    blocks.push(tool_result_stub(self.wire_format, id, Repairs::STUB_RESULT));
                }
            }
        }
        let Some(&first) = carriers.first() else {
            if !blocks.is_empty() {
                let json = format!("{{\"role\":\"user\",\"content\":[{}]}}", blocks.join(","));
                out.push(ViewItem::Synthetic(Synthetic::StubResult, json));
            }
            return;
        };
        // Content of a carrier other than results goes with the last answer whose results it carries.
        let mut others = Vec::new();
        for &carrier in &carriers {
            let needed_later = self
                .pairs
                .iter()
                .any(|pair| pair.call > index && pair.result.is_some_and(|place| place.message == carrier));
            if !needed_later {
                others.extend(self.other_blocks(carrier));
            }
        }
        out.extend(self.rewritten(first, blocks, others));
    }

    /// A message as it is shown: its rendition, decoded, or itself.
    fn as_shown(&self, index: usize) -> Option<Cow<'a, Message>> {
        match self.item(index)? {
            ViewItem::Rendition { rendition, .. } => decode_message_text(rendition.json).ok().map(Cow::Owned),
            _ => self.message(index).map(Cow::Borrowed),
        }
    }

    fn block(&self, place: Place) -> Option<String> {
        let message = self.as_shown(place.message)?;
        let content = message.raw(message.content_span()?);
        RawJson(content).elements().nth(place.part).map(|block| block.0.to_owned())
    }

    fn other_blocks(&self, index: usize) -> Vec<String> {
        let Some(message) = self.as_shown(index) else { return Vec::new() };
        let Some(content) = message.content_span().map(|span| message.raw(span)) else { return Vec::new() };
        RawJson(content)
            .elements()
            .enumerate()
            .filter(|(at, _)| !matches!(message.parts().get(*at), Some(Part::ToolResult { .. })))
            .map(|(_, block)| block.0.to_owned())
            .collect()
    }

    /// Returns a message with these blocks in place of its own; `None` if there are none.
    fn rewritten(&self, index: usize, blocks: Vec<String>, others: Vec<String>) -> Option<ViewItem> {
        let message = self.as_shown(index)?;
        let span = message.content_span()?;
        let blocks: Vec<String> = blocks.into_iter().chain(others).collect();
        if blocks.is_empty() {
            return None;
        }
        let json = message.json();
        let before = json.get(..span.start as usize)?;
        let after = json.get(span.end as usize..)?;
        let json = format!("{before}[{}]{after}", blocks.join(","));
        let item = self.item(index)?;
        if json == message.json() {
            return Some(item);
        }
        let mut kinds = item.renditions().to_vec();
        kinds.push(RenditionKind::Mended);
        Some(ViewItem::Rendition { message: index, rendition: Rendition { kinds, json } })
    }
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
