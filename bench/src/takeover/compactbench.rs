//! Runs the practice sets of CompactBench (PyPI `compactbench`) through compactions by rules, three in a row.
//!
//! The package writes the cases; its templates are in its source distribution, under `benchmarks/public`. A case is inserted at the
//! beginning, in the middle and at the end of a generated coding session. After each compaction the conversation continues with the
//! package's question at that point and more work. No model answers here: a name, decision or rule counts as kept if its words, without
//! case and with runs of white space as one space, are in the notes (or in the view).

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use throughline_testkit::{ScenarioOptions, scenario};
use throughline_transcript::{Role, WireFormat, text_message};

use super::compactor::Compactor;
use super::log::Spoken;
use super::text::fold;
use super::{NOTES_TAG, view_text};

const SCRIPT: &str = include_str!("compactbench.py");
/// The number of compactions in a row.
const CYCLES: usize = 3;
/// Turns of the session around a case, and turns between two compactions.
const TURNS_AROUND: usize = 12;
const TURNS_BETWEEN: usize = 4;

#[derive(Deserialize)]
struct Case {
    name: String,
    turns: Vec<(String, String)>,
    continuations: Vec<String>,
    entities: Vec<String>,
    decisions: Vec<String>,
    forbidden: Vec<String>,
    unresolved: Vec<String>,
}

impl Case {
    fn wanted(&self) -> [&[String]; KINDS.len()] {
        [&self.entities, &self.decisions, &self.forbidden, &self.unresolved]
    }
}

/// The position of a case.
#[derive(Clone, Copy)]
enum Place {
    Beginning,
    Middle,
    End,
}

/// Hits in the notes, hits in the view, and their maximum.
#[derive(Clone, Copy, Default)]
struct Kept {
    notes: usize,
    view: usize,
    of: usize,
}

const KINDS: [&str; 4] = ["entities", "decisions", "rules", "unresolved"];

/// Runs the benchmark and formats what is kept after each of three compactions.
pub(crate) fn run(python: &Path, sets: &Path, seeds: u32) -> Result<String, String> {
    if !sets.is_dir() {
        return Err(format!("practice sets not found: {} is no folder", sets.display()));
    }
    let cases = cases(python, sets, seeds)?;
    let compactor = Compactor::new(200_000, &[])?;
    let mut sums = [[Kept::default(); KINDS.len()]; CYCLES];
    for (number, case) in cases.iter().enumerate() {
        for place in [Place::Beginning, Place::Middle, Place::End] {
            measure(case, number as u64, place, &compactor, &mut sums)
                .map_err(|error| format!("{}: {error}", case.name))?;
        }
    }
    let stated = stated(&cases);
    let mut out = format!(
        "{} cases, each at three places; percent in the notes (in the view), of so many\n\
         in the case: its words stand in the case itself, so that they can be kept word for word\n\n",
        cases.len()
    );
    let _ = writeln!(
        out,
        "{:14}{:>12}{:>24}{:>24}{:>24}",
        "", "in the case", "first compaction", "second", "third"
    );
    for (kind, name) in KINDS.iter().enumerate() {
        let (hits, of) = stated[kind];
        let _ = write!(out, "{name:14}{:>12.1}", 100.0 * hits as f64 / of.max(1) as f64);
        for cycle in &sums {
            let kept = cycle[kind];
            let percent = |hits: usize| 100.0 * hits as f64 / kept.of.max(1) as f64;
            let figure = format!("{:.1} ({:.1}) of {}", percent(kept.notes), percent(kept.view), kept.of);
            let _ = write!(out, "{figure:>24}");
        }
        out.push('\n');
    }
    Ok(out)
}

/// The number of searched strings that the cases themselves contain, and of all.
fn stated(cases: &[Case]) -> [(usize, usize); KINDS.len()] {
    let mut sums = [(0, 0); KINDS.len()];
    for case in cases {
        let texts: Vec<&str> = case.turns.iter().map(|(_, text)| text.as_str()).collect();
        let text = fold(&texts.join("\n"));
        for (sum, words) in sums.iter_mut().zip(case.wanted()) {
            sum.0 += words.iter().filter(|words| text.contains(&fold(words))).count();
            sum.1 += words.len();
        }
    }
    sums
}

/// The cases written by the package.
fn cases(python: &Path, sets: &Path, seeds: u32) -> Result<Vec<Case>, String> {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(sets)
        .arg(seeds.to_string())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", python.display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or_default();
        return Err(format!("CompactBench did not write its cases (pip install compactbench): {last}"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect()
}

fn session(turns: usize, seed: u64) -> Result<Vec<Spoken>, String> {
    let scenario = scenario(ScenarioOptions { wire_format: WireFormat::Chat, turns, seed });
    scenario.list.json.iter().map(|json| Spoken::parse(json)).collect()
}

fn say(role: Role, text: &str) -> Result<Spoken, String> {
    Spoken::parse(&text_message(WireFormat::Chat, role, text))
}

fn measure(
    case: &Case,
    number: u64,
    place: Place,
    compactor: &Compactor,
    sums: &mut [[Kept; KINDS.len()]; CYCLES],
) -> Result<(), String> {
    let (before, after) = match place {
        Place::Beginning => (0, TURNS_AROUND),
        Place::Middle => (TURNS_AROUND / 2, TURNS_AROUND / 2),
        Place::End => (TURNS_AROUND, 0),
    };
    let seed = 1_000 + number * 10;
    let mut view = if before > 0 { session(before, seed)? } else { Vec::new() };
    for (role, text) in &case.turns {
        let role = match role.as_str() {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        view.push(say(role, text)?);
    }
    if after > 0 {
        view.extend(session(after, seed + 1)?);
    }
    for (cycle, sums) in sums.iter_mut().enumerate() {
        if let Some(question) = cycle.checked_sub(1).and_then(|at| case.continuations.get(at)) {
            view.push(say(Role::User, question)?);
            view.push(say(Role::Assistant, "The next step first, then the rest of the list.")?);
            view.extend(session(TURNS_BETWEEN, seed + 2 + cycle as u64)?);
        }
        view = compactor.by_rules(&view)?;
        let notes = view.iter().map(Spoken::text).find(|text| text.contains(NOTES_TAG)).unwrap_or_default();
        let (notes, seen) = (fold(&notes), fold(&view_text(&view)));
        for (kept, words) in sums.iter_mut().zip(case.wanted()) {
            for words in words.iter().map(|words| fold(words)) {
                kept.notes += usize::from(notes.contains(&words));
                kept.view += usize::from(seen.contains(&words));
                kept.of += 1;
            }
        }
    }
    Ok(())
}
