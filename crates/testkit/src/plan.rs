//! The plan of a generated list: a row of independent units. If units are removed, the list is still one that a provider accepts, which
//! makes shrinking simple.

use throughline_transcript::{Role, WireFormat, text_message};

use crate::json_text::Style;
use crate::list::GeneratedList;
use crate::pen::{Detail, Ids, Pen};
use crate::rng::Rng;
use crate::tools::{Family, ToolRun};
use crate::words::Voice;
use crate::{anthropic_wire, chat_wire, responses_wire};

/// Whether the last calls of a list may have no results yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ending {
    /// Every call has its result.
    #[default]
    Settled,
    /// In some lists, some or all of the last calls have no result yet.
    MayBeOpen,
}

/// The kind of lists to generate.
#[derive(Clone, Debug)]
pub struct ConversationOptions {
    /// The wire format.
    pub wire_format: WireFormat,
    /// Whether calls at the end may have no results.
    pub ending: Ending,
    /// The text of an earlier summary, which every list contains near its start as a separate message.
    pub summary: Option<String>,
    /// The most units (answers with their results, or single messages) of a list.
    pub most_units: usize,
}

impl ConversationOptions {
    /// Settled lists without a summary, of up to a few hundred messages.
    #[must_use]
    pub fn new(wire_format: WireFormat) -> Self {
        Self { wire_format, ending: Ending::Settled, summary: None, most_units: 160 }
    }

    /// Allows last calls without results.
    #[must_use]
    pub fn may_be_open(self) -> Self {
        Self { ending: Ending::MayBeOpen, ..self }
    }

    /// Adds a summary to every list.
    #[must_use]
    pub fn with_summary(self, text: impl Into<String>) -> Self {
        Self { summary: Some(text.into()), ..self }
    }

    /// Limits the size of lists.
    #[must_use]
    pub fn at_most_units(self, units: usize) -> Self {
        Self { most_units: units, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Human,
    Machine,
    Answer,
    EmptyAnswer,
    Instructions,
    Foreign,
    Step {
        calls: usize,
        /// The number of calls without a result, if this is the last unit of the list.
        open: usize,
    },
    Summary,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) kind: UnitKind,
    pub(crate) seed: u64,
    pub(crate) detail: Detail,
}

impl Unit {
    /// Simpler units of the same kind, in the order in which shrinking tries them.
    pub(crate) fn simpler(self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.detail == Detail::Rich {
            found.push(Self { detail: Detail::Plain, ..self });
        }
        if let UnitKind::Step { calls, open } = self.kind
            && calls > 1
        {
            let fewer = |calls: usize| Self { kind: UnitKind::Step { calls, open: open.min(calls) }, ..self };
            found.push(fewer(calls / 2));
            found.push(fewer(calls - 1));
        }
        found
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    wire_format: WireFormat,
    style: Style,
    voice: Voice,
    family: Family,
    ids: Ids,
    summary: Option<String>,
    pub(crate) units: Vec<Unit>,
}

/// The kinds of units, in the order of the weights below.
const KINDS: [UnitKind; 7] = [
    UnitKind::Human,
    UnitKind::Machine,
    UnitKind::Answer,
    UnitKind::EmptyAnswer,
    UnitKind::Instructions,
    UnitKind::Foreign,
    UnitKind::Step { calls: 1, open: 0 },
];
/// The weights of a working agent.
const WORKING: [usize; 7] = [8, 3, 10, 1, 2, 3, 73];
/// The weights of a human and a model talking.
const CHATTING: [usize; 7] = [44, 4, 44, 2, 1, 1, 4];
/// The weights of one request followed by work only.
const ENDLESS: [usize; 7] = [0, 1, 2, 0, 0, 1, 96];
/// The weights of arbitrary order: every pair of roles occurs.
const ANYTHING: [usize; 7] = [20, 12, 18, 8, 12, 10, 20];

impl Plan {
    /// Decides everything except the text.
    pub(crate) fn new(options: &ConversationOptions, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let count = match rng.below(1000) {
            0..20 => 0,
            20..300 => rng.between(1, 4),
            300..720 => rng.between(5, 14),
            720..920 => rng.between(15, 30),
            920..985 => rng.between(31, 70),
            _ => rng.between(71, 160),
        }
        .min(options.most_units);
        let weights = [WORKING, CHATTING, ENDLESS, ANYTHING][rng.weighted(&[35, 15, 10, 40])];
        let mut units: Vec<Unit> = (0..count).map(|_| unit(&mut rng, &weights)).collect();
        if options.ending == Ending::MayBeOpen && count > 0 && rng.chance(50) {
            let calls = rng.between(1, 4);
            let open = rng.between(1, calls);
            units.push(Unit { kind: UnitKind::Step { calls, open }, ..unit(&mut rng, &weights) });
        }
        if options.summary.is_some() {
            let at = rng.below(units.len().min(4) + 1);
            units.insert(at, Unit { kind: UnitKind::Summary, ..unit(&mut rng, &weights) });
        }
        let own_family = match options.wire_format {
            WireFormat::Chat => Family::Hermes,
            WireFormat::Responses => Family::Codex,
            WireFormat::Anthropic => Family::ClaudeCode,
        };
        Self {
            wire_format: options.wire_format,
            style: Style { spaced: rng.chance(30), ascii: rng.chance(15) },
            voice: if rng.chance(60) { Voice::English } else { Voice::World },
            family: if rng.chance(75) { own_family } else { Family::ALL[rng.below(3)] },
            // Anthropic requires ids that are unique in the whole list.
            ids: if options.wire_format != WireFormat::Anthropic && rng.chance(8) {
                Ids::PerAnswer
            } else {
                Ids::Unique
            },
            summary: options.summary.clone(),
            units,
        }
    }

