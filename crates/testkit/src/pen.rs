//! The state that the writers of the three wire formats share: the list being written, its style, and the level of detail.

use throughline_transcript::Role;

use crate::json_text::{Object, Style};
use crate::rng::Rng;
use crate::tools::{self, Amount, Family, ToolRun};
use crate::words::{self, Kind, Voice};

/// How detailed a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything that its seed selects.
    Rich,
    /// The simplest message of its kind, for shrunk cases.
    Plain,
}

/// The naming of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Unique ids, as the large providers use.
    Unique,
    /// Counted from zero in every answer, as some local servers do.
    PerAnswer,
}

/// Writes the messages of one list.
pub(crate) struct Pen {
    pub(crate) rng: Rng,
    pub(crate) style: Style,
    pub(crate) voice: Voice,
    pub(crate) family: Family,
    pub(crate) ids: Ids,
    pub(crate) detail: Detail,
    pub(crate) json: Vec<String>,
    pub(crate) last_role: Option<Role>,
    pub(crate) open_calls: usize,
    ids_given: usize,
}

impl Pen {
    pub(crate) fn new(style: Style, voice: Voice, family: Family, ids: Ids) -> Self {
        Self {
            rng: Rng::new(0),
            style,
            voice,
            family,
            ids,
            detail: Detail::Rich,
            json: Vec::new(),
            last_role: None,
            open_calls: 0,
            ids_given: 0,
        }
    }

    pub(crate) fn object(&self) -> Object {
        Object::new(self.style)
    }

    pub(crate) fn push(&mut self, role: Role, json: String) {
        self.last_role = Some(role);
        self.json.push(json);
    }

    /// Whether a unit has an optional feature; true for `percent` of the rich units.
    pub(crate) fn extra(&mut self, percent: usize) -> bool {
        self.detail == Detail::Rich && self.rng.chance(percent)
    }

    /// Selects one of several forms; plain units get the first.
    pub(crate) fn form(&mut self, weights: &[usize]) -> usize {
        if self.detail == Detail::Plain { 0 } else { self.rng.weighted(weights) }
    }

    pub(crate) fn text(&mut self, kind: Kind) -> String {
        if self.detail == Detail::Rich {
            return words::text(&mut self.rng, self.voice, kind);
        }
        match kind {
            Kind::Request => "do it",
            Kind::Answer => "done",
            Kind::Thought => "hm",
            Kind::Reminder => "<system-reminder>x</system-reminder>",
            Kind::Instructions => "be brief",
        }
        .to_owned()
    }

    pub(crate) fn tool_runs(&mut self, count: usize) -> Vec<ToolRun> {
        if self.detail == Detail::Plain {
            let plain = |rng: &mut Rng| tools::run_plainest(rng, self.family, self.style);
            return (0..count).map(|_| plain(&mut self.rng)).collect();
        }
        // Mostly the tools of one agent; a list may come from a conversation that changed agents.
        let family = if self.extra(10) { Family::ALL[self.rng.below(3)] } else { self.family };
        (0..count).map(|_| tools::run(&mut self.rng, family, Amount::Usual, self.style)).collect()
    }

    /// Different ids for the calls of one answer.
    pub(crate) fn call_ids(&mut self, prefix: &str, count: usize) -> Vec<String> {
        (0..count)
            .map(|index| {
                self.ids_given += 1;
                match self.ids {
                    Ids::PerAnswer => format!("functions.call:{index}"),
                    Ids::Unique => format!("{prefix}{:06}{:04x}", self.ids_given, self.rng.below(1 << 16)),
                }
            })
            .collect()
    }

    /// A unique id of an item.
    pub(crate) fn item_id(&mut self, prefix: &str) -> String {
        self.ids_given += 1;
        format!("{prefix}{:06}", self.ids_given)
    }

    /// Base64 text of a typical length.
    pub(crate) fn base64(&mut self, most: usize) -> String {
        let length = if self.detail == Detail::Rich { self.rng.between(20, most) } else { 4 };
        let mut out = String::new();
        words::base64(&mut self.rng, length, &mut out);
        out
    }

    /// The order in which results arrive: mostly that of the calls.
    pub(crate) fn arrival_order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if self.extra(30) {
            for at in (1..count).rev() {
                order.swap(at, self.rng.below(at + 1));
            }
        }
        order
    }

    /// Adds unknown members, with spellings that only a byte-for-byte copy preserves.
    pub(crate) fn odd_members(&mut self, object: Object) -> Object {
        if !self.extra(7) {
            return object;
        }
        match self.rng.below(5) {
            0 => object.raw("x_score", "1.0e2"),
            1 => object.raw("x_trace", "12345678901234567890123"),
            2 => object.raw("x_twice", "1").raw("x_twice", "2"),
            3 => object.raw("x_escapes", r#""caf\u00e9 \/ \ud83d\ude00 \ud800""#),
            _ => object.raw("x_nested", r#"{ "a" : [ ] , "b" : { "role" : "user" , "content" : -0.0 } }"#),
        }
    }

    /// Writes a role and a content value in either order, because members have none.
    pub(crate) fn spoken(&mut self, role: &str, content: &str) -> Object {
        let object = self.object();
        if self.extra(15) {
            object.raw("content", content).text("role", role)
        } else {
            object.text("role", role).raw("content", content)
        }
    }

    /// A text as a JSON string.
    pub(crate) fn quoted(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        self.style.string(text, &mut out);
        out
    }

    /// Values as a JSON list.
    pub(crate) fn listed(&self, values: &[String]) -> String {
        format!("[{}]", values.join(self.style.comma()))
    }
}
