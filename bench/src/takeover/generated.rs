//! Notes by rules of generated conversations in which the fate of every request is known.
//!
//! Two figures must be zero: open requests that are lost (neither listed in the sections about the present nor verbatim in the rest of
//! the view), and withdrawn requests that are listed as open.

use std::fmt::Write;

use serde_json::json;
use throughline_testkit::{RequestFate, Scenario, ScenarioOptions, ScenarioRequest, scenario};
use throughline_transcript::{WireFormat, decode_message_text};

use super::NOTES_TAG;
use super::compactor::Compactor;
use super::score::{NOW, NotesForm, Text, said};
use super::table::thousands;
use super::text::{fold, lines};
use crate::retention::{Counting, all_text};

const WIRES: [WireFormat; 3] = [WireFormat::Chat, WireFormat::Anthropic, WireFormat::Responses];
/// The number of conversations that are named as examples for a figure.
const EXAMPLES: usize = 5;

/// Hits and their maximum, with examples.
#[derive(Default)]
struct Figure {
    hits: usize,
    of: usize,
    examples: Vec<String>,
}

impl Figure {
    fn count(&mut self, is_hit: bool, example: impl FnOnce() -> String) {
        self.of += 1;
        if is_hit {
            self.hits += 1;
            if self.examples.len() < EXAMPLES {
                self.examples.push(example());
            }
        }
    }
}

#[derive(Default)]
struct Figures {
    lost: Figure,
    withdrawn_listed: Figure,
    not_listed: Figure,
    closed_listed: Figure,
    rules_missing: Figure,
    impostors_listed: Figure,
    items_missing: Figure,
    outcomes_wrong: Figure,
}

/// Compacts generated conversations and formats the errors.
pub(super) fn run(count: u64, compactor: &Compactor, as_json: bool) -> Result<String, String> {
    let mut figures = Figures::default();
    for seed in 0..count {
        let wire_format = WIRES[(seed % 3) as usize];
        let turns = 6 + (seed % 11) as usize;
        let scenario = scenario(ScenarioOptions { wire_format, turns, seed });
        figures.add(seed, &scenario, compactor)?;
    }
    Ok(if as_json { figures.to_json(count) } else { figures.print(count) })
}

impl Figures {
    fn add(&mut self, seed: u64, scenario: &Scenario, compactor: &Compactor) -> Result<(), String> {
        let items = compactor.view_of(&scenario.list.transcript())?;
        let (mut notes, mut rest) = (String::new(), String::new());
        for json in items {
            let message = decode_message_text(json).map_err(|error| format!("seed {seed}: {error}"))?;
            let text = all_text(&message, Counting::Everything);
            let place = if text.contains(NOTES_TAG) { &mut notes } else { &mut rest };
            place.push_str(&text);
        }
        let text = Text::of(&notes, &rest, NotesForm::Sections);
        let (now, rest) = (text.now(), fold(&rest));
        let now_lines: Vec<String> =
            NOW.iter().flat_map(|section| lines(text.raw(section))).map(fold).collect();
        // Requests of one kind differ only in their subject, so each line is checked separately.
        let is_listed = |request: &ScenarioRequest, share: f64| {
            let subject = fold(&request.subject);
            now_lines.iter().any(|line| line.contains(&subject) && said(line, &request.words, share))
        };
        for request in &scenario.requests {
            let example = || format!("seed {seed}: {}", request.words);
            match request.fate {
                fate if fate.is_open() => {
                    let is_there = is_listed(request, 0.75);
                    self.not_listed.count(!is_there, example);
                    self.lost.count(!is_there && !rest.contains(&fold(&request.words)), example);
                }
                RequestFate::Withdrawn => self.withdrawn_listed.count(is_listed(request, 0.9), example),
                _ => self.closed_listed.count(is_listed(request, 0.9), example),
            }
        }
        let rules = fold(text.raw("Constraints & Preferences"));
        for rule in &scenario.rules {
            let is_there = rules.contains(&fold(rule));
            self.rules_missing.count(!is_there, || format!("seed {seed}: {rule}"));
        }
        for words in &scenario.impostors {
            let is_listed = now.contains(&fold(words)) || rules.contains(&fold(words));
            self.impostors_listed.count(is_listed, || format!("seed {seed}: {words}"));
        }
        for (item, _) in scenario.items.iter().filter(|(_, is_open)| *is_open) {
            self.items_missing.count(!said(now, item, 0.75), || format!("seed {seed}: {item}"));
        }
        for (command, has_failed) in &scenario.runs {
            let command = fold(command);
            let told = lines(&notes).into_iter().map(fold).rfind(|line| line.contains(&command));
            if let Some(line) = told {
                let says_failed = line.contains("fail") || line.contains("exit 1") || line.contains("error");
                self.outcomes_wrong.count(says_failed != *has_failed, || format!("seed {seed}: {line}"));
            }
        }
        Ok(())
    }

    fn rows(&self) -> [(&'static str, &Figure); 8] {
        [
            ("open requests lost", &self.lost),
            ("withdrawn requests listed as open", &self.withdrawn_listed),
            ("open requests not in the sections about now", &self.not_listed),
            ("settled requests listed as open", &self.closed_listed),
            ("rules missing in their section", &self.rules_missing),
            ("words of tools taken for the person's", &self.impostors_listed),
            ("open items not in the sections about now", &self.items_missing),
            ("named runs whose last line is wrong", &self.outcomes_wrong),
        ]
    }

    fn print(&self, count: u64) -> String {
        let mut out = format!(
            "{} generated conversations on three wire formats, compacted by rules\n\n",
            thousands(count)
        );
        for (index, (name, figure)) in self.rows().into_iter().enumerate() {
            let (hits, of) = (thousands(figure.hits as u64), thousands(figure.of as u64));
            let _ = writeln!(
                out,
                "{name:46}{hits:>8} of {of:>8}{}",
                if index < 2 { "   (must be 0)" } else { "" }
            );
        }
        for (name, figure) in self.rows() {
            for example in &figure.examples {
                let _ = write!(out, "\n{name}: {example}");
            }
        }
        out.push('\n');
        out
    }

    fn to_json(&self, count: u64) -> String {
        let rows: serde_json::Map<_, _> = self
            .rows()
            .into_iter()
            .map(|(name, figure)| (name.to_owned(), json!([figure.hits, figure.of])))
            .collect();
        json!({ "conversations": count, "figures": rows }).to_string()
    }
}