    /// Writes the list.
    pub(crate) fn write(&self) -> GeneratedList {
        let mut pen = Pen::new(self.style, self.voice, self.family, self.ids);
        let mut summary_at = None;
        let mut opened = false;
        for (index, unit) in self.units.iter().enumerate() {
            let is_last = index + 1 == self.units.len();
            let leads = matches!(unit.kind, UnitKind::Human | UnitKind::Machine | UnitKind::Summary);
            let instructs = unit.kind == UnitKind::Instructions;
            if !opened && instructs && self.wire_format == WireFormat::Anthropic {
                // In this wire format, the first instructions are not part of the list.
                continue;
            }
            if !opened && !leads && !instructs {
                pen.rng = Rng::new(unit.seed ^ 1);
                pen.detail = unit.detail;
                self.write_unit(&mut pen, UnitKind::Human, false);
            }
            opened |= !instructs;
            if unit.kind == UnitKind::Summary {
                summary_at = Some(pen.json.len());
            }
            pen.rng = Rng::new(unit.seed);
            pen.detail = unit.detail;
            self.write_unit(&mut pen, unit.kind, is_last);
        }
        GeneratedList {
            wire_format: self.wire_format,
            json: pen.json,
            open_calls: pen.open_calls,
            summary_at,
            separator: self.style.comma(),
        }
    }

    fn write_unit(&self, pen: &mut Pen, kind: UnitKind, is_last: bool) {
        use UnitKind as U;
        match (self.wire_format, kind) {
            (_, U::Summary) => self.write_summary(pen),
            (_, U::Step { calls, open }) => {
                let open = if is_last { open } else { 0 };
                pen.open_calls = open;
                let runs = pen.tool_runs(calls);
                write_step(self.wire_format, pen, &runs, calls - open);
            }
            (WireFormat::Chat, U::Human) => chat_wire::human(pen),
            (WireFormat::Chat, U::Machine) => chat_wire::machine(pen),
            (WireFormat::Chat, U::Answer) => chat_wire::answer(pen),
            (WireFormat::Chat, U::EmptyAnswer) => chat_wire::empty_answer(pen),
            (WireFormat::Chat, U::Instructions) => chat_wire::instructions(pen),
            (WireFormat::Chat, U::Foreign) => chat_wire::foreign(pen),
            (WireFormat::Responses, U::Human) => responses_wire::human(pen),
            (WireFormat::Responses, U::Machine) => responses_wire::machine(pen),
            (WireFormat::Responses, U::Answer) => responses_wire::answer(pen),
            (WireFormat::Responses, U::EmptyAnswer) => responses_wire::empty_answer(pen),
            (WireFormat::Responses, U::Instructions) => responses_wire::instructions(pen),
            (WireFormat::Responses, U::Foreign) => responses_wire::foreign(pen),
            (WireFormat::Anthropic, U::Human) => anthropic_wire::human(pen),
            (WireFormat::Anthropic, U::Machine) => anthropic_wire::machine(pen),
            (WireFormat::Anthropic, U::EmptyAnswer) if is_last => anthropic_wire::empty_answer(pen),
            (WireFormat::Anthropic, U::Answer | U::EmptyAnswer) => anthropic_wire::answer(pen),
            (WireFormat::Anthropic, U::Instructions) => anthropic_wire::instructions(pen),
            (WireFormat::Anthropic, U::Foreign) => anthropic_wire::foreign(pen),
        }
    }

    /// The role of a summary differs from that of the message before it.
    fn write_summary(&self, pen: &mut Pen) {
        let role = if pen.last_role == Some(Role::User) { Role::Assistant } else { Role::User };
        let text = self.summary.as_deref().unwrap_or_default();
        pen.push(role, text_message(self.wire_format, role, text));
    }
}

/// Writes an answer with these tool calls, and the results of `answered` of them.
pub(crate) fn write_step(wire_format: WireFormat, pen: &mut Pen, runs: &[ToolRun], answered: usize) {
    match wire_format {
        WireFormat::Chat => chat_wire::step(pen, runs, answered),
        WireFormat::Responses => responses_wire::step(pen, runs, answered),
        WireFormat::Anthropic => anthropic_wire::step(pen, runs, answered),
    }
}

fn unit(rng: &mut Rng, weights: &[usize; 7]) -> Unit {
    let kind = match KINDS[rng.weighted(weights)] {
        UnitKind::Step { .. } => {
            let calls = [1, 2, 3, 4, 6, 9][rng.weighted(&[60, 20, 10, 5, 4, 1])];
            UnitKind::Step { calls, open: 0 }
        }
        other => other,
    };
    Unit { kind, seed: rng.next_u64(), detail: Detail::Rich }
}
